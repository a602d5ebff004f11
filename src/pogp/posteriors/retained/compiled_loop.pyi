from pogp.kernels import Program
from pogp.posteriors.retained import loop

# It has what the NumPy implementation has, as far as others use it.
class RetainedLoop(loop.RetainedLoop):
    capacity: int
    def __init__(self, program: Program, noise: float, mean: float, dimension: int) -> None: ...
    def reserve(self, points: int, /) -> None: ...
