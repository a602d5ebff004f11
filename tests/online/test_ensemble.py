"""The members of the mixture: those that do not predict keep their weights."""

import numpy as np
import pytest

from pogp.online.arithmetic import log_sum_exp
from pogp.online.simple_predictors import LAST, LINEAR
from pogp.online.stream import Stream
from pogp.trace import blank

RECORD = blank(1, 1).shape[1]


@pytest.fixture
def line() -> tuple[Stream, np.ndarray, np.ndarray]:
    """A stream that has learned y = 2x on ±1, and samples far outside."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.uniform(-1, 1, (300, 1)), rng.uniform(90, 110, (150, 1))])
    Y = 2 * X + 0.1 * rng.normal(size=X.shape)
    stream = Stream(1, 1, max_size=30, robust=True, seed=0)
    for x, y in zip(X[:300], Y[:300], strict=True):
        stream.learn(x, y, None, 1.0, np.zeros(RECORD))
    return stream, X[300:], Y[300:]


def test_members_that_sleep_at_far_inputs_do_not_become_equal(line):
    stream, X, Y = line
    ensemble = stream.ensemble
    slept = 0
    for x, y in zip(X, Y, strict=True):
        scores, size = ensemble.scores.copy(), len(ensemble.scores[0])
        far, trusted = bool(ensemble.scales.are_far(x)), ensemble.predictors.trusted
        stream.learn(x, y, None, 1.0, np.zeros(RECORD))
        if not (far and trusted) or len(ensemble.scores[0]) != size:
            continue
        slept += 1
        asleep = np.ones(size, dtype=bool)
        asleep[LINEAR] = False
        beside = [log_sum_exp(each[:, ~asleep]) for each in (scores, ensemble.scores)]
        before, after = scores[:, asleep] - beside[0], ensemble.scores[:, asleep] - beside[1]
        np.testing.assert_allclose(after, before, atol=1e-9)
    assert slept > 30
    assert ensemble.scores[-1, LAST].max() < ensemble.scores[-1, LINEAR].max() - 20
