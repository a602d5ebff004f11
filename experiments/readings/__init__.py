"""What the records say: the numbers of the report's tables, figures and sentences."""
