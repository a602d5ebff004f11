from typing import Any

from pogp._core.absorber_reference import Rule
from pogp.arrays import Array, Indices
from pogp.compression import Plan
from pogp.kernels import Program

class Absorber:
    compiled: bool
    size: int
    capacity: int
    dimension: int
    outputs: int
    beliefs: int
    noise: float
    informed: bool
    lead: int
    def __init__(
        self,
        program: Program,
        noise: float,
        mean: Array,
        dimension: int,
        forgetting: tuple[float, ...] = ...,
        informed: bool = ...,
    ) -> None: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def mean(self) -> Array: ...
    @property
    def forgetting(self) -> tuple[float, ...]: ...
    @property
    def inputs(self) -> Array: ...
    @property
    def arrivals(self) -> Indices: ...
    @property
    def relevance(self) -> Array: ...
    @property
    def values(self) -> Array: ...
    @property
    def weights(self) -> Array: ...
    @property
    def spread(self) -> Array: ...
    @property
    def gram(self) -> Array: ...
    @property
    def inverse(self) -> Array: ...
    @property
    def information(self) -> Array: ...
    @property
    def covariance(self) -> Array: ...
    def predict(self, X: Array, /) -> tuple[Array, Array]: ...
    def regression(self, X: Array, /) -> tuple[Array, Array, Array]: ...
    def copy(self) -> Absorber: ...
    def reserve(self, points: int, /) -> None: ...
    def state(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any], /) -> None: ...
    def prune(self, rule: Rule, limit: float, max_size: int, /) -> float: ...
    def glance(self, x: Array, /) -> tuple[Array, Array]: ...
    def observe(
        self,
        rule: Rule,
        y: Array,
        noises: Array,
        noise: float,
        arrival: int,
        max_size: int,
        /,
    ) -> Array: ...
    def learn(
        self,
        rule: Rule,
        X: Array,
        Y: Array,
        noises: Array,
        relevance: Array,
        first: int,
        plan: Plan,
        /,
    ) -> Array: ...
