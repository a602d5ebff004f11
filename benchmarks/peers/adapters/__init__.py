"""Each peer behind one protocol. Only its adapter imports the package of a peer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pogp.arrays import Array

Prediction = tuple[float, float | None]
"""The mean, and the variance of the target if the peer has one."""


@dataclass(frozen=True)
class Setting:
    """What a peer knows before the stream begins."""

    inputs: int
    first: int
    """Samples of the first slice, for peers that have to be fitted or scaled before they run."""
    seed: int = 0


class Adapter(Protocol):
    """A peer on a stream: each row is predicted, then learned."""

    def rows(self, X: Array, y: Array) -> Sequence[Any]:
        """Return the samples in the peer's own form. This is not timed.

        The targets are for peers whose own rows hold them; no other adapter looks at them.
        """

    def predict(self, row: Any) -> Prediction:
        """Predict the target of a row."""

    def learn(self, row: Any, y: float) -> None:
        """Learn the row with its target."""

    def to_bytes(self) -> bytes:
        """Return the model as it would be saved."""
