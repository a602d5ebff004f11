"""Our models side by side with what people use, on the same streams, in the same run.

`make peers` runs everything and writes docs/comparison.md; `make peers-quick` is a small form.

| module | what it holds |
|---|---|
| `registry` | the peers: labels, settings, packages |
| `adapters/` | each peer behind one protocol: rows, predict, learn, to_bytes |
| `tasks` | the streams, and what to run on them |
| `passage` | one peer's way through one stream, measured |
| `processes` | a process of its own for each run |
| `readings` | the records as rows of tables, and who wins |
| `tables`, `frontier`, `report` | tables, the figure and the page |
"""
