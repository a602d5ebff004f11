"""What the five models that take all samples at once share besides `pogp.checks`."""

import numpy as np
import pytest

import pogp

from ...conftest import assert_same_state, rbf, smooth_2d

KINDS = {
    model.__name__: model
    for model in (pogp.SPGP, pogp.VFE, pogp.SmolaBartlett, pogp.KeerthiChu, pogp.Seeger)
}
SEARCHING = ("SPGP", "VFE")
X, Y = smooth_2d(60, seed=3)
QUERIES = np.random.default_rng(5).uniform(-1.2, 1.2, (40, 2))


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def make(kind, **options):
    return KINDS[kind](
        **{"kernel": pogp.RBF((0.3, 0.5)), "noise": 0.05, "size": 9, "mean": 0.4, **options}
    )


def quick(kind, **options):
    """Return options of `fit` with which a search is short; the others have none."""
    return {"max_iterations": 3, **options} if kind in SEARCHING else {}


def test_nothing_is_printed(kind, capfd):
    make(kind).fit(X, Y, **quick(kind))
    assert capfd.readouterr() == ("", "")


def test_another_seed_gives_another_selection(kind):
    options = {} if kind in SEARCHING else {"candidates": 5}
    one, other = (make(kind, seed=seed, **options).fit(X, Y, **quick(kind)) for seed in (1, 2))
    assert not np.array_equal(one.dictionary, other.dictionary)


def test_an_interrupted_fit_changes_nothing(kind):
    def interrupt(number, value):
        raise KeyboardInterrupt

    model = make(kind).fit(X[:30], Y[:30], **quick(kind))
    before = model.state()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y, progress=interrupt)
    assert_same_state(model, before)


def users_kernel(A, B):
    return rbf((0.3, 0.5))(A, B)


def test_a_kernel_that_is_code_is_left_out_and_supplied_again(kind, tmp_path):
    path = tmp_path / "model.pog"
    options = {"optimise": False} if kind in SEARCHING else {}
    model = make(kind, kernel=users_kernel).fit(X, Y, **options)
    with pytest.raises(ValueError, match="users_kernel"):
        model.save(path)
    model.save(path, without_code=True)
    twin = pogp.load(path, kernel=users_kernel)
    assert_same_state(twin, model)
    np.testing.assert_array_equal(twin.predict(QUERIES), model.predict(QUERIES))


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("VFE", {"size": 0}, "size must be a whole number ≥ 1, got 0"),
        ("Seeger", {"size": 2.5}, r"size must be a whole number ≥ 1, got 2\.5"),
        ("VFE", {"noise": 0.0}, r"noise must be positive, got 0\.0"),
        ("Seeger", {"mean": np.nan}, "mean must be a finite number, got nan"),
        ("VFE", {"seed": -1}, "seed must be a whole number ≥ 0, got -1"),
        ("Seeger", {"kernel": 3}, "expected a kernel .*got 3"),
        ("Seeger", {"candidates": 0}, "candidates must be a whole number ≥ 1, got 0"),
        ("SmolaBartlett", {"candidates": None}, "candidates must be .* ≥ 1, got None"),
        ("KeerthiChu", {"candidates": None}, "candidates must be .* ≥ 1, got None"),
        ("KeerthiChu", {"cache": -1}, "cache must be a whole number ≥ 0, got -1"),
    ],
)
def test_bad_arguments(kind, change, message):
    with pytest.raises(ValueError, match=message):
        make(kind, **change)


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("Seeger", {"X": X[:, :1]}, "X must have 2 inputs per sample.*got 1"),
        ("VFE", {"X": X[0]}, r"X of shape \(2,\) is one sample"),
        ("Seeger", {"X": np.empty((0, 2)), "y": []}, r"at least one sample, got shape \(0, 2\)"),
        ("VFE", {"X": np.full((60, 2), np.nan)}, "X must be finite.*got nan"),
        ("Seeger", {"y": Y[:-1]}, r"y must have shape \(60,\).*got \(59,\)"),
        ("VFE", {"y": np.full(60, np.inf)}, "y must be finite.*got inf"),
        ("VFE", {"inputs": X[:8]}, r"inputs must have the shape \(9, 2\), got \(8, 2\)"),
        ("VFE", {"inputs": X[:9, :1]}, r"inputs must have the shape \(9, 2\), got \(9, 1\)"),
        ("VFE", {"inputs": np.full((9, 2), np.nan)}, "inputs are not points.*got nan"),
        ("VFE", {"max_iterations": 0}, "max_iterations must be a whole number ≥ 1, got 0"),
        ("VFE", {"max_iterations": 1.5}, r"max_iterations must be a whole number ≥ 1, got 1\.5"),
    ],
)
def test_bad_samples_change_nothing(kind, change, message):
    model = make(kind).fit(X, Y, **quick(kind))
    before = model.state()
    with pytest.raises(ValueError, match=message):
        model.fit(**{"X": X, "y": Y} | change)
    assert_same_state(model, before)
