"""What the tests share: the choice of the core, streams, and a solve in extended precision."""

import gc
import os
import signal
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read once, when NumPy is imported

import numpy as np
import pytest

from .browser import opened

BACKENDS = ("compiled", "reference")
SLOW = Path(__file__).parent / "slow.txt"

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as for a job in the background of a shell
    signal.signal(signal.SIGINT, signal.default_int_handler)


def slow_tests():
    """Return what slow.txt names, tests and whole files, each with what follows it in its line."""
    lines = [line for line in SLOW.read_text().splitlines() if not line.startswith("#")]
    return dict(line.partition(" ")[::2] for line in lines)


def pytest_ignore_collect(collection_path, config):
    """Do not import files of slow tests where they are left out: some import large libraries."""
    if config.option.markexpr != "not slow":
        return None
    path = collection_path.relative_to(config.rootpath).as_posix()
    return True if path in slow_tests() else None


def pytest_collection_modifyitems(items):
    """Mark as slow what slow.txt names; of tests with a + there, the first case stays quick.

    Files that it names as a whole come first: their tests wait for other programs, and would be
    waited for at the end.
    """
    named, seen = slow_tests(), set()
    for item in items:
        test = item.nodeid.partition("[")[0]
        whole_file = test.partition("::")[0] in named
        if whole_file or (test in named and (named[test] != "+" or test in seen)):
            item.add_marker(pytest.mark.slow)
        seen.add(test)
    items.sort(key=lambda item: item.nodeid.partition("::")[0] not in named)


def pytest_collection_finish():
    """Let garbage be looked for among what tests make, not among all modules again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(params=BACKENDS)
def backend(request, monkeypatch):
    """Run the test once on each core."""
    monkeypatch.setenv("POGP_BACKEND", request.param)
    return request.param


@pytest.fixture(scope="session")
def browser():
    """A window for all pages; where there is no browser, tests are skipped and say so."""
    with opened() as window:
        yield window


@pytest.fixture
def rng():
    return np.random.default_rng(20240611)


# ---- streams: X (n, p) and y (n,)


def smooth_1d(n, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, 1))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 0] + noise * rng.normal(size=n)


def smooth_2d(n, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    return X, np.sin(3 * X[:, 0]) * np.cos(2 * X[:, 1]) + noise * rng.normal(size=n)


def smooth_5d(n, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    return X, np.tanh(X @ np.array([1.0, -0.5, 0.3, 0.2, 0.1])) + noise * rng.normal(size=n)


def repeated(n, seed=0, noise=0.1):
    """Inputs drawn from a dozen places, the targets noisy: K is singular."""
    rng = np.random.default_rng(seed)
    X = rng.choice(np.linspace(-2, 2, 12), n)[:, None]
    return X, np.cos(2 * X[:, 0]) + noise * rng.normal(size=n)


# ---- kernels written out, for the sake of independence from the package's own


def rbf(lengthscale, variance=1.0):
    return lambda A, B: variance * np.exp(-0.5 * _squared_distances(A, B, lengthscale))


def matern52(lengthscale, variance=1.0):
    def kernel(A, B):
        r = np.sqrt(5 * _squared_distances(A, B, lengthscale))
        return variance * (1 + r + r**2 / 3) * np.exp(-r)

    return kernel


def _squared_distances(A, B, lengthscale):
    differences = (A[:, None, :] - B[None, :, :]) / np.asarray(lengthscale)
    return (differences**2).sum(axis=2)


# ---- the exact GP, for comparison


def dense_solution(kernel, noise, mean, Z, y, X):
    """Return the mean and the covariance of f at X given (Z, y), by one solve."""
    gram = kernel(Z, Z) + noise * np.eye(len(Z))
    cross = kernel(Z, X)
    solved = np.linalg.solve(gram, np.column_stack([cross, y - mean]))
    return mean + cross.T @ solved[:, -1], kernel(X, X) - cross.T @ solved[:, :-1]


def extended_solution(kernel, noise, mean, Z, y, X):
    """Return the mean and the variance of f at X given (Z, y), by Cholesky in long doubles."""
    factor = kernel(Z, Z).astype(np.longdouble) + np.longdouble(noise) * np.eye(len(Z))
    rows = np.vstack([kernel(X, Z), y - mean]).astype(np.longdouble)
    for j in range(len(Z)):  # the factor in place, column by column, and the forward solve with it
        factor[j:, j] -= factor[j:, :j] @ factor[j, :j]
        factor[j:, j] /= np.sqrt(factor[j, j])
        rows[:, j] = (rows[:, j] - rows[:, :j] @ factor[j, :j]) / factor[j, j]
    solved, last = rows[:-1], rows[-1]
    variance = np.diagonal(kernel(X, X)) - (solved**2).sum(axis=1)
    return (mean + solved @ last).astype(float), variance.astype(float)


# ---- what a model is, for comparison bit by bit


def assert_same_state(one, other):
    """Two models (or two results of `state()`) hold the same numbers to the last bit."""
    one, other = (m if isinstance(m, dict) else m.state() for m in (one, other))
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name], err_msg=name, strict=True)
