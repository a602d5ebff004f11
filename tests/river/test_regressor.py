"""The adapter for River: its own checks, features that come and go, frames, distributions."""

import copy
import pickle
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from river import (
    checks,
    compose,
    conf,
    datasets,
    evaluate,
    linear_model,
    metrics,
    model_selection,
    preprocessing,
    utils,
)

import pogp
import pogp.sklearn
from pogp.river import POGRegressor

from ..conftest import assert_same_state

WARMUP, CAP = 25, 15
NAMES = ("height", "x2", "x10")
KERNEL, NOISE = pogp.RBF(1.5), 0.02


def make(**params):
    return POGRegressor(**{"method": "absorbing", "warmup": WARMUP, "max_size": CAP, **params})


def untuned(**params):
    return make(kernel=KERNEL, noise=NOISE, **params)


def beneath(**options):
    """The model that `make` should come down to."""
    return pogp.SelfTuning(**{"warmup": WARMUP, "max_size": CAP, **options})


def stream(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, len(NAMES))) + np.array([0, 5, -3])
    y = 50 + np.sin(X[:, 0]) + 0.5 * np.cos(X[:, 1]) * X[:, 2] + 0.1 * rng.normal(size=n)
    return X, y


X, Y = stream()
DICTS = [dict(zip(NAMES, map(float, x), strict=True)) for x in X]


def learn(model, dicts, targets=Y):
    for x, y in zip(dicts, targets, strict=False):
        model.learn_one(x, float(y))
    return model


def assert_predicts(model, expected, dicts=DICTS):
    """Points one by one and all at once differ by rounding."""
    np.testing.assert_allclose([model.predict_one(x) for x in dicts], expected, rtol=1e-11)


def with_holes(seed=0, share=0.3):
    """DICTS without some of their values, and the array with NaN in place of them."""
    holes = np.random.default_rng(seed).random(X.shape) < share
    ragged = [
        {name: v for (name, v), hole in zip(x.items(), row, strict=True) if not hole}
        for x, row in zip(DICTS, holes, strict=True)
    ]
    return ragged, np.where(holes, np.nan, X)


# ---- River's own checks

CONFIGURATIONS = {
    "defaults": {},
    "tuned": {"method": "absorbing", "warmup": 10, "max_size": 10},
}
CHECKS = [
    pytest.param(params, check, id=f"{name}-{check.__name__}")
    for name, params in CONFIGURATIONS.items()
    for check in checks.yield_checks(POGRegressor(**params))
]


@pytest.mark.filterwarnings("ignore:.* not in the first samples? and")
@pytest.mark.parametrize(("params", "check"), CHECKS)
def test_river_checks(params, check):
    check(POGRegressor(**params))


def test_none_of_rivers_checks_is_skipped_unless_batches_are_more_than_their_samples():
    assert make()._unit_test_skips() == set()
    assert make(method="streaming-vfe")._unit_test_skips() == {"check_learn_many_matches_learn_one"}


# ---- one model, however it is told


def test_every_way_to_learn_gives_the_same_model():
    expected = beneath()
    expected.learn(X, Y)
    assert_same_state(learn(make(), DICTS).model, expected)
    frame = pd.DataFrame(X, columns=NAMES)
    for cuts in ([], [1], [WARMUP], [WARMUP - 1, WARMUP + 1], [7, 30, 30, 50]):
        many = make()
        partial = pogp.sklearn.POGRegressor("absorbing", warmup=WARMUP, max_size=CAP)
        for rows in np.split(np.arange(len(X)), cuts):
            many.learn_many(frame.iloc[rows], pd.Series(Y[rows]))
            if len(rows):
                partial.partial_fit(X[rows], Y[rows])
        assert_same_state(many.model, expected)
        assert_same_state(partial.model_, expected)
    mixed = learn(make(), DICTS[:10])
    mixed.learn_many(frame[10:40], pd.Series(Y[10:40]))
    assert_same_state(learn(mixed, DICTS[40:], Y[40:]).model, expected)


@pytest.mark.parametrize("method", ["pog", "sogp", "window", "krls-t", "dense"])
@pytest.mark.parametrize("kernel", [None, KERNEL], ids=["tuned", "given"])
def test_any_method_is_the_one_of_the_package(method, kernel):
    cap = {} if method == "dense" else {"max_size": CAP}
    options = {"kernel": kernel, "noise": kernel and NOISE, "warmup": WARMUP, "seed": 4}
    expected = pogp.SelfTuning(method, **options, **cap)
    for x, y in zip(X, Y, strict=True):  # to "dense" a batch is its samples, but for rounding
        expected.learn(x, y)
    ours = learn(POGRegressor(method, **options, max_size=cap.get("max_size", "auto")), DICTS)
    assert_same_state(ours.model, expected)
    mean, variance = expected.predict(X)
    assert_predicts(ours, mean)
    spread = [ours.predict_one(x, with_dist=True).sigma for x in DICTS]
    np.testing.assert_allclose(spread, np.sqrt(variance), rtol=1e-9)


def test_parameters_reach_the_model():
    model = make(
        method="absorbing",
        kernel=pogp.Matern52,
        budget=0.05,
        scale=True,
        seed=7,
        options={"forgetting": 0.99},
    )
    expected = beneath(kernel=pogp.Matern52, budget=0.05, scale=True, seed=7, forgetting=0.99)
    expected.learn(X, Y)
    assert_same_state(learn(model, DICTS).model, expected)
    assert POGRegressor().model.arguments()["max_size"] == 300
    assert POGRegressor("absorbing", max_size=None).model.arguments()["max_size"] is None


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"method": "vfe"}, "method must be one that learns online, got 'vfe'"),
        ({"method": "magic"}, "got 'magic'"),
        ({"options": {"colour": 1}}, "no option 'colour'"),
        ({"budget": 0.1}, "no option 'budget'"),
        ({"method": "pog", "budget": -1.0}, "budget"),
        ({"method": "sogp", "warmup": 1}, "warmup must be a whole number ≥ 2, got 1"),
        ({"features": "height"}, "distinct names, got 'height'"),
        ({"features": ["a", "b", "a"]}, "distinct names"),
        ({"features": []}, "distinct names"),
    ],
)
def test_parameters_are_checked_at_once(params, message):
    with pytest.raises(ValueError, match=message):
        POGRegressor(**params)


# ---- what is wrong


@pytest.mark.parametrize("value", [np.inf, 1e200, 10**400, 1j, [1.0]])
@pytest.mark.parametrize("seen", [10, 40])
def test_values_that_are_not_numbers_are_named_and_change_nothing(seen, value):
    model = learn(make(), DICTS[:seen])
    before = pickle.dumps(model)
    for method in (model.predict_one, lambda x: model.learn_one(x, 1.0)):
        with pytest.raises(ValueError, match=r"column 'x2': .* got"):
            method({**DICTS[0], "x2": value})
    with pytest.raises(ValueError, match="y must be a finite number"):
        model.learn_one(DICTS[0], value)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("seen", [0, 10, 40])
def test_a_batch_is_learned_whole_or_not_at_all(seen):
    model = learn(make(), DICTS[:seen])
    before = pickle.dumps(model)
    frame, targets = pd.DataFrame(X, columns=NAMES), pd.Series(Y)
    mixed = frame.astype(object)
    mixed.loc[59, "x2"] = pd.Timestamp("2024-01-01")
    endless = frame.copy()
    endless.loc[59, "height"] = np.inf
    for arguments, message in [
        ((endless, targets), "column 'height': .* got .*inf"),
        ((mixed, targets), "column 'x2': .* got .*2024"),
        ((frame, targets.where(targets.index != 59)), "every row, got none in row 59"),
        ((frame, targets.astype(str)), "y must be a finite number"),
        ((frame, targets[:-1]), "y must have 60 rows, as X has, got 59"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.learn_many(*arguments)
        assert pickle.dumps(model) == before


def test_any_type_of_number_is_accepted():
    as_floats, as_others = untuned(), untuned()
    for x, y in zip(DICTS, Y, strict=True):
        x = {name: round(v) for name, v in x.items()} | {"flag": y > 50}
        as_floats.learn_one({name: float(v) for name, v in x.items()}, float(np.float32(y)))
        x = {"x2": np.int32(x["x2"]), "x10": Decimal(x["x10"]), **x, "flag": np.bool_(x["flag"])}
        as_others.learn_one(x, np.float32(y))
    assert_same_state(as_others.model, as_floats.model)
    kinds = {"a": np.int16, "b": np.float16, "c": np.float32, "d": bool, "e": np.uint64}
    frame = pd.DataFrame({name: np.array([0, 1, 1], dtype=kind) for name, kind in kinds.items()})
    as_floats, as_others = untuned(), untuned()
    as_floats.learn_many(frame.astype(float), pd.Series([0.0, 1.0, 2.0]))
    as_others.learn_many(frame, pd.Series([0, 1, 2], dtype=np.uint8))
    assert_same_state(as_others.model, as_floats.model)


# ---- distributions


@pytest.mark.parametrize("seen", [0, 10, 60])
def test_the_distribution_is_that_of_the_target(seen):
    model = learn(make(), DICTS[:seen])
    mean, variance = model.model.predict(X[3])
    ours = model.predict_one(DICTS[3], with_dist=True)
    theirs = scipy.stats.norm(mean, np.sqrt(variance))
    assert (ours.mu, ours.mode, ours.n_samples) == (mean, mean, 1)
    assert model.predict_one(DICTS[3]) == mean
    assert type(model.predict_one(DICTS[3])) is float
    assert ours.sigma == pytest.approx(np.sqrt(variance), rel=1e-14)
    for y in mean + np.sqrt(variance) * np.array([-2.0, 0.0, 0.5]):
        assert ours(y) == pytest.approx(theirs.pdf(y), rel=1e-9)
        assert ours.log_pdf(y) == pytest.approx(theirs.logpdf(y), rel=1e-9)
        assert ours.cdf(y) == pytest.approx(theirs.cdf(y), rel=1e-7)


def test_intervals_contain_what_they_should():
    X, y = stream(1000, seed=1)
    model, inside = make(warmup=100, max_size=60), []
    for x, target in zip(X, y, strict=True):
        x = dict(zip(NAMES, x, strict=True))
        if model.model.seen >= 300:
            inside.append(0.05 < model.predict_one(x, with_dist=True).cdf(target) < 0.95)
        model.learn_one(x, target)
    assert np.mean(inside) == pytest.approx(0.9, abs=0.03)


# ---- in River


def error(model, metric=metrics.MAE):
    return evaluate.progressive_val_score(datasets.TrumpApproval(), model, metric()).get()


def test_it_is_better_than_the_linear_models_on_trump_approval():
    linear = preprocessing.StandardScaler() | linear_model.LinearRegression(intercept_lr=0.1)
    assert error(linear) > 0.5
    assert error(linear_model.BayesianLinearRegression()) > 0.5
    assert error(POGRegressor(max_size=100)) < 0.45


def test_it_learns_in_a_pipeline():
    scaler = compose.Select("ordinal_date") + compose.Discard("ordinal_date")
    # The likelihood has two maxima a quarter of a nat apart; the seed says which one is found.
    regressor = POGRegressor("absorbing", warmup=100, max_size=100, seed=1)
    model = scaler | preprocessing.StandardScaler() | regressor
    assert error(model) < 1.3  # a scaler that moves does harm; see the docstring
    x, _ = next(iter(datasets.TrumpApproval()))
    assert len(model["POGRegressor"].inputs) == 6
    distribution = model.predict_one(x, with_dist=True)
    assert distribution.mu == model.predict_one(x)
    assert model["POGRegressor"].predict_one(model.transform_one(x)) == distribution.mu


def test_a_pipeline_takes_batches():
    frame, one, many = (
        pd.DataFrame(X, columns=NAMES),
        *(compose.Select("x2", "height") | untuned() for _ in range(2)),
    )
    learn(one, DICTS)
    many.learn_many(frame, pd.Series(Y))
    assert_same_state(many["POGRegressor"].model, one["POGRegressor"].model)
    assert_predicts(one, many.predict_many(frame))


def test_scores_come_step_by_step():
    rows = zip(DICTS, Y, strict=True)
    steps = list(
        evaluate.iter_progressive_val_score(
            rows, make(), metrics.MAE(), step=20, yield_predictions=True, measure_memory=True
        )
    )
    assert [step["Step"] for step in steps] == [20, 40, 60]
    trace = beneath().learn(X, Y)
    expected = np.abs(trace.mean - Y).mean()
    assert steps[-1]["MAE"].get() == pytest.approx(expected, rel=1e-12)
    assert steps[-1]["Prediction"] == pytest.approx(trace.mean[-1], rel=1e-12)


def test_wrappers_of_river_take_it():
    interval = conf.RegressionJackknife(untuned(options={"mean": 50.0}), confidence_level=0.9)
    target = preprocessing.TargetStandardScaler(regressor=untuned())
    greedy = model_selection.GreedyRegressor(
        utils.expand_param_grid(make(warmup=20), {"budget": [0.05, 0.2], "scale": [True, False]}),
        metric=metrics.MAE(),
    )
    for model in (interval, target, greedy):
        learn(model, DICTS)
        assert abs(model.predict_one(DICTS[50]) - Y[50]) < 1
    assert interval.predict_one(DICTS[50], with_interval=True).width < 4
    assert len(greedy.models) == 4


def test_a_clone_starts_afresh():
    model = learn(make(options={"forgetting": 0.99}, features=["x2", "x10"]), DICTS)
    clone = model.clone()
    assert (clone.model.seen, repr(clone)) == (0, repr(model))
    assert_same_state(learn(clone, DICTS).model, model.model)
    other = model.clone({"max_size": 7, "features": None})
    assert learn(other, DICTS).model.size == 7
    assert other.inputs == NAMES
    whole = model.clone(include_attributes=True)
    assert_same_state(whole.model, model.model)


@pytest.mark.parametrize("seen", [0, 10, 40])
@pytest.mark.parametrize("again", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_copy_goes_on_bit_by_bit(seen, again):
    ragged, _ = with_holes()
    model = learn(make(), ragged[:seen])
    twin = again(model)
    learn(model, ragged[seen:], Y[seen:])
    assert twin.model.seen == seen
    assert_same_state(learn(twin, ragged[seen:], Y[seen:]).model, model.model)
    assert twin.predict_one({"x2": 5.0}) == model.predict_one({"x2": 5.0})


@pytest.mark.filterwarnings("ignore:.* not in the first samples? and")
def test_memory_is_bounded_and_all_of_it_is_counted():
    X, y = stream(4_000, seed=2)
    frame, targets = pd.DataFrame(X, columns=NAMES), pd.Series(y)
    model, sizes = make(budget=None, max_size=40), []
    for start in range(0, 4_000, 500):
        rows = frame[start : start + 500].assign(**{f"new {start}": 1.0 if start else np.nan})
        model.learn_many(rows if start % 1000 else rows.drop(columns="x2"), targets[rows.index])
        sizes.append(model._raw_memory_usage)
    assert model.model.seen == 4_000
    assert model.model.size <= 40
    assert max(sizes[4:]) < sizes[3] + 500  # larger integers, say
    assert model.model.nbytes < sizes[-1] < 2 * model.model.nbytes


# ---- the extra


def test_without_river_the_error_says_what_to_install():
    code = (
        "import sys; sys.modules['river'] = None\n"
        "import pogp\n"
        "try: import pogp.river\n"
        "except ImportError as error: print(error)\n"
        "print(sorted({'pandas', 'narwhals', 'sklearn'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["pogp.river needs River; pip install 'pogp[river]'", "[]"]
