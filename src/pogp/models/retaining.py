"""Models that keep samples: what is kept can be read, and taken back."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from pogp import validation
from pogp.arrays import Array
from pogp.models.posterior_model import PosteriorModel
from pogp.posteriors import FactoredPosterior, RetainedPosterior

R = TypeVar("R", RetainedPosterior, FactoredPosterior)


class RetainingModel(PosteriorModel[R]):
    """A model whose posterior is the exact GP on the samples it retains."""

    @property
    def targets(self) -> Array:
        """The retained targets (M,), in order of arrival."""
        return np.empty(0) if self._posterior is None else self._posterior.in_order("targets")

    def remove(self, index: int) -> None:
        """Take a retained sample back, by its position in the stream (one of `indices`).

        The posterior is then the one that the other retained samples give.
        """
        position = validation.count("index", index, 0)
        if self._posterior is None:
            raise ValueError(f"sample {index!r} is not retained: nothing was learned yet")
        self._posterior.remove(position)
