"""Any method by name, on raw data: what a first slice of the stream says, and the model inside."""

import inspect
import pickle
from functools import cache, partial

import numpy as np
import pytest

import pogp
from pogp import models
from pogp.checks import checks_for
from pogp.models.selftuning.registry import METHODS, options_from, options_of

from ...conftest import assert_same_state, smooth_1d, smooth_2d

WARMUP, N = 30, 70
X, Y = smooth_1d(N)
Y = 5 + 3 * Y
QUERIES = np.linspace(-4, 4, 9)[:, None]
KERNEL, NOISE = pogp.Matern52(0.6, 1.3), 0.05

OPTIONS = {
    "absorbing": {"max_size": 20, "calibrate": True},
    "pog": {"budget": 1e-3, "max_removals": 1},
    "dense": {},
    "random": {"max_size": 15},
    "window": {"max_size": 15},
    "sogp": {"max_size": 15},
    "mcintire": {"threshold": 0.1},
    "krls-ald": {"tolerance": 1e-3},
    "krls-t": {"max_size": 15},
    "streaming-vfe": {"size": 15, "batch": 10},
    "spgp": {"size": 8},
    "vfe": {"size": 8},
    "smola-bartlett": {"size": 8},
    "keerthi-chu": {"size": 8},
    "seeger": {"size": 8},
}
NAMES = [name for name in METHODS if name != "online"]  # which tunes itself
ONLINE = [name for name in NAMES if METHODS[name].online]
SOME = ["absorbing", "pog", "dense", "streaming-vfe"]
"""One method for each kind of state."""
OFFLINE = [name for name in NAMES if name not in ONLINE]


def tuning(method="absorbing", **options):
    """A model of one of the methods, with options that suit the stream."""
    return pogp.SelfTuning(method, **{"warmup": WARMUP, "seed": 3, **OPTIONS[method], **options})


def inside(method, kernel, noise, **options):
    """The model that should be inside, with nothing learned."""
    kind = METHODS[method]
    seed = {"seed": 3} if "seed" in inspect.signature(kind).parameters else {}
    return kind(kernel, noise, **OPTIONS[method], **seed, **options)


@cache
def found(mean):
    return suited(X[:WARMUP], Y[:WARMUP], kernel=pogp.RBF, mean=mean)


suited = partial(pogp.tune, seed=3, prior=True)
"""As the models here are tuned."""


def suggested(method):
    """The model that the slice suggests, with nothing learned."""
    mean = float(Y[:WARMUP, None].mean(axis=0)[0])
    return inside(method, found(mean).kernel, found(mean).noise, mean=mean)


# ---- the methods


def test_every_model_has_a_name():
    exported = {getattr(models, name) for name in models.__all__} - {pogp.SelfTuning}
    assert set(METHODS.values()) == {kind for kind in exported if not inspect.isabstract(kind)}
    assert len(METHODS) == len(set(METHODS.values()))
    assert list(OPTIONS) == NAMES


def test_the_method_online_is_refused():
    with pytest.raises(ValueError, match=r"method 'online' tunes itself: use pogp\.OnlineGP"):
        pogp.SelfTuning("online")


@pytest.mark.parametrize("method", ONLINE)
def test_after_the_first_slice_it_is_the_method_with_tuned_hyperparameters(method):
    model, expected = tuning(method), suggested(method)
    trace = model.learn(X, Y)
    expected.learn(X[:WARMUP], Y[:WARMUP])
    assert trace.size[WARMUP - 1] == expected.size
    np.testing.assert_array_equal(
        trace.records[WARMUP:], expected.learn(X[WARMUP:], Y[WARMUP:]).records
    )
    assert type(model.model) is METHODS[method]
    assert_same_state(model.model, expected)
    assert (model.kernel, model.noise) == (expected.kernel, expected.noise)
    assert (model.size, model.seen, model.warming_up) == (expected.size, N, False)
    np.testing.assert_array_equal(model.dictionary, expected.dictionary)
    np.testing.assert_array_equal(model.indices, expected.indices)
    np.testing.assert_array_equal(model.predict(QUERIES), expected.predict(QUERIES))
    np.testing.assert_array_equal(model.covariance(QUERIES), expected.covariance(QUERIES))
    draws = [m.sample(QUERIES, 3, seed=1, latent=True) for m in (model, expected)]
    np.testing.assert_array_equal(*draws)


@pytest.mark.parametrize("method", OFFLINE)
def test_an_offline_method_starts_from_the_tuned_hyperparameters(method):
    model, expected = tuning(method), suggested(method)
    assert model.fit(X, Y) is model
    assert_same_state(model.model, expected.fit(X, Y))
    np.testing.assert_array_equal(model.predict(QUERIES), expected.predict(QUERIES))
    with pytest.raises(ValueError, match=f"'{method}' learns all samples at once: use fit"):
        model.learn(X, Y)


@pytest.mark.parametrize("method", NAMES)
def test_with_a_kernel_and_a_noise_nothing_is_collected(method):
    model, expected = tuning(method, kernel=KERNEL, noise=NOISE), inside(method, KERNEL, NOISE)
    assert not model.warming_up
    np.testing.assert_array_equal(model.predict(QUERIES), expected.predict(QUERIES))
    if method in ONLINE:
        for rows in (slice(0, 5), slice(5, N)):
            trace = model.learn(X[rows], Y[rows])
            np.testing.assert_array_equal(trace.records, expected.learn(X[rows], Y[rows]).records)
    else:
        model.fit(X, Y)
        expected.fit(X, Y)
    assert_same_state(model.model, expected)


# ---- the kernel


@pytest.mark.parametrize("kernel", [pogp.Matern32, "Matern32"], ids=["class", "name"])
def test_a_class_of_kernels_gets_a_lengthscale_for_each_input(kernel):
    inputs, targets = smooth_2d(60)
    model = tuning("dense", kernel=kernel)
    model.learn(inputs, targets)
    mean = targets[:WARMUP].mean()
    tuned = suited(inputs[:WARMUP], targets[:WARMUP], kernel=pogp.Matern32, mean=mean)
    assert model.kernel == tuned.kernel
    assert model.kernel.dimension == 2
    assert model.arguments()["kernel"] == "Matern32"


def test_a_kernel_without_a_noise_is_where_the_search_starts():
    start = pogp.RBF(0.7) + pogp.Matern12(2.0)
    model = tuning("dense", kernel=start)
    model.learn(X, Y)
    mean = Y[:WARMUP].mean()
    assert model.kernel == suited(X[:WARMUP], Y[:WARMUP], start, mean=mean).kernel
    assert model.arguments()["kernel"] is start


def test_a_noise_without_a_kernel_is_where_the_search_starts():
    model = tuning("dense", noise=1e-3)
    model.learn(X, Y)
    tuned = suited(X[:WARMUP], Y[:WARMUP], noise=1e-3, mean=Y[:WARMUP].mean())
    assert (model.kernel, model.noise) == (tuned.kernel, tuned.noise)


def test_a_given_mean_is_not_estimated():
    model = tuning("dense", mean=4.0)
    model.learn(X, Y)
    assert model.model.mean == 4.0
    assert model.kernel == suited(X[:WARMUP], Y[:WARMUP], mean=4.0).kernel


def test_hyperparameters_found_later_are_kept(tmp_path):
    model = tuning("absorbing")
    model.learn(X, Y)
    before = model.kernel
    kernel = pogp.RBF([0.9], 30.0)  # as if `retune` had found it
    model.model._posterior = model.model._posterior.under(kernel, model.noise)
    model.model._kernel = kernel
    model.save(tmp_path / "model")
    for twin in (model.copy(), pogp.load(tmp_path / "model")):
        assert twin.kernel == model.kernel != before
        assert_same_state(twin, model)


# ---- nothing is lost


def twins_of(model, path):
    model.save(path)
    return [model.copy(), pickle.loads(pickle.dumps(model)), pogp.load(path)]


@pytest.mark.parametrize(
    ("method", "scale"), [("absorbing", False), *((method, True) for method in SOME)]
)
def test_copies_continue_bit_for_bit(tmp_path, method, scale):
    model = tuning(method, scale=scale)
    for part in (slice(0, 20), slice(20, 50)):
        model.learn(X[part], Y[part])
        twins = twins_of(model, tmp_path / "model")
        expected = model.copy().learn(X, Y).records
        for twin in twins:
            assert twin.warming_up is model.warming_up
            assert twin.arguments() == model.arguments()
            assert_same_state(twin, model)
            np.testing.assert_array_equal(twin.predict(QUERIES), model.predict(QUERIES))
            np.testing.assert_array_equal(twin.learn(X, Y).records, expected)


def test_an_empty_model_is_saved_and_loaded(tmp_path):
    for model in (tuning(), tuning(scale=True, kernel=KERNEL, noise=NOISE)):
        for twin in twins_of(model, tmp_path / "model"):
            assert_same_state(twin, model)
            assert len(twin.learn(X, Y)) == N


@pytest.mark.parametrize("method", OFFLINE)
def test_files_contain_the_fitted_model(tmp_path, method):
    model = tuning(method, scale=True).fit(X, Y)
    for twin in twins_of(model, tmp_path / "model"):
        assert_same_state(twin, model)
        np.testing.assert_array_equal(twin.predict(QUERIES), model.predict(QUERIES))


@pytest.mark.parametrize("method", ["absorbing", "pog", "sogp"])
def test_a_state_of_read_only_arrays_is_accepted(method):
    for model in (tuning(method), tuning(method).fit(X, Y).model):
        model.learn(X, Y)
        recreate, (kind, arguments, memory) = model.__reduce__()
        for value in memory.values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)  # as joblib's maps are
        twin = recreate(kind, arguments, memory)
        np.testing.assert_array_equal(twin.learn(X, Y).records, model.learn(X, Y).records)


def flat_budget(t):
    return 0.05


def rough(A, B):
    return 2.0 * np.exp(-np.abs(A - B.T))


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("kernel", tuning("dense", kernel=rough)),
        ("budget", tuning("absorbing", budget=flat_budget)),
        ("weight", tuning("mcintire", weight=lambda points: np.ones(len(points)))),
        ("view", tuning("pog", view=pogp.criteria.Oldest())),
    ],
)
def test_code_is_left_out_of_the_file_and_supplied_again(tmp_path, name, model):
    path, code = tmp_path / "model", model.arguments()[name]
    for rows in (slice(0, 20), slice(20, N)):
        model.learn(X[rows], Y[rows])
        with pytest.raises(ValueError, match=f"{name} .*cannot be saved"):
            model.save(path)
        model.save(path, without_code=True)
        with pytest.raises(ValueError, match=f"supply it with load.path, {name}=..."):
            pogp.load(path)
        twin = pogp.load(path, **{name: code})
        assert_same_state(twin, model)
        trace = model.copy().learn(X, Y)
        np.testing.assert_array_equal(twin.learn(X, Y).records, trace.records)


class Linear(pogp.Kernel):
    """A kernel of one's own, with a parameter."""

    def __init__(self, slope=1.0):
        self.slope = slope

    theta = property(lambda self: np.log([self.slope]))

    def __call__(self, A, B=None):
        return self.slope * np.asarray(A) @ np.asarray(A if B is None else B).T

    def with_theta(self, theta):
        return Linear(float(np.exp(theta[0])))

    def gradients(self, A):
        return self(A)[None]


def test_a_kernel_of_the_user_is_tuned_and_copied_but_not_saved(tmp_path):
    model = tuning("dense", kernel=Linear())
    model.learn(X, 3 * X[:, 0])
    slope = model.kernel.slope
    part = X[:WARMUP, 0]
    tuned = suited(X[:WARMUP], 3 * part, Linear(), mean=(3 * part).mean())
    assert slope == pytest.approx(tuned.kernel.slope)
    assert slope != 1
    for twin in (model.copy(), pickle.loads(pickle.dumps(model))):
        assert twin.kernel.slope == slope
        np.testing.assert_array_equal(twin.learn(X, Y).records, model.copy().learn(X, Y).records)
    with pytest.raises(ValueError, match=r"kernel .*cannot be saved without its code"):
        model.save(tmp_path / "model")
    with pytest.raises(ValueError, match=r"state\['kernel'\] is .*Linear"):
        model.save(tmp_path / "model", without_code=True)


# ---- the protocol

WARMING = {
    "scaled": partial(
        pogp.SelfTuning, "pog", kernel=pogp.RBF([0.7, 0.9]), noise=0.1, warmup=30, scale=True
    ),
}
EXCEPT = {
    # to rounding only, where they were scaled
    "indices_say_where_in_the_stream_each_point_was",
}


@pytest.mark.parametrize(
    ("make", "check"),
    [
        pytest.param(make, check, id=f"{name}-{check.__name__}")
        for name, make in WARMING.items()
        for check in checks_for(make)
        if check.__name__ not in EXCEPT and not check.__module__.endswith("harmless")
    ],
)
def test_a_model_that_warms_up_keeps_the_protocol(make, check):
    check(make)


def test_invalid_input_changes_nothing():
    model = tuning("pog")
    model.learn(X[:20], Y[:20])
    before = model.state()
    late = np.where(np.arange(50) == 49, np.nan, Y[20:])
    for arguments, message in [
        ((X[20:], late), "got nan in row 49"),
        ((X[20:], np.column_stack([Y[20:], Y[20:]])), r"y must have shape \(50,\)"),
        ((np.ones((3, 2)), np.ones(3)), "1 inputs per sample"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.learn(*arguments)
        assert_same_state(model, before)
    with pytest.raises(ValueError, match="1 inputs per sample"):
        model.predict(np.ones((3, 2)))
    assert len(model.learn(X[:0], Y[:0])) == 0
    assert_same_state(model, before)


def test_a_search_that_fails_leaves_the_samples():
    def nonsense(A, B):
        return np.full((len(A), len(B)), np.nan)

    model = tuning("dense", kernel=nonsense)
    model.learn(X[:20], Y[:20])
    before = model.state()
    for attempt in (lambda: model.learn(X[20:], Y[20:]), model.settle):
        with pytest.raises(ValueError, match="must return finite values"):
            attempt()
        assert_same_state(model, before)
        assert model.warming_up


# ---- what is asked for


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "gp"}, "method must be one of online, absorbing, .*; got 'gp'"),
        ({"method": None}, "got None"),
        ({"max_removals": 1}, "'absorbing' has no option 'max_removals'; it takes budget, max_"),
        ({"method": "dense", "max_size": 3}, "'dense' has no option 'max_size'; it takes mean"),
        ({"method": "sogp"}, "'sogp' needs the option 'max_size', which was not given"),
        ({"family": "RBF"}, "has no option 'family'"),
        ({"budget": -1}, "budget must be a finite number ≥ 0, got -1"),
        ({"max_size": 0}, "max_size must be a whole number ≥ 1, got 0"),
        ({"max_size": 10**30}, "max_size must be at most 9223372036854775807, got 1000"),
        ({"method": "spgp", "size": 2.5}, "size must be a whole number ≥ 1, got 2.5"),
        ({"method": "pog", "view": "far"}, "view must be one of .*, got 'far'"),
        ({"kernel": "Linear"}, "one of the classes RBF, .*; got 'Linear'"),
        ({"kernel": int}, "got <class 'int'>"),
        ({"kernel": 3}, "expected a kernel .*, got 3"),
        ({"noise": 0.0}, "noise must be positive, got 0.0"),
        ({"kernel": KERNEL, "noise": 1e-15, "scale": True}, "noise must be at least 1e-12"),
        ({"warmup": 1}, "warmup must be a whole number ≥ 2, got 1"),
        ({"scale": "yes"}, "scale must be True or False, got 'yes'"),
        ({"seed": -1}, "seed must be a whole number ≥ 0, got -1"),
    ],
)
def test_errors_say_what_was_expected(arguments, message):
    with pytest.raises(ValueError, match=message):
        pogp.SelfTuning(**arguments)


def test_several_outputs_are_for_methods_that_take_them():
    both = np.column_stack([Y, -Y])
    for method in ("absorbing", "sogp", "krls-t"):
        model = tuning(method)
        model.learn(X, both)
        assert model.predict(QUERIES)[0].shape == (9, 2)
    for method in ("dense", "pog", "streaming-vfe"):
        with pytest.raises(ValueError, match=r"y must have shape \(70,\)"):
            tuning(method).learn(X, both)


def test_options_as_adapters_name_them():
    assert options_from("absorbing") == {"max_size": 300}
    assert options_from("dense") == {}
    assert options_from("vfe", max_size=20) == {"size": 20}
    assert options_from("pog", None, None, {"view": "everywhere"}) == {
        "budget": None,
        "max_size": None,
        "view": "everywhere",
    }
    assert options_from("absorbing", options={"max_size": 7}) == {"max_size": 7}
    with pytest.raises(ValueError, match="max_size is given twice: 5, and 7 in options"):
        options_from("absorbing", max_size=5, options={"max_size": 7})
    with pytest.raises(ValueError, match="method must be one of"):
        options_of("gp")


def test_repeated_samples_do_not_make_the_estimated_noise_zero():
    inputs = np.random.default_rng(0).uniform(-3, 3, (60, 1))
    noise = 0.2 * np.random.default_rng(1).normal(size=60)
    targets = np.sin(inputs[:, 0]) + noise
    once = pogp.SelfTuning(warmup=60)
    once.learn(inputs, targets)
    thrice = pogp.SelfTuning(warmup=180)
    thrice.learn(np.repeat(inputs, 3, axis=0), np.repeat(targets, 3))
    assert once.noise == pytest.approx(0.04, rel=0.5)
    assert thrice.noise == pytest.approx(once.noise, rel=1e-3)


def test_after_one_target_the_deviation_is_its_size():
    model = pogp.SelfTuning()
    model.learn([[0.0]], [1e6])
    mean, variance = model.predict([0.0])
    assert mean == 1e6
    assert np.sqrt(variance) == pytest.approx(1e6)
