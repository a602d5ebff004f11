"""The search for hyperparameters."""

import numpy as np
import pytest

from pogp.online.evidence import dense
from pogp.online.retuning import Candidate, Search
from pogp.online.samples import Samples
from pogp.online.tuning import (
    COARSE_FROM,
    DENSE_SAMPLES,
    INDUCING,
    SAMPLES,
    Hyperparameters,
    Prior,
    most_samples,
    search,
)
from pogp.slices import finished


def waves(n, seed=0):
    """Samples in units of their deviations, of a function with many waves."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.7, 1.7, (n, 1))
    Y = np.sqrt(2) * np.sin(18 * X) + 0.1 * rng.normal(size=(n, 1))
    nothing, everything = np.zeros(n, dtype=bool), np.ones(n)
    return Samples(X, Y, np.arange(n), nothing, np.zeros((n, 1)), everything, np.zeros((n, 1)))


def found(samples, start=None, evaluations=21):
    prior = Prior("RBF", np.array([0]))
    return finished(search(prior, samples, start, evaluations, [0, 0]))


def noise_alone():
    """Hyperparameters that explain the samples by noise, as found from a long length-scale."""
    prior = Prior("RBF", np.array([0]))
    start = prior.mean
    start[0], start[-1] = 1.5, 0.0
    return start


@pytest.mark.parametrize("n", [60, COARSE_FROM, 2 * COARSE_FROM])
def test_functions_with_many_waves_are_not_taken_for_noise(n):
    assert found(waves(n)).noise < 0.2


def test_a_start_is_compared_with_others_if_there_are_few_samples_or_much_noise():
    assert found(waves(60), noise_alone(), evaluations=7).noise < 0.2
    assert found(waves(2 * COARSE_FROM), noise_alone(), evaluations=7).noise < 0.2
    clear = noise_alone()
    clear[-1] = np.log(0.1)
    long = found(waves(2 * COARSE_FROM), clear, evaluations=1)
    np.testing.assert_allclose(long.parameters, clear)


def test_the_gain_is_that_of_the_search():
    first = found(waves(2 * COARSE_FROM))
    assert first.gain == np.inf
    again = found(waves(2 * COARSE_FROM), first.parameters)
    assert again.is_no_better
    assert 0 <= again.gain <= max(first.value - again.value, 1e-9)
    other = found(waves(2 * COARSE_FROM), first.parameters + 0.5)
    assert not other.is_no_better


def test_the_leading_group_is_confirmed_unless_the_search_gains_enough():
    def confirmed(gain, samples, leads=True):
        kept = np.ones(samples, dtype=bool)
        each = Hyperparameters(Prior("RBF", np.array([0])), np.zeros(5), 0.0, kept, gain=gain)
        arguments = (0, 0, waves(samples), Candidate("RBF", 0.999, False), leads, None)
        return Search(*arguments, seed=0, robust=True).confirms_leader(each)

    assert confirmed(4.0, SAMPLES)
    assert confirmed(np.nan, SAMPLES)  # every evaluation failed
    assert not confirmed(6.0, SAMPLES)
    assert not confirmed(4.0, SAMPLES - 1)  # the last search had fewer samples
    assert not confirmed(4.0, SAMPLES, leads=False)  # a challenger always races


def test_a_search_has_fewer_samples_if_its_evidence_is_dense():
    assert most_samples(0) == most_samples(INDUCING) == SAMPLES
    assert most_samples(SAMPLES // 3) == most_samples(2000) == DENSE_SAMPLES


@pytest.mark.parametrize(("points", "exact"), [(0, False), (149, False), (150, True), (300, True)])
def test_with_a_third_as_many_points_as_samples_the_evidence_is_dense(points, exact):
    samples, prior = waves(450), Prior("RBF", np.array([0]))
    each = finished(search(prior, samples, prior.mean, 1, [0, 0], points))
    arguments = (samples.X, samples.Y, samples.weights, np.zeros(450))
    kernel = prior.kernel(each.parameters, alone=True)
    expected = finished(dense(kernel, each.noise, *arguments)).value
    assert (each.value == pytest.approx(expected, rel=1e-9)) == exact
