"""Beliefs at the retained points: state, updates and loop, in NumPy and compiled."""

from pogp.arrays import Array
from pogp.backends import BUILT, backend
from pogp.kernels import Kernel
from pogp.posteriors.absorbed import loop

if BUILT:
    from pogp.posteriors.absorbed import compiled_loop


def absorbed_core(
    kernel: Kernel,
    noise: float,
    mean: Array,
    dimension: int,
    forgetting: tuple[float, ...] = (1.0,),
    has_information: bool = True,
    uses_recent: bool = True,
) -> loop.AbsorbedLoop:
    """Return an empty posterior of the live implementation, with a belief per forgetting factor."""
    program = kernel.program()
    shape = (noise, mean, dimension, forgetting, has_information, uses_recent)
    if program is None or backend() == "reference":
        return loop.AbsorbedLoop(kernel, *shape)
    return compiled_loop.AbsorbedLoop(program, *shape)
