"""Rows from CSV, JSON lines, Parquet or standard input, read in bounded memory.

A `Table` has named columns and yields its rows in batches. A row that cannot be used is in its
batch too, with its line and the reason. A `Position` is the place of a row in the table, so that
reading can continue there in another run.

| module | content |
|---|---|
| `table` | the table, its columns, its batches, and the chunks that a model learns |
| `text` | the table in a text: bytes of a file or pipe, in blocks of lines |
| `records` | lines of CSV and JSON as rows of cells, and the numbers in cells |
| `parquet` | the table in a Parquet file |
| `read_ahead` | batches of a pipe, read in a thread |
"""

from pogp.cli.tables.table import Batch, Choice, Layout, Position, Table, chunks, open_table

__all__ = ["Batch", "Choice", "Layout", "Position", "Table", "chunks", "open_table"]
