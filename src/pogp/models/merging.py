"""Selection of the points of a merged model that keep its mean best (mathematics.md §5)."""

import numpy as np

from pogp.arrays import Array, Indices
from pogp.posteriors import AbsorbedPosterior
from pogp.posteriors.absorbed.information import information_of
from pogp.slices import finished


def condense(posterior: AbsorbedPosterior, size: int) -> None:
    """Remove all points but the best `size`; the evidence is projected onto those that stay.

    A removal is priced by itself, so that errors of many removals in turn add up. Where at least
    half of the points have to go, it takes fewer steps to choose those that stay; where fewer have
    to go, nothing happens here.
    """
    if posterior.size < 2 * size:
        return
    information, K = finished(information_of(posterior.core)), posterior.core.gram
    spread = K @ information.matrices[0] @ K
    kept = best_points(K + (spread + spread.T) / 2, K @ information.vectors[0], size)
    fewer = finished(information.at(kept, K))
    gram = K[np.ix_(kept, kept)]
    posterior.core.restore(finished(fewer.state(gram, posterior.core.has_information)))


def best_points(P: Array, g: Array, size: int) -> Indices:
    """Return points, in order, each of which raises gᵀP⁻¹g over those chosen the most.

    With P = K + KΛK and g = Kη half of that is the largest log posterior density, up to a constant,
    of a function that the chosen points span: a Cholesky factorisation of P whose pivots are chosen
    by the fit (Smola & Bartlett, 2001). Outputs are the columns of g, and their gains are added.
    """
    kept: list[int] = []
    factor = np.empty((len(P), size))
    open_, residual = np.diagonal(P).copy(), g.copy()
    least = len(P) * np.finfo(float).eps * open_  # smaller values are rounding errors
    for m in range(size):
        gain = np.sum(residual**2, axis=1) / np.where(open_ > least, open_, np.inf)
        gain[kept] = -1.0
        best = int(np.argmax(gain))
        root = np.sqrt(max(open_[best], least[best]))
        column = (P[:, best] - factor[:, :m] @ factor[best, :m]) / root
        residual -= np.outer(column, residual[best] / root)
        open_ -= column**2
        factor[:, m] = column
        kept.append(best)
    return np.sort(np.array(kept, dtype=np.int64))
