"""Figures 1 and 2: whether what POG predicts is distributed as what it sees.

Each sample is predicted before it is learned. The targets have no noise: once the function is known
the predicted means are the targets, and so is their distribution. The paper calls this consistency
and looks at a histogram, at moving averages and, with a z-test, at the last 100 means.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

import pogp
from experiments.methods import METHODS
from experiments.records import Records
from experiments.streams import Hyperparameters
from experiments.tasks import Scale, Task
from pogp.arrays import Array, Indices
from pogp.datasets import Dataset
from pogp.models.base import Model
from pogp.trace import Trace

COUNT, FIRST, WINDOW, LAST = 2200, 200, 200, 100
"""Samples, of which the first are tuned on; of a moving average; in the z-test."""
NOISES = (1e-6, 1e-4, 1e-2, 0.1, 0.3, 1.0)
"""Noise variances at which the model order is looked at besides the tuned one."""
PLACES, POINTS = 33, 120
"""How many moving averages and how many single predictions are kept to draw."""


@dataclass(frozen=True)
class Check:
    """One of the paper's two streams, and the law that sample t of it follows, t from 1."""

    simulate: Callable[[int, int], Dataset]
    budget: float
    law: Callable[[Array], Any]
    """A frozen distribution of scipy.stats for the targets at these t."""
    edges: Array
    """Of the histogram."""
    order: int | None
    """The final model order that the paper prints."""


CHECKS = {
    "gaussian": Check(
        simulate=pogp.datasets.gaussian,
        budget=1e-4,
        law=lambda t: stats.norm(np.full_like(t, 2.0), np.sqrt(2.5)),
        edges=np.linspace(-4.0, 8.0, 31),
        order=127,
    ),
    "chi_square": Check(
        simulate=pogp.datasets.chi_square,
        budget=1e-5,
        law=lambda t: stats.ncx2(1, t**-0.2),
        edges=np.linspace(-0.8, 11.2, 31),
        order=None,
    ),
}
SHOWN = "pog-published"
"""Whose single predictions are kept."""
MODELS = ("pog-published", "pog-written", "absorbing")
"""Whose predictions are held against the law, beside the targets themselves."""


def tasks(scale: Scale) -> list[Task]:
    """Return what to run: a task has all models on one stream, which is tuned on once."""
    names = ("count", "first", "window", "last")
    sizes = (size // scale.shrink for size in (COUNT, FIRST, WINDOW, LAST))
    options = dict(zip(names, sizes, strict=True))
    return [
        Task("consistency", topic, "all models", seed, options, weight=10.0 / scale.shrink**2)
        for topic in CHECKS
        for seed in range(scale.repeats)
    ]


def run(task: Task, records: Records) -> dict[str, Any]:
    """Tune on the first samples, predict and learn the others with each model."""
    check = CHECKS[task.topic]
    data = check.simulate(task.options["count"], task.seed)
    first = task.options["first"]
    x, y = data.x_train[first:], data.y_train[first:]
    given = _tuned(data.x_train[:first], data.y_train[:first], task.seed)
    watched = _Watched(check, first + 1.0 + np.arange(len(y)), y, task.options)
    options = {"budget": check.budget}
    traces: dict[str, Trace] = {}
    for case in MODELS:
        traces[case] = _online(case, given, options, task.seed).learn(x, y)
        # As in the paper, what has a cap is run at POG's final order.
        options.setdefault("size", int(traces[case].size[-1]))
    return {
        "noise": given.noise,
        "points": traces[SHOWN].mean[thinned(len(y))],
        "series": {
            "data": watched.described(y, np.zeros_like(y)),
            **{
                case: watched.described(trace.mean, trace.variance) | {"order": trace.size[-1]}
                for case, trace in traces.items()
            },
        },
        "orders_at_noises": [_order(given, noise, check.budget, x, y) for noise in NOISES],
    }


def _online(case: str, given: Hyperparameters, options: dict[str, Any], seed: int) -> Model:
    model = METHODS[case].make(given, options, seed)
    if not model.online:
        raise TypeError(f"{case} does not learn online")
    return model


def _tuned(x: Array, y: Array, seed: int) -> Hyperparameters:
    mean = float(np.mean(y))
    tuned = pogp.tune(x, y, mean=mean, seed=seed)
    return Hyperparameters(tuned.kernel, tuned.noise, mean)


def _order(given: Hyperparameters, noise: float, budget: float, x: Array, y: Array) -> int:
    """Return the final model order of POG as published with another noise."""
    model = pogp.POG(given.kernel, noise, budget, max_removals=1, mean=given.mean)
    model.learn(x, y)
    return model.size


@dataclass(frozen=True)
class _Watched:
    """A stream whose law is known, and what is looked at in a series of predictions of it."""

    check: Check
    t: Array
    y: Array
    options: dict[str, Any]

    def described(self, means: Array, variances: Array) -> dict[str, Any]:
        """Hold predicted means against the law; `variances` is how sure they claim to be."""
        law = self.check.law(self.t)
        deviations = (means - law.mean()) ** 2
        places = moving_places(len(self.y), self.options["window"])
        last, half = slice(-self.options["last"], None), slice(len(self.y) // 2, None)
        return {
            "moving_mean": self._moving(means, places),
            "moving_variance": self._moving(deviations, places),
            "histogram": np.histogram(means, self.check.edges)[0],
            "last_mean": np.mean(means[last]),
            # Over the second half: how widely the means spread beside the law, how sure they
            # claim to be, how far they are from the targets, and how far their distribution is
            # from the law's (Kolmogorov–Smirnov).
            "spread": np.mean((deviations / law.var())[half]),
            "claimed": np.mean((variances / law.var())[half]),
            "error": np.mean(((means - self.y) ** 2 / law.var())[half]),
            "distance": stats.kstest(law.cdf(means)[half], "uniform").statistic,
        }

    def _moving(self, values: Array, places: Indices) -> Array:
        """Return the mean of the window that ends at each place."""
        window = self.options["window"]
        return np.array([np.mean(values[place - window : place]) for place in places])


def moving_places(count: int, window: int) -> Indices:
    """Return after how many samples of the stream the moving averages are taken."""
    return np.linspace(window, count, PLACES).astype(np.int64)


def thinned(count: int) -> Indices:
    """Return which single predictions are kept."""
    return np.linspace(0, count - 1, POINTS).astype(np.int64)
