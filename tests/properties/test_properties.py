"""What holds for every stream, every kernel and every way to compress."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import pogp

from ..conftest import dense_solution

# The fixture `backend` only sets a variable, the same one for all examples.
settings.register_profile(
    "models",
    deadline=None,
    max_examples=30,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
CHECKED = settings.get_profile("models")
QUERIES = np.linspace(-4, 4, 24).reshape(12, 2)

kernels = st.builds(
    lambda kind, lengthscale, variance: kind(lengthscale, variance),
    st.sampled_from([pogp.RBF, pogp.Matern12, pogp.Matern32, pogp.Matern52]),
    st.floats(0.2, 5.0),
    st.floats(0.1, 10.0),
)
noises = st.sampled_from([1e-3, 0.01, 0.1, 1.0])
budgets = st.sampled_from([None, 0.0, 1e-5, 1e-3, 0.05, 0.3, 1.0])
views = st.sampled_from(["newest", "everywhere"])
caps = st.none() | st.integers(1, 12)


@st.composite
def streams(draw, grid=False, most=25):
    """Two inputs and a target for each sample; on a grid, many samples are equal."""
    n = draw(st.integers(2, most))
    numbers = st.floats(-3, 3, width=32)
    if grid:
        numbers = st.integers(-2, 2).map(float)
    return draw(arrays(float, (n, 2), elements=numbers)), draw(arrays(float, n, elements=numbers))


@st.composite
def models(draw):
    return pogp.POG(
        draw(kernels),
        draw(noises),
        draw(budgets),
        view=draw(views),
        max_size=draw(caps),
        max_removals=draw(st.none() | st.integers(0, 2)),
        mean=draw(st.sampled_from([0.0, -1.5])),
    )


def assert_close(one, other, tolerance=1e-8):
    np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


# ---- models


@CHECKED
@given(model=models(), stream=streams() | streams(grid=True))
def test_a_model_is_the_exact_posterior_of_what_it_retains(backend, model, stream):
    X, y = stream
    model.learn(X, y)
    np.testing.assert_array_equal(model.dictionary, X[model.indices])
    np.testing.assert_array_equal(model.targets, y[model.indices])
    mean, covariance = dense_solution(
        model.kernel, model.noise, model.mean, model.dictionary, model.targets, QUERIES
    )
    assert_close(model.predict(QUERIES), (mean, np.diagonal(covariance) + model.noise))
    assert_close(model.covariance(QUERIES, latent=True), covariance)


@CHECKED
@given(model=models(), stream=streams() | streams(grid=True))
def test_variances_are_between_the_noise_and_the_prior(backend, model, stream):
    trace = model.learn(*stream)
    prior = model.kernel.variance + model.noise
    for variance in (trace.variance, model.predict(QUERIES)[1]):
        assert (variance >= model.noise).all()
        assert (variance <= prior * (1 + 1e-12)).all()
    assert (model.predict(QUERIES, latent=True)[1] >= 0).all()


@CHECKED
@given(model=models(), stream=streams() | streams(grid=True))
def test_the_budget_is_exceeded_only_for_the_cap(backend, model, stream):
    trace = model.learn(*stream)
    cap = np.inf if model.max_size is None else model.max_size
    allowed = -1.0 if model.budget is None else model.budget(0)
    forced = trace.size - 1 + trace.removed >= cap  # as many as that were held before
    within = trace.spent <= allowed * (1 + 1e-9) + 1e-15
    assert (within | forced | (trace.removed == 0)).all()
    assert (trace.spent[trace.removed == 0] == 0).all()
    assert (trace.size <= cap).all()
    assert (trace.size >= 1).all()
    if model.max_removals is not None:
        assert (trace.removed <= np.maximum(model.max_removals, forced)).all()


@CHECKED
@given(model=models(), stream=streams() | streams(grid=True))
def test_a_step_is_no_longer_than_its_parts(backend, model, stream):
    """The triangle inequality; and no marginal moves further than the process."""
    trace = model.learn(*stream)
    assert (trace.change <= trace.novelty + trace.spent + 1e-7).all()
    assert (trace.novelty <= trace.change + trace.spent + 1e-7).all()


@CHECKED
@given(kernel=kernels, noise=noises, stream=streams() | streams(grid=True), data=st.data())
@pytest.mark.parametrize("dense", [False, True])
def test_appending_and_removing_is_the_identity(backend, dense, kernel, noise, stream, data):
    X, y = stream
    model = pogp.DenseGP(kernel, noise) if dense else pogp.POG(kernel, noise, budget=None)
    split = data.draw(st.integers(0, len(y) - 1))
    model.learn(X[:split], y[:split])
    before = model.predict(QUERIES)
    model.learn(X[split:], y[split:])
    for index in data.draw(st.permutations(range(split, len(y)))):
        model.remove(index)
    assert model.indices.tolist() == list(range(split))
    assert_close(model.predict(QUERIES), before)


@CHECKED
@given(kernel=kernels, noise=noises, stream=streams() | streams(grid=True), data=st.data())
def test_the_order_of_removals_does_not_matter(backend, kernel, noise, stream, data):
    X, y = stream
    leaving = data.draw(st.lists(st.integers(0, len(y) - 1), unique=True))
    answers = []
    for order in (leaving, data.draw(st.permutations(leaving))):
        model = pogp.POG(kernel, noise, budget=None)
        model.learn(X, y)
        for index in order:
            model.remove(index)
        answers.append(model.predict(QUERIES))
    assert_close(*answers)


@CHECKED
@given(kernel=kernels, noise=noises, stream=streams(), data=st.data())
def test_the_order_of_samples_does_not_matter_to_a_dense_model(
    backend, kernel, noise, stream, data
):
    X, y = stream
    order = data.draw(st.permutations(range(len(y))))
    one, two = (pogp.DenseGP(kernel, noise) for _ in range(2))
    one.learn(X, y)
    two.learn(X[order], y[order])
    assert_close(one.predict(QUERIES), two.predict(QUERIES))


# The same examples each time: where the noise is small, prices that are equal but for rounding can
# be told apart by one core and not by the other.
@settings(CHECKED, max_examples=100, derandomize=True)
@given(model=models(), stream=streams(grid=True, most=40))
def test_both_cores_break_ties_alike(monkeypatch, model, stream):
    """On a grid many candidates are equally cheap: the oldest of them goes, whoever counts."""
    assert_both_retain_the_same(monkeypatch, model, *stream)


@pytest.mark.parametrize("kernel", [pogp.Matern12(1.0, 2.0), pogp.RBF(), pogp.Matern32(0.7, 2.0)])
@pytest.mark.parametrize("view", ["newest", "everywhere"])
def test_repeated_inputs_are_equally_cheap_in_both_cores(monkeypatch, kernel, view):
    """Points of no influence on the newest one cost nothing but rounding."""
    for seed in range(16):
        rng = np.random.default_rng(seed)
        X, y = 0.5 * rng.integers(-2, 3, (30, 1)), float(seed % 2) * rng.integers(-1, 2, 30)
        model = pogp.POG(kernel, 0.1, None, view=view, max_size=8)
        assert_both_retain_the_same(monkeypatch, model, X, y)


def assert_both_retain_the_same(monkeypatch, model, X, y):
    retained = []
    for name in ("compiled", "reference"):
        monkeypatch.setenv("POGP_BACKEND", name)
        one = model.copy()
        sizes = one.learn(X, y).size.tolist()
        retained.append((sizes, one.indices.tolist()))
    assert retained[0] == retained[1]


# ---- the distance

means = st.floats(-1e3, 1e3)
variances = st.floats(1e-6, 1e6)
normals = st.tuples(means, variances)
nudges = st.floats(-1e-3, 1e-3) | st.floats(-1e-12, 1e-12)


def exact_hellinger(mean1, var1, mean2, var2):
    """The definition, in sixty digits."""
    with localcontext() as context:
        context.prec = 60
        m1, v1, m2, v2 = (Decimal(value) for value in (mean1, var1, mean2, var2))
        overlap = (2 * (v1 * v2).sqrt() / (v1 + v2)).sqrt()
        overlap *= (-((m1 - m2) ** 2) / (4 * (v1 + v2))).exp()
        return float((1 - overlap).sqrt())


@settings(deadline=None, max_examples=200)
@given(one=normals, other=normals)
def test_the_distance_is_symmetric_bounded_and_exact(one, other):
    distance = pogp.hellinger(*one, *other)
    assert 0 <= distance <= 1
    assert distance == pytest.approx(pogp.hellinger(*other, *one), rel=1e-14, abs=0)
    assert distance == pytest.approx(exact_hellinger(*one, *other), rel=1e-12, abs=1e-25)
    assert pogp.hellinger(*one, *one) == 0


@settings(deadline=None, max_examples=200)
@given(one=normals, shift=nudges, stretch=nudges)
def test_the_distance_of_neighbours_keeps_its_digits(one, shift, stretch):
    mean, variance = one
    other = (mean + shift * np.sqrt(variance), variance * (1 + stretch))
    exact = exact_hellinger(*one, *other)
    assert pogp.hellinger(*one, *other) == pytest.approx(exact, rel=1e-12, abs=1e-25)


@settings(deadline=None, max_examples=100)
@given(one=normals, two=normals, three=normals)
def test_the_distance_obeys_the_triangle_inequality(one, two, three):
    direct = pogp.hellinger(*one, *three)
    assert direct <= (pogp.hellinger(*one, *two) + pogp.hellinger(*two, *three)) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.nan, 1, 0, 1), "mean1.*nan"),
        ((0, 1, np.inf, 1), "mean2.*inf"),
        ((0, 0, 0, 1), r"var1.*0\.0"),
        ((0, 1, 0, -2), r"var2.*-2"),
        ((0, [1, 2, -3], 0, 1), r"var1.*-3"),
    ],
)
def test_invalid_normal_distributions_have_no_distance(arguments, message):
    with pytest.raises(ValueError, match=message):
        pogp.hellinger(*arguments)


def test_the_distance_broadcasts():
    distances = pogp.hellinger(np.zeros((3, 1)), 1.0, [0.0, 1.0], [1.0, 2.0])
    assert distances.shape == (3, 2)
    assert distances[2, 1] == pogp.hellinger(0.0, 1.0, 1.0, 2.0)
