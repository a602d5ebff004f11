"""The base class of kernels: the matrix κ(A, B) and its derivatives."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pogp.arrays import LARGEST, Array

Pullback: TypeAlias = Callable[[Array], Array]
CrossPullback: TypeAlias = Callable[[Array], tuple[Array, Array]]


class Step(NamedTuple):
    """A kernel in a program: its kind, its parameters by name, and its input columns, or None."""

    kind: str
    parameters: dict[str, Array]
    columns: tuple[int, ...] | None


Program: TypeAlias = tuple[Step | str, ...]


class Kernel(ABC):
    """A covariance function κ(a, b). A subclass needs only `__call__`.

    Tuning also needs `parameter_names`, `theta`, `with_theta` and `gradients`. Pseudo-inputs need
    `cross_pullback` and `diag_pullback`. Derivatives of predictions by the inputs need
    `cross_pullback` and `diag_gradient`.

    Examples
    --------
    >>> from pogp import RBF
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
        rows = inputs(A)[:, None, :]
        return np.array([self(row, row).item() for row in rows], dtype=np.float64)

    def __add__(self, other: Kernel) -> Kernel:
        from pogp.kernels.pairs import Sum  # which is a Kernel, and so comes after

        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Kernel) -> Kernel:
        from pogp.kernels.pairs import Product

        return Product(self, other) if isinstance(other, Kernel) else NotImplemented

    @property
    def dimension(self) -> int | None:
        """The number of inputs if the kernel fixes it, else None."""
        return None

    @property
    def least_dimension(self) -> int:
        """The least number of inputs that the kernel needs.

        >>> from pogp import RBF
        >>> (RBF() + RBF(columns=[1, 3])).least_dimension
        4
        """
        return self.dimension or 1

    @property
    def kappa0(self) -> float | None:
        """κ(x, x) if it is known to be the same for every x, else None."""
        return None

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The names of the parameters, in the order of `theta`."""
        return ()

    @property
    def theta(self) -> Array:
        """The logarithms of the parameters."""
        return np.empty(0)

    def with_theta(self, theta: ArrayLike) -> Kernel:
        """Return the same kernel with other parameters."""
        log_parameters(theta, 0)
        return self

    def typical_theta(self, A: ArrayLike, power: float) -> Array:
        """Return theta at the scale of the inputs A, with κ(x, x) of about `power`."""
        return self.theta

    def scans(self, A: ArrayLike) -> dict[int, Array]:
        """Return values to try for entries of theta in which the likelihood has many maxima."""
        return {}

    def gradients(self, A: ArrayLike) -> Array:
        """Return ∂κ(A, A)/∂theta, of shape (number of parameters, n, n)."""
        if self.theta.size:
            raise NotImplementedError(f"{type(self).__name__} has parameters but no gradients")
        n = len(inputs(A))
        return np.empty((0, n, n))

    def value_and_pullback(self, A: ArrayLike) -> tuple[Array, Pullback]:
        """Return κ(A, A) and a function that maps `weights` to `pullback(A, weights)`."""

        def pullback(weights: Array) -> Array:
            total: Array = np.einsum("kij,ij->k", self.gradients(A), weights)
            return total

        return self(A), pullback

    def pullback(self, A: ArrayLike, weights: ArrayLike) -> Array:
        """Return Σ_ij weights_ij ∂κ(A, A)_ij/∂theta without forming the gradients.

        >>> from pogp import RBF
        >>> A, weights = [[0.0], [1.0]], np.ones((2, 2))
        >>> RBF().pullback(A, weights).round(6)
        array([1.213061, 3.213061])
        >>> RBF().gradients(A).sum(axis=(1, 2)).round(6)
        array([1.213061, 3.213061])
        """
        return self.value_and_pullback(A)[1](np.asarray(weights, dtype=np.float64))

    def cross_pullback(self, A: ArrayLike, B: ArrayLike) -> tuple[Array, CrossPullback]:
        """Return κ(A, B) and a function that maps weights to two gradients.

        They are the gradients of Σ_ij weights_ij κ(a_i, b_j) with respect to `theta` and A. For the
        gradient with respect to B, use κ(B, A) with the weights transposed.

        >>> from pogp import RBF
        >>> value, pullback = RBF().cross_pullback([[0.0]], [[1.0], [-2.0]])
        >>> in_theta, in_A = pullback(np.array([[1.0, 0.0]]))
        >>> in_theta.round(6), in_A.round(6)
        (array([0.606531, 0.606531]), array([[0.606531]]))
        """
        raise NotImplementedError(f"{type(self).__name__} has no cross_pullback")

    def diag_pullback(self, A: ArrayLike, weights: ArrayLike) -> Array:
        """Return Σ_i weights_i ∂κ(a_i, a_i)/∂theta.

        >>> from pogp import RBF
        >>> (RBF(variance=2.0) * RBF(variance=3.0)).diag_pullback([[0.0], [1.0]], [1.0, 2.0])
        array([ 0., 18.,  0., 18.])
        """
        if self.theta.size:
            raise NotImplementedError(f"{type(self).__name__} has no diag_pullback")
        return np.empty(0)

    def input_gradient(self, X: ArrayLike, Z: ArrayLike, weights: ArrayLike) -> Array:
        """Return Σ_j weights_ij ∂κ(x_i, z_j)/∂x_i for every row of X, of shape (n, p).

        `weights` is (n, m), or (m,) if every row has the same; several sets of weights,
        (..., n, m), give (..., n, p). With the weights α of a posterior mean κ(X, Z)α these are its
        derivatives. Where a kernel has a cusp, as `Matern12` at x_i = z_j, that pair adds nothing.

        >>> from pogp import RBF
        >>> RBF().input_gradient([[0.0], [1.0]], [[1.0]], [2.0]).round(6)
        array([[1.213061],
               [0.      ]])
        """
        each, shape = np.asarray(weights, dtype=np.float64), (len(inputs(X)), len(inputs(Z)))
        sets = each.shape[:-2]
        every = np.broadcast_to(each, (*sets, *shape)).reshape(math.prod(sets), *shape)
        pullback = self.cross_pullback(X, Z)[1]
        return np.reshape([pullback(one.copy())[1] for one in every], (*sets, *np.shape(X)))

    def diag_gradient(self, X: ArrayLike) -> Array:
        """Return ∂κ(x_i, x_i)/∂x_i for every row of X, of shape (n, p).

        >>> from pogp import Linear
        >>> Linear(variance=[2.0, 1.0]).diag_gradient([[1.0, 3.0]])
        array([[4., 6.]])
        """
        if self.kappa0 is None:
            raise NotImplementedError(f"{type(self).__name__} has no diag_gradient")
        return np.zeros_like(inputs(X))

    def program(self) -> Program | None:
        """Return the postfix form for the compiled core, None if some part has none.

        >>> from pogp import Constant, Linear
        >>> for step in (Linear() + Constant(2.0)).program():
        ...     print(step)
        Step(kind='Linear', parameters={'variance': array(1.)}, columns=None)
        Step(kind='Constant', parameters={'variance': array(2.)}, columns=None)
        +
        """
        return None

    def to_spec(self) -> dict[str, Any]:
        """Return a description for JSON, which `kernel_from_spec` reads."""
        raise ValueError(
            f"kernel {self!r} cannot be saved without its code; "
            "use save(path, without_code=True) and supply it again with load(path, kernel=...)"
        )


def evaluate(kernel: Kernel, A: Array, B: Array) -> Array:
    """Return κ(A, B), checked, since a kernel of the user may return anything."""
    if len(A) == 0 or len(B) == 0:
        return np.empty((len(A), len(B)))
    return _checked(kernel, kernel(A, B), (len(A), len(B)))


def prior_variance(kernel: Kernel, A: Array) -> Array:
    """Return κ(a, a) for every row a of A, checked."""
    values = _checked(kernel, kernel.diag(A), (len(A),))
    if not (values >= 0).all():
        raise ValueError(f"κ(x, x) of {kernel!r} must not be negative, got {values.min()}")
    return values


def _checked(kernel: Kernel, result: ArrayLike, shape: tuple[int, ...]) -> Array:
    array = np.asarray(result)
    if array.shape != shape or array.dtype.kind not in "iuf":
        raise ValueError(
            f"{kernel!r} must return real numbers of shape {shape}, "
            f"got {array.dtype} of shape {array.shape}"
        )
    values = array.astype(np.float64, copy=False)
    within = np.abs(values) < LARGEST  # False for NaN and infinity too
    if not within.all():
        worst = values[~within][0]
        raise ValueError(f"{kernel!r} must return finite values below {LARGEST:g}, got {worst}")
    return values


def inputs(A: ArrayLike, dimension: int | None = None) -> Array:
    """Return inputs as a matrix, one row per point."""
    array = np.asarray(A, dtype=np.float64)
    if array.ndim != 2:
        raise ValueError(f"inputs must have the shape (n, p), got {array.shape}")
    if dimension is not None and array.shape[1] != dimension:
        raise ValueError(f"inputs must have {dimension} columns, got {array.shape[1]}")
    return array


def log_parameters(theta: ArrayLike, size: int) -> Array:
    """Return `theta` as a vector of the length it must have."""
    array = np.asarray(theta, dtype=np.float64)
    if array.shape != (size,):
        raise ValueError(f"theta must have the shape ({size},), got {array.shape}")
    return array
