"""The scores of predictions."""

from dataclasses import dataclass
from typing import Self

from pogp import metrics
from pogp.arrays import Array


@dataclass(frozen=True)
class Scores:
    """The scores of a set of predictions; see `pogp.metrics`."""

    smse: float
    msll: float
    nlpd: float
    coverage: float  # of the 95 % band

    @classmethod
    def of(cls, y: Array, mean: Array, variance: Array, train_variance: float) -> Self:
        """Score predictions of y."""
        return cls(
            smse=metrics.smse(y, mean, train_variance),
            msll=metrics.msll(y, mean, variance),
            nlpd=metrics.nlpd(y, mean, variance),
            coverage=metrics.coverage(y, mean, variance),
        )
