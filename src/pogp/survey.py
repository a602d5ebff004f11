"""What a budget buys: the model order and the error that a first slice of the stream suggests."""

from collections.abc import Iterable
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike

from pogp import metrics, validation
from pogp.models import AbsorbingPOG

BUDGETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4)


@dataclass(frozen=True)
class Row:
    """One budget: the order reached, and how well each sample was predicted before it was learned.

    `growth` is the order at the end over that at half time: well above one, it is still growing.
    """

    budget: float | None
    size: int
    growth: float
    smse: float
    nlpd: float
    microseconds: float


@dataclass(frozen=True)
class Survey:
    """A row per budget; printed, it is a table."""

    rows: tuple[Row, ...]
    samples: int

    def __str__(self) -> str:
        lines = [
            f"the second half of {self.samples} samples, predicted before learned",
            "  budget   order   still growing     SMSE     NLPD   µs/sample",
        ]
        for row in self.rows:
            budget = "none" if row.budget is None else f"{row.budget:g}"
            growing = f"×{row.growth:.2f}"
            lines.append(
                f"{budget:>8} {row.size:>7} {growing:>15} {row.smse:>8.4f} {row.nlpd:>8.3f} "
                f"{row.microseconds:>11.0f}"
            )
        return "\n".join(lines)


def survey(
    X: ArrayLike,
    y: ArrayLike,
    kernel: object,
    noise: float,
    budgets: Iterable[float | None] = BUDGETS,
    *,
    max_size: int | None = None,
    mean: float = 0.0,
    seed: int = 0,
) -> Survey:
    """Learn a slice once for each budget, and return what each costs and gains.

    The slice should be a few thousand samples from the stream, or all there is; errors are of its
    second half, each sample predicted before it was learned, and SMSE is relative to the variance
    there. With a `max_size` that is kept too. `None` among the budgets removes only for `max_size`.

    >>> import numpy as np, pogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (600, 1))
    >>> found = survey(X, np.sin(2 * X[:, 0]), pogp.RBF(0.7), 0.01, (0.02, 0.4))
    >>> [row.budget for row in found.rows], found.rows[0].size > found.rows[1].size
    ([0.02, 0.4], True)
    """
    X, y = validation.samples(X, y, None)
    if len(y) < 4:
        raise ValueError(f"a survey needs at least 4 samples, got {len(y)}")
    rows = []
    for budget in budgets:
        model = AbsorbingPOG(kernel, noise, budget, max_size=max_size, mean=mean, seed=seed)
        started = perf_counter()
        trace = model.learn(X, y)
        seconds = perf_counter() - started
        half = slice(len(y) // 2, None)
        scale = float(np.var(y[half])) or 1.0
        rows.append(
            Row(
                budget=budget,
                size=model.size,
                growth=model.size / int(trace.size[len(y) // 2 - 1]),
                smse=float(metrics.smse(y[half], trace.mean[half], scale)),
                nlpd=float(metrics.nlpd(y[half], trace.mean[half], trace.variance[half])),
                microseconds=1e6 * seconds / len(y),
            )
        )
    return Survey(tuple(rows), len(y))
