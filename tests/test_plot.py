"""Pictures show what the models say."""

import numpy as np
import pytest

import pogp

pytest.importorskip("matplotlib").use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def learned():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (200, 2))
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * rng.normal(size=200)
    model, traces, snapshots = pogp.OnlineGP(max_size=20), [], []
    for start in range(0, 200, 40):
        rows = slice(start, start + 40)
        traces.append(model.learn(X[rows], y[rows]))
        snapshots.append((model.seen, model.weights))
    return model, X, y, pogp.trace.concatenate(traces), snapshots


def test_the_posterior_is_drawn_over_one_input_with_the_others_held(learned):
    model, X, y, *_ = learned
    ax = pogp.plot.posterior(model, 1, data=(X, y), held=[0.5, 9.0], span=(-1.0, 1.0), level=0.8)
    line = next(line for line in ax.lines if line.get_label() == "mean")
    x, mean = line.get_data()
    np.testing.assert_allclose(x[[0, -1]], [-1.0, 1.0])
    points = np.column_stack([np.full(len(x), 0.5), x])
    np.testing.assert_allclose(mean, model.predict(points)[0])
    lower, upper = model.interval(points, 0.8)
    band = ax.collections[0].get_paths()[0].vertices[:, 1]
    np.testing.assert_allclose([band.min(), band.max()], [lower.min(), upper.max()])
    assert ax.get_xlabel() == "input 1"


@pytest.mark.parametrize(
    "make",
    [
        lambda: pogp.DenseGP(pogp.RBF(), 0.1),
        lambda: pogp.AbsorbingPOG(pogp.RBF(), 0.1),
        lambda: pogp.SelfTuning(warmup=10),
    ],
)
def test_any_model_can_be_drawn(make, learned):
    _, X, y, *_ = learned
    model = make()
    model.learn(X[:30], y[:30])
    figure, ax = plt.subplots()
    assert pogp.plot.posterior(model, ax=ax) is ax
    figure.canvas.draw()


def test_several_outputs_are_drawn_one_at_a_time(learned):
    _, X, y, *_ = learned
    model = pogp.AbsorbingPOG(pogp.RBF(), 0.1)
    Y = np.column_stack([y, 10 + y])
    model.learn(X[:50], Y[:50])
    ax = pogp.plot.posterior(model, data=(X, Y), output=1)
    line = next(line for line in ax.lines if line.get_label() == "samples")
    np.testing.assert_array_equal(line.get_ydata(), 10 + y)
    with pytest.raises(ValueError, match="output must be below 2, got 2"):
        pogp.plot.posterior(model, output=2)


def test_a_stream_has_error_order_and_members(learned):
    _, _, y, trace, snapshots = learned
    figure = pogp.plot.stream(y, trace, snapshots, window=50)
    error, order, members = figure.axes
    expected = np.mean((y - trace.mean)[150:] ** 2) / y.var()
    np.testing.assert_allclose(error.lines[0].get_ydata()[-1], expected)
    np.testing.assert_array_equal(order.lines[0].get_ydata(), trace.size)
    tops = [area.get_paths()[0].vertices[:, 1].max() for area in members.collections]
    assert 0.95 < max(tops) <= 1 + 1e-9
    assert len(pogp.plot.stream(y, trace).axes) == 2


def test_calibration_counts_targets_in_bands():
    rng = np.random.default_rng(0)
    y = rng.normal(size=2000)
    ax = pogp.plot.calibration(y, np.zeros(2000), np.full(2000, 4.0))  # twice too wide
    line = next(line for line in ax.lines if line.get_label() == "targets inside")
    levels, inside = line.get_data()
    expected = pogp.metrics.coverage(y, np.zeros(2000), np.full(2000, 4.0), level=0.5)
    np.testing.assert_allclose(inside[np.argmin(np.abs(levels - 0.5))], expected)


def test_figures_that_cannot_be_drawn_are_reported(learned):
    model, _, y, trace, snapshots = learned
    for call, message in (
        (lambda: pogp.plot.posterior(model, 2), "column must be below 2, the inputs, got 2"),
        (lambda: pogp.plot.posterior(model, held=[1.0]), r"held must be of shape \(2,\)"),
        (lambda: pogp.plot.posterior(model, span=(1.0, 0.0)), "span must be two ends"),
        (lambda: pogp.plot.posterior(pogp.OnlineGP()), "the model has learned nothing yet"),
        (lambda: pogp.plot.error(y[:5], trace), "y must be the targets of Trace"),
        (lambda: pogp.plot.members(snapshots[:1]), "at least two snapshots"),
        (lambda: pogp.plot.calibration(y, y, 0 * y), "variance must be positive, got 0.0"),
        (lambda: pogp.plot.calibration(y, y[:3], y), "must be of one length"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_notebooks_show_a_table(learned):
    model = learned[0]
    page = model._repr_html_()
    assert page.startswith("<table><caption>OnlineGP</caption>")
    assert "<td" in page
    assert "Matern32" in page
    odd = pogp.DenseGP(lambda A, B: A @ B.T, 0.1)
    assert "&lt;lambda&gt;" in odd._repr_html_()
    assert "warming up" in pogp.SelfTuning()._repr_html_()
