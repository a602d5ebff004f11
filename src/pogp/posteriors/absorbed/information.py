"""The information of the data without the prior: Λ and η at the points (mathematics.md §5).

A belief N(m, S) about u = f(Z) is the prior N(0, K) times the likelihood exp(ηᵀu − ½uᵀΛu). Under
another prior, at other points or with the data of another model, the likelihood stays the same.
These operations are rare and cost O(M³). They are done in slices of O(M²) (`linalg/sliced.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import block_diag, cho_solve, cholesky, solve_triangular
from scipy.linalg.blas import dger

from pogp.arrays import Array, Indices
from pogp.criteria import AbsorbedCriterion
from pogp.kernels import Kernel, evaluate, prior_variance
from pogp.posteriors.linalg.sliced import (
    STRIP,
    congruent,
    factor,
    inverse,
    inverse_root,
    product,
    solved,
    squared,
    strips,
)
from pogp.posteriors.slots import packed
from pogp.slices import ALLOCATION_TICKS, CALL_TICKS, Work

ROUNDING = 1e-10
"""The accuracy of Λ, relative to the prior."""
ENTRY, PER_INPUT = 55, 2
"""Ticks that a number of κ(Z, Z) counts for, and for each input."""


@dataclass(frozen=True)
class Information:
    """Points, and the information of the data about the function there, for each belief."""

    inputs: Array
    arrivals: Indices
    relevance: Array
    matrices: Array
    """Λ, (beliefs, M, M)."""
    vectors: Array
    """η, (beliefs, M, k)."""

    def scaled(self, factor: float) -> "Information":
        """Return the same with the information multiplied."""
        return replace(self, matrices=factor * self.matrices, vectors=factor * self.vectors)

    def moved(self, inputs: Array, scale: float, ratio: Array, offset: Array) -> "Information":
        """Return the same at other inputs, for outputs that are ratio·u + offset each.

        Λ is shared by the outputs: it is taken to be in a common unit that is `scale` as large.
        """
        matrices = self.matrices / scale**2
        vectors = self.vectors * (ratio / scale**2) + matrices.sum(axis=2)[:, :, None] * offset
        return Information(inputs, self.arrivals, self.relevance, matrices, vectors)

    def joined(self, other: "Information", offset: int) -> "Information":
        """Return the sum of both; the points of the other arrived `offset` samples later.

        An input of both is one point, at which their information is added.
        """
        both = zip(self.matrices, other.matrices, strict=True)
        matrices = np.array([block_diag(mine, theirs) for mine, theirs in both])
        vectors = np.concatenate([self.vectors, other.vectors], axis=1)
        mine = {row.tobytes(): i for i, row in enumerate(self.inputs)}
        total = len(self.inputs) + len(other.inputs)
        place = np.arange(total)
        for i, row in enumerate(other.inputs):
            place[len(self.inputs) + i] = mine.get(row.tobytes(), len(self.inputs) + i)
        kept = np.unique(place)
        onto = (place[:, None] == kept[None, :]).astype(np.float64)
        return Information(
            np.vstack([self.inputs, other.inputs])[kept],
            np.append(self.arrivals, other.arrivals + offset)[kept],
            np.append(self.relevance, other.relevance)[kept],
            onto.T @ matrices @ onto,
            onto.T @ vectors,
        )

    def well_spaced(
        self, kernel: Kernel, noise: float, criterion: AbsorbedCriterion
    ) -> Work[tuple["Information", Array]]:
        """Return the same at points that are novel given those before them, and not redundant.

        The others are set to their conditional means. κ(Z, Z) at these points is returned too.
        """
        prior = prior_variance(kernel, self.inputs)
        closed = criterion.novelty_threshold(noise, prior)
        least = criterion.redundancy_threshold(noise, prior)
        order = np.argsort(self.arrivals, kind="stable")
        gram = yield from gram_of(kernel, self.inputs)
        kept = np.arange(len(order))
        if not (yield from _all_novel((yield from _submatrix(gram, order)), closed[order])):
            kept = yield from _novel_ones(gram, closed, order)
        kept = yield from _without_redundant(gram, least, kept)
        if len(kept) == len(order):
            return self, gram
        return (yield from self.at(kept, gram)), (yield from _submatrix(gram, kept))

    def at(self, kept: Indices, gram: Array) -> Work["Information"]:
        """Return the same at some of the points, on which the others are regressed."""
        L = yield from factor((yield from _submatrix(gram, kept)))
        half = yield from solved(L, np.asfortranarray(gram[kept]))
        onto = (yield from solved(L, half, transposed=True)).T
        yield ALLOCATION_TICKS * onto.size
        onto[kept] = np.eye(len(kept))
        matrices = []
        for matrix in self.matrices:
            half = yield from product(onto.T, matrix)
            matrices.append((yield from product(half, onto)))
        return Information(
            self.inputs[kept],
            self.arrivals[kept],
            self.relevance[kept],
            np.array(matrices),
            onto.T @ self.vectors,
        )

    def state(self, gram: Array, has_information: bool, lead: int = 0) -> Work[dict[str, Any]]:
        """Return the state of a core that has learned this, given κ(Z, Z), which is used up.

        Belief `lead` prices its points.
        """
        L = yield from factor(gram)
        L_inverse = yield from inverse_root(L)
        triangles = {"inverse": packed((yield from squared(L_inverse)).T)}
        values = np.empty_like(self.vectors)
        for belief, (matrix, vector) in enumerate(zip(self.matrices, self.vectors, strict=True)):
            # LᵀΛL and I: the precision of L⁻¹u, never below that of I
            P = yield from congruent(matrix, L)
            np.fill_diagonal(P, np.diagonal(P) + 1.0)
            inner = yield from factor(P)
            yield ALLOCATION_TICKS * P.size
            root = yield from solved(inner, L.T.copy(order="F"))  # S = rootᵀ root
            square = yield from squared(root)
            yield ALLOCATION_TICKS * P.size
            triangles[f"covariance{belief}"] = packed(square.T)
            values[belief] = root.T @ (root @ vector)
            if belief == lead:
                yield ALLOCATION_TICKS * P.size
                half = yield from solved(inner, L_inverse.copy(order="F"))  # QSQ = halfᵀ half
                spread = np.einsum("ij,ij->j", half, half)
        yield CALL_TICKS + 3 * L.size
        if has_information:
            triangles["information"] = packed((self.matrices[0] + self.matrices[0].T) / 2)
        state: dict[str, Any] = {}
        nothing = np.empty((0, len(L)))
        for name, triangle in triangles.items():
            state |= {name: triangle, f"{name}_left": nothing, f"{name}_right": nothing}
        beliefs = len(self.matrices)
        return {
            **state,
            "inputs": self.inputs,
            "arrivals": self.arrivals,
            "relevance": self.relevance,
            "values": values,
            "weights": cho_solve((L, True), values[lead]),
            "spread": spread,
            "kept": np.ones(beliefs),
            "shift": np.zeros(beliefs),
            "lead": lead,
        }


def information_of(core: Any, beliefs: Sequence[int] = (0,)) -> Work[Information]:
    """Return the information in some beliefs of a core."""
    values = core.values[list(beliefs)]
    if core.has_information:
        matrices = core.information[None]
        vectors = matrices @ values + core.inverse @ values
    else:
        square = ALLOCATION_TICKS * core.size**2
        yield square
        L = yield from factor(core.gram if core.compiled else core.gram.copy())
        L_inverse = yield from inverse_root(L)
        found: dict[int, tuple[Array, Array]] = {}
        for belief in beliefs:
            if belief not in found:
                yield square
                covariance = core.covariance_of(belief)
                if not core.compiled:  # it is the core's own
                    covariance = covariance.copy()
                found[belief] = yield from _from_covariance(
                    L, L_inverse, covariance, core.values[belief]
                )
        yield len(beliefs) * square
        matrices, vectors = (np.array([found[b][i] for b in beliefs]) for i in range(2))
    return Information(core.inputs, core.arrivals, core.relevance, matrices, vectors)


def _from_covariance(
    L: Array, L_inverse: Array, covariance: Array, values: Array
) -> Work[tuple[Array, Array]]:
    """Return Λ and η of a belief, from S = LP⁻¹Lᵀ with P = I + LᵀΛL; S is used up.

    `L_inverse` is L⁻¹.
    """
    half = yield from solved(L, covariance.T)
    yield ALLOCATION_TICKS * half.size
    whitened = yield from solved(L, half.T.copy(order="F"))
    np.fill_diagonal(whitened, np.diagonal(whitened) + ROUNDING)
    inner = yield from factor(whitened)
    yield CALL_TICKS + 3 * L.size
    mean = cho_solve((inner, True), solve_triangular(L, values, lower=True))
    P = yield from inverse(inner)
    np.fill_diagonal(P, np.diagonal(P) - 1.0)
    matrix = yield from congruent(P, L_inverse)
    yield CALL_TICKS + 3 * L.size
    return matrix, solve_triangular(L, mean, lower=True, trans="T")


def gram_of(kernel: Kernel, inputs: Array) -> Work[Array]:
    """Return κ(Z, Z), some rows at a time."""
    gram = np.empty((len(inputs), len(inputs)))
    for own in strips(len(inputs)):
        start = own.start
        yield CALL_TICKS + STRIP * (len(inputs) - start) * (ENTRY + PER_INPUT * inputs.shape[1])
        gram[start:, own] = evaluate(kernel, inputs[start:], inputs[own])
        gram[own, start:] = gram[start:, own].T
    return gram


def _submatrix(gram: Array, chosen: Indices) -> Work[Array]:
    """Return the rows and columns of some points."""
    yield 2 * ALLOCATION_TICKS * len(chosen) * len(gram)
    return np.take(gram[chosen], chosen, axis=1)


def _all_novel(gram: Array, closed: Array) -> Work[bool]:
    """Return whether the variance of each point, given those before it, is above `closed`."""
    try:
        L = yield from factor(gram)
    except np.linalg.LinAlgError:
        return False
    return bool((np.diagonal(L) ** 2 > closed).all())


def observed(
    kernel: Kernel, points: Array, X: Array, Y: Array, noise: float, marginalise: bool
) -> tuple[Array, Array]:
    """Return Λ and η that samples give to points, each taken as in `absorb`."""
    gram = cholesky(evaluate(kernel, points, points), lower=True)
    k = evaluate(kernel, points, X)
    half = solve_triangular(gram, k, lower=True)
    w = solve_triangular(gram, half, lower=True, trans="T")
    noises = np.full(len(X), noise)
    if marginalise:
        noises += np.maximum(prior_variance(kernel, X) - np.sum(half**2, axis=0), 0.0)
    return (w / noises) @ w.T, (w / noises) @ Y


def _without_redundant(gram: Array, least: Array, kept: Indices) -> Work[Indices]:
    """Return the slots whose variance, given the others, is above `least`.

    The most redundant are removed first. A nearly redundant point would make Q too large to invert
    accurately.
    """
    L = yield from factor((yield from _submatrix(gram, kept)))
    Q = yield from inverse(L)
    stays = np.ones(len(kept), dtype=bool)
    for _ in range(1, len(kept)):
        j = int(np.argmax(np.where(stays, np.diagonal(Q) * least[kept], 0.0)))
        if Q[j, j] * least[kept[j]] < 1.0:
            break
        stays[j] = False
        yield len(Q) ** 2
        column = Q[:, j].copy()
        Q = dger(-1.0 / Q[j, j], column, column, a=Q, overwrite_a=1)
    return kept[stays]


def _novel_ones(gram: Array, closed: Array, order: Indices) -> Work[Indices]:
    """Return the slots whose variance, given the earlier ones that are kept, is above `closed`."""
    kept: list[int] = []
    left, rows = np.diagonal(gram).copy(), np.zeros_like(gram)  # a partial Cholesky factor
    for j in order.tolist():
        m = len(kept)
        if left[j] > closed[j] or not kept:
            yield len(gram) * (m + 10)
            root = np.sqrt(max(left[j], np.finfo(float).tiny))
            rows[m] = (gram[j] - rows[:m, j] @ rows[:m]) / root
            left -= rows[m] ** 2
            kept.append(j)
    return np.sort(np.array(kept, dtype=np.int64))
