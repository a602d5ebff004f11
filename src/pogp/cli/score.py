"""The score of a model after two passes, and the exit code of `--require`."""

import sys
from typing import NamedTuple, Self

import numpy as np

from pogp.arrays import Array
from pogp.cli.console import say
from pogp.cli.options import TOO_POOR
from pogp.report import prose
from pogp.report.axes import number
from pogp.report.changes import robust_deviation
from pogp.report.journal import OUTLIER
from pogp.report.segments import POOR, are_rare
from pogp.report.verdicts import BETTER


class Score(NamedTuple):
    """The mean squared error of rows drawn at random, each predicted from all other rows.

    >>> print(Score(500, 0.012))
    Of 500 rows, each predicted from all others, the mean squared error is 1.2 % of the variance.
    """

    rows: int
    error: float
    """In units of the variance of the targets."""
    surprises: int = 0
    """Rows that are left out of both, as they are few and far from their predictions."""

    @classmethod
    def of(cls, y: Array, errors: Array) -> Self | None:
        """Return the score of targets with these errors, None if the targets are constant."""
        size, typical = np.abs(errors), robust_deviation(errors)
        far = size > OUTLIER * typical if typical > 0 else np.zeros(len(y), dtype=bool)
        count = int(far.sum())
        kept = ~far if are_rare(count, len(y)) else np.ones(len(y), dtype=bool)
        variance = float(np.var(y[kept]))
        if variance == 0.0:
            return None
        return cls(len(y), float(np.mean(errors[kept] ** 2)) / variance, len(y) - int(kept.sum()))

    def __str__(self) -> str:
        error = f"the mean squared error is {number(100 * self.error)} % of the variance"
        if self.surprises:
            error += f" ({prose.counted(self.surprises, 'surprise')} left out)"
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
