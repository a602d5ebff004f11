"""A belief about the function at the retained points, by either implementation of its loop."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from pogp.arrays import Array
from pogp.compression import Plan
from pogp.criteria import AbsorbedCriterion
from pogp.interrupts import Uninterrupted
from pogp.kernels import Kernel
from pogp.posteriors.absorbed import absorbed_core
from pogp.posteriors.absorbed.information import Information, information_of, observed
from pogp.posteriors.absorbed.loop import AbsorbedLoop
from pogp.posteriors.gradients import absorbed_gradients
from pogp.posteriors.slots import IN_PLACE_SAMPLES
from pogp.slices import finished
from pogp.trace import blank


class AbsorbedPosterior:
    """Points that can be removed while their information is kept (mathematics.md §4)."""

    def __init__(
        self,
        kernel: Kernel,
        noise: float,
        mean: Array,
        dimension: int,
        criterion: AbsorbedCriterion,
        forgetting: float = 1.0,
    ) -> None:
        self.kernel = kernel
        self.noise = noise
        self.mean = mean
        self.dimension = dimension
        self.criterion = criterion
        self.forgetting = forgetting
        self.core = absorbed_core(
            kernel,
            noise,
            mean,
            dimension,
            (forgetting,),
            has_information=criterion.whole,
            uses_recent=criterion.whole,
        )

    @property
    def size(self) -> int:
        """The model order M."""
        return self.core.size

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.core.nbytes

    def in_order(self, name: str) -> NDArray[Any]:
        """Return `inputs` or `arrivals` in order of arrival."""
        return cast(NDArray[Any], getattr(self.core, name)[np.argsort(self.core.arrivals)])

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Return the means (n, k) and the latent variance (n,) at the rows of X."""
        means, latent = self.core.predict(X)
        return means[0], latent[0]

    def covariance(self, X: Array) -> Array:
        """Return the latent covariance between the rows of X."""
        w, _, k = self.core.regression(X)
        explained = w @ k.T - w @ self.core.covariance_of(0) @ w.T
        covariance = np.asarray(self.kernel(X) - (explained + explained.T) / 2)
        np.fill_diagonal(covariance, self.core.predict(X)[1][0])  # free of cancellation
        return covariance

    def gradient(self, X: Array) -> tuple[Array, Array]:
        """Return the derivatives of the means, (n, p, k), and of the latent variance, (n, p)."""
        means, latent = absorbed_gradients(self.kernel, self.core, X)
        return means[0], latent[0]

    def learned(
        self,
        X: Array,
        Y: Array,
        noises: Array,
        relevance: Array,
        first: int,
        plan: Plan,
        signals: Uninterrupted,
    ) -> tuple[AbsorbedLoop, Array]:
        """Return a copy of the core that has learned a batch, and the records of it (see `trace`).

        The caller replaces `core` by it. Until then other threads see the previous state. Ctrl-C
        takes effect between blocks.
        """
        core = self.core.copy()
        records = [blank(0, Y.shape[1])]
        for start in range(0, len(Y), IN_PLACE_SAMPLES):
            if signals.wanted:
                raise KeyboardInterrupt
            rows = slice(start, start + IN_PLACE_SAMPLES)
            block = (X[rows], Y[rows], noises[rows], relevance[rows])
            records.append(core.learn(self.criterion, *block, first + start, plan.part(rows)))
        return core, np.concatenate(records)

    def prune(self, limit: float, max_size: int) -> float:
        """Remove points within the limit and down to the cap; return the cost."""
        return self.core.prune(self.criterion, limit, max_size)

    # ---- the information of the data, under another prior or with more data ------------------

    def merge(self, others: Sequence["AbsorbedPosterior"], offsets: Sequence[int]) -> None:
        """Add the information of others; the points of each arrived so many samples later."""
        information = finished(information_of(self.core))
        for other, offset in zip(others, offsets, strict=True):
            information = information.joined(finished(information_of(other.core)), offset)
        self._adopt(information)

    def rehearse(self, X: Array, Y: Array, share: float) -> None:
        """Keep a share of the information, and observe samples at the present points."""
        information = finished(information_of(self.core)).scaled(share)
        options = (self.noise, self.criterion.marginalise)
        matrix, vector = observed(self.kernel, information.inputs, X, Y - self.mean, *options)
        matrices, vectors = information.matrices + matrix, information.vectors + vector
        self._adopt(replace(information, matrices=matrices, vectors=vectors))

    def under(self, kernel: Kernel, noise: float) -> "AbsorbedPosterior":
        """Return the same information under another prior, in units of the other noise."""
        shape = (self.mean, self.dimension)
        moved = AbsorbedPosterior(kernel, noise, *shape, self.criterion, self.forgetting)
        moved._adopt(finished(information_of(self.core)).scaled(self.noise / noise))
        return moved

    def _adopt(self, information: Information) -> None:
        kept, gram = finished(information.well_spaced(self.kernel, self.noise, self.criterion))
        self.core.restore(finished(kept.state(gram, self.core.has_information)))

    # ---- state ------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return everything that was learned, as arrays and numbers."""
        return self.core.state()

    def restore(self, state: dict[str, Any]) -> None:
        """Take over what `state` returned, or what earlier versions wrote."""
        if "evidence" in state:
            self._adopt(_of_schema_1(state))
        elif self.core.has_information and "information" not in state:  # it forgot until now
            shape = (self.mean, self.dimension)
            core = absorbed_core(self.kernel, self.noise, *shape, (1.0,), has_information=False)
            core.restore(state)
            self._adopt(finished(information_of(core)))
        else:
            self.core.restore(state)


def _of_schema_1(state: dict[str, Any]) -> Information:
    """Return the information in a file of schema 1, which has Λ and η."""
    size = len(state["arrivals"])
    upper = np.zeros((size, size))
    upper[np.triu_indices(size)] = state["information"]
    deferred = state["information_left"].T @ state["information_right"]
    matrix = upper + np.triu(upper, 1).T + deferred + deferred.T
    if not (np.diagonal(matrix) >= 0).all() or not np.isfinite(state["evidence"]).all():
        raise ValueError("the information of the data must be finite, and positive on the diagonal")
    inputs, arrivals, relevance = (
        np.array(state[name]) for name in ("inputs", "arrivals", "relevance")
    )
    return Information(inputs, arrivals, relevance, matrix[None], state["evidence"][None])
