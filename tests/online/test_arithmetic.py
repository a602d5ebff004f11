"""The compiled arithmetic on small arrays equals its NumPy twin."""

import copy

import numpy as np
import pytest

from pogp.online import arithmetic

compiled = pytest.importorskip("pogp.online.compiled_arithmetic")

SHAPES = [(3, 1), (3, 2), (1, 4)]
seeds = pytest.mark.parametrize("seed", range(2))
shapes = pytest.mark.parametrize(("beliefs", "outputs"), SHAPES)


def compare(name, *arguments):
    """Call both twins on the same arrays; all of them are the same afterwards, to rounding."""
    results, held = [], []
    for module in (compiled, arithmetic):
        mine = copy.deepcopy(arguments)
        results.append(getattr(module, name)(*mine))
        held.append(mine)
    for one, other in zip(*held, strict=True):
        if one is not None:
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
    if results[1] is not None:
        np.testing.assert_allclose(*results, rtol=1e-12)


def arrays(seed, *shapes, positive=()):
    rng = np.random.default_rng(seed)
    found = [3.0 * rng.standard_t(3, shape) for shape in shapes]
    return [np.abs(a) + 1e-3 if i in positive else a for i, a in enumerate(found)]


@seeds
@shapes
@pytest.mark.parametrize("size", [1.0, 1e4])
def test_combine(seed, beliefs, outputs, size):
    members = 4 + 2 * beliefs
    scores, outer, means, variances = arrays(
        seed, (3, members, outputs), (3, outputs), *[(members, outputs)] * 2, positive=(3,)
    )
    out = [*np.zeros((2, 3, outputs)), *np.zeros((2, outputs))]
    compare("combine", size * scores, outer, means, variances, *out)


@seeds
@shapes
@pytest.mark.parametrize("parts", [0, 1, 2])
def test_score(seed, beliefs, outputs, parts):
    members, discounts = 4 + beliefs, np.array([0.9, 0.95, 0.99])
    by, ends = (members, outputs), (4, members)[2 - parts :]
    *given, scores = arrays(seed, outputs, by, by, (3, *by), positive=(2,))
    compare("score", *given, discounts, ends, np.zeros(by), scores)


@pytest.mark.parametrize("core", [compiled, arithmetic])
def test_scores_that_are_part_of_a_larger_array(core):
    """They are the same as those of an array of their own."""
    target, means, variances = np.ones(2), np.arange(6.0).reshape(3, 2), np.ones((3, 2))
    every, alone = np.zeros((3, 5, 2)), np.zeros((3, 3, 2))
    discounts, gains = np.array([0.9, 0.95, 0.99]), np.zeros((3, 2))
    for scores in (every[:, 1:4], alone):
        gained = core.score(target, means, variances, discounts, (1, 3), gains, scores)
    np.testing.assert_array_equal(every[:, 1:4], alone)
    assert not every[:, [0, 4]].any()
    assert gained[0] == pytest.approx(gains[0].sum())
    assert gained[1] == pytest.approx(np.log(np.exp(gains[1:]).mean(axis=0)).sum())


@seeds
@pytest.mark.parametrize("gaps", [(None, None), (np.array([0.5, 2.0]), np.array([-1.0, 3.0]))])
def test_write_sample(seed, gaps):
    x, y, inputs, rows = arrays(seed, 3, 2, (5, 3), (5, 8))
    compare("write_sample", x, y, True, 0.7, *gaps, 4, inputs, rows)


@seeds
@shapes
def test_write_errors(seed, beliefs, outputs):
    y, unit, shift, extra = arrays(seed, *[(outputs,)] * 4, positive=(1, 3))
    means, variances = arrays(seed, *[(6 + 2 * beliefs, outputs)] * 2, positive=(1,))
    noise, row = arrays(seed, (beliefs,), (7, outputs), positive=(0,))
    compare("write_errors", y, means, variances, 5, noise, unit, shift, extra, row)


@seeds
@shapes
def test_add_discounted(seed, beliefs, outputs):
    scores, gains = arrays(seed, (3, beliefs, outputs), (beliefs, outputs))
    compare("add_discounted", scores, np.array([0.9, 0.95, 0.99]), gains)


@seeds
@pytest.mark.parametrize("changed", ["nothing", "input", "target", "outliers"])
@pytest.mark.parametrize("seen", [8, 23])
def test_within_reach(seed, changed, seen):
    """The last six rows of a ring buffer of ten."""
    inputs, rows = np.random.default_rng(seed).uniform(-1, 1, (2, 10, 4))
    rows[:, 1] = 0.0
    last = np.arange(seen - 6, seen) % 10
    if changed == "input":
        inputs[last[:3], 2] = 9.0
    elif changed == "target":
        rows[last[4], 0] = np.nan
    elif changed == "outliers":
        rows[last, 1] = 1.0
    given = (inputs, rows, seen, 6, np.zeros(4), np.ones(4), np.zeros(1), np.ones(1))
    compare("within_reach", *given)
    assert compiled.within_reach(*given) == (changed == "nothing")
    rows[last[3:], 1] = 1.0
    compare("within_reach", *given)


@seeds
@pytest.mark.parametrize("largest", [1e-3, 1e6])
def test_least_squares(seed, largest):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(4, 4))
    compare(
        "least_squares",
        root @ root.T + np.eye(4),
        rng.normal(size=(4, 2)),
        rng.normal(size=4),
        rng.normal(size=2),
        np.zeros(4),
        0.99,
        largest,
    )


def test_least_squares_reports_rounding_errors():
    rest = (np.ones(2), np.ones(1), np.zeros(2), 0.99, 1e6)
    compare("least_squares", -np.eye(2), np.zeros((2, 1)), *rest)
    infinite = np.full((2, 1), np.inf)
    for module in (compiled, arithmetic):
        with np.errstate(invalid="ignore"):
            fine = module.least_squares(np.eye(2), infinite.copy(), *rest)
        assert not fine


@seeds
def test_scale_input(seed):
    x, centre, inverse = arrays(seed, 5, 5, 5, positive=(2,))
    compare("scale_input", x, centre, inverse, 4.0, np.zeros(5))


@seeds
@pytest.mark.parametrize("outputs", [1, 3])
def test_predict_simple(seed, outputs):
    given = arrays(
        seed,
        4,
        outputs,
        outputs,
        (2, outputs),
        (5, outputs),
        (5 + 2 * outputs, outputs),
        outputs,
        outputs,
        positive=(7,),
    )
    errors, out = np.abs(given[4][:4]), np.zeros((4, outputs))
    errors[0] = 0.0
    compare("predict_simple", *given, errors, np.zeros(5 + 2 * outputs), out, out.copy())


@seeds
@pytest.mark.parametrize("count", [0, 3, 100])
@pytest.mark.parametrize("share", [1.0, 0.4])
@pytest.mark.parametrize("bound", [0.0, 3.5])
def test_update_simple(seed, count, share, bound):
    y, means, errors, *kept = arrays(seed, 2, (4, 2), (4, 2), 2, 2, (3, 2), 2, 2, positive=(2, 7))
    errors[1, 0] = 0.0
    compare(
        "update_simple", y, means, errors, *kept, np.zeros((2, 2)), count, 50, share, bound, 25.0
    )


@seeds
@pytest.mark.parametrize("count", [3, 100])
@pytest.mark.parametrize("outputs", [1, 3])
def test_calibrate(seed, count, outputs):
    by, lines = (4, outputs), (3, outputs)
    given = arrays(seed, *[outputs] * 9, by, by, lines, 4, 4, positive=(2, 3, 8, 12))
    compare("calibrate", *given, count, 50, np.zeros(2 * outputs + 1))
    given[3][0] = 0.0  # no extra variance
    compare("calibrate", *given, count, 50, np.zeros(2 * outputs + 1))
    given[1][0] = given[0][0]  # no error at all
    compare("calibrate", *given, count, 50, np.zeros(2 * outputs + 1))


def test_unsuitable_arrays_are_refused():
    wrong = (np.zeros((2, 3)).T, np.zeros((3, 2), dtype=np.float32))
    for array in wrong:
        with pytest.raises(ValueError, match="contiguous"):
            compiled.scale_input(array, np.zeros(2), np.ones(2), 4.0, np.zeros(2))
        with pytest.raises(ValueError, match="contiguous"):
            compiled.add_discounted(array[None], np.ones(1), np.zeros((3, 2)))


@pytest.mark.parametrize("core", [arithmetic, compiled])
def test_a_vague_member_gains_nothing_by_a_surprise(core):
    """The one that is nearest gains most, if the target is far from all."""
    target, means = np.array([60.0]), np.array([[80.0], [260.0]])
    gains, scores = np.empty((2, 1)), np.zeros((1, 2, 1))
    core.score(target, means, np.array([[0.1], [200.0]]), np.array([0.9]), (1, 2), gains, scores)
    assert gains[0] > gains[1] + 5.0
    near = np.array([[60.1], [61.0]])  # where one is near, these are the log densities
    variances = np.array([[0.01], [4.0]])
    core.score(target, near, variances, np.array([0.9]), (1, 2), gains, scores)
    np.testing.assert_allclose(gains, arithmetic.log_densities(target, near, variances))
