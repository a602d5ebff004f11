"""The public contract: names, signatures, fields and behaviour that users may rely on."""

import inspect
import pickle

import numpy as np
import pytest

import pogp
from pogp import cli

from .conftest import smooth_2d

X, Y = smooth_2d(60, seed=0)
KERNEL = pogp.RBF(lengthscale=1.0, variance=1.0)
ONLINE = {
    "OnlineGP": lambda: pogp.OnlineGP(max_size=20),
    "SelfTuning": lambda: pogp.SelfTuning("absorbing", warmup=30, max_size=20),
    "POG": lambda: pogp.POG(KERNEL, 0.1),
    "AbsorbingPOG": lambda: pogp.AbsorbingPOG(KERNEL, 0.1),
    "DenseGP": lambda: pogp.DenseGP(KERNEL, 0.1),
    "SOGP": lambda: pogp.SOGP(KERNEL, 0.1, 20),
    "StreamingVFE": lambda: pogp.StreamingVFE(KERNEL, 0.1, 20),
    "RandomSubset": lambda: pogp.RandomSubset(KERNEL, 0.1, 20),
    "SlidingWindow": lambda: pogp.SlidingWindow(KERNEL, 0.1, 20),
    "McIntire": lambda: pogp.McIntire(KERNEL, 0.1, 20),
    "KRLSALD": lambda: pogp.KRLSALD(KERNEL, 0.1),
    "KRLST": lambda: pogp.KRLST(KERNEL, 0.1, 20),
}
OFFLINE = {
    "SPGP": lambda: pogp.SPGP(KERNEL, 0.1, 10),
    "VFE": lambda: pogp.VFE(KERNEL, 0.1, 10),
    "SmolaBartlett": lambda: pogp.SmolaBartlett(KERNEL, 0.1, 10),
    "KeerthiChu": lambda: pogp.KeerthiChu(KERNEL, 0.1, 10),
    "Seeger": lambda: pogp.Seeger(KERNEL, 0.1, 10),
}
SIGNATURES = {
    "OnlineGP": {"max_size": 300, "robust": True, "seed": 0},
    "SelfTuning": {
        "method": "absorbing",
        "kernel": None,
        "noise": None,
        "warmup": 300,
        "scale": False,
        "seed": 0,
    },
    "POG": {
        "budget": 1e-5,
        "view": "newest",
        "max_size": None,
        "max_removals": None,
        "mean": 0.0,
    },
    "AbsorbingPOG": {
        "budget": 0.1,
        "max_size": None,
        "forgetting": 1.0,
        "calibrate": False,
        "mean": 0.0,
    },
    "DenseGP": {"mean": 0.0},
    "SOGP": {"tolerance": 1e-6},
    "RandomSubset": {"seed": 0},
    "tune": {"kernel": pogp.RBF, "restarts": 3, "seed": 0},
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_arguments_and_their_defaults(name):
    found = inspect.signature(getattr(pogp, name)).parameters
    assert {key: found[key].default for key in SIGNATURES[name]} == SIGNATURES[name]
    positional = [key for key, value in found.items() if value.kind is value.POSITIONAL_OR_KEYWORD]
    expected = {
        "POG": ["kernel", "noise", "budget"],
        "AbsorbingPOG": ["kernel", "noise", "budget"],
        "SOGP": ["kernel", "noise", "max_size"],
        "OnlineGP": [],
    }
    assert positional[:3] == expected.get(name, positional[:3])


def same(a, b):
    """Whether two models go on in the same way, bit for bit."""
    for model in (a, b):
        model.learn(X[40:], Y[40:])
    return a.to_bytes() == b.to_bytes() and all(
        np.array_equal(ours, theirs)
        for ours, theirs in zip(a.predict(X), b.predict(X), strict=True)
    )


@pytest.mark.parametrize("name", ONLINE)
def test_models_share_one_protocol(name, tmp_path):
    model = ONLINE[name]()
    prior = model.predict(X)  # before anything is learned
    assert prior[0].shape == prior[1].shape == (60,)
    trace = model.learn(X[:40], Y[:40])
    for field in ("mean", "variance", "size", "removed", "spent", "novelty", "change"):
        assert getattr(trace, field).shape == (40,)
    assert model.seen == 40
    assert 1 <= model.size == len(model.indices)
    assert model.dictionary.shape == (model.size, 2)
    assert list(model.indices) == sorted(model.indices)
    assert isinstance(model.noise, float)
    assert model.kernel(X).shape == (60, 60)
    mean, variance = model.predict(X)
    assert (model.predict(X, latent=True)[1] <= variance).all()
    assert [np.shape(part) for part in model.predict(X[0])] == [(), ()]
    covariance = model.covariance(X)
    np.testing.assert_allclose(np.diagonal(covariance), variance, rtol=1e-6)
    assert model.covariance(X, latent=True).shape == (60, 60)
    assert model.sample(X, 3, 0).shape == (3, 60)
    lower, upper = model.interval(X, 0.9)
    assert ((lower < mean) & (mean < upper)).all()
    assert [part.shape for part in model.gradient(X)] == [(60, 2), (60, 2)]
    model.save(tmp_path / "model.pogp")
    copies = [
        model.copy(),
        pickle.loads(pickle.dumps(model)),
        pogp.load(tmp_path / "model.pogp"),
        pogp.from_bytes(model.to_bytes()),
    ]
    for each in copies:
        assert same(model.copy(), each)
    single = ONLINE[name]()
    assert len(single.learn(X[0], Y[0]).mean) == 1


@pytest.mark.parametrize("name", OFFLINE)
def test_offline_models_have_fit(name):
    model = OFFLINE[name]()
    with pytest.raises(ValueError, match="use fit"):
        model.learn(X, Y)
    model.fit(X, Y)
    assert model.predict(X)[0].shape == (60,)
    if name in ("SPGP", "VFE"):
        assert model.kernel == KERNEL
        assert model.noise == 0.1
        assert {"kernel", "noise"} <= set(dir(model.tuned))


@pytest.mark.parametrize("name", ["POG", "DenseGP", "RandomSubset", "SlidingWindow"])
def test_models_that_keep_data_take_samples_back(name):
    model = ONLINE[name]()
    model.learn(X, Y)
    assert len(model.targets) == model.size
    first = int(model.indices[0])
    model.remove(first)
    assert first not in model.indices


def test_further_features_of_absorbing():
    a, b = (pogp.AbsorbingPOG(KERNEL, 0.1, max_size=20) for _ in range(2))
    a.learn(X[:30], Y[:30], noise=np.full(30, 0.2))
    b.learn(X[30:], Y[30:])
    assert a.merge(b) is a
    tuned = a.retune(seed=0)
    assert (tuned.kernel, tuned.noise) == (a.kernel, a.noise)
    two = pogp.AbsorbingPOG(KERNEL, 0.1)
    assert two.learn(X, np.column_stack([Y, -Y])).mean.shape == (60, 2)
    calibrated = pogp.AbsorbingPOG(KERNEL, 0.1, calibrate=True)
    assert not np.array_equal(calibrated.learn(X, Y).variance, two.learn(X, np.c_[Y, Y]).variance)


def test_kernels_tuning_and_budgets():
    for kernel in (
        pogp.RBF([1.0, 2.0]),
        pogp.Matern12(columns=[0]),
        pogp.Matern32() + pogp.Matern52() * pogp.RationalQuadratic(),
        pogp.Periodic(columns=[1]) * pogp.Linear(),
    ):
        assert kernel(X).shape == (60, 60)
    tuned = pogp.tune(X, Y, kernel=pogp.RBF, restarts=1, seed=0)
    assert isinstance(tuned.kernel, pogp.RBF)
    assert tuned.noise > 0
    assert np.isfinite(tuned.log_likelihood)
    assert pogp.Decay(0.5, 1.0)(1) == pytest.approx(0.25)
    for budget in (0.0, None, pogp.Constant(1e-3), pogp.Decay(0.1, 0.5), lambda t: 0.1 / (t + 1)):
        pogp.POG(KERNEL, 0.1, budget, max_size=10).learn(X, Y)


def test_functions_next_to_the_models(capsys):
    assert pogp.hellinger(0.0, 1.0, 0.0, 1.0) == 0.0
    mean, variance = np.zeros(60), np.ones(60)
    assert pogp.metrics.smse(Y, mean, 1.0) > 0
    for name in ("msll", "nlpd", "crps"):
        assert np.isfinite(getattr(pogp.metrics, name)(Y, mean, variance))
    assert 0 <= pogp.metrics.coverage(Y, mean, variance, level=0.95) <= 1
    for make in (pogp.datasets.arm, pogp.datasets.gaussian, pogp.datasets.chi_square):
        data = make(20, seed=0)
        fields = ("name", "x_train", "y_train", "x_test", "y_test", "source")
        assert all(hasattr(data, field) for field in fields)
    assert isinstance(pogp.backend(), str)
    assert issubclass(pogp.FormatError, Exception)
    with pytest.raises(SystemExit, match="0"):
        cli.main(["--help"])
    shown = capsys.readouterr().out
    assert all(command in shown for command in ("run", "learn", "predict", "info"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pogp.POG(KERNEL, -1.0), "-1"),
        (lambda: pogp.RBF(0.0), "0"),
        (lambda: pogp.POG(KERNEL, 0.1, -0.5), "-0.5"),
        (lambda: pogp.POG(KERNEL, 0.1).learn([[np.nan, 1.0]], [1.0]), "nan"),
        (lambda: pogp.POG(KERNEL, 0.1).learn(X, Y[:3]), "3"),
        (lambda: pogp.POG(KERNEL, 0.1, lambda t: "much").learn(X, Y), "much"),
    ],
)
def test_bad_input_raises_with_its_value(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_model_keeps_its_number_of_inputs_and_its_state_after_an_error(tmp_path):
    model = pogp.POG(KERNEL, 0.1, lambda t: 0.1)
    model.learn(X, Y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="3"):
        model.learn(np.ones((1, 3)), [1.0])
    assert model.seen == 60
    assert np.array_equal(before[0], model.predict(X)[0])
    with pytest.raises(ValueError, match="budget"):
        model.save(tmp_path / "model.pogp")
    pogp.POG(KERNEL, 0.1).save(tmp_path / "model.pogp")
    data = (tmp_path / "model.pogp").read_bytes()
    with pytest.raises(pogp.FormatError):
        pogp.from_bytes(data[: len(data) // 2])
