"""Shared by the checks: how one is declared, the stream they use, and how they fail."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pogp.arrays import Array
from pogp.models.online import OnlineGP
from pogp.models.retained import RetainedModel

Make: TypeAlias = Callable[[], Any]
"""Gives a fresh model each time."""
Check: TypeAlias = Callable[[Make], None]
Condition: TypeAlias = Callable[[Any], bool]

CHECKS: list[tuple[Check, tuple[Condition, ...]]] = []
"""Every check, in the order of declaration, and which models it is for."""
SAMPLES, HALF = 96, 48
ROUNDING = 1e-7
"""The largest difference between two computations of an array, relative to its largest entry."""


class CheckFailure(AssertionError):  # noqa: N818, it is no error of the check's
    """A model violates the protocol. The message has the check and what was expected."""


def check(*conditions: Condition) -> Callable[[Check], Check]:
    """Declare a check for the models that meet all conditions. Its name says what it verifies."""

    def declare(function: Check) -> Check:
        @wraps(function)
        def run(make: Make) -> None:
            claim = f"{make()!r} fails the check {function.__name__}"
            try:
                function(make)
            except CheckFailure as failure:
                raise CheckFailure(f"{claim}: {failure}") from None
            except Exception as error:
                raise CheckFailure(f"{claim}: {type(error).__name__}: {error}") from error

        CHECKS.append((run, conditions))
        return run

    return declare


# ---- conditions


def learns(model: Any) -> bool:
    """Say whether it learns from a stream."""
    return bool(model.online)


def fits(model: Any) -> bool:
    """Say whether it takes all samples at once."""
    return not learns(model)


def is_sequential(model: Any) -> bool:
    """Say whether a batch is learned as its samples would be one by one."""
    return learns(model) and bool(model.sequential)


def is_capped(model: Any) -> bool:
    """Say whether it promises a largest size."""
    return cap(model) is not None


def is_steady(model: Any) -> bool:
    """Say whether it stays as it was made; OnlineGP changes its parts along the stream."""
    return not isinstance(model, OnlineGP)


def retains_samples(model: Any) -> bool:
    """Say whether its points are samples, with their targets, that can be removed."""
    return isinstance(model, RetainedModel)


# ---- the stream, and models that learned it


def stream(model: Any) -> tuple[Array, Array]:
    """Return X (96, p), y (96,): always the same, in new arrays; p fits the kernel, or is 2."""
    rng = np.random.default_rng(7)
    inputs = model.kernel.dimension or max(model.kernel.least_dimension, 2)
    X = rng.uniform(-1, 1, (SAMPLES, inputs))
    y = np.sin(3 * X[:, 0]) * np.cos(2 * X[:, -1]) + 0.1 * rng.standard_normal(SAMPLES)
    return X, y


def queries(model: Any) -> Array:
    """Return points (12, p) among the samples, at one of them, and far away."""
    X, _ = stream(model)
    points = np.random.default_rng(8).uniform(-1.5, 1.5, (10, X.shape[1]))
    return np.vstack([points, X[3], np.full(X.shape[1], 40.0)])


def train(model: Any, X: ArrayLike, y: ArrayLike) -> Array:
    """Have the model learn, or fit, the samples; return the records of the trace, if any."""
    if learns(model):
        return np.asarray(model.learn(X, y).records)
    model.fit(X, y)
    return np.empty((0, 0))


def trained(make: Make, count: int = SAMPLES) -> Any:
    """Return a model that has learned the first samples of the stream."""
    model = make()
    X, y = stream(model)
    train(model, X[:count], y[:count])
    return model


def cap(model: Any) -> int | None:
    """Return the cap of the model: `max_size`, or the number of pseudo-inputs."""
    arguments = model.arguments()
    most: int | None = arguments.get("max_size", arguments.get("size"))
    return most


# ---- requirements


def require(holds: object, what: str, got: object) -> None:
    """Fail unless something holds."""
    if not holds:
        raise CheckFailure(f"expected {what}, got {got}")


def require_equal(what: str, got: Any, expected: Any) -> None:
    """Fail unless two values, or arrays, are the same to the last bit."""
    _require_within(what, got, expected, 0.0)


def require_close(what: str, got: Any, expected: Any) -> None:
    """Fail unless two numbers, or arrays, are the same to rounding."""
    _require_within(what, got, expected, ROUNDING * float(np.max(np.abs(expected), initial=0.0)))


def require_same(what: str, got: Any, expected: Any) -> None:
    """Fail unless two models hold, and answer, the same to the last bit."""
    require_same_state(what, got, expected.state())
    X = queries(expected)
    for name, one, other in zip(
        ("mean", "variance"), got.predict(X), expected.predict(X), strict=True
    ):
        require_equal(f"{what}, the {name} predicted", one, other)


def require_same_state(what: str, model: Any, expected: dict[str, Any]) -> None:
    """Fail unless a model holds what `state` returned, to the last bit."""
    state = model.state()
    require_equal(f"{what}, the names in state()", sorted(state), sorted(expected))
    for name, value in state.items():
        require_equal(f"{what}, state()[{name!r}]", value, expected[name])


def require_refusal(what: str, call: Callable[..., object], *arguments: object) -> None:
    """Fail unless a call raises ValueError."""
    try:
        call(*arguments)
    except ValueError:
        return
    raise CheckFailure(f"{what}: expected a ValueError, got none")


def require_sound(model: Any, where: str) -> None:
    """Fail unless predictions are finite, and variances positive and above the latent ones."""
    X = queries(model)
    (mean, variance), (_, latent) = model.predict(X), model.predict(X, latent=True)
    require(np.isfinite(mean).all(), f"finite means {where}", mean)
    require(np.isfinite(variance).all(), f"finite variances {where}", variance)
    require((variance > 0).all(), f"positive variances {where}", variance)
    require((latent >= 0).all(), f"latent variances of at least 0 {where}", latent)
    require((latent <= variance).all(), f"latent variances {where} below {variance}", latent)


def _require_within(what: str, got: Any, expected: Any, tolerance: float) -> None:
    one, other = np.asarray(got), np.asarray(expected)
    if one.shape != other.shape:
        raise CheckFailure(f"{what}: expected {_brief(other)}, got {_brief(one)}")
    if tolerance == 0.0:
        differs = (one != other) & ((one == one) | (other == other))  # NaN is the same as NaN
    else:
        differs = ~(np.abs(one - other) <= tolerance)
    if not np.any(differs):
        return
    if one.ndim == 0:
        raise CheckFailure(f"{what}: expected {expected}, got {got}")
    place = tuple(int(i) for i in np.argwhere(differs)[0])
    raise CheckFailure(
        f"{what}: expected {other[place]} at {list(place)}, got {one[place]}; "
        f"{np.count_nonzero(differs)} of {one.size} differ"
    )


def _brief(array: NDArray[Any]) -> str:
    return f"{np.array2string(array, threshold=6, edgeitems=2)} of shape {array.shape}"
