"""Each adapter on 200 samples predicts what the peer's own API does, used as its users do."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pogp
from benchmarks.peers.adapters import Setting
from benchmarks.peers.registry import PEERS
from pogp.arrays import Array

SETTING = Setting(inputs=2, first=60, seed=3)
Predictions = Iterator[tuple[float, float | None]]
pytestmark = pytest.mark.filterwarnings("ignore")  # peers warn of what is not ours


@pytest.fixture(scope="module")
def stream() -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (200, 2))
    return X, 50 + 5 * np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=200)


def adapted(name: str, X: Array, y: Array) -> list[tuple[float, float | None]]:
    """The adapter's predictions, each before its sample is learned."""
    adapter = PEERS[name].adapter(SETTING)
    found = []
    for row, target in zip(adapter.rows(X, y), y.tolist(), strict=True):
        found.append(adapter.predict(row))
        adapter.learn(row, target)
    assert len(adapter.to_bytes()) > 10
    return found


def check(name: str, expected: Callable[[Array, Array], Predictions], X: Array, y: Array) -> None:
    """Hold an adapter to its peer; before the first fit it predicts the running moments."""
    if reason := PEERS[name].missing:
        pytest.skip(reason)
    found, wanted = adapted(name, X, y), list(expected(X, y))
    assert len(wanted) <= len(found) == 200
    for (mean, variance), (their_mean, their_variance) in zip(
        found[-len(wanted) :], wanted, strict=True
    ):
        assert mean == pytest.approx(their_mean, rel=1e-6, abs=1e-6)
        assert (variance is None) == (their_variance is None)
        if variance is not None:
            assert variance == pytest.approx(their_variance, rel=1e-6)
    for i in range(1, 200 - len(wanted)):
        assert found[i][0] == pytest.approx(y[:i].mean())


# ---- ours, and the simplest


def ours(make: Callable[[], Any]) -> Callable[[Array, Array], Predictions]:
    def expected(X: Array, y: Array) -> Predictions:
        trace = make().learn(X, y)  # whose predictions are those before each sample
        yield from zip(trace.mean.tolist(), trace.variance.tolist(), strict=True)

    return expected


def tuned(method: str, **options: Any) -> Any:
    return pogp.SelfTuning(method, warmup=60, scale=True, seed=3, **options)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("online", lambda: pogp.OnlineGP(seed=3)),
        ("online-100", lambda: pogp.OnlineGP(max_size=100, seed=3)),
        ("online-600", lambda: pogp.OnlineGP(max_size=600, seed=3)),
        ("online-plain", lambda: pogp.OnlineGP(robust=False, seed=3)),
        ("absorbing", lambda: tuned("absorbing", budget=None, max_size=300)),
        ("pog", lambda: tuned("pog", budget=1e-5, max_removals=1, max_size=300)),
        ("sogp", lambda: tuned("sogp", max_size=300)),
    ],
)
def test_ours_are_the_models_as_they_are(
    name: str, make: Callable[[], Any], stream: tuple[Array, Array]
) -> None:
    check(name, ours(make), *stream)


def test_streaming_vfe_learns_mini_batches(stream: tuple[Array, Array]) -> None:
    def expected(X: Array, y: Array) -> Predictions:
        model = tuned("streaming-vfe", size=100)
        for start in range(0, 200, 50):
            rows = slice(start, start + 50)
            mean, variance = model.predict(X[rows])
            yield from zip(mean.tolist(), variance.tolist(), strict=True)
            model.learn(X[rows], y[rows])

    check("streaming-vfe", expected, *stream)


@pytest.mark.parametrize("name", ["mean", "last"])
def test_the_simplest_are_what_they_say(name: str, stream: tuple[Array, Array]) -> None:
    X, y = stream
    found = adapted(name, X, y)
    for i in range(3, 200):
        mean, variance = found[i]
        steps = np.diff(y[:i])
        wanted = (y[:i].mean(), y[:i].var()) if name == "mean" else (y[i - 1], (steps**2).sum() / i)
        assert (mean, variance) == pytest.approx(wanted)


# ---- River


@pytest.mark.parametrize("name", ["river-knn", "river-tree", "river-forest"])
def test_river_pipelines(name: str, stream: tuple[Array, Array]) -> None:
    from river import forest, neighbors, preprocessing, tree

    kinds = {
        "river-knn": lambda: neighbors.KNNRegressor(engine=neighbors.SWINN(seed=3)),
        "river-tree": lambda: tree.HoeffdingAdaptiveTreeRegressor(seed=3),
        "river-forest": lambda: forest.ARFRegressor(seed=3),
    }

    def expected(X: Array, y: Array) -> Predictions:
        model = preprocessing.StandardScaler() | kinds[name]()
        for row, target in zip(X.tolist(), y.tolist(), strict=True):
            features = {0: row[0], 1: row[1]}
            yield model.predict_one(features), None
            model.learn_one(features, target)

    check(name, expected, *stream)


def test_river_linear_is_the_scaled_pipeline_with_a_variance(stream: tuple[Array, Array]) -> None:
    from river import linear_model, preprocessing

    X, y = stream
    regressor = linear_model.BayesianLinearRegression()
    model = preprocessing.StandardScaler() | preprocessing.TargetStandardScaler(regressor)
    found = adapted("river-linear", X, y)
    for i, (row, target) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
        features = {0: row[0], 1: row[1]}
        assert found[i][0] == pytest.approx(model.predict_one(features), abs=1e-9)
        model.learn_one(features, target)
    # A linear model: at least the noise of unit variance in units of the targets' deviation.
    assert all(variance is not None and variance > 0.9 * y.var() for _, variance in found[50:])


# ---- LightGBM and scikit-learn: a fit after 100 samples


def test_lightgbm_is_refitted_to_all_samples(stream: tuple[Array, Array]) -> None:
    lightgbm = pytest.importorskip("lightgbm", reason="LightGBM is not installed")

    def expected(X: Array, y: Array) -> Predictions:
        model = lightgbm.LGBMRegressor(n_jobs=1, verbose=-1).fit(X[:100], y[:100])
        yield from ((float(mean), None) for mean in model.predict(X[100:]))

    check("lightgbm", expected, *stream)


def test_the_gaussian_process_is_refitted(stream: tuple[Array, Array]) -> None:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
    from sklearn.preprocessing import StandardScaler

    def expected(X: Array, y: Array) -> Predictions:
        scaler = StandardScaler().fit(X[:100])
        kernel = ConstantKernel() * RBF([1.0, 1.0]) + WhiteKernel()
        model = GaussianProcessRegressor(kernel, normalize_y=True)
        model.fit(scaler.transform(X[:100]), y[:100])
        mean, deviation = model.predict(scaler.transform(X[100:]), return_std=True)
        yield from zip(mean.tolist(), (deviation**2).tolist(), strict=True)

    check("sklearn-gp", expected, *stream)


def test_gradient_descent_goes_on_features_of_the_first_slice(stream: tuple[Array, Array]) -> None:
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import SGDRegressor

    def expected(X: Array, y: Array) -> Predictions:
        middle, spread = X[:60].mean(axis=0), X[:60].std(axis=0)
        nystrom = Nystroem(n_components=60, random_state=3).fit((X[:60] - middle) / spread)
        features = nystrom.transform((X - middle) / spread)
        targets = (y - y[:60].mean()) / y[:60].std()
        model = SGDRegressor(random_state=3)
        for i in range(200):
            if i >= 60:
                scaled = model.predict(features[i : i + 1])[0]
                yield scaled * y[:60].std() + y[:60].mean(), None
            model.partial_fit(features[i : i + 1], targets[i : i + 1])

    check("sklearn-sgd", expected, *stream)


# ---- GopPy, GPyTorch, CapyMOA


def test_goppy_is_the_exact_process_of_all_samples(stream: tuple[Array, Array]) -> None:
    goppy = pytest.importorskip("goppy", reason="GopPy is not installed")

    def expected(X: Array, y: Array) -> Predictions:
        X = (X - X[:60].mean(axis=0)) / X[:60].std(axis=0)
        middle, spread = y[:60].mean(), y[:60].std()
        for i in range(60, 200):
            model = goppy.OnlineGP(goppy.SquaredExponentialKernel([1.0]), noise_var=0.1)
            model.fit(X[:i], (y[:i, None] - middle) / spread)  # from scratch, not added one by one
            found = model.predict(X[i : i + 1], what=("mean", "mse"))
            mean, variance = found["mean"][0, 0], found["mse"][0] + 0.1
            yield mean * spread + middle, variance * spread**2

    check("goppy", expected, *stream)


def test_fantasies_are_the_exact_process_of_all_samples(stream: tuple[Array, Array]) -> None:
    if reason := PEERS["gpytorch-fantasies"].missing:
        pytest.skip(reason)
    import torch

    X, y = stream
    adapter: Any = PEERS["gpytorch-fantasies"].adapter(SETTING)
    found = []
    for row, target in zip(adapter.rows(X, y), y.tolist(), strict=True):
        found.append(adapter.predict(row))
        adapter.learn(row, target)
    middle, spread = y[:60].mean(), y[:60].std()
    model, points = adapter.model, torch.from_numpy((X - X[:60].mean(axis=0)) / X[:60].std(axis=0))
    with torch.no_grad():  # the dense formula, with what Adam found
        kernel = model.covar_module(points).to_dense().numpy()
        mean, noise = float(model.mean_module.constant), float(adapter.likelihood.noise)
    targets = (y - middle) / spread - mean
    for i in (60, 61, 120, 199):
        weights = np.linalg.solve(kernel[:i, :i] + noise * np.eye(i), kernel[:i, i])
        wanted = mean + weights @ targets[:i]
        variance = kernel[i, i] - weights @ kernel[:i, i] + noise
        assert found[i][0] == pytest.approx(wanted * spread + middle, rel=1e-4)
        assert found[i][1] == pytest.approx(variance * spread**2, rel=1e-2)
    assert len(adapter.to_bytes()) > 200 * 8


def test_the_variational_model_is_a_loop_of_adam(stream: tuple[Array, Array]) -> None:
    if reason := PEERS["gpytorch-variational"].missing:
        pytest.skip(reason)
    import gpytorch
    import torch

    from benchmarks.peers.adapters import gpytorch as adapters

    def expected(X: Array, y: Array) -> Predictions:
        torch.manual_seed(3)
        middle, spread = y[:60].mean(), y[:60].std()
        X = (X - X[:60].mean(axis=0)) / X[:60].std(axis=0)
        points, targets = torch.from_numpy(X), torch.from_numpy((y - middle) / spread)
        rng = np.random.default_rng(3)
        model = adapters._Variational(points[:60][rng.permutation(60)]).double()
        likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
        adam = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=0.01)

        def step(rows: Any, seen: int) -> None:
            model.train(), likelihood.train()
            bound = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=seen)
            adam.zero_grad()
            (-bound(model(points[rows]), targets[rows])).backward()
            adam.step()

        for _ in range(50):
            order = rng.permutation(60)
            step(order[:32], 60)
            step(order[32:], 60)
        for i in range(60, 200):
            if i > 60 and (i - 60) % 32 == 0:
                for _ in range(10):
                    step(np.arange(i - 32, i), i)
            model.eval(), likelihood.eval()
            with torch.no_grad():
                found = likelihood(model(points[i : i + 1]))
            yield float(found.mean) * spread + middle, float(found.variance) * spread**2

    check("gpytorch-variational", expected, *stream)


def test_soknl_is_trained_as_capymoa_does(stream: tuple[Array, Array]) -> None:
    if reason := PEERS["soknl"].missing:
        pytest.skip(reason)
    from capymoa.regressor import SOKNL
    from capymoa.stream import NumpyStream

    def expected(X: Array, y: Array) -> Predictions:
        source = NumpyStream(X, y, target_type="numeric")
        model = SOKNL(schema=source.get_schema(), random_seed=3)
        while source.has_more_instances():
            instance = source.next_instance()
            yield float(model.predict(instance) or 0.0), None
            model.train(instance)

    check("soknl", expected, *stream)
