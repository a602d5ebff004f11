"""The exact GP on retained samples: state, updates and loop, in NumPy and compiled."""

from pogp.backends import BUILT, backend
from pogp.kernels import Kernel
from pogp.posteriors.retained import loop

if BUILT:
    from pogp.posteriors.retained import compiled_loop


def retained_core(kernel: Kernel, noise: float, mean: float, dimension: int) -> loop.RetainedLoop:
    """Return an empty posterior of the live implementation."""
    program = kernel.program()
    if program is None or backend() == "reference":
        return loop.RetainedLoop(kernel, noise, mean, dimension)
    return compiled_loop.RetainedLoop(program, noise, mean, dimension)
