"""Theorems 1 and 2 and Assumption 1: what is run, what is read from it, the figures."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import pogp
from experiments import streams
from experiments.drawing.theory import FIGURES
from experiments.parts import assumption, parsimony, stationarity, theory
from experiments.published import SETS
from experiments.readings.assumption import Assumption, assumptions
from experiments.readings.parsimony import Parsimony, parsimonies
from experiments.readings.slopes import Slope
from experiments.readings.stationarity import stationarities
from experiments.records import Record, Records, shortened
from experiments.tasks import FULL, QUICK, Task

COUNT = 600


def recorded(task: Task, result: dict) -> Record:
    return Record(task, shortened(result), 0.1, {}, "pytest")


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Records:
    """Return short runs of all simulated streams, one repeat."""
    records = Records(tmp_path_factory.mktemp("theory"))
    for part in (stationarity, parsimony, assumption):
        for task in part.tasks(QUICK):
            if task.seed == 0 and "count" in task.options:
                short = replace(task, options=task.options | {"count": COUNT})
                records.add(recorded(short, part.run(short, records)))
    return Records(records.folder)


# ---- the stream


def test_the_function_is_a_draw_from_the_prior() -> None:
    values = []
    for seed in range(600):
        x, y = theory.stream(2, 2, seed)
        values.append((y, theory.prior(2).kernel(x)[0, 1]))
    first, second = np.array([y for y, _ in values]).T
    covariance = np.mean([kernel for _, kernel in values])
    assert np.mean(first) == pytest.approx(0.0, abs=0.15)
    assert np.var(first) == pytest.approx(1.0 + theory.NOISE, rel=0.2)
    assert np.mean(first * second) == pytest.approx(covariance, abs=0.15)


def test_a_longer_stream_begins_with_the_shorter() -> None:
    for short, long in zip(theory.stream(3, 10, 1), theory.stream(3, 50, 1), strict=True):
        np.testing.assert_allclose(long[:10], short, rtol=1e-12)
    x, _ = theory.stream(3, 50, 1)
    assert x.min() >= 0 <= x.max() <= 1


def test_the_full_form_leaves_room_for_the_small_one() -> None:
    for part in (stationarity, parsimony, assumption):
        assert len(part.tasks(QUICK)) <= len(part.tasks(FULL))
        keys = [task.key for task in part.tasks(FULL)]
        assert len(keys) == len(set(keys))


# ---- slopes


def test_slopes_are_those_of_least_squares() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=20), rng.normal(size=20)
    expected = stats.linregress(x, y)
    slope = Slope.of(x, y)
    assert slope.value == pytest.approx(expected.slope, rel=1e-12)
    assert slope.error == pytest.approx(expected.stderr, rel=1e-12)


def test_a_slope_needs_points() -> None:
    with pytest.raises(ValueError, match="three points"):
        Slope.of([0.0, 1.0], [0.0, 1.0])


# ---- Theorem 1


def test_bins_and_shares_are_those_of_the_trace(records: Records) -> None:
    (found,) = (s for s in stationarities(records) if (s.case, s.power) == ("pog-written", 1.0))
    x, y = theory.stream(stationarity.INPUTS, COUNT, 0)
    kernel = pogp.RBF(lengthscale=[0.5, 0.5])
    trace = pogp.POG(kernel, 0.01, pogp.Decay(0.1, 1.0)).learn(x, y)
    start = int(found.until[-2])
    last = trace.change[start:]
    allowed = 0.1 / np.arange(start + 1, COUNT + 1)
    assert found.until[-1] == COUNT
    assert found.change.mean == pytest.approx(np.median(last), rel=1e-5)
    assert found.curve("ninth_decile")[-1] == pytest.approx(np.quantile(last, 0.9), rel=1e-5)
    assert found.within(0.01)[-1] == pytest.approx(np.mean(last < 0.01 + allowed), rel=1e-5)
    assert found.budgets[-1] == pytest.approx(0.1 / COUNT, rel=1e-5)
    assert found.order.mean == trace.size[-1]


def test_distances_between_inputs_are_of_successive_predictions() -> None:
    mean, variance = np.array([0.0, 1.0, 1.0]), np.array([1.0, 1.0, 4.0])
    expected = [0.0, np.sqrt(1 - np.exp(-1 / 8)), np.sqrt(1 - np.sqrt(2 * 2 / 5))]
    np.testing.assert_allclose(stationarity.between_inputs(mean, variance), expected)


def test_the_dense_gp_settles_and_a_constant_budget_does_not(records: Records) -> None:
    found = {(s.case, s.initial, s.power): s for s in stationarities(records)}
    assert list(found) == [
        (case, *budget) for case, budgets in stationarity.BUDGETS.items() for budget in budgets
    ]
    dense, constant = found["dense", 0.0, 0.0], found["pog-written", 1e-3, 0.0]
    assert dense.decay.value < -0.5
    assert constant.decay.value > -0.4
    assert constant.change.mean > 10 * 1e-3  # far above its budget
    assert found["absorbing", 0.1, 0.0].change.mean < 2 * dense.change.mean
    assert found["pog-published", 0.1, 1.0].decay.value < -0.3


# ---- Theorem 2


def made_up(orders: np.ndarray, budgets: list[float], seeds: int = 2) -> Parsimony:
    """Return a run whose orders over the tenths of the stream are given, (budget, tenth)."""
    options = {"inputs": 2, "budgets": budgets, "count": 100}
    tasks = [Task("parsimony", "theorem-2", "absorbing", seed, options) for seed in range(seeds)]
    return Parsimony("absorbing", 2, [recorded(task, {"orders": orders}) for task in tasks])


def test_exponents_of_power_laws_are_found() -> None:
    budgets = [1e-1, 1e-2, 1e-3, 1e-4]
    final = 6.0 * np.array(budgets) ** -0.7
    found = made_up(np.outer(final, np.ones(10)), budgets)
    assert found.exponent is not None
    assert found.exponent.value == pytest.approx(0.7, abs=1e-5)
    assert found.exponent.error < 1e-5
    assert found.unsettled == []


def test_orders_at_the_floor_do_not_count() -> None:
    budgets = [1e-1, 1e-2, 1e-3, 1e-4]
    final = np.maximum(0.03 * np.array(budgets) ** -1.0, 1.0)  # 1, 3, 30, 300
    found = made_up(np.outer(final, np.ones(10)), budgets)
    assert found.exponent is not None
    assert found.exponent.value == pytest.approx(1.0, abs=1e-5)
    assert made_up(np.ones((4, 10)), budgets).exponent is None


def test_orders_that_still_grow_are_named() -> None:
    growing, settled = np.linspace(10, 100, 10), np.full(10, 50.0)
    found = made_up(np.array([settled, growing]), [0.1, 0.01])
    np.testing.assert_allclose(found.growth, [0.0, 100 / 50 - 1])
    assert found.unsettled == [0.01]


def test_smaller_budgets_keep_more_points(records: Records) -> None:
    found = parsimonies(records)
    assert [(each.case, each.inputs) for each in found] == [
        (case, inputs) for case in parsimony.BUDGETS for inputs in parsimony.INPUTS
    ]
    for each in found:
        assert np.all(np.diff(each.orders.mean(axis=0)) > 0)
        x, y = theory.stream(each.inputs, COUNT, 0)
        budget = pogp.Constant(each.budgets[0])
        size = theory.model(each.case, theory.prior(each.inputs), budget).learn(x, y).size
        assert each.orders[0, 0] == pytest.approx(np.mean(size[-COUNT // 10 :]), rel=1e-5)


# ---- Assumption 1


def test_counts_of_the_assumption_are_those_of_the_traces(records: Records) -> None:
    (found,) = (
        each
        for each in assumptions(records)
        if (each.name, each.case) == ("2 inputs", "pog-published")
    )
    x, y = theory.stream(2, COUNT, 0)
    kernel = pogp.RBF(lengthscale=[0.5, 0.5])
    dense = pogp.DenseGP(kernel, 0.01).learn(x, y).change
    pog = pogp.POG(kernel, 0.01, 1e-3, max_removals=1).learn(x, y)
    assert found.held() == pytest.approx(np.mean(dense <= pog.novelty), abs=1e-9)
    assert found.held("change", 2) == pytest.approx(np.mean((dense <= pog.change)[400:]), abs=1e-9)
    gamma = assumption.GAMMAS[15]
    assert found.below("dense", third=1)[15] == pytest.approx(
        np.mean(dense[200:400] < gamma), abs=1e-9
    )
    assert found.below("pog")[15] == pytest.approx(np.mean(pog.novelty < gamma), abs=1e-9)
    inputs = stationarity.between_inputs(pog.mean, pog.variance)
    assert found.medians("pog", "between_inputs")[0] == pytest.approx(np.median(inputs[:25]))
    assert found.steps == COUNT
    assert found.order.mean == pog.size[-1]
    assert found.medians("pog", "change")[-1] == pytest.approx(
        np.median(pog.change[-25:]), rel=1e-5
    )


def test_a_failed_assumption_is_distinguished_from_chance() -> None:
    steps, gammas = 300, len(assumption.GAMMAS)
    dense, pog = np.zeros((3, gammas), int), np.zeros((3, gammas), int)
    dense[:, 10:], pog[:, 10:] = steps, steps
    pog[0, 9] = 10  # POG is below γ more often, but as little as chance allows
    pog[1, 9] = 200
    result = {
        "steps": [steps] * 3,
        "dense": {"novelty": {"below": dense}},
        "pog-written": {"novelty": {"below": pog, "not_below_dense": [300, 30, 270]}},
    }
    task = Task("assumption", "assumption-1", "2 inputs", 0)
    found = Assumption("assumption-1", "2 inputs", "pog-written", [recorded(task, result)])
    assert found.held() == pytest.approx(600 / 900)
    assert found.held(third=1) == pytest.approx(0.1)
    assert found.excess(third=1) == pytest.approx(2 / 3)
    assert found.where_it_fails(third=0) == []
    assert found.where_it_fails(third=1) == [assumption.GAMMAS[9]]
    assert found.excess(third=2) == 0.0


@pytest.mark.parametrize("name", SETS)
def test_the_sets_use_their_own_hyperparameters(name: str, tmp_path: Path) -> None:
    if name in streams.missing():
        pytest.skip(f"{name} is not here")
    (task,) = (t for t in assumption.tasks(QUICK) if t.topic == name and t.seed == 0)
    records = Records(tmp_path)
    kernel = pogp.RBF(lengthscale=np.full(pogp.datasets.load(name).x_train.shape[1], 3.0))
    tuned = {"kernel": kernel.to_spec(), "noise": 0.1, "mean": 0.5}
    records.add(recorded(Task("tune", name, "first slice", 0), tuned))
    result = assumption.run(task, records)
    samples = streams.stream(name, 0, QUICK.samples)
    trace = pogp.DenseGP(kernel, 0.1, mean=0.5).learn(samples.x, samples.y)
    assert result["dense"]["change"]["medians"][0] == pytest.approx(
        np.median(np.array_split(trace.change, assumption.WINDOWS)[0])
    )


# ---- figures


@pytest.mark.parametrize("name", FIGURES)
def test_without_records_there_is_nothing_to_draw(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"no records of {name}"):
        FIGURES[name](Records(tmp_path))
