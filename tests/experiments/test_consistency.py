"""The Gaussian and the chi-square check: laws, tests, what the models predict, the figures."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import pogp
from experiments.drawing import consistency as drawing
from experiments.parts import consistency as part
from experiments.readings.consistency import ZTest, consistency, implied_z
from experiments.records import Record, Records, shortened
from experiments.tasks import FULL, QUICK

TOPICS = list(part.CHECKS)


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Records:
    """Return the small form of both checks."""
    records = Records(tmp_path_factory.mktemp("consistency"))
    for task in part.tasks(QUICK):
        records.add(Record(task, shortened(part.run(task, records)), 0.1, {}, "pytest"))
    return Records(records.folder)


def targets(topic: str, seed: int) -> np.ndarray:
    (options,) = {tuple(task.options.items()) for task in part.tasks(QUICK)}
    options = dict(options)
    return part.CHECKS[topic].simulate(options["count"], seed).y_train[options["first"] :]


def test_the_full_form_is_the_papers() -> None:
    tasks = part.tasks(FULL)
    assert [task.topic for task in tasks] == ["gaussian"] * 7 + ["chi_square"] * 7
    assert tasks[0].options == {"count": 2200, "first": 200, "window": 200, "last": 100}


def test_the_laws_have_the_papers_moments() -> None:
    t = np.array([1.0, 201.0, 2200.0])
    gaussian, chi_square = (part.CHECKS[topic].law(t) for topic in TOPICS)
    np.testing.assert_allclose(gaussian.mean(), 2.0)
    np.testing.assert_allclose(gaussian.var(), 10 * 0.5**2)
    np.testing.assert_allclose(chi_square.mean(), 1 + t**-0.2)
    np.testing.assert_allclose(chi_square.var(), 2 * (1 + 2 * t**-0.2))


@pytest.mark.parametrize("topic", TOPICS)
def test_the_targets_follow_the_law(topic: str) -> None:
    check, t = part.CHECKS[topic], np.arange(1.0, 20_001.0)
    y = check.simulate(len(t), 3).y_train
    assert stats.kstest(check.law(t).cdf(y), "uniform").pvalue > 0.01


@pytest.mark.parametrize("z", [-3.0, -0.5, 0.0, 1.7])
def test_the_z_test_is_two_sided(z: float) -> None:
    assert ZTest(z).p == pytest.approx(2 * stats.norm.sf(abs(z)), rel=1e-12)
    assert ZTest(z).rejects == (abs(z) > 1.96)
    assert abs(implied_z(ZTest(z).p)) == pytest.approx(abs(z), abs=1e-12)


def test_p_values_of_a_true_hypothesis_are_uniform() -> None:
    means = np.random.default_rng(0).normal(2.0, np.sqrt(2.5 / 100), 2000)
    p = [ZTest((mean - 2.0) / np.sqrt(2.5 / 100)).p for mean in means]
    assert stats.kstest(p, "uniform").pvalue > 0.01


def test_readings_of_the_targets_are_what_the_targets_give(records: Records) -> None:
    found = consistency(records, "gaussian")
    assert found is not None
    data, y = found["data"], targets("gaussian", 0)
    last, half = y[-25:], y[len(y) // 2 :]
    z = (last.mean() - 2.0) / np.sqrt(2.5 / len(last))
    assert data.tests[0].z == pytest.approx(z, rel=1e-4)
    assert data.distances[0] == pytest.approx(
        stats.kstest(half, "norm", (2.0, np.sqrt(2.5))).pvalue, rel=1e-3
    )
    spreads = [np.mean((targets("gaussian", s)[len(y) // 2 :] - 2.0) ** 2) / 2.5 for s in (0, 1)]
    assert data.spread.mean == pytest.approx(np.mean(spreads), rel=1e-4)
    assert np.sum(data.histogram * np.diff(found.check.edges)) == pytest.approx(1.0, abs=0.01)
    moving = data.moving("mean")
    assert moving[0] == pytest.approx(y[:50].mean(), rel=1e-5)
    assert moving[-1] == pytest.approx(y[-50:].mean(), rel=1e-5)


@pytest.mark.parametrize("topic", TOPICS)
def test_predicted_means_track_the_mean(records: Records, topic: str) -> None:
    found = consistency(records, topic)
    assert found is not None
    y = targets(topic, 0)
    law = part.CHECKS[topic].law(51.0 + np.arange(len(y)))
    ends = part.moving_places(len(y), 50)
    # Four standard deviations of the mean of 50 targets, which no prediction can undercut.
    within = 4 * np.sqrt(law.var()[ends - 1] / 50)
    for case in ("pog-published", "absorbing"):
        series = found[case]
        assert np.all(np.abs(series.moving("mean") - law.mean()[ends - 1]) < within)
        assert series.error.mean < 1e-3  # of the targets' variance: the function is learned
        assert series.spread.mean == pytest.approx(found["data"].spread.mean, rel=0.01)
        assert series.tests[0].z == pytest.approx(found["data"].tests[0].z, abs=0.01)
    assert found["absorbing"].order.mean <= found["pog-published"].order.mean


def test_more_noise_keeps_more_points(records: Records) -> None:
    found = consistency(records, "gaussian")
    assert found is not None
    orders = [order.mean for order in found.order_at_noise.values()]
    assert list(found.order_at_noise) == list(part.NOISES)
    assert orders[-1] > 2 * orders[0]
    kernel_noise = found.noise
    assert 0 < kernel_noise[0] <= kernel_noise[1] < 1e-3  # the targets have none


def test_without_records_there_is_nothing_to_say(tmp_path: Path) -> None:
    assert consistency(Records(tmp_path), "gaussian") is None
    with pytest.raises(ValueError, match="no records of gaussian"):
        drawing.FIGURES["figure-1-gaussian"](Records(tmp_path))


def test_another_model_has_to_learn_online() -> None:
    given = part.Hyperparameters(pogp.RBF(), 0.1, 0.0)
    with pytest.raises(TypeError, match="spgp does not learn online"):
        part._online("spgp", given, {"size": 5}, 0)
