"""The paper's data sets as streams: an order, a first slice for tuning, the rest, a test set.

Repeat 0 has the order of the authors' files, the others a random order. The hyperparameters and the
prior mean come from the first slice. The test set is only used for scores.
"""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

import pogp
from experiments.published import SETS
from pogp.evaluation.streams import Hyperparameters, Stream, reordered
from pogp.kernels import kernel_from_spec

__all__ = ["Hyperparameters", "Stream", "found_in", "missing", "stream"]


def found_in(result: dict[str, Any]) -> Hyperparameters:
    """Read the result of a `tune` task."""
    return Hyperparameters(kernel_from_spec(result["kernel"]), result["noise"], result["mean"])


@cache
def stream(name: str, seed: int, samples: int | None) -> Stream:
    """Return a data set in the order of one repeat, or so many samples and half as many tests."""
    data = pogp.datasets.load(name)
    if samples is not None:
        tests = slice(samples // 2)
        data = replace(data, x_test=data.x_test[tests], y_test=data.y_test[tests])
    count = len(data.y_train)
    order = np.arange(count) if seed == 0 else np.random.default_rng(seed).permutation(count)
    return Stream.of(reordered(data, order[:samples]), SETS[name].tune)


def missing() -> dict[str, str]:
    """Return the data sets that cannot be loaded here, each with the reason."""
    reasons = {}
    for name in SETS:
        try:
            pogp.datasets.load(name)
        except (pogp.datasets.DataUnavailable, pogp.datasets.DigestError, OSError) as error:
            reasons[name] = str(error)
    return reasons
