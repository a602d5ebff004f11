from pogp.arrays import Array
from pogp.online.evidence import Evidence
from pogp.slices import Work

class CompiledEvidence:
    def __init__(
        self, family: str, inducing: Array, X: Array, Y: Array, weights: Array, extra: Array
    ) -> None: ...
    def __call__(self, parameters: Array) -> Work[Evidence | None]: ...
