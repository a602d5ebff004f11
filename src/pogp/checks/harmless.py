"""Bad input changes nothing, and neither the caller's arrays nor global state are modified."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pogp.arrays import Array
from pogp.checks._kit import (
    HALF,
    Make,
    check,
    queries,
    require_close,
    require_equal,
    require_refusal,
    require_same,
    require_same_state,
    retains_samples,
    stream,
    train,
    trained,
)

_FORMS: dict[str, Callable[[Array], Any]] = {
    "lists": lambda array: array.tolist(),
    "integers": lambda array: array.astype(np.int32),
    "float32": lambda array: array.astype(np.float32),
    "Fortran's order": np.asfortranarray,
    "every other row": lambda array: np.repeat(array, 2, axis=0)[::2],
}
"""In which whole numbers can be given."""

# ---- bad input


@check()
def bad_samples_are_refused_and_change_nothing(make: Make) -> None:
    """Check also batches of which only the last is bad; the model then learns as without them."""
    model = trained(make, HALF)
    X, y = stream(model)
    before, wide = model.state(), np.column_stack([X, y])
    widths = {"a column too many": (wide, y), "a column too few": (X[:, :-1], y)}
    for what, bad in {**_bad_samples(X, y), **widths}.items():
        require_refusal(what, train, model, *bad)
        require_same_state(f"after {what}", model, before)
    untouched = trained(make, HALF)
    train(model, X[HALF:], y[HALF:])
    train(untouched, X[HALF:], y[HALF:])
    require_same("after bad samples and good ones", model, untouched)


@check()
def bad_samples_leave_an_empty_model_empty(make: Make) -> None:
    """Check that not even the number of inputs is taken from them."""
    model = make()
    X, y = stream(model)
    before, wide = model.state(), np.full((len(y), 99), np.nan)
    for what, bad in {**_bad_samples(X, y), "NaN in 99 columns": (wide, y)}.items():
        require_refusal(what, train, model, *bad)
        require_same_state(f"after {what}", model, before)
    train(model, X, y)
    require_same("after bad samples and good ones", model, trained(make))


@check()
def bad_queries_are_refused(make: Make) -> None:
    """Check that every method that takes queries raises ValueError."""
    model = trained(make)
    X = queries(model)
    bad = {
        "NaN": _spoiled(X, np.nan),
        "infinity": _spoiled(X, np.inf),
        "a column too many": np.column_stack([X, X[:, 0]]),
        "three axes": X[:, :, None],
        "text": [["a", "b"]],
    }
    for what, points in bad.items():
        for method in (model.predict, model.covariance, model.sample):
            require_refusal(f"{method.__name__} of {what}", method, points)


# ---- arrays of the caller


@check()
def what_the_caller_gives_is_not_written_on(make: Make) -> None:
    """Check arrays of the caller, and that read-only ones are accepted."""
    for writable in (True, False):
        model = make()
        (X, y), points = stream(model), queries(model)
        for array in (X, y, points):
            array.setflags(write=writable)
        train(model, X, y)
        model.predict(points)
        model.covariance(points)
        model.sample(points, 2, seed=0)
        require_equal("X afterwards", X, stream(model)[0])
        require_equal("y afterwards", y, stream(model)[1])
        require_equal("queries afterwards", points, queries(model))


@check()
def the_caller_may_write_on_what_was_given(make: Make) -> None:
    """Check that the model keeps no view of it."""
    X, y = stream(make())
    model = make()
    train(model, X, y)
    X[:], y[:] = 7.0, -7.0
    require_same("after X and y changed", model, trained(make))


@check()
def the_caller_may_write_on_what_was_returned(make: Make) -> None:
    """Check that predictions, the dictionary, the trace and the state are copies."""
    empty, model, expected = make(), trained(make), trained(make)
    for array in _returned(empty) + _returned(model):
        array[...] = 7
    require_same("an empty model, after returned arrays changed", empty, make())
    require_same("after returned arrays changed", model, expected)
    train(model, *stream(model))[...] = 7
    train(expected, *stream(model))
    require_same("after the trace changed", model, expected)


@check()
def other_layouts_and_types_of_numbers_will_do(make: Make) -> None:
    """Check lists, integers, single precision and arrays in Fortran order."""
    expected = make()
    X, y = (np.round(4 * array) for array in stream(expected))
    points = np.round(queries(expected))
    train(expected, X, y)
    for what, convert in _FORMS.items():
        model = make()
        train(model, convert(X), convert(y))
        require_equal(f"indices after {what}", model.indices, expected.indices)
        answer = model.predict(convert(points))
        require_close(f"predictions after {what}", answer, expected.predict(points))


# ---- chance


@check()
def a_fresh_model_does_the_same_again(make: Make) -> None:
    """Check that the global random state does not matter."""
    with _global_seed(1):
        expected = trained(make)
    with _global_seed(2):
        require_same("a second model", trained(make), expected)


@check()
def the_global_random_state_is_left_alone(make: Make) -> None:
    """Check that neither that of NumPy nor that of Python changes."""
    with _global_seed(1):
        model = trained(make)
        model.predict(queries(model))
        model.sample(queries(model), 2)
        drawn = np.random.random(), random.random()  # noqa: NPY002
    with _global_seed(1):
        expected = np.random.random(), random.random()  # noqa: NPY002
    require_equal("the next numbers of the global generators", drawn, expected)


@contextmanager
def _global_seed(seed: int) -> Iterator[None]:
    """Set the global random states, and set them back."""
    states = np.random.get_state(), random.getstate()  # noqa: NPY002
    try:
        np.random.seed(seed)  # noqa: NPY002
        random.seed(seed)
        yield
    finally:
        np.random.set_state(states[0])  # noqa: NPY002
        random.setstate(states[1])


def _bad_samples(X: Array, y: Array) -> dict[str, tuple[ArrayLike, ArrayLike]]:
    """Return samples that are wrong, whatever the number of inputs."""
    return {
        "NaN in the last row of X": (_spoiled(X, np.nan), y),
        "infinity in the last row of X": (_spoiled(X, np.inf), y),
        "NaN at the end of y": (X, _spoiled(y, np.nan)),
        "minus infinity at the end of y": (X, _spoiled(y, -np.inf)),
        "X with three axes": (X[:, :, None], y),
        "X without columns": (X[:, :0], y),
        "y too short": (X, y[:-1]),
        "y too long": (X[:-1], y),
        "one y for many": (X, 1.0),
        "text for X": ([["a", "b"]], [1.0]),
        "text for y": (X[:1], ["a"]),
        "complex numbers": (X + 1j, y),
    }


def _spoiled(array: Array, value: float) -> Array:
    """Return the array with another last number."""
    spoiled = array.copy()
    spoiled.flat[-1] = value
    return spoiled


def _returned(model: Any) -> list[Any]:
    """Return every array that the model returns."""
    X = queries(model)
    arrays = [*model.predict(X), *model.predict(X, latent=True), model.covariance(X)]
    arrays += [model.sample(X, 2, seed=0), model.dictionary, model.indices]
    arrays += [model.targets] if retains_samples(model) else []
    return arrays + [value for value in model.state().values() if isinstance(value, np.ndarray)]
