"""The score of a model after two passes, and the exit code of `--require`."""

import sys
from typing import NamedTuple

from pogp.cli.console import say
from pogp.cli.options import TOO_POOR
from pogp.report import prose
from pogp.report.axes import number
from pogp.report.segments import POOR
from pogp.report.verdicts import BETTER


class Score(NamedTuple):
    """The mean squared error of rows drawn at random, each predicted from all other rows.

    >>> print(Score(500, 0.012))
    Of 500 rows, each predicted from all others, the mean squared error is 1.2 % of the variance.
    """

    rows: int
    error: float
    """In units of the variance of the targets."""

    def __str__(self) -> str:
        error = f"the mean squared error is {number(100 * self.error)} % of the variance"
        rows = prose.counted(self.rows, "row")
        return f"Of {rows}, each predicted from all others, {error}.{self._verdict()}"

    def _verdict(self) -> str:
        if self.error < POOR:
            return ""
        found = "worse" if self.error * BETTER > 1 else "not clearly better"
        return f" The predictions are {found} than the mean of the targets would be."


def required(limit: float | None, error: float | None) -> int:
    """Return the exit code; an `error` of None is not known, and does not meet a limit."""
    if limit is None or (error is not None and error <= limit):
        return 0
    text = "not known" if error is None else f"{error:.4g} of the variance"
    say(f"pogp: --require {limit:g} is not met: the mean squared error is {text}", sys.stderr)
    return TOO_POOR
