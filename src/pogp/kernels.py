"""Covariance functions: four radial ones, their sums and products, and the user's own.

A kernel is a value: it never changes, it compares and hashes by what it is, and its parameters
are read and replaced as one vector, `theta`, of their logarithms. Derivatives are in `theta`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist

Array: TypeAlias = NDArray[np.float64]
Pullback: TypeAlias = Callable[[Array], Array]
Program: TypeAlias = tuple[tuple[str, Array, float] | str, ...]

# A squared distance at which every radial kernel has long been zero in float64.
_FAR = 1e12


class Kernel(ABC):
    """A covariance function κ(a, b). One of your own needs no more than `__call__`.

    To have its parameters tuned it also defines `parameter_names`, `theta`, `with_theta` and
    `gradients`.

    >>> class Linear(Kernel):
    ...     def __call__(self, A, B=None):
    ...         return A @ (A if B is None else B).T
    >>> (Linear() + RBF())(np.array([[2.0], [3.0]])).round(3)
    array([[ 5.   ,  6.607],
           [ 6.607, 10.   ]])
    """

    @abstractmethod
    def __call__(self, A: ArrayLike, B: ArrayLike | None = None) -> Array:
        """Return κ(A, B), of shape (n, m), for A (n, p) and B (m, p); B = A if left out."""

    def diag(self, A: ArrayLike) -> Array:
        """Return κ(a, a) for every row a of A."""
        rows = _inputs(A)[:, None, :]
        return np.array([self(row, row).item() for row in rows], dtype=np.float64)

    def __add__(self, other: Kernel) -> Sum:
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Kernel) -> Product:
        return Product(self, other) if isinstance(other, Kernel) else NotImplemented

    @property
    def dimension(self) -> int | None:
        """The number of inputs if the kernel fixes it, else None."""
        return None

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """What the entries of `theta` are the logarithms of."""
        return ()

    @property
    def theta(self) -> Array:
        """The logarithms of the parameters."""
        return np.empty(0)

    def with_theta(self, theta: ArrayLike) -> Kernel:
        """Return the same kernel with other parameters."""
        _log_parameters(theta, 0)
        return self

    def gradients(self, A: ArrayLike) -> Array:
        """Return ∂κ(A, A)/∂theta, of shape (number of parameters, n, n)."""
        if self.theta.size:
            raise NotImplementedError(f"{type(self).__name__} has parameters but no gradients")
        n = len(_inputs(A))
        return np.empty((0, n, n))

    def value_and_pullback(self, A: ArrayLike) -> tuple[Array, Pullback]:
        """Return κ(A, A) and the function that takes `weights` to `pullback(A, weights)`."""

        def pullback(weights: Array) -> Array:
            total: Array = np.einsum("kij,ij->k", self.gradients(A), weights)
            return total

        return self(A), pullback

    def pullback(self, A: ArrayLike, weights: ArrayLike) -> Array:
        """Return Σ_ij weights_ij ∂κ(A, A)_ij/∂theta without forming the gradients.

        >>> A, weights = [[0.0], [1.0]], np.ones((2, 2))
        >>> RBF().pullback(A, weights).round(6)
        array([1.213061, 3.213061])
        >>> RBF().gradients(A).sum(axis=(1, 2)).round(6)
        array([1.213061, 3.213061])
        """
        return self.value_and_pullback(A)[1](np.asarray(weights, dtype=np.float64))

    def program(self) -> Program | None:
        """Return the postfix form for the compiled core, None if some part has none.

        >>> (Matern32(lengthscale=0.5) + Matern12()).program()
        (('Matern32', array([0.5]), 1.0), ('Matern12', array([1.]), 1.0), '+')
        """
        return None

    def to_spec(self) -> dict[str, Any]:
        """Describe the kernel by what JSON can hold; `kernel_from_spec` reads it back."""
        raise ValueError(
            f"kernel {self!r} cannot be saved without its code; "
            "use save(path, without_code=True) and supply it again with load(path, kernel=...)"
        )


class Stationary(Kernel):
    """κ(a, b) = variance · φ(r) with r² = Σ_d ((a_d − b_d)/ℓ_d)².

    `lengthscale` is a number, shared by all inputs, or a sequence with one for each (ARD).
    A subclass gives φ and its slope −φ′(r)/r.
    """

    def __init__(self, lengthscale: ArrayLike = 1.0, variance: float = 1.0) -> None:
        self._scales = _positive("lengthscale", lengthscale, max_ndim=1)
        self._variance = float(_positive("variance", variance, max_ndim=0))

    @staticmethod
    @abstractmethod
    def _profile(r2: Array) -> Array:
        """Return φ, given r²."""

    @staticmethod
    @abstractmethod
    def _slope(r2: Array, phi: Array) -> Array:
        """Return −φ′(r)/r, given r² and φ."""

    @property
    def lengthscale(self) -> float | Array:
        """The shared length-scale, or the read-only array of one per input."""
        return self._scales if self._scales.ndim else float(self._scales)

    @property
    def variance(self) -> float:
        """κ(a, a)."""
        return self._variance

    def __call__(self, A: ArrayLike, B: ArrayLike | None = None) -> Array:
        """Return κ(A, B)."""
        left = self._scaled(A)
        right = left if B is None else self._scaled(B)
        return self._variance * self._profile(_squared_distances(left, right))

    def diag(self, A: ArrayLike) -> Array:
        """Return the variance for every row of A."""
        return np.full(len(self._scaled(A)), self._variance)

    @property
    def dimension(self) -> int | None:
        """The number of length-scales, None for a shared one."""
        return self._scales.size if self._scales.ndim else None

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The length-scale or length-scales, then the variance."""
        if self.dimension is None:
            return ("lengthscale", "variance")
        return (*(f"lengthscale[{d}]" for d in range(self.dimension)), "variance")

    @property
    def theta(self) -> Array:
        """The logarithms of the length-scales and of the variance."""
        theta: Array = np.log(np.append(self._scales, self._variance))
        return theta

    def with_theta(self, theta: ArrayLike) -> Self:
        """Return the same kernel with other length-scales and another variance."""
        *scales, variance = np.exp(_log_parameters(theta, self._scales.size + 1))
        return type(self)(np.reshape(scales, self._scales.shape), float(variance))

    def gradients(self, A: ArrayLike) -> Array:
        """Return ∂κ(A, A)/∂theta; in log ℓ_d it is variance · slope · (a_d − b_d)²/ℓ_d²."""
        scaled = self._scaled(A)
        r2 = _squared_distances(scaled, scaled)
        phi = self._profile(r2)
        squares = r2[None]
        if self.dimension is not None:
            squares = (scaled.T[:, :, None] - scaled.T[:, None, :]) ** 2
        return self._variance * np.concatenate([self._slope(r2, phi) * squares, phi[None]])

    def value_and_pullback(self, A: ArrayLike) -> tuple[Array, Pullback]:
        """Return κ(A, A) and its pullback, which costs one matrix product for all of ARD."""
        scaled = self._scaled(A)
        r2 = _squared_distances(scaled, scaled)
        phi = self._profile(r2)
        value = self._variance * phi

        def pullback(weights: Array) -> Array:
            S = self._variance * self._slope(r2, phi) * weights
            shared = self.dimension is None
            in_scales = np.vdot(S, r2) if shared else _weighted_squares(S, scaled)
            return np.append(in_scales, np.vdot(weights, value))

        return value, pullback

    def program(self) -> Program | None:
        """Return the one step, None for a subclass from outside this module."""
        if type(self) not in _STATIONARY.values():
            return None
        return ((type(self).__name__, np.atleast_1d(self._scales), self._variance),)

    def to_spec(self) -> dict[str, Any]:
        """Describe the kernel by its name and its parameters."""
        if type(self) not in _STATIONARY.values():
            return super().to_spec()
        kind = type(self).__name__
        return {"kind": kind, "lengthscale": self._scales.tolist(), "variance": self._variance}

    def _scaled(self, A: ArrayLike) -> Array:
        return _inputs(A, self.dimension) / self._scales

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Stationary)
            and type(self) is type(other)
            and np.array_equal(self._scales, other._scales)
            and self._variance == other._variance
        )

    def __hash__(self) -> int:
        return hash((type(self), self._scales.tobytes(), self._variance))

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"{name}(lengthscale={self._scales.tolist()!r}, variance={self._variance!r})"

    def __reduce__(self) -> tuple[type[Self], tuple[float | Array, float]]:
        # By way of the constructor: NumPy would unpickle the read-only array as a writeable one.
        return type(self), (self.lengthscale, self.variance)


class RBF(Stationary):
    """The squared exponential: φ(r) = exp(−r²/2).

    >>> RBF(lengthscale=[1.0, 2.0], variance=1.5)([[0.0, 0.0]], [[1.0, 2.0]]).round(6)
    array([[0.551819]])
    """

    @staticmethod
    def _profile(r2: Array) -> Array:
        return np.exp(-0.5 * r2)

    @staticmethod
    def _slope(r2: Array, phi: Array) -> Array:
        return phi


class Matern12(Stationary):
    """Matérn with ν = 1/2, continuous and nowhere smooth: φ(r) = exp(−r).

    >>> Matern12(lengthscale=2.0)([[0.0]], [[2.0]]).round(6)
    array([[0.367879]])
    """

    @staticmethod
    def _profile(r2: Array) -> Array:
        return np.exp(-np.sqrt(r2))

    @staticmethod
    def _slope(r2: Array, phi: Array) -> Array:
        # Infinite at r = 0, where it stands before (a_d − b_d)² = 0; the product tends to zero.
        return np.divide(phi, np.sqrt(r2), out=np.zeros_like(phi), where=r2 > 0)


class Matern32(Stationary):
    """Matérn with ν = 3/2, once differentiable: φ(r) = (1 + √3 r) exp(−√3 r).

    >>> Matern32()([[0.0]], [[1.0]]).round(6)
    array([[0.483358]])
    """

    @staticmethod
    def _profile(r2: Array) -> Array:
        s = np.sqrt(3.0 * r2)
        return (1.0 + s) * np.exp(-s)

    @staticmethod
    def _slope(r2: Array, phi: Array) -> Array:
        return 3.0 * np.exp(-np.sqrt(3.0 * r2))


class Matern52(Stationary):
    """Matérn with ν = 5/2, twice differentiable: φ(r) = (1 + √5 r + 5r²/3) exp(−√5 r).

    >>> Matern52()([[0.0]], [[1.0]]).round(6)
    array([[0.523994]])
    """

    @staticmethod
    def _profile(r2: Array) -> Array:
        s = np.sqrt(5.0 * r2)
        return (1.0 + s + s * s / 3.0) * np.exp(-s)

    @staticmethod
    def _slope(r2: Array, phi: Array) -> Array:
        s = np.sqrt(5.0 * r2)
        return (5.0 / 3.0) * (1.0 + s) * np.exp(-s)


@dataclass(frozen=True, repr=False)
class _Pair(Kernel):
    """Two kernels joined entry by entry; a subclass says how, and gives the derivatives."""

    left: Kernel
    right: Kernel
    symbol: ClassVar[str]

    def __post_init__(self) -> None:
        for part in (self.left, self.right):
            if not isinstance(part, Kernel):
                raise ValueError(f"both parts must be kernels, got {part!r}")
        dimensions = {self.left.dimension, self.right.dimension} - {None}
        if len(dimensions) > 1:
            raise ValueError(
                f"both parts must agree on the number of inputs, got {self.left.dimension} "
                f"in {self.left!r} and {self.right.dimension} in {self.right!r}"
            )

    @staticmethod
    @abstractmethod
    def _join(left: Array, right: Array) -> Array:
        """Return the value, given those of the two parts."""

    @staticmethod
    @abstractmethod
    def _partials(left: Array, right: Array) -> tuple[Array | float, Array | float]:
        """Return the derivatives of the value in those of the two parts."""

    def __call__(self, A: ArrayLike, B: ArrayLike | None = None) -> Array:
        return self._join(self.left(A, B), self.right(A, B))

    def diag(self, A: ArrayLike) -> Array:
        return self._join(self.left.diag(A), self.right.diag(A))

    @property
    def dimension(self) -> int | None:
        return self.right.dimension if self.left.dimension is None else self.left.dimension

    @property
    def parameter_names(self) -> tuple[str, ...]:
        parts = (("left", self.left), ("right", self.right))
        return tuple(f"{side}.{name}" for side, part in parts for name in part.parameter_names)

    @property
    def theta(self) -> Array:
        return np.concatenate([self.left.theta, self.right.theta])

    def with_theta(self, theta: ArrayLike) -> Self:
        split = self.left.theta.size
        theta = _log_parameters(theta, split + self.right.theta.size)
        return type(self)(self.left.with_theta(theta[:split]), self.right.with_theta(theta[split:]))

    def gradients(self, A: ArrayLike) -> Array:
        in_left, in_right = self._partials(self.left(A), self.right(A))
        left, right = self.left.gradients(A), self.right.gradients(A)
        return np.concatenate([left * in_left, right * in_right])

    def value_and_pullback(self, A: ArrayLike) -> tuple[Array, Pullback]:
        left, pull_left = self.left.value_and_pullback(A)
        right, pull_right = self.right.value_and_pullback(A)
        in_left, in_right = self._partials(left, right)

        def pullback(weights: Array) -> Array:
            return np.concatenate([pull_left(weights * in_left), pull_right(weights * in_right)])

        return self._join(left, right), pullback

    def program(self) -> Program | None:
        left, right = self.left.program(), self.right.program()
        if type(self) not in _PAIRS.values() or left is None or right is None:
            return None
        return (*left, *right, self.symbol)

    def to_spec(self) -> dict[str, Any]:
        if type(self) not in _PAIRS.values():
            return super().to_spec()
        kind = type(self).__name__
        return {"kind": kind, "left": self.left.to_spec(), "right": self.right.to_spec()}

    def __repr__(self) -> str:
        parts = (self.left, self.right)
        left, right = (f"({part!r})" if isinstance(part, _Pair) else f"{part!r}" for part in parts)
        return f"{left} {self.symbol} {right}"


class Sum(_Pair):
    """The kernel left + right.

    >>> RBF() + Matern32(lengthscale=0.5)
    RBF(lengthscale=1.0, variance=1.0) + Matern32(lengthscale=0.5, variance=1.0)
    """

    symbol = "+"

    @staticmethod
    def _join(left: Array, right: Array) -> Array:
        return left + right

    @staticmethod
    def _partials(left: Array, right: Array) -> tuple[Array | float, Array | float]:
        return 1.0, 1.0


class Product(_Pair):
    """The kernel left * right.

    >>> (RBF(variance=2.0) * RBF(variance=3.0)).diag([[0.0], [1.0]])
    array([6., 6.])
    """

    symbol = "*"

    @staticmethod
    def _join(left: Array, right: Array) -> Array:
        return left * right

    @staticmethod
    def _partials(left: Array, right: Array) -> tuple[Array | float, Array | float]:
        return right, left


@dataclass(frozen=True, repr=False)
class FunctionKernel(Kernel):
    """A plain function of two input matrices, (n, p) and (m, p), to (n, m), as a kernel.

    >>> FunctionKernel(lambda A, B: A @ B.T)([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """

    function: Callable[[Array, Array], ArrayLike]

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ValueError(f"expected a function κ(A, B), got {self.function!r}")

    def __call__(self, A: ArrayLike, B: ArrayLike | None = None) -> Array:
        """Return what the function returns for A and B."""
        left = _inputs(A)
        right = left if B is None else _inputs(B, left.shape[1])
        return np.asarray(self.function(left, right), dtype=np.float64)

    def __repr__(self) -> str:
        return f"FunctionKernel({getattr(self.function, '__qualname__', self.function)})"


_STATIONARY: dict[str, type[Stationary]] = {
    kernel.__name__: kernel for kernel in (RBF, Matern12, Matern32, Matern52)
}
_PAIRS: dict[str, type[_Pair]] = {kernel.__name__: kernel for kernel in (Sum, Product)}


def as_kernel(obj: object) -> Kernel:
    """Return a kernel as it is, and a function κ(A, B) as a kernel.

    >>> as_kernel(RBF())
    RBF(lengthscale=1.0, variance=1.0)
    """
    if isinstance(obj, Kernel):
        return obj
    if callable(obj) and not isinstance(obj, type):
        return FunctionKernel(obj)
    raise ValueError(f"expected a kernel such as RBF() or a function κ(A, B), got {obj!r}")


def kernel_from_spec(spec: object) -> Kernel:
    """Return the kernel that `to_spec` described.

    >>> kernel_from_spec({"kind": "RBF", "lengthscale": [1.0, 2.0], "variance": 0.5})
    RBF(lengthscale=[1.0, 2.0], variance=0.5)
    """
    try:
        return _build(spec)
    except RecursionError:
        raise ValueError("the description of the kernel is nested too deeply") from None


def _build(spec: object) -> Kernel:
    match spec:
        case {"kind": str(kind), "lengthscale": lengthscale, "variance": variance, **rest}:
            if kind in _STATIONARY and not rest:
                return _STATIONARY[kind](lengthscale, variance)
        case {"kind": str(kind), "left": left, "right": right, **rest}:
            if kind in _PAIRS and not rest:
                return _PAIRS[kind](_build(left), _build(right))
    raise ValueError(f"not the description of a kernel: {spec!r}")


def _positive(name: str, value: ArrayLike, max_ndim: int) -> Array:
    """Return a read-only copy of a positive number or, if allowed, of a sequence of them."""
    array = np.asarray(value)
    if array.ndim > max_ndim or array.size == 0:
        shape = "a number or a sequence of numbers" if max_ndim else "a number"
        raise ValueError(f"{name} must be {shape}, got {value!r}")
    if array.dtype.kind not in "iuf" or not np.all((array > 0) & np.isfinite(array)):
        raise ValueError(f"{name} must be positive and finite, got {value!r}")
    copy = array.astype(np.float64)
    copy.setflags(write=False)
    return copy


def _inputs(A: ArrayLike, dimension: int | None = None) -> Array:
    array = np.asarray(A, dtype=np.float64)
    if array.ndim != 2:
        raise ValueError(f"inputs must have the shape (n, p), got {array.shape}")
    if dimension is not None and array.shape[1] != dimension:
        raise ValueError(f"inputs must have {dimension} columns, got {array.shape[1]}")
    return array


def _log_parameters(theta: ArrayLike, size: int) -> Array:
    array = np.asarray(theta, dtype=np.float64)
    if array.shape != (size,):
        raise ValueError(f"theta must have the shape ({size},), got {array.shape}")
    return array


def _squared_distances(A: Array, B: Array) -> Array:
    if A.shape[1] != B.shape[1]:
        raise ValueError(f"inputs differ in columns: {A.shape[1]} and {B.shape[1]}")
    # cdist subtracts before it squares: no cancellation, and exact zeros on the diagonal.
    # The cap keeps the Matérn kernels from ∞ · 0 where r² overflows.
    r2 = cdist(A, B, "sqeuclidean")
    return np.minimum(r2, _FAR, out=r2)


def _weighted_squares(S: Array, A: Array) -> Array:
    """Return Σ_ij S_ij (a_id − a_jd)² for every column d; overwrites the diagonal of S.

    Expanded, the square needs one matrix product for all columns together. Centring and
    leaving out the diagonal, which contributes nothing, keep the cancellation small.
    """
    np.fill_diagonal(S, 0.0)
    centred = A - A.mean(axis=0)
    sums = S.sum(axis=0) + S.sum(axis=1)
    total: Array = sums @ centred**2 - 2.0 * np.einsum("id,id->d", centred, S @ centred)
    return total
