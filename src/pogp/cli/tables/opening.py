"""From what the user names to a table."""

import os

from pogp.cli.tables.delimited import Delimited
from pogp.cli.tables.parquet import SIGNATURE, Parquet
from pogp.cli.tables.source import Source
from pogp.cli.tables.table import Layout, Table


def open_table(path: str, layout: Layout) -> Table:
    """Return the table in a file, or in standard input if the path is "-".

    What it is shows in its first bytes, not in its name.
    """
    if _is_parquet(path):
        return Parquet(path)
    source = Source(path)
    try:
        return Delimited(source, layout)
    except BaseException:
        source.close()
        raise


def _is_parquet(path: str) -> bool:
    if not os.path.isfile(path):  # a pipe must not lose its first bytes
        return False
    with open(path, "rb") as file:
        return file.read(len(SIGNATURE)) == SIGNATURE
