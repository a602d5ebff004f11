"""The search for hyperparameters."""

import numpy as np
import pytest

from pogp.online.retuning import SAMPLES, Candidate, Findings
from pogp.online.rows import Samples
from pogp.online.scales import Scales
from pogp.online.tuning import COARSE, Found, Prior, search
from pogp.slices import finished


def waves(n, seed=0):
    """Samples in units of their deviations, of a function with many waves."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.7, 1.7, (n, 1))
    Y = np.sqrt(2) * np.sin(18 * X) + 0.1 * rng.normal(size=(n, 1))
    nothing, everything = np.zeros(n, dtype=bool), np.ones(n)
    return Samples(X, Y, np.arange(n), nothing, np.zeros((n, 1)), everything)


def found(samples, start=None, evaluations=21):
    prior = Prior("RBF", np.array([0]))
    return finished(search(prior, samples, start, evaluations, [0, 0]))


def noise_alone():
    """Hyperparameters under which all is noise: the end of a search from a long length-scale."""
    prior = Prior("RBF", np.array([0]))
    start = prior.mean
    start[0], start[-1] = 1.5, 0.0
    return start


@pytest.mark.parametrize("n", [60, COARSE, 2 * COARSE])
def test_functions_of_short_waves_are_found(n):
    assert found(waves(n)).noise < 0.2


def test_a_start_from_few_samples_is_not_the_only_one():
    assert found(waves(60), noise_alone(), evaluations=7).noise < 0.2
    long = found(waves(2 * COARSE), noise_alone(), evaluations=1)
    np.testing.assert_allclose(long.parameters, noise_alone())


def test_the_gain_is_what_the_search_brought():
    first = found(waves(2 * COARSE))
    assert first.gain == np.inf
    again = found(waves(2 * COARSE), first.parameters)
    assert again.as_before
    assert 0 <= again.gain <= max(first.value - again.value, 1e-9)
    other = found(waves(2 * COARSE), first.parameters + 0.5)
    assert not other.as_before


def test_what_leads_is_raced_anew_only_for_something_better():
    candidates = (Candidate("RBF", 0.999, False), Candidate("Matern32", 0.999, False))
    scales = Scales.of(np.arange(3.0)[:, None], np.arange(3.0)[:, None])

    def raced(gain, samples):
        kept = np.ones(samples, dtype=bool)
        each = Found(Prior("RBF", np.array([0])), np.zeros(5), 0.0, kept, gain=gain)
        chosen, findings = Findings(scales, [each] * 2, np.empty(0, np.int64)).worthwhile(
            candidates
        )
        assert len(findings.found) == len(chosen)
        return chosen

    assert raced(4.0, SAMPLES) == candidates[1:]
    assert raced(np.nan, SAMPLES) == candidates[1:]  # nothing could be computed
    assert raced(6.0, SAMPLES) == candidates
    assert raced(4.0, SAMPLES - 1) == candidates  # found on fewer before
    nothing = Findings(scales, [], np.empty(0, np.int64))
    assert nothing.worthwhile(candidates)[1].found == []
