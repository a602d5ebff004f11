from pogp.arrays import Array
from pogp.kernels import Program
from pogp.posteriors.absorbed import loop

# It has what the NumPy implementation has, as far as others use it.
class AbsorbedLoop(loop.AbsorbedLoop):
    capacity: int
    def __init__(
        self,
        program: Program,
        noise: float,
        mean: Array,
        dimension: int,
        forgetting: tuple[float, ...] = ...,
        has_information: bool = ...,
        uses_recent: bool = ...,
    ) -> None: ...
