"""Rows of numbers from CSV, Parquet or standard input, in pieces: memory does not grow with them.

A `Table` knows its columns and gives its rows in a `Batch` after another. A row that cannot be used
is there too, with its line and what is wrong with it. A `Position` says where in the table a row
ends, so that reading can go on from there another day.
"""

from pogp.cli.tables.batch import Batch, Position, Refusal
from pogp.cli.tables.opening import open_table
from pogp.cli.tables.read_ahead import Ahead
from pogp.cli.tables.table import Layout, Table

__all__ = ["Ahead", "Batch", "Layout", "Position", "Refusal", "Table", "open_table"]
