"""Elementary kernels: named positive parameters, for all inputs or for some."""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, ClassVar, Self, SupportsIndex, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from pogp.arrays import Array
from pogp.kernels.kernel import Kernel, Program, Step, inputs, log_parameters

SMALLEST = 1e-205
"""Length-scales and periods below this are refused: inputs divided by them would overflow."""

BUILTIN: dict[str, type[Elementary]] = {}
"""The kernels that a file may name and that the compiled core can run, by their names."""

E = TypeVar("E", bound="type[Elementary]")


def builtin(kind: E) -> E:
    """Add a class to `BUILTIN`. Subclasses of it from other packages are not added."""
    BUILTIN[kind.__name__] = kind
    return kind


class Elementary(Kernel):
    """A kernel with positive parameters, for all inputs or, with `columns`, for some.

    A parameter is a number or, if the subclass allows it, a sequence with one number for each input
    (ARD) or for each of the `columns`. A subclass names its parameters in the order of its
    constructor, which is also the order of `theta`.
    """

    _fields: ClassVar[tuple[str, ...]]

    def _settle(self, columns: Sequence[int] | None, **values: Array) -> None:
        """Take over the parameters, which `positive` has checked one by one."""
        self._values = values
        self._columns = None if columns is None else _distinct(columns)
        sizes = {name: value.size for name, value in values.items() if value.ndim}
        if len(set(sizes.values())) > 1:
            raise ValueError(f"parameters must agree on the number of inputs, got {sizes}")
        if self._columns is not None and set(sizes.values()) - {len(self._columns)}:
            raise ValueError(
                f"there must be one {' and '.join(sizes)} for all or for each of the columns "
                f"{list(self._columns)}, got {sizes}"
            )
        self._size = next(iter(sizes.values()), None)

    @classmethod
    @abstractmethod
    def with_inputs(cls, dimension: int) -> Self:
        """Return the kernel with a parameter for each of `dimension` inputs, to be tuned."""

    @property
    def columns(self) -> tuple[int, ...] | None:
        """The inputs that the kernel is restricted to, None for all."""
        return self._columns

    @property
    def dimension(self) -> int | None:
        """The number of inputs if there is a parameter for each, None with `columns`."""
        return self._size if self._columns is None else None

    @property
    def least_dimension(self) -> int:
        """The least number of inputs that the kernel needs."""
        return self._size or 1 if self._columns is None else max(self._columns) + 1

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The parameters in order; those that belong to one input have its number."""
        names: list[str] = []
        for name, value in self._values.items():
            places = range(value.size) if self._columns is None else self._columns
            names += [f"{name}[{d}]" for d in places] if value.ndim else [name]
        return tuple(names)

    @property
    def theta(self) -> Array:
        """The logarithms of the parameters."""
        theta: Array = np.log(np.concatenate([value.ravel() for value in self._values.values()]))
        return theta

    def with_theta(self, theta: ArrayLike) -> Self:
        """Return the same kernel with other parameters."""
        now = list(self._values.values())
        stops = list(accumulate((value.size for value in now), initial=0))
        numbers = np.exp(log_parameters(theta, stops[-1]))
        parts = zip(now, pairwise(stops), strict=True)
        values = [numbers[slice(*places)].reshape(value.shape) for value, places in parts]
        return _made(type(self), values, self._columns)

    def to_spec(self) -> dict[str, Any]:
        """Describe the kernel by its name, its parameters and, if it has any, its columns."""
        if not self._is_builtin:
            return super().to_spec()
        spec = {"kind": type(self).__name__}
        spec |= {name: value.tolist() for name, value in self._values.items()}
        return spec if self._columns is None else spec | {"columns": list(self._columns)}

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> Self:
        """Return the kernel that `to_spec` described."""
        if not {"kind", *cls._fields} <= spec.keys() <= {"kind", *cls._fields, "columns"}:
            raise ValueError(f"not the description of a kernel: {spec!r}")
        return _made(cls, [spec[name] for name in cls._fields], spec.get("columns"))

    def program(self) -> Program | None:
        """Return the one step, None for a subclass from outside this package."""
        if not self._is_builtin:
            return None
        kind, columns = type(self).__name__, self._columns
        return (Step(kind, {name: np.asarray(v) for name, v in self._values.items()}, columns),)

    @property
    def _is_builtin(self) -> bool:
        return BUILTIN.get(type(self).__name__) is type(self)

    def _inputs(self, A: ArrayLike) -> Array:
        """Return the columns of A that the kernel uses."""
        rows = inputs(A, self.dimension)
        if self._columns is None:
            return rows
        if rows.shape[1] < self.least_dimension:
            raise ValueError(
                f"inputs must have at least {self.least_dimension} columns, "
                f"for the columns {list(self._columns)} of {self!r}, got {rows.shape[1]}"
            )
        return rows[:, self._columns]

    def _both(self, A: ArrayLike, B: ArrayLike | None) -> tuple[Array, Array]:
        """Return the inputs of two matrices; B = A if left out."""
        left = self._inputs(A)
        if B is None:
            return left, left
        return left, self._inputs(inputs(B, np.shape(A)[1]))

    def _in_place(self, gradient: Array, A: ArrayLike) -> Array:
        """Return derivatives by the kernel's own inputs as derivatives by all columns of A."""
        if self._columns is None:
            return gradient
        full = np.zeros((*gradient.shape[:-1], np.shape(A)[1]))
        full[..., self._columns] = gradient
        return full

    def _summed(self, name: str, gradient: Array) -> Array:
        """Return derivatives by what each input has as derivatives by the parameter `name`."""
        return gradient if self._values[name].ndim else gradient.sum(axis=0, keepdims=True)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Elementary)
            and type(self) is type(other)
            and self._columns == other._columns
            and all(np.array_equal(value, other._values[n]) for n, value in self._values.items())
        )

    def __hash__(self) -> int:
        values = tuple(value.tobytes() for value in self._values.values())
        return hash((type(self), values, self._columns))

    def __repr__(self) -> str:
        arguments = [f"{name}={value.tolist()!r}" for name, value in self._values.items()]
        if self._columns is not None:
            arguments.append(f"columns={list(self._columns)!r}")
        return f"{type(self).__name__}({', '.join(arguments)})"

    def __reduce__(self) -> tuple[Any, ...]:
        # By way of the constructor: NumPy would unpickle the read-only array as a writeable one.
        values = [value if value.ndim else float(value) for value in self._values.values()]
        return _made, (type(self), values, self._columns)


class ConstantDiagonal(Elementary):
    """An elementary kernel whose κ(x, x) is its parameter `variance` for every x."""

    @property
    def variance(self) -> float:
        """κ(x, x)."""
        return float(self._values["variance"])

    @property
    def kappa0(self) -> float | None:
        """The variance; None for subclasses of other packages, which may define another κ(x, x)."""
        return self.variance if self._is_builtin else None

    def diag(self, A: ArrayLike) -> Array:
        """Return the variance for every row of A."""
        return np.full(len(self._inputs(A)), self.variance)

    def diag_pullback(self, A: ArrayLike, weights: ArrayLike) -> Array:
        """Return variance · Σ_i weights_i for the variance, and 0 for the other parameters."""
        found = np.zeros(self.theta.size)
        found[self.parameter_names.index("variance")] = self.variance * np.sum(weights)
        return found


K = TypeVar("K", bound=Elementary)


def _made(kind: type[K], values: Sequence[Any], columns: Sequence[int] | None) -> K:
    """Call a class; one from elsewhere need not know of columns."""
    restriction: dict[str, Any] = {} if columns is None else {"columns": columns}
    return kind(*values, **restriction)


def positive(name: str, value: ArrayLike, max_ndim: int, least: float = 0.0) -> Array:
    """Return a read-only copy of a positive number or, if allowed, of a sequence of them."""
    array = np.asarray(value)
    if array.ndim > max_ndim or array.size == 0:
        shape = "a number or a sequence of numbers" if max_ndim else "a number"
        raise ValueError(f"{name} must be {shape}, got {value!r}")
    if array.dtype.kind not in "iuf" or not 0 < array.min() <= array.max() < np.inf:  # NaN is not
        raise ValueError(f"{name} must be positive and finite, got {value!r}")
    if array.min() < least:
        raise ValueError(f"{name} must be at least {least:g}, got {value!r}")
    copy = array.astype(np.float64)
    copy.setflags(write=False)
    return copy


def _distinct(columns: Sequence[int]) -> tuple[int, ...]:
    """Return the numbers of some inputs, checked."""
    wrong = ValueError(f"columns must be distinct whole numbers ≥ 0, got {columns!r}")
    if isinstance(columns, str | bytes) or not np.iterable(columns):
        raise wrong
    numbers = []
    for column in columns:
        if not isinstance(column, int | SupportsIndex) or isinstance(column, bool | np.ndarray):
            raise wrong
        numbers.append(operator.index(column))
    if not numbers or min(numbers) < 0 or len(set(numbers)) < len(numbers):
        raise wrong
    return tuple(numbers)
