"""The regressor for scikit-learn: its own checks, what it does with frames, and what it equals."""

import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import check_estimator

import pogp
from pogp.models.baselines import pseudo_inputs
from pogp.models.selftuning.registry import METHODS
from pogp.sklearn import POGRegressor

from .conftest import assert_same_state, smooth_2d

WARMUP, N = 20, 70
X, Y = smooth_2d(N)
Y = 5 + 3 * Y
QUERIES = np.random.default_rng(1).uniform(-1.5, 1.5, (8, 2))
GIVEN = {"kernel": pogp.RBF(0.8, 1.5), "noise": 0.02}
ABSORBING = {"method": "absorbing", **GIVEN}
SCALED = {"kernel": pogp.RBF(3.0), "noise": 0.1, "scale": True, "warmup": 30}

FEW = {method: {"max_size": 2} for method in ("spgp", "vfe")}  # their searches take time
OPTIONS = {
    "mcintire": {"threshold": 0.01},
    "streaming-vfe": {"batch": 10},
}
ONLINE = [name for name, kind in METHODS.items() if kind.online]
SIZED = (
    pogp.StreamingVFE,
    pogp.SPGP,
    pogp.VFE,
    pogp.SmolaBartlett,
    pogp.KeerthiChu,
    pogp.Seeger,
)
CAPPED = [name for name in METHODS if name not in ("dense", "krls-ald")]


def regressor(method, **parameters):
    """A regressor by one of the methods, small enough for a small stream."""
    size = {"max_size": 15} if method in CAPPED else {}
    further = {"options": OPTIONS[method]} if method in OPTIONS else {}
    return POGRegressor(method, **{"warmup": WARMUP, **size, **further, **own(method, parameters)})


def own(method, parameters):
    """Parameters without those that the method finds out by itself."""
    found = ("kernel", "noise", "warmup", "scale") if method == "online" else ()
    return {name: value for name, value in parameters.items() if name not in found}


# ---- scikit-learn's own checks


EQUIVALENCE = "check_sample_weight_equivalence_on_dense_data"


def excused(method):
    """Checks of weights that a method fails, and why."""
    if method != "online" and not METHODS[method].multi_output:
        checks = (EQUIVALENCE, "check_sample_weights_list", "check_sample_weights_not_overwritten")
        return dict.fromkeys(checks, "it does not use weights, and raises an error")
    return {EQUIVALENCE: "scales are of the samples as they come"}


def test_a_weight_is_so_many_samples_where_nothing_is_found_from_them():
    estimator = POGRegressor("absorbing", kernel=pogp.RBF(), noise=0.01)
    getattr(estimator_checks, EQUIVALENCE)("POGRegressor", estimator)


@pytest.mark.parametrize("method", ["online", "absorbing", "pog", "vfe"])
def test_the_checks_of_scikit_learn(method, monkeypatch):
    """One method of each kind: the others differ in the model alone, which `fit` compares below.

    What is checked does not depend on how far a search goes.
    """
    search = pseudo_inputs.search
    monkeypatch.setattr(pseudo_inputs, "search", lambda *given: search(*given[:4], 5, *given[5:]))
    estimator = regressor(method, **SCALED, **FEW.get(method, {}))
    results = check_estimator(estimator, on_skip=None, expected_failed_checks=excused(method))
    assert {result["status"] for result in results} <= {"passed", "skipped", "xfail"}
    skipped = [result["check_name"] for result in results if result["status"] == "skipped"]
    assert set(skipped) <= {"check_array_api_input"}  # unless SCIPY_ARRAY_API is set


def test_the_checks_of_scikit_learn_where_hyperparameters_are_found():
    excuses = {EQUIVALENCE: "they are found from the samples as they come"}
    estimator = POGRegressor("absorbing", warmup=10)
    results = check_estimator(estimator, on_skip=None, expected_failed_checks=excuses)
    assert {result["status"] for result in results} <= {"passed", "skipped", "xfail"}


# ---- it is the model


def learned(method, **arguments):
    """The model that the regressor should have, after the whole stream."""
    cap = "size" if METHODS[method] in SIZED else "max_size"
    options = OPTIONS.get(method, {}) | ({cap: 15} if method in CAPPED else {})
    if method == "online":
        return pogp.OnlineGP(**options, **own(method, arguments)).fit(X, Y)
    model = pogp.SelfTuning(method, **{"warmup": WARMUP, **options, **arguments})
    if method in ONLINE:
        model.learn(X, Y)
        return model
    return model.fit(X, Y)


@pytest.mark.parametrize("method", METHODS)
def test_fitting_is_learning_the_array(method):
    fitted = regressor(method, **SCALED).fit(X, Y)
    assert_same_state(fitted.model_, learned(method, **SCALED))


@pytest.mark.parametrize("method", ["absorbing", "dense", "vfe"])
def test_also_where_hyperparameters_are_found(method):
    assert_same_state(regressor(method).fit(X, Y).model_, learned(method))


@pytest.mark.parametrize("method", ONLINE)
def test_batches_are_learning_the_array(method):
    whole, parts = learned(method, **SCALED), regressor(method, **SCALED)
    for rows in np.split(np.arange(N), (10, 40, 50)):
        parts.partial_fit(X[rows], Y[rows])
    parts.model_.settle()
    np.testing.assert_array_equal(parts.model_.indices, whole.indices)
    means, deviations = parts.predict(QUERIES, return_std=True)
    expected = whole.predict(QUERIES)
    np.testing.assert_allclose(means, expected[0], rtol=1e-9)
    np.testing.assert_allclose(deviations**2, expected[1], rtol=1e-9)


def test_a_fit_goes_on_with_batches_and_a_second_fit_starts_afresh():
    model = regressor("absorbing").fit(X[:30], Y[:30])
    model.partial_fit(X[30:], Y[30:])
    assert_same_state(model.model_, learned("absorbing"))
    assert_same_state(model.fit(X, Y).model_, learned("absorbing"))


def test_few_samples_are_tuned_on_all_at_once():
    model = regressor("absorbing").fit(X[:9], Y[:9])
    assert not model.model_.warming_up
    whole = pogp.SelfTuning(warmup=9, max_size=15)
    whole.learn(X[:9], Y[:9])
    np.testing.assert_array_equal(model.predict(X), whole.predict(X)[0])
    batch = regressor("absorbing").partial_fit(X[:9], Y[:9])
    np.testing.assert_allclose(batch.predict(X), Y[:9].mean())


def test_one_sample_is_enough_only_where_nothing_has_to_be_found():
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        regressor("absorbing").fit(X[:1], Y[:1])
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        regressor("dense", **SCALED).fit(X[:1], Y[:1])
    assert regressor("dense", **GIVEN).fit(X[:1], Y[:1]).model_.size == 1


def test_a_method_that_learns_all_at_once_has_no_partial_fit():
    for method in METHODS:
        assert hasattr(regressor(method), "partial_fit") is (method in ONLINE)
    with pytest.raises(AttributeError, match="no attribute 'partial_fit'") as failure:
        regressor("vfe").partial_fit(X, Y)
    assert "'vfe' learns all samples at once: use fit" in str(failure.value.__cause__)


# ---- predictions


def theirs(kernel, alpha):
    """scikit-learn's own exact GP with the same kernel."""
    exact = GaussianProcessRegressor(kernel, alpha=alpha, optimizer=None)
    return exact.fit(X, Y)


@pytest.mark.parametrize("latent", [False, True])
def test_dense_it_is_scikit_learns_own(latent):
    ours = POGRegressor("dense", **GIVEN).fit(X, Y)
    signal = 1.5 * RBF(0.8)
    exact = theirs(signal, 0.02) if latent else theirs(signal + WhiteKernel(0.02), 1e-12)
    for wanted in ("return_std", "return_cov"):
        expected = exact.predict(QUERIES, **{wanted: True})
        got = ours.predict(QUERIES, **{wanted: True}, latent=latent)
        np.testing.assert_allclose(got[0], expected[0], rtol=1e-6)
        np.testing.assert_allclose(got[1], expected[1], atol=1e-7)
    np.testing.assert_allclose(ours.predict(QUERIES), exact.predict(QUERIES), rtol=1e-6)


def test_draws_have_the_shape_that_scikit_learns_have():
    model = POGRegressor("dense", **GIVEN).fit(X, Y)
    draws = model.sample_y(QUERIES, 4000)
    assert draws.shape == theirs(RBF(), 0.1).sample_y(QUERIES, 4000).shape == (8, 4000)
    mean, covariance = model.predict(QUERIES, return_cov=True)
    np.testing.assert_allclose(draws.mean(axis=1), mean, atol=0.1)
    np.testing.assert_allclose(np.cov(draws), covariance, atol=0.1)
    np.testing.assert_array_equal(model.sample_y(QUERIES, 4000, random_state=0), draws)
    assert (model.sample_y(QUERIES, 4000, random_state=1) != draws).any()
    states = [np.random.RandomState(5) for _ in range(2)]
    np.testing.assert_array_equal(*(model.sample_y(QUERIES, random_state=s) for s in states))
    assert model.sample_y(QUERIES).shape == (8, 1)
    quiet = model.sample_y(QUERIES, 4000, latent=True)
    np.testing.assert_allclose(
        np.cov(quiet), model.predict(QUERIES, return_cov=True, latent=True)[1], atol=0.1
    )


def test_several_outputs():
    both = np.column_stack([Y, 100 - 10 * Y])
    model = regressor("absorbing", scale=True).fit(X, both)
    mean, deviation = model.predict(X, return_std=True)
    assert mean.shape == deviation.shape == (N, 2)
    assert model.score(X, both) > 0.9
    assert model.predict(QUERIES, return_cov=True)[1].shape == (8, 8, 2)
    draws = model.sample_y(QUERIES, 3)
    assert draws.shape == (8, 2, 3)
    np.testing.assert_array_equal(draws[:, :, 1], model.model_.sample(QUERIES, 3, seed=0)[1])
    with pytest.raises(ValueError, match="y should be a 1d array"):
        regressor("dense").fit(X, both)
    with pytest.warns(DataConversionWarning):
        column = POGRegressor("dense", **GIVEN).fit(X, Y[:, None])
    np.testing.assert_array_equal(
        column.predict(X), POGRegressor("dense", **GIVEN).fit(X, Y).predict(X)
    )


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_intervals_are_those_of_the_model(level):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    model = POGRegressor(max_size=30).fit(X, X[:, 0] + rng.standard_t(3, size=len(X)))
    for ours, theirs in zip(model.interval(X, level), model.model_.interval(X, level), strict=True):
        np.testing.assert_allclose(ours, theirs)
    with pytest.raises(ValueError, match="level"):
        model.interval(X, 95)


def test_predictions_need_a_fit_and_one_kind_of_uncertainty():
    with pytest.raises(NotFittedError):
        POGRegressor().predict(X)
    model = POGRegressor("dense", **GIVEN).fit(X, Y)
    with pytest.raises(ValueError, match="return_std and return_cov are both True"):
        model.predict(X, return_std=True, return_cov=True)


# ---- parameters


def test_parameters_are_checked_by_fit_and_not_before():
    for parameters, message in [
        ({"method": "gp"}, "method must be one of .*absorbing, .*; got 'gp'"),
        ({"budget": 0.1}, "'online' has no option 'budget'"),
        ({"method": "pog", "budget": -1.0}, "budget must be .*, got -1"),
        ({"method": "sogp", "budget": 0.1}, "'sogp' has no option 'budget'"),
        ({"method": "dense", "max_size": 9}, "'dense' has no option 'max_size'"),
        ({"max_size": 5, "options": {"max_size": 6}}, "max_size is given twice"),
        ({"method": "sogp", "warmup": 0}, "warmup must be a whole number ≥ 2, got 0"),
    ]:
        model = POGRegressor(**parameters)
        with pytest.raises(ValueError, match=message):
            model.fit(X, Y)
        assert not hasattr(model, "model_")


def test_fitting_changes_no_parameter():
    options = {"forgetting": 0.99}
    model = POGRegressor("absorbing", kernel=pogp.Matern32, warmup=WARMUP, options=options)
    before = dict(model.get_params())
    model.fit(X, Y).partial_fit(X, Y)
    after = model.get_params()
    assert before.keys() == after.keys()
    assert all(after[name] is before[name] for name in before)
    assert options == {"forgetting": 0.99}


def test_the_meaning_of_auto():
    assert POGRegressor(**ABSORBING).fit(X, Y).model_.arguments()["max_size"] == 300
    assert POGRegressor(**ABSORBING, max_size=None).fit(X, Y).model_.arguments()["max_size"] is None
    offline = POGRegressor("seeger", **GIVEN, max_size=7).fit(X, Y)
    assert offline.model_.size == 7


def test_a_random_state_may_be_anything_that_scikit_learn_takes():
    fixed, other = (POGRegressor("random", **GIVEN, max_size=9, random_state=s) for s in (1, 2))
    assert (fixed.fit(X, Y).model_.indices != other.fit(X, Y).model_.indices).any()
    assert_same_state(clone(fixed).fit(X, Y).model_, fixed.model_)
    state = np.random.RandomState(3)
    for value in (state, None):
        assert POGRegressor("random", **GIVEN, random_state=value).fit(X, Y).model_.size == N


@pytest.mark.parametrize("kernel", [None, "Matern32", pogp.Matern52, pogp.RBF(0.5) + pogp.RBF(2)])
def test_clones_are_the_same_and_not_fitted(kernel):
    model = POGRegressor(
        "absorbing", kernel=kernel, budget=pogp.Decay(0.1, 0.5), warmup=WARMUP
    ).fit(X, Y)
    twin = clone(model)
    assert not hasattr(twin, "model_")
    assert_same_state(twin.fit(X, Y).model_, model.model_)


def test_a_pickle_goes_on():
    model = regressor("absorbing").partial_fit(X[:10], Y[:10])
    for rows in (slice(10, 40), slice(40, N)):
        twin = pickle.loads(pickle.dumps(model))
        for one in (model, twin):
            one.partial_fit(X[rows], Y[rows])
        assert_same_state(twin.model_, model.model_)


# ---- pipelines, searches and frames


def test_in_a_pipeline_it_is_the_model_on_scaled_data():
    pipeline = make_pipeline(StandardScaler(), regressor("absorbing", **GIVEN)).fit(X, Y)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    alone = regressor("absorbing", **GIVEN).fit(scaled, Y)
    np.testing.assert_allclose(pipeline.predict(X), alone.predict(scaled))
    deviation = pipeline.predict(X, return_std=True)[1]
    np.testing.assert_allclose(deviation, alone.predict(scaled, return_std=True)[1])
    assert pipeline.score(X, Y) > 0.9


def test_a_search_over_budgets_and_sizes():
    folds = KFold(3, shuffle=True, random_state=0)
    grid = {"budget": [0.01, 0.5], "max_size": [3, 40]}
    search = GridSearchCV(POGRegressor(**ABSORBING), grid, cv=folds).fit(X, Y)
    results = search.cv_results_
    for parameters, score in zip(results["params"], results["mean_test_score"], strict=True):
        alone = cross_val_score(POGRegressor(**ABSORBING, **parameters), X, Y, cv=folds)
        assert score == pytest.approx(alone.mean())
    assert search.best_params_ == {"budget": 0.01, "max_size": 40}
    assert search.best_estimator_.model_.model.max_size == 40


FRAMES = {
    "pandas": (pd.DataFrame(X, columns=["a", "b"]), pd.Series(Y, name="target")),
    "polars": (pl.DataFrame(X, schema=["a", "b"]), pl.Series("target", Y)),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_and_their_names(kind):
    frame, series = FRAMES[kind]
    model = POGRegressor(**ABSORBING).fit(frame, series)
    assert model.n_features_in_ == 2
    assert model.feature_names_in_.tolist() == ["a", "b"]
    expected = POGRegressor(**ABSORBING).fit(X, Y).predict(X)
    np.testing.assert_array_equal(model.predict(frame), expected)
    parts = POGRegressor(**ABSORBING)
    for rows in (slice(0, 30), slice(30, N)):
        parts.partial_fit(frame[rows], series[rows])
    np.testing.assert_array_equal(parts.predict(frame), expected)
    for use in (model.predict, model.sample_y, lambda f: model.partial_fit(f, series)):
        with pytest.raises(ValueError, match="feature names should match"):
            use(frame[["b", "a"]])


@pytest.mark.parametrize("kind", FRAMES)
def test_a_pipeline_whose_steps_hand_on_frames(kind):
    frame, series = FRAMES[kind]
    pipeline = make_pipeline(StandardScaler(), POGRegressor(**ABSORBING)).set_output(transform=kind)
    pipeline.fit(frame, series)
    assert pipeline[-1].feature_names_in_.tolist() == ["a", "b"]
    arrays = make_pipeline(StandardScaler(), POGRegressor(**ABSORBING)).fit(X, Y)
    np.testing.assert_allclose(pipeline.predict(frame), arrays.predict(X), rtol=1e-8)


# ---- the extra


def test_without_scikit_learn_the_error_names_the_extra():
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "import pogp\n"
        "try:\n    import pogp.sklearn\n"
        "except ImportError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "pogp.sklearn needs scikit-learn; pip install 'pogp[sklearn]'"


def test_a_kernel_of_scikit_learn_is_not_silently_taken_as_it_is():
    kernel = ConstantKernel(1.0) * RBF(1.0)
    with pytest.raises(ValueError, match=r"scikit-learn's 1\*\*2 \* RBF.*cannot be tuned here"):
        POGRegressor("absorbing", kernel=kernel).fit(X, Y)
    assert (
        POGRegressor("absorbing", kernel=kernel, noise=0.01, max_size=20).fit(X, Y).score(X, Y)
        > 0.5
    )


def test_frames_of_times_and_numbers_and_of_types_with_their_own_gaps():
    n = 60
    rng = np.random.default_rng(0)
    times = pd.date_range("2024-01-01", periods=n, freq="h")
    numbers, texts = rng.uniform(size=n), pd.array(rng.choice(["a", "b"], n), dtype="string")
    whole = pd.array(rng.integers(0, 9, n), dtype="Int64")
    texts[3], whole[4] = pd.NA, pd.NA
    for columns, kinds in (
        ({"when": times, "load": numbers}, ["time", "number"]),
        ({"load": numbers, "room": texts}, ["number", "category"]),
        ({"count": whole, "room": texts}, ["number", "category"]),
    ):
        frame = pd.DataFrame(columns)
        found = POGRegressor().fit(frame, numbers)
        assert found.encoder_.kinds == kinds
        assert np.isfinite(found.predict(frame)).all()
    with pytest.raises(ValueError, match="2-dimensional"):
        POGRegressor().fit(pd.Series(numbers), numbers)


def test_one_instant_is_one_input_in_any_time_zone():
    frame = pd.DataFrame({"when": pd.date_range("2024-01-01", periods=60, freq="h", tz="UTC")})
    there = frame.assign(when=frame["when"].dt.tz_convert("Asia/Tokyo"))
    plain = frame.assign(when=frame["when"].dt.tz_localize(None))
    found = POGRegressor().fit(frame, np.arange(60.0))
    for other in (there, plain):
        np.testing.assert_array_equal(found.predict(other), found.predict(frame))


@pytest.mark.filterwarnings("ignore:column 'room'. . rows with categories")
def test_missing_values_times_and_categories_are_features():
    n = 80
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "when": pd.date_range("2024-01-01", periods=n, freq="h"),
            "room": pd.Categorical(rng.choice(["hall", "attic"], n)),
            "load": np.where(rng.random(n) < 0.2, np.nan, rng.uniform(size=n)),
        }
    )
    frame.loc[5, "when"] = pd.NaT
    frame.loc[7, "room"] = None
    y = np.sin(np.arange(n) / 24 * 2 * np.pi) + (frame["room"] == "hall")
    whole = POGRegressor().fit(frame, y)
    assert whole.encoder_.kinds == ["time", "category", "number"]
    parts = POGRegressor()
    for start in range(0, n, 20):
        parts.partial_fit(frame[start : start + 20], y[start : start + 20])
    later = frame[-5:].assign(room="cellar")  # never seen: a missing value
    for rows in (frame, later):
        mean, std = whole.predict(rows, return_std=True)
        assert np.isfinite(mean).all()
        assert (std > 0).all()
    assert whole.predict(later, return_cov=True)[1].shape == (5, 5)
    assert parts.score(frame, y) > 0.8
    text = POGRegressor().fit(np.array([["a"], ["b"], ["a"]], dtype=object), [1.0, 2.0, 1.0])
    assert text.encoder_.kinds == ["category"]
    with pytest.raises(ValueError, match="column 'x0': it has texts and other cells"):
        POGRegressor().fit(np.array([["a"], [1.0]], dtype=object), [1.0, 2.0])
    with pytest.raises(ValueError, match="column 'x0': it must have finite numbers"):
        POGRegressor().fit([[np.inf], [1.0]], [1.0, 2.0])


def test_categories_that_were_never_learned_are_told():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"mode": rng.choice(["a", "b"], 60), "load": rng.normal(size=60)})
    regressor = POGRegressor(max_size=20).fit(frame, frame["load"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        regressor.predict(frame[:5])
    told = "column 'mode': 2 rows with categories that were never learned, such as 'c', count as"
    with pytest.warns(UserWarning, match=told) as found:
        regressor.predict(frame[:3].assign(mode=["a", "c", "d"]))
    assert [Path(each.filename).name for each in found] == ["test_sklearn.py"]


@pytest.mark.parametrize("kind", [int, float])
def test_a_category_of_numbers_is_a_category(kind):
    rng = np.random.default_rng(0)
    line = rng.integers(1, 5, 120).astype(kind)
    frame = pd.DataFrame({"line": pd.Categorical(line), "load": rng.uniform(size=120)})
    y = np.array([0.0, 3.0, -1.0, 7.0, 2.0])[line.astype(int)] + 0.01 * rng.normal(size=120)
    frame.loc[3, "line"] = None
    regressor = POGRegressor().fit(frame, y)
    assert regressor.encoder_.kinds == ["category", "number"]
    assert sorted(regressor.encoder_.columns[0].values) == ["1", "2", "3", "4"]
    assert str(frame.dtypes["line"]) == "category"
    assert regressor.score(frame[5:], y[5:]) > 0.98
    plain = frame[5:].astype({"line": float})  # the same categories, though not called so
    np.testing.assert_array_equal(regressor.predict(plain), regressor.predict(frame[5:]))


@pytest.mark.parametrize("empty", ["", None, np.nan])
def test_the_first_value_decides_what_a_column_holds(empty):
    rng = np.random.default_rng(0)
    rooms = rng.choice(["hall", "attic", "cellar"], 120)
    frame = pd.DataFrame({"room": rooms, "load": rng.uniform(size=120)})
    y = frame["room"].str.len() + 0.01 * rng.normal(size=120)
    regressor = POGRegressor().partial_fit(frame[:5].assign(room=empty), y[:5])
    assert regressor.encoder_.kinds == ["undecided", "number"]
    assert np.isfinite(regressor.predict(frame)).all()
    regressor.partial_fit(frame[5:], y[5:])
    assert regressor.encoder_.kinds == ["category", "number"]
    assert regressor.score(frame, y) > 0.98


@pytest.mark.parametrize("method", ["online", "absorbing"])
def test_weights_are_relative_where_the_noise_is_found(method):
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (120, 1))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=120)
    weight = rng.uniform(0.5, 2.0, 120) * (rng.random(120) < 0.9)

    def predicted(weight):
        return POGRegressor(method).fit(X, y, sample_weight=weight).predict(X, return_std=True)

    np.testing.assert_array_equal(predicted(np.full(120, 1e-3)), predicted(None))
    np.testing.assert_array_equal(predicted(1024 * weight), predicted(weight))


def test_weights_are_precisions_and_zero_leaves_a_sample_out():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (200, 1))
    bad = rng.random(200) < 0.4
    y = np.sin(X[:, 0]) + np.where(bad, 3.0, 0.05) * rng.normal(size=200)
    weight = np.where(bad, 0.0, 1.0)
    options = {"kernel": pogp.RBF(), "noise": 0.0025}
    weighed = POGRegressor("absorbing", **options).fit(X, y, sample_weight=weight)
    without = POGRegressor("absorbing", **options).fit(X[~bad], y[~bad])
    np.testing.assert_array_equal(weighed.predict(X), without.predict(X))
    doubled = POGRegressor("absorbing", **options).fit(X, y, sample_weight=np.full(200, 2.0))
    twice = pogp.AbsorbingPOG(pogp.RBF(), 0.0025, max_size=300, calibrate=True)
    twice.learn(X, y, noise=np.full(200, 0.00125))
    np.testing.assert_array_equal(doubled.predict(X), twice.predict(X)[0])
    with pytest.raises(ValueError, match="at least one non-zero"):
        POGRegressor("absorbing", **options).fit(X, y, sample_weight=np.zeros(200))
    with pytest.raises(ValueError, match="does not use weights"):
        POGRegressor("pog").fit(X, y, sample_weight=np.linspace(1.0, 2.0, 200))
