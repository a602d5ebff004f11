"""Numbers out of plain lines of text, where the scanner was compiled."""

from pogp.arrays import Array, Indices
from pogp.backends import BUILT, backend

if BUILT:
    from pogp.cli.tables.scanner import scan as scan_compiled


def scan(data: bytes, delimiter: str, slots: Indices, wanted: int) -> tuple[Array, Indices] | None:
    """Return the numbers of lines of text, and where they end; None unless all are plain.

    Cell i of a line goes to the column `slots[i]`, and nowhere if that is negative. None also where
    nothing is compiled, and the caller has to do without.
    """
    return scan_compiled(data, delimiter, slots, wanted) if backend() == "compiled" else None
