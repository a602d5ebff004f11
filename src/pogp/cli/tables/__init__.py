"""Rows from CSV, JSON lines, Parquet or standard input, read in bounded memory.

A `Table` has named columns and yields its rows in batches. A row that cannot be used is in its
batch too, with its line and the reason. A `Position` is the place of a row in the table, so that
reading can continue there in another run.

| module | content |
|---|---|
| `table` | the table, its batches and its columns |
| `lines` | the bytes of a file or pipe as blocks of lines |
| `records` | lines of CSV and JSON as rows of cells, and numbers in cells |
| `text` | the table in a text |
| `parquet` | the table in a Parquet file |
| `feed` | batches read ahead, and cut into the chunks that a model learns |
"""

import os

from pogp.cli.tables.lines import Source
from pogp.cli.tables.parquet import SIGNATURE, Parquet
from pogp.cli.tables.table import Batch, Layout, Position, Refusal, Table
from pogp.cli.tables.text import TextTable

__all__ = ["Batch", "Layout", "Position", "Refusal", "Table", "open_table"]


def open_table(path: str, layout: Layout) -> Table:
    """Return the table in a file, or in standard input if the path is "-".

    Its format is recognised by its first bytes, not by its name.
    """
    if layout.format == "parquet" or (layout.format is None and _is_parquet(path)):
        return Parquet(path)
    source = Source(path)
    try:
        return TextTable(source, layout)
    except BaseException:
        source.close()
        raise


def _is_parquet(path: str) -> bool:
    if not os.path.isfile(path):  # the first bytes of a pipe must not get lost
        return False
    with open(path, "rb") as file:
        return file.read(len(SIGNATURE)) == SIGNATURE
