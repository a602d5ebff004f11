"""Models that retain samples: errors, files and kernels written in Python.

What every model has in common is in `conformance/`. Constructor arguments and samples are checked
by code that the models share, so one model stands for all.
"""

import pickle
import re
from functools import partial

import numpy as np
import pytest

import pogp
from pogp.files import container

from ..conftest import BACKENDS, assert_same_state, rbf, smooth_2d
from ..pairwise import pairwise

KERNEL, NOISE, MEAN, CAP = pogp.RBF((0.7, 0.9), 1.3), 0.05, 0.6, 25

KINDS = {
    "newest": partial(pogp.POG, budget=1e-3, max_size=CAP),
    "everywhere": partial(pogp.POG, budget=0.15, view="everywhere", max_size=CAP),
    "dense": pogp.DenseGP,
    "random": partial(pogp.RandomSubset, max_size=CAP, seed=3),
    "window": partial(pogp.SlidingWindow, max_size=CAP),
}
X, Y = smooth_2d(400, seed=21)
QUERIES = np.random.default_rng(5).uniform(-1.2, 1.2, (600, 2))


def maker(kind):
    kind = partial(KINDS[kind], mean=MEAN)
    return lambda kernel=KERNEL, noise=NOISE, **options: kind(kernel, noise, **options)


@pytest.fixture
def model():
    """A POG that has learned 150 samples."""
    model = maker("newest")()
    model.learn(X[:150], Y[:150])
    return model


# ---- which samples are retained


@pytest.mark.parametrize("kind", ["newest", "everywhere", "random", "window"])
def test_one_sample_always_stays(backend, kind):
    assert set(maker(kind)(max_size=1).learn(X[:100], Y[:100]).size) == {1}


def test_a_window_keeps_the_latest_samples_and_a_dense_model_all():
    window, dense = pogp.SlidingWindow(KERNEL, NOISE, 7), pogp.DenseGP(KERNEL, NOISE)
    for model in (window, dense):
        model.learn(X, Y)
    assert window.indices.tolist() == list(range(393, 400))
    assert dense.indices.tolist() == list(range(400))


def test_a_random_subset_depends_on_its_seed_alone():
    subsets = [pogp.RandomSubset(KERNEL, NOISE, 30, seed=seed) for seed in (1, 1, 2)]
    for model in subsets:
        model.learn(X, Y)
    one, same, other = (model.indices.tolist() for model in subsets)
    assert one == same != other


# ---- copies, pickles and files


def saved_and_loaded(model, folder):
    model.save(folder / "model.pog")
    return pogp.load(folder / "model.pog")


WAYS = {
    "copy": lambda model, folder: model.copy(),
    "pickle": lambda model, folder: pickle.loads(pickle.dumps(model)),
    "file": saved_and_loaded,
}


@pairwise(backend=BACKENDS, way=list(WAYS), noise=[NOISE, 1e-6], kind=["newest", "dense"])
def test_a_copy_of_a_large_model_continues_bit_for_bit(backend, way, noise, kind, tmp_path):
    model = maker(kind)(noise=noise, **({} if kind == "dense" else {"max_size": None}))
    model.learn(X[:201], Y[:201])
    twin = WAYS[way](model, tmp_path)
    traces = [one.learn(X[201:], Y[201:]) for one in (model, twin)]
    np.testing.assert_array_equal(traces[0].records, traces[1].records)
    assert_same_state(twin, model)
    np.testing.assert_array_equal(model.predict(QUERIES), twin.predict(QUERIES))


def test_a_file_whose_arrays_do_not_fit_is_refused(backend, model, tmp_path):
    path = tmp_path / "model.pog"
    model.save(path)
    header, arrays = container.read(path)
    for name, array in arrays.items():
        for changed in (array[:1], array[:-1], np.concatenate([array, array])):
            container.write(path, header, {**arrays, name: changed})
            with pytest.raises(pogp.FormatError):
                pogp.load(path)
    for name in header["state"]:
        for nonsense in ("text", None):
            container.write(path, header | {"state": header["state"] | {name: nonsense}}, arrays)
            with pytest.raises(pogp.FormatError):
                pogp.load(path)


@pytest.mark.parametrize(
    "changes",
    [
        {"schema": 99},
        {"schema": "new"},
        {"model": "Model"},
        {"model": "os.system"},
        {"model": []},
        {"arguments": []},
        {"arguments": {"noise": 0.1}},
        {"arguments": {"kernel": {"kind": "RBF"}, "noise": 0.1}},
        {"state": 3},
        {"state": {}},
    ],
)
def test_a_file_with_a_wrong_header_is_refused(tmp_path, changes):
    path = tmp_path / "model.pog"
    model = pogp.POG(KERNEL, NOISE)
    model.learn(X[:9], Y[:9])
    model.save(path)
    header, arrays = container.read(path)
    container.write(path, header | changes, arrays)
    with pytest.raises(pogp.FormatError, match=r"model\.pog"):
        pogp.load(path)


def decreasing(t):
    return 0.01 / (t + 1)


def users_kernel(A, B):
    return rbf((0.7, 0.9), 1.3)(A, B)


def test_the_error_names_code_that_cannot_be_saved(tmp_path):
    path = tmp_path / "model.pog"
    for arguments, name in (
        ({"kernel": users_kernel}, "users_kernel"),
        ({"budget": decreasing}, "decreasing"),
    ):
        model = maker("newest")(**arguments)
        model.learn(X[:30], Y[:30])
        with pytest.raises(ValueError, match=name):
            model.save(path)
        assert not path.exists()
        model.save(path, without_code=True)
        with pytest.raises(ValueError, match=name):
            pogp.load(path)
        twin = pogp.load(path, **arguments)
        assert_same_state(twin, model)
        traces = [one.learn(X[30:90], Y[30:90]) for one in (model, twin)]
        np.testing.assert_array_equal(traces[0].records, traces[1].records)
        path.unlink()


def test_a_file_with_its_kernel_takes_no_other(model, tmp_path):
    path = tmp_path / "model.pog"
    model.save(path)
    assert_same_state(pogp.load(path, kernel=KERNEL), model)
    with pytest.raises(ValueError, match=r"3\.21"):
        pogp.load(path, kernel=pogp.RBF(3.21))


# ---- errors, each with the offending value, none with any effect


def shown(value):
    """What a message must have in it to show the value."""
    return re.escape(repr(value))


BAD_SAMPLES = {
    "NaN in the last row": (np.vstack([X[:90], [[0.5, np.nan]]]), Y[:91], "nan"),
    "infinity": (np.array([[np.inf, 0.0]]), Y[:1], "inf"),
    "NaN in y": (X[:3], [1.0, np.nan, 2.0], "nan"),
    "infinity in y": (X[:3], [1.0, 2.0, -np.inf], "inf"),
    "too many inputs": (np.ones((4, 3)), Y[:4], "2 inputs.*3"),
    "too few inputs": (np.ones((4, 1)), Y[:4], "2 inputs.*1"),
    "three axes": (np.ones((4, 2, 1)), Y[:4], r"\(4, 2, 1\)"),
    "no axis": (1.0, 1.0, r"\(\)"),
    "no inputs": (np.ones((4, 0)), Y[:4], r"\(4, 0\)"),
    "y too short": (X[:4], Y[:3], r"\(3,\)"),
    "y too long": (X[:4], Y[:5], r"\(5,\)"),
    "y a column": (X[:4], Y[:4, None], r"\(4, 1\)"),
    "y a number for many": (X[:4], 1.0, r"\(\)"),
    "many y for one sample": (X[0], Y[:2], r"\(2,\)"),
    "huge inputs": (np.array([[1e300, 0.0]]), Y[:1], r"1e\+300"),
    "huge targets": (X[:2], [0.0, -1e300], r"-1e\+300"),
    "a huge whole number": (X[0], 10**400, "1000"),
    "complex inputs": (X[:2] + 1j, Y[:2], "1j|1\\.j"),
    "complex targets": (X[:1], [1 + 2j], "2j"),
    "strings": ([["a", "b"]], Y[:1], "'a'"),
    "string targets": (X[:1], ["many"], "many"),
    "None": (None, 1.0, r"\(\)"),
    "None for y": (X[0], None, "nan"),
    "ragged": ([[1.0, 2.0], [3.0]], Y[:2], r"\[3.0\]"),
    "objects": ([[{}, []]], Y[:1], "{}"),
}


@pytest.mark.parametrize("case", BAD_SAMPLES)
def test_bad_samples_are_refused_and_change_nothing(model, case):
    bad_X, bad_y, message = BAD_SAMPLES[case]
    before, answer = model.state(), model.predict(QUERIES[:20])
    with pytest.raises(ValueError, match=message):
        model.learn(bad_X, bad_y)
    assert_same_state(model, before)
    np.testing.assert_array_equal(model.predict(QUERIES[:20]), answer)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.array([[0.0, np.nan]]), "nan"),
        (np.ones((2, 3)), "2 inputs.*3"),
        (np.ones((2, 2, 2)), r"\(2, 2, 2\)"),
        (1.5, r"\(\)"),
        ([["x", "y"]], "'x'"),
        (np.array([[1e200, 0.0]]), r"1e\+200"),
    ],
)
def test_bad_queries_are_refused(model, bad, message):
    for method in (model.predict, model.covariance, model.sample):
        with pytest.raises(ValueError, match=message):
            method(bad)


def test_a_bad_number_of_draws(model):
    for n in (-1, 1.5, "2", None):
        with pytest.raises(ValueError, match=repr(n)):
            model.sample(QUERIES[:2], n)


def test_only_what_is_retained_can_be_removed(model):
    before = model.state()
    for index in (-1, 1.0, "3", None, 10**6, 10**30, True, np.array([3])):
        with pytest.raises(ValueError, match=shown(index)):
            model.remove(index)
    assert_same_state(model, before)


def test_a_sample_can_be_removed_once(model):
    index = int(model.indices[2])
    model.remove(index)
    with pytest.raises(ValueError, match=str(index)):
        model.remove(index)


def test_an_empty_model_has_nothing_to_remove():
    with pytest.raises(ValueError, match="0"):
        maker("newest")().remove(0)


BAD_ARGUMENTS = {
    "noise": [0, -0.1, np.nan, np.inf, 1e-14, "0.1", None, 1j, True, [0.1, 1]],
    "mean": [np.nan, -np.inf, "zero", None, 1j, [0.0, 1.0]],
    "kernel": [None, 1.0, "RBF"],
    "max_size": [0, -1, 1.5, "3", True, np.nan],
    "view": ["nowhere", None, ["newest"]],
    "max_removals": [-1, 0.5, "1"],
    "budget": [-1e-9, np.nan, np.inf, "1e-5", 1j, [0.1], True],
}


@pytest.mark.parametrize("name", BAD_ARGUMENTS)
def test_bad_arguments(name):
    for value in BAD_ARGUMENTS[name]:
        with pytest.raises(ValueError, match=rf"{name}.*{shown(value)}"):
            maker("newest")(**{name: value})


@pytest.mark.parametrize("kernel", [pogp.RBF, object()])
def test_objects_that_are_not_kernels_are_refused(kernel):
    with pytest.raises(ValueError, match="kernel"):
        maker("newest")(kernel=kernel)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_checks_its_arguments(kind):
    bad = {"noise": -1.0, "mean": np.nan, "kernel": "RBF", "max_size": 0}
    for name in bad if kind != "dense" else ("noise", "mean", "kernel"):
        with pytest.raises(ValueError, match=name):
            maker(kind)(**{"kernel": KERNEL, name: bad[name]})


def test_bad_seeds():
    for seed in (-1, 1.5, "3", None):
        with pytest.raises(ValueError, match=rf"seed.*{shown(seed)}"):
            pogp.RandomSubset(KERNEL, NOISE, 5, seed=seed)


def test_the_budgets_that_have_names():
    assert [pogp.Constant(0.3)(t) for t in (0, 7)] == [0.3, 0.3]
    assert [pogp.Decay(0.5, 2.0)(t) for t in (0, 1, 4)] == [0.5, 0.125, 0.02]


def test_bad_constants_and_decays():
    for eps in (-0.1, np.nan, np.inf, "x", None):
        with pytest.raises(ValueError, match=shown(eps)):
            pogp.Constant(eps)
    for arguments in ((-1, 1), (1, -1), (np.inf, 1), (1, np.nan), (1, "x")):
        with pytest.raises(ValueError, match="must be"):
            pogp.Decay(*arguments)


@pytest.mark.parametrize("view", ["newest", "everywhere"])
def test_a_budget_that_returns_nonsense_changes_nothing(backend, view):
    for nonsense in (np.nan, None, -0.5, "much", np.inf, 1j, [1.0, 2.0]):
        model = pogp.POG(KERNEL, NOISE, lambda t, b=nonsense: b if t == 70 else 0.01, view=view)
        model.learn(X[:20], Y[:20])
        before = model.state()
        with pytest.raises(ValueError, match=rf"70.*{shown(nonsense)}"):
            model.learn(X[20:200], Y[20:200])
        assert_same_state(model, before)


def test_an_error_of_a_budget_is_passed_on(backend):
    def budget(t):
        return 0.01 if t < 70 else 1 / 0

    model = pogp.POG(KERNEL, NOISE, budget)
    model.learn(X[:20], Y[:20])
    before = model.state()
    with pytest.raises(ZeroDivisionError):
        model.learn(X[20:200], Y[20:200])
    assert_same_state(model, before)


def test_a_budget_is_asked_once_for_each_sample(backend):
    asked = []

    def budget(t):
        asked.append(t)
        return np.float32(0.01)

    model = pogp.POG(KERNEL, NOISE, budget)
    model.learn(X[:50], Y[:50])
    model.learn(X[50], Y[50])
    assert asked == list(range(51))


# ---- the choice of the core


def test_the_environment_chooses_the_core(monkeypatch):
    for name in ("compiled", "reference"):
        monkeypatch.setenv("POGP_BACKEND", name)
        assert pogp.backend() == name
    monkeypatch.setenv("POGP_BACKEND", "")
    assert pogp.backend() == "compiled"
    monkeypatch.setenv("POGP_BACKEND", "fortran")
    with pytest.raises(ValueError, match="fortran"):
        pogp.backend()


def test_the_representation_of_a_model_shows_its_arguments(model):
    assert (model.kernel, model.noise, model.mean) == (KERNEL, NOISE, MEAN)
    text = repr(model)
    for part in (type(model).__name__, "lengthscale=[0.7, 0.9]", f"noise={NOISE}", "seen 150"):
        assert part in text
    assert model.nbytes >= 8 * model.size**2 / 2


def test_masked_and_textual_values_are_refused():
    model = pogp.POG(KERNEL, NOISE)
    masked = np.ma.array(X[:5], mask=False)
    masked[0, 0] = np.ma.masked
    for bad in (masked, [["1", "2"]], np.array(["2020-01-01"] * 2, dtype="M8[D]")[None, :]):
        with pytest.raises(ValueError, match="real numbers"):
            model.learn(bad, Y[: len(bad)])
    with pytest.raises(ValueError, match="nan in row 3"):
        model.learn(np.where(np.arange(5)[:, None] == 3, np.nan, X[:5]), Y[:5])
    assert model.seen == 0
    assert len(model.learn(X[:1], 0.5)) == 1


def test_another_kernel_than_the_saved_one_is_refused(tmp_path):
    model = pogp.POG(users_kernel, NOISE)
    model.learn(X[:30], Y[:30])
    model.save(tmp_path / "model.pog", without_code=True)
    with pytest.raises(ValueError, match="another kernel"):
        pogp.load(tmp_path / "model.pog", kernel=pogp.RBF(7.0))
    assert pogp.load(tmp_path / "model.pog", kernel=users_kernel).size == model.size
    with pytest.raises(FileNotFoundError, match=r"nowhere/model\.pog"):
        pogp.POG(KERNEL, NOISE).save(tmp_path / "nowhere/model.pog")
