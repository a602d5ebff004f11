"""The protocol that every model keeps, whatever it retains and on whichever core."""

import pickle
import re
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

import pogp
from pogp.files import container
from pogp.posteriors import retained

from ..conftest import assert_same_memory, rbf, smooth_2d

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


@pytest.fixture(params=KINDS)
def make(request, backend):
    """Make a model of each kind, on each core."""
    kind = partial(KINDS[request.param], mean=MEAN)
    return lambda kernel=KERNEL, noise=NOISE, **options: kind(kernel, noise, **options)


@pytest.fixture
def model(make):
    """A model of each kind that has learned 150 samples."""
    model = make()
    model.learn(X[:150], Y[:150])
    return model


def is_dense(model):
    return isinstance(model, pogp.DenseGP)


# ---- learning in batches, and what is retained


def test_a_batch_is_its_samples_one_by_one(make):
    batch, single = make(), make()
    trace = batch.learn(X, Y)
    records = np.concatenate([single.learn(x, y).records for x, y in zip(X, Y, strict=True)])
    np.testing.assert_allclose(trace.records, records, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(batch.predict(QUERIES), single.predict(QUERIES), rtol=0, atol=1e-10)
    assert batch.indices.tolist() == single.indices.tolist()


def test_uneven_batches_and_empty_ones_in_between(make):
    whole, parts = make(), make()
    whole.learn(X, Y)
    for start, end in ((0, 0), (0, 1), (1, 70), (70, 70), (70, 71), (71, 400), (400, 400)):
        assert len(parts.learn(X[start:end], Y[start:end])) == end - start
    np.testing.assert_allclose(parts.predict(QUERIES), whole.predict(QUERIES), rtol=0, atol=1e-10)
    assert parts.indices.tolist() == whole.indices.tolist()
    assert parts.seen == 400


def test_an_empty_batch_changes_nothing(model):
    before = model.memory()
    trace = model.learn(np.empty((0, 2)), np.empty(0))
    assert len(trace) == 0
    assert trace.size.shape == (0,)
    assert_same_memory(model, before)


def test_a_single_sample_may_come_in_any_shape(make):
    models = [make() for _ in range(4)]
    models[0].learn(X[0], Y[0])
    models[1].learn(X[0].tolist(), float(Y[0]))
    models[2].learn(X[:1], Y[:1])
    models[3].learn(X[0], Y[:1])
    for model in models[1:]:
        assert_same_memory(model, models[0])


def test_lists_integers_and_other_layouts_are_numbers_too(make):
    rounded = np.round(X[:50] * 9)
    expected = make()
    expected.learn(rounded, Y[:50])
    variants = (
        rounded.tolist(),
        rounded.astype(np.int32),
        np.asfortranarray(rounded),
        np.repeat(rounded, 2, axis=0)[::2],
        rounded.astype(np.float32),
    )
    for variant in variants:
        model = make()
        model.learn(variant, np.repeat(Y[:50], 2)[::2])
        assert_same_memory(model, expected)
        np.testing.assert_array_equal(model.predict(variant), expected.predict(rounded))


def test_what_is_retained_is_what_came(make):
    model = make()
    for start in range(0, 400, 37):
        model.learn(X[start : start + 37], Y[start : start + 37])
        indices = model.indices
        assert (np.diff(indices) > 0).all()
        np.testing.assert_array_equal(model.dictionary, X[indices])
        np.testing.assert_array_equal(model.targets, Y[indices])
        assert model.size == len(indices) == len(model.targets)
        assert model.seen == min(start + 37, 400)


def test_the_cap_is_always_kept_and_one_always_stays(make):
    model = make()
    sizes = model.learn(X, Y).size
    assert sizes.min() >= 1
    assert sizes.max() <= CAP or is_dense(model)
    if not is_dense(model):
        tight = make(max_size=1)
        assert set(tight.learn(X[:100], Y[:100]).size) == {1}


def test_who_stays_in_a_window_and_in_a_dense_model(backend):
    window, dense = pogp.SlidingWindow(KERNEL, NOISE, 7), pogp.DenseGP(KERNEL, NOISE)
    for model in (window, dense):
        model.learn(X, Y)
    assert window.indices.tolist() == list(range(393, 400))
    assert dense.indices.tolist() == list(range(400))


def test_a_random_subset_depends_on_its_seed_alone(backend):
    subsets = [pogp.RandomSubset(KERNEL, NOISE, 30, seed=seed) for seed in (1, 1, 2)]
    for model in subsets:
        model.learn(X, Y)
    one, same, other = (model.indices.tolist() for model in subsets)
    assert one == same != other


def test_the_trace_adds_up(model):
    before = model.size
    trace = model.learn(X[150:], Y[150:])
    assert (np.diff(trace.size, prepend=before) == 1 - trace.removed).all()
    assert trace.size[-1] == model.size
    for field in (trace.spent, trace.novelty, trace.change):
        assert ((field >= 0) & (field <= 1)).all()


# ---- copies, pickles and files


def saved_and_loaded(model, folder):
    model.save(folder / "model.pog")
    return pogp.load(folder / "model.pog")


WAYS = {
    "copy": lambda model, folder: model.copy(),
    "pickle": lambda model, folder: pickle.loads(pickle.dumps(model)),
    "file": saved_and_loaded,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_twin_goes_on_bit_for_bit(model, way, tmp_path):
    twin = WAYS[way](model, tmp_path)
    assert type(twin) is type(model)
    assert twin.arguments() == model.arguments()
    assert_same_memory(twin, model)
    for rows in (slice(150, 151), slice(151, 333), slice(333, 400)):
        traces = [one.learn(X[rows], Y[rows]) for one in (model, twin)]
        np.testing.assert_array_equal(traces[0].records, traces[1].records)
        model.remove(model.indices[1])
        twin.remove(twin.indices[1])
        assert_same_memory(twin, model)
        np.testing.assert_array_equal(model.predict(QUERIES), twin.predict(QUERIES))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("noise", [NOISE, 1e-6])
def test_a_large_twin_goes_on_bit_for_bit(backend, way, noise, tmp_path):
    for model in (pogp.POG(KERNEL, noise, budget=None), pogp.DenseGP(KERNEL, noise)):
        model.learn(X[:201], Y[:201])
        twin = WAYS[way](model, tmp_path)
        traces = [one.learn(X[201:], Y[201:]) for one in (model, twin)]
        np.testing.assert_array_equal(traces[0].records, traces[1].records)
        assert_same_memory(twin, model)
        np.testing.assert_array_equal(model.predict(QUERIES), twin.predict(QUERIES))


@pytest.mark.parametrize("way", WAYS)
def test_a_twin_is_independent(model, way, tmp_path):
    before = model.memory()
    twin = WAYS[way](model, tmp_path)
    twin.learn(X[150:], Y[150:])
    twin.remove(twin.indices[0])
    assert_same_memory(model, before)


@pytest.mark.parametrize("way", WAYS)
def test_a_model_that_learned_nothing_has_twins_too(make, way, tmp_path):
    twin = WAYS[way](make(), tmp_path)
    assert (twin.seen, twin.size) == (0, 0)
    one, two = make().learn(X, Y), twin.learn(X, Y)
    np.testing.assert_array_equal(one.records, two.records)


def test_a_damaged_file_is_no_model(model, tmp_path):
    path = tmp_path / "model.pog"
    model.save(path)
    whole = path.read_bytes()
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 1
    for content in (whole[:-1], whole[: len(whole) // 3], bytes(damaged), b""):
        path.write_bytes(content)
        with pytest.raises(pogp.FormatError, match=r"model\.pog"):
            pogp.load(path)


def test_a_file_whose_parts_do_not_fit_is_no_model(model, tmp_path):
    path = tmp_path / "model.pog"
    model.save(path)
    header, arrays = container.read(path)
    for name, array in arrays.items():
        for changed in (array[:1], array[:-1], np.concatenate([array, array])):
            container.write(path, header, {**arrays, name: changed})
            with pytest.raises(pogp.FormatError):
                pogp.load(path)
    for name in header["memory"]:
        for nonsense in ("text", None):
            container.write(path, header | {"memory": header["memory"] | {name: nonsense}}, arrays)
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
        {"memory": 3},
        {"memory": {}},
    ],
)
def test_a_file_that_says_something_else_is_no_model(backend, tmp_path, changes):
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


def test_code_cannot_be_saved_and_is_named(make, tmp_path):
    path = tmp_path / "model.pog"
    codes = [({"kernel": users_kernel}, "users_kernel")]
    if isinstance(make(), pogp.POG):
        codes.append(({"budget": decreasing}, "decreasing"))
    for arguments, name in codes:
        model = make(**arguments)
        model.learn(X[:30], Y[:30])
        with pytest.raises(ValueError, match=name):
            model.save(path)
        assert not path.exists()
        model.save(path, without_code=True)
        with pytest.raises(ValueError, match=name):
            pogp.load(path)
        twin = pogp.load(path, **arguments)
        assert_same_memory(twin, model)
        traces = [one.learn(X[30:90], Y[30:90]) for one in (model, twin)]
        np.testing.assert_array_equal(traces[0].records, traces[1].records)
        path.unlink()


def test_a_file_with_its_kernel_takes_no_other(model, tmp_path):
    path = tmp_path / "model.pog"
    model.save(path)
    assert_same_memory(pogp.load(path, kernel=KERNEL), model)
    with pytest.raises(ValueError, match=r"3\.21"):
        pogp.load(path, kernel=pogp.RBF(3.21))


# ---- nothing is shared with the caller


def test_callers_may_write_on_what_they_gave(make):
    given_X, given_y = X.copy(), Y.copy()
    model, untouched = make(), make()
    model.learn(given_X, given_y)
    untouched.learn(X, Y)
    given_X[:], given_y[:] = np.nan, np.nan
    assert_same_memory(model, untouched)


def test_learning_and_predicting_write_on_nothing(make):
    given_X, given_y = X.copy(), Y.copy()
    given_X.setflags(write=False)
    given_y.setflags(write=False)
    model = make()
    model.learn(given_X, given_y)
    model.predict(given_X)
    model.covariance(given_X[:9])
    model.sample(given_X[:9], 2, seed=0)
    np.testing.assert_array_equal(given_X, X)


def test_callers_may_write_on_what_they_got(model):
    got = [model.learn(X[150:160], Y[150:160]).records]
    twin = model.copy()
    got += [model.dictionary, model.targets, model.indices, *model.predict(QUERIES)]
    got += [model.covariance(QUERIES[:9]), model.sample(QUERIES[:9], 3, seed=0)]
    for array in got:
        array[...] = 7
    assert_same_memory(model, twin)
    np.testing.assert_array_equal(model.predict(QUERIES), twin.predict(QUERIES))


def test_callers_may_write_on_the_memory_they_got(model):
    twin = model.copy()
    for value in model.memory().values():
        if isinstance(value, np.ndarray):
            value[...] = 7
    assert_same_memory(model, twin)


def test_callers_may_write_on_what_an_empty_model_gave(make):
    model = make()
    for array in (*model.predict(QUERIES), model.covariance(QUERIES[:5])):
        array[...] = 7
    assert (model.predict(QUERIES)[0] == MEAN).all()
    np.testing.assert_allclose(model.covariance(QUERIES[:5]), make().covariance(QUERIES[:5]))


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
    before, answer = model.memory(), model.predict(QUERIES[:20])
    with pytest.raises(ValueError, match=message):
        model.learn(bad_X, bad_y)
    assert_same_memory(model, before)
    np.testing.assert_array_equal(model.predict(QUERIES[:20]), answer)


def test_a_refused_first_batch_leaves_the_number_of_inputs_open(make):
    model = make(kernel=pogp.RBF())
    with pytest.raises(ValueError, match="nan"):
        model.learn(np.full((3, 5), np.nan), Y[:3])
    assert_same_memory(model, {"seen": 0})
    model.learn(X[:3], Y[:3])
    assert model.dictionary.shape[1] == 2


def test_an_empty_first_batch_is_no_first_sample(make):
    model = make()
    model.learn(np.empty((0, 2)), np.empty(0))
    np.testing.assert_array_equal(model.predict(QUERIES)[0], MEAN)
    assert model.learn(X, Y).size[0] == 1


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


def test_no_queries_get_no_answers(model):
    nowhere = np.empty((0, 2))
    mean, variance = model.predict(nowhere)
    assert mean.shape == variance.shape == (0,)
    assert model.covariance(nowhere).shape == (0, 0)
    assert model.sample(nowhere, 3).shape == (3, 0)


@pytest.mark.parametrize("n", [-1, 1.5, "2", None])
def test_a_bad_number_of_draws(model, n):
    with pytest.raises(ValueError, match=repr(n)):
        model.sample(QUERIES[:2], n)


@pytest.mark.parametrize("index", [-1, 1.0, "3", None, 10**6, 10**30, True, np.array([3])])
def test_only_what_is_retained_can_be_removed(model, index):
    before = model.memory()
    with pytest.raises(ValueError, match=shown(index)):
        model.remove(index)
    assert_same_memory(model, before)


def test_a_sample_can_be_removed_once(model):
    index = int(model.indices[2])
    model.remove(index)
    with pytest.raises(ValueError, match=str(index)):
        model.remove(index)


def test_nothing_can_be_removed_from_nothing(make):
    with pytest.raises(ValueError, match="0"):
        make().remove(0)


@pytest.mark.parametrize("noise", [0, -0.1, np.nan, np.inf, 1e-14, "0.1", None, 1j, True, [0.1, 1]])
def test_bad_noise(make, noise):
    with pytest.raises(ValueError, match=rf"noise.*{shown(noise)}"):
        make(noise=noise)


@pytest.mark.parametrize("mean", [np.nan, -np.inf, "zero", None, 1j, [0.0, 1.0]])
def test_bad_mean(make, mean):
    with pytest.raises(ValueError, match=rf"mean.*{shown(mean)}"):
        make(mean=mean)


@pytest.mark.parametrize("kernel", [None, 1.0, "RBF", pogp.RBF, object()])
def test_bad_kernels(make, kernel):
    with pytest.raises(ValueError, match="kernel"):
        make(kernel=kernel)


@pytest.mark.parametrize("max_size", [0, -1, 1.5, "3", True, np.nan])
def test_bad_caps(make, max_size):
    if is_dense(make()):
        return
    with pytest.raises(ValueError, match=rf"max_size.*{shown(max_size)}"):
        make(max_size=max_size)


@pytest.mark.parametrize("seed", [-1, 1.5, "3", None])
def test_bad_seeds(seed):
    with pytest.raises(ValueError, match=rf"seed.*{shown(seed)}"):
        pogp.RandomSubset(KERNEL, NOISE, 5, seed=seed)


@pytest.mark.parametrize(
    "options",
    [
        {"view": "nowhere"},
        {"view": None},
        {"view": ["newest"]},
        {"max_removals": -1},
        {"max_removals": 0.5},
        {"max_removals": "1"},
        {"budget": -1e-9},
        {"budget": np.nan},
        {"budget": np.inf},
        {"budget": "1e-5"},
        {"budget": 1j},
        {"budget": [0.1]},
        {"budget": True},
    ],
)
def test_bad_options_of_pog(options):
    ((name, value),) = options.items()
    with pytest.raises(ValueError, match=rf"{name}.*{shown(value)}"):
        pogp.POG(KERNEL, NOISE, **options)


def test_the_budgets_that_have_names():
    assert [pogp.Constant(0.3)(t) for t in (0, 7)] == [0.3, 0.3]
    assert [pogp.Decay(0.5, 2.0)(t) for t in (0, 1, 4)] == [0.5, 0.125, 0.02]


@pytest.mark.parametrize("eps", [-0.1, np.nan, np.inf, "x", None])
def test_bad_constants(eps):
    with pytest.raises(ValueError, match=shown(eps)):
        pogp.Constant(eps)


@pytest.mark.parametrize("arguments", [(-1, 1), (1, -1), (np.inf, 1), (1, np.nan), (1, "x")])
def test_bad_decays(arguments):
    with pytest.raises(ValueError, match="must be"):
        pogp.Decay(*arguments)


@pytest.mark.parametrize("nonsense", [np.nan, None, -0.5, "much", np.inf, 1j, [1.0, 2.0]])
@pytest.mark.parametrize("view", ["newest", "everywhere"])
def test_a_budget_that_returns_nonsense_changes_nothing(backend, view, nonsense):
    model = pogp.POG(KERNEL, NOISE, lambda t: nonsense if t == 70 else 0.01, view=view)
    model.learn(X[:20], Y[:20])
    before = model.memory()
    with pytest.raises(ValueError, match=rf"70.*{shown(nonsense)}"):
        model.learn(X[20:200], Y[20:200])
    assert_same_memory(model, before)


def test_what_a_budget_raises_passes_through(backend):
    def budget(t):
        return 0.01 if t < 70 else 1 / 0

    model = pogp.POG(KERNEL, NOISE, budget)
    model.learn(X[:20], Y[:20])
    before = model.memory()
    with pytest.raises(ZeroDivisionError):
        model.learn(X[20:200], Y[20:200])
    assert_same_memory(model, before)


def test_a_budget_is_asked_once_for_each_sample(backend):
    asked = []

    def budget(t):
        asked.append(t)
        return np.float32(0.01)

    model = pogp.POG(KERNEL, NOISE, budget)
    model.learn(X[:50], Y[:50])
    model.learn(X[50], Y[50])
    assert asked == list(range(51))


# ---- kernels of the user's own


class Trap:
    """The RBF as a plain function, until it has been called so many times."""

    def __init__(self, deed):
        self.deed, self.calls_left = deed, np.inf

    def __call__(self, A, B):
        self.calls_left -= 1
        return self.deed(A, B) if self.calls_left < 0 else rbf((0.7, 0.9), 1.3)(A, B)


def interrupt(A, B):
    raise KeyboardInterrupt


DEEDS = {
    "interrupt": (interrupt, KeyboardInterrupt, None),
    "NaN": (lambda A, B: np.full((len(A), len(B)), np.nan), ValueError, "nan"),
    "infinity": (lambda A, B: np.full((len(A), len(B)), np.inf), ValueError, "inf"),
    "shape": (lambda A, B: np.ones((len(A), len(B), 3)), ValueError, r"3\)"),
    "size": (lambda A, B: np.ones((len(A) + 7, len(B))), ValueError, "shape"),
    "text": (lambda A, B: "a kernel", ValueError, "a kernel"),
    "None": (lambda A, B: None, ValueError, r"of shape \(\)"),
    "its own": (lambda A, B: [][0], IndexError, None),
}


@pytest.mark.parametrize("deed", DEEDS)
def test_a_kernel_that_fails_in_the_middle_changes_nothing(make, deed):
    function, error, message = DEEDS[deed]
    kernel = Trap(function)
    model, untouched = make(kernel=kernel), make(kernel=Trap(function))
    for one in (model, untouched):
        one.learn(X[:40], Y[:40])
    before = model.memory()
    kernel.calls_left = 0 if is_dense(model) else 60
    with pytest.raises(error, match=message):
        model.learn(X[40:], Y[40:])
    kernel.calls_left = np.inf
    assert_same_memory(model, before)
    assert_same_memory(model, untouched)
    traces = [one.learn(X[40:100], Y[40:100]) for one in (model, untouched)]
    np.testing.assert_array_equal(traces[0].records, traces[1].records)


class BadDiagonal(pogp.Kernel):
    """The RBF, until its diagonal is something else."""

    answer = None

    def __call__(self, A, B=None):
        return users_kernel(A, A if B is None else B)

    def diag(self, A):
        return np.full(len(A), 1.3) if self.answer is None else self.answer(A)


@pytest.mark.parametrize(
    "answer",
    [lambda A: np.full(len(A), np.nan), lambda A: np.ones(len(A) + 1), lambda A: None],
    ids=["NaN", "shape", "None"],
)
def test_a_diagonal_that_is_nonsense_is_refused(make, answer):
    kernel = BadDiagonal()
    model = make(kernel=kernel)
    model.learn(X[:40], Y[:40])
    before = model.memory()
    kernel.answer = answer
    with pytest.raises(ValueError, match=r"diag|shape|finite"):
        model.predict(QUERIES)
    if not is_dense(model):  # which learns from whole blocks of κ
        with pytest.raises(ValueError, match=r"diag|shape|finite"):
            model.learn(X[40:], Y[40:])
    assert_same_memory(model, before)


def test_an_interrupt_in_a_later_block_of_the_dense_model_changes_nothing(backend):
    kernel = Trap(interrupt)
    model = pogp.DenseGP(kernel, NOISE)
    long_X, long_y = smooth_2d(900)
    model.learn(long_X[:100], long_y[:100])
    before = model.memory()
    kernel.calls_left = 5  # two calls a block, three blocks
    with pytest.raises(KeyboardInterrupt):
        model.learn(long_X[100:], long_y[100:])
    assert_same_memory(model, before)


def test_an_interrupt_between_blocks_of_the_compiled_loop_changes_nothing(monkeypatch):
    monkeypatch.setenv("POGP_BACKEND", "compiled")
    model = pogp.POG(KERNEL, NOISE, 1e-3)
    model.learn(X[:100], Y[:100])
    before, blocks, original = model.memory(), [], retained._learn_block

    def interrupted(*arguments):
        blocks.append(original(*arguments))
        if len(blocks) == 3:
            raise KeyboardInterrupt
        return blocks[-1]

    monkeypatch.setattr(retained, "_learn_block", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.learn(X[100:], Y[100:])
    assert len(blocks) == 3
    assert_same_memory(model, before)


class Imitation(pogp.Kernel):
    def __call__(self, A, B=None):
        return users_kernel(A, A if B is None else B)


@pytest.mark.parametrize("kernel", [users_kernel, Imitation()])
def test_a_kernel_of_ones_own_is_as_good_as_the_one_it_imitates(make, kernel):
    own, builtin = make(kernel=kernel), make()
    traces = [model.learn(X[:250], Y[:250]) for model in (own, builtin)]
    np.testing.assert_allclose(traces[0].records, traces[1].records, rtol=1e-7, atol=1e-9)
    assert own.indices.tolist() == builtin.indices.tolist()
    np.testing.assert_allclose(own.predict(QUERIES), builtin.predict(QUERIES), atol=1e-9)
    np.testing.assert_allclose(
        own.covariance(QUERIES[:9]), builtin.covariance(QUERIES[:9]), atol=1e-9
    )


def test_a_kernel_that_is_not_constant_on_its_diagonal(make):
    """κ(x, x) is not one number for a linear kernel."""

    def linear(A, B):
        return 1.0 + A @ B.T

    model = make(kernel=linear)
    model.learn(X[:80], Y[:80])
    Z = model.dictionary
    gram = np.linalg.inv(linear(Z, Z) + NOISE * np.eye(len(Z)))
    cross = linear(QUERIES, Z)
    mean = MEAN + cross @ gram @ (model.targets - MEAN)
    variance = 1 + (QUERIES**2).sum(axis=1) - np.einsum("ij,jk,ik->i", cross, gram, cross)
    np.testing.assert_allclose(model.predict(QUERIES)[0], mean, atol=1e-9)
    np.testing.assert_allclose(model.predict(QUERIES, latent=True)[1], variance, atol=1e-9)


# ---- threads, and the choice of the core


@pytest.mark.parametrize("noise", [NOISE, 1e-6])
def test_threads_predict_what_one_thread_predicts(make, noise):
    model = make(noise=noise)
    model.learn(X, Y)
    parts = [QUERIES[i : i + 40] for i in range(0, 600, 40)] * 4
    expected = [model.predict(part) for part in parts]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(model.predict, parts))
        covariances = list(pool.map(model.covariance, parts[:15]))
    for answer, one in zip(answers, expected, strict=True):
        np.testing.assert_array_equal(answer, one)
    for covariance, part in zip(covariances, parts[:15], strict=True):
        np.testing.assert_array_equal(covariance, model.covariance(part))


def test_the_environment_chooses_the_core(monkeypatch):
    for name in ("compiled", "reference"):
        monkeypatch.setenv("POGP_BACKEND", name)
        assert pogp.backend() == name
    monkeypatch.setenv("POGP_BACKEND", "")
    assert pogp.backend() == "compiled"
    monkeypatch.setenv("POGP_BACKEND", "fortran")
    with pytest.raises(ValueError, match="fortran"):
        pogp.backend()


def test_a_model_says_what_it_is(model):
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
