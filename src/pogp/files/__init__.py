"""Model files: their format, atomic writes, migration of old schemas, saving and loading."""
