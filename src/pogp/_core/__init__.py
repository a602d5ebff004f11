"""The hot step, twice: a NumPy reference and its compiled twin, and which of them is live."""

import os
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy.linalg import solve_triangular

from pogp._core import absorber_reference, mixing_reference, retained_reference
from pogp.arrays import Array
from pogp.kernels import Kernel

# A source tree that was not built works all the same, a hundred times slower. A build that is there
# and does not load is an error: it must not pass for one that is missing.
_BUILT = find_spec("pogp._core.learner") is not None
if _BUILT:
    from pogp._core import absorber, learner, mixing, triangular

if TYPE_CHECKING:
    RetainedCore: TypeAlias = retained_reference.Retained | learner.Learner
    AbsorbedCore: TypeAlias = absorber_reference.Absorber | absorber.Absorber

VARIABLE = "POGP_BACKEND"


def backend() -> str:
    """Return which implementation is used by models that begin to learn: "compiled" or "reference".

    The environment variable POGP_BACKEND selects one; without it the compiled one is used where it
    was built. A kernel written in Python always runs on the reference.
    """
    chosen = os.environ.get(VARIABLE) or ("compiled" if _BUILT else "reference")
    if chosen not in ("compiled", "reference"):
        raise ValueError(f"{VARIABLE} must be 'compiled' or 'reference', got {chosen!r}")
    if chosen == "compiled" and not _BUILT:
        raise ImportError(f"{VARIABLE} asks for the compiled core, which was not built")
    return chosen


def retained_core(kernel: Kernel, noise: float, mean: float, dimension: int) -> "RetainedCore":
    """Return an empty retained-data posterior of the live implementation."""
    program = kernel.program()
    if program is None or backend() == "reference":
        return retained_reference.Retained(kernel, noise, mean, dimension)
    return learner.Learner(program, noise, mean, dimension)


def absorbed_core(
    kernel: Kernel,
    noise: float,
    mean: Array,
    dimension: int,
    forgetting: tuple[float, ...] = (1.0,),
    informed: bool = True,
) -> "AbsorbedCore":
    """Return an empty absorbed posterior of the live implementation, with so many beliefs."""
    program = kernel.program()
    shape = (noise, mean, dimension, forgetting, informed)
    if program is None or backend() == "reference":
        return absorber_reference.Absorber(kernel, *shape)
    return absorber.Absorber(program, *shape)


def mixing_core() -> ModuleType:
    """Return the arithmetic of mixtures of the live implementation."""
    return mixing if backend() == "compiled" else mixing_reference


def solve_lower(factor: Array, size: int, rows: Array) -> Array:
    """Return the rows b as L⁻¹b, where row j of `factor` is column j of L (leading part)."""
    if backend() == "compiled":
        solved = np.array(rows, order="C")
        triangular.solve_lower(factor, size, solved)
        return solved
    return np.asarray(solve_triangular(factor[:size, :size], rows.T, lower=False, trans="T").T)
