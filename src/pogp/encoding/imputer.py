"""Missing inputs, filled by a Gaussian of the inputs and of their steps from row to row."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular

from pogp.arrays import Array, Indices

STILL = 1e-12
"""A deviation below this, relative to the mean, is rounding."""
FAR = 16.0
"""A value is far off by more than so many deviations. Columns of zeros and a few other values have
some of up to ten."""
HALF = 5
"""A row with gaps is spread over twice as many points, at least."""
MOST = 60.0
"""The bound doubles so many times in a row, at most."""
TINY = 1e-300
NUMBERS = ("mean", "covariance", "last", "unsure", "runs")
FLAGS = ("known",)


class Filled(NamedTuple):
    """A row without gaps, and what is known of the values that were missing."""

    row: Array
    missing: Indices
    """(m,), the places of the missing values."""
    covariance: Array
    """(m, m), of the missing values given the others."""

    def points(self) -> Array:
        """Return the row itself, or rows with its mean and covariance, which are equally likely."""
        count = len(self.missing)
        if count == 0:
            return self.row[None]
        values, axes = np.linalg.eigh(self.covariance)
        unit = unit_points(count)
        points = np.repeat(self.row[None], len(unit), axis=0)
        points[:, self.missing] += unit @ (np.sqrt(np.maximum(values, 0.0)) * axes).T
        return points


@cache
def unit_points(dimension: int) -> Array:
    """Return points (n, m) that stand for a normal distribution: mean 0 and covariance 1, exactly.

    They come in pairs ±z. These are normal quantiles of an evenly spread sequence (Roberts 2018:
    the golden ratio and its like), made orthogonal. Along each axis they lie at different places,
    so that no function looks constant because it is even, or has a period.
    """
    from scipy.special import ndtri  # slow to import, and not every table has gaps

    half, ratio = max(dimension, HALF), 1.0
    for _ in range(50):  # g^(m + 1) = g + 1
        ratio = (1.0 + ratio) ** (1.0 / (dimension + 1))
    places = np.arange(1, half + 1)[:, None] * ratio ** -np.arange(1.0, dimension + 1)
    left, _, right = np.linalg.svd(ndtri((0.5 + places) % 1.0), full_matrices=False)
    points = np.sqrt(half) * (left @ right)
    return np.concatenate([points, -points])


class Imputer:
    """The mean and the covariance of a row (p,) and of its step from the row before, row by row.

    A missing value is filled with its expectation given the values that are there and the row
    before, unless these values say that the row before has nothing to do with it. What was missing
    in the row before is as uncertain as it was when it was filled (a Kalman filter), so that the
    variance grows along an outage. Rows with gaps count with their expected products, as in the EM
    algorithm (Little & Rubin 2002, §11.2), one step for each row. Rows that came early were filled
    with little knowledge, so the statistics have to forget them: the step is γ_t = 3/(t + 2), which
    weighs row t in proportion to t(t + 1) (Cappé & Moulines 2009).

    One absurd value changes little. If the step to a value is far off, and no other in its row, the
    value counts as if it were missing; if the next one in its column is far off too, the column has
    changed. No value counts for more deviations than are far off, and no step. For a value that
    follows others far off these are twice as many for each of them.

    The correlations are shrunk, strongly as long as there are fewer rows than inputs. A column
    without any value yet is filled with 0.
    """

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.count = 0
        self.mean = np.zeros(2 * dimension)
        self.covariance = np.zeros((2 * dimension, 2 * dimension))
        self.last = np.zeros(dimension)
        self.unsure = np.zeros((dimension, dimension))  # the covariance of the last row
        self.runs = np.zeros((2, dimension))  # how many values, and steps, in a row were far off
        self.known = np.zeros(dimension, dtype=bool)  # whether there was a value in a column

    @property
    def effective(self) -> float:
        """The number of equally weighed rows that would tell as much: (Σ w)²/Σ w²."""
        n = self.count
        return 5 * n * (n + 1) * (n + 2) / (3 * (3 * n * n + 6 * n + 1))

    def fill(self, row: Array, resting: bool = False) -> Filled:
        """Return a row (p,), NaN where a value is missing, without gaps.

        If the stream is `resting`, the row does not follow the last one.
        """
        gaps = np.isnan(row)
        missing = np.flatnonzero(gaps).astype(np.int64)
        if len(missing) == 0:
            return Filled(row, missing, np.zeros((0, 0)))
        p, deviation = self.dimension, self._deviation()
        filled, covariance = np.where(gaps, self.mean[:p], row), np.zeros((p, p))
        moving = np.flatnonzero(deviation[:p] > 0)  # the others stay at their mean, for certain
        if gaps[moving].any():
            wrong = _alone(self._far(row, deviation))
            there, near = (~(gaps | of)[moving] for of in wrong)
            S, values = self._shrunk(moving, deviation), row[moving]
            found = _given(values, there, self.mean[moving], S[: len(moving), : len(moving)])
            if self.count and not resting:
                ahead = self._ahead(moving, S)
                evidence = found.density - _given(values, there, *ahead).density
                if evidence <= np.log(self.count):
                    found = _given(values, near, *ahead)
            filled[moving] = np.where(gaps[moving], found.mean, values)
            covariance[np.ix_(moving, moving)] = found.covariance
        return Filled(filled, missing, covariance[np.ix_(missing, missing)])

    def _ahead(self, moving: Indices, S: Array) -> tuple[Array, Array]:
        """Return the mean and the covariance of a row that follows the last one."""
        m = len(moving)
        centre, drift = self.mean[moving], self.mean[self.dimension + moving]
        cross = S[m:, :m] - S[m:, m:]  # of steps with the row before, x − d
        before = S[:m, :m] - S[:m, m:] - cross
        pull = cho_solve(cho_factor(before, lower=True), cross.T).T
        away = self.last[moving] - (centre - drift)
        lasting = np.eye(m) + pull
        mean = self.last[moving] + drift + pull @ away
        unsure = lasting @ self.unsure[np.ix_(moving, moving)] @ lasting.T
        covariance = S[m:, m:] - pull @ cross.T + unsure + STILL * np.diag(np.diag(S)[:m])
        return mean, (covariance + covariance.T) / 2

    def _shrunk(self, moving: Indices, deviation: Array) -> Array:
        """Return the covariance of values and steps; correlations are shrunk by s rows of none.

        One row is an inverse Wishart prior under which a correlation is anywhere between −1 and 1
        with equal chances. The others, (2p)²/n, outnumber the n rows as long as n is below 2p.
        """
        n = self.effective
        s = 1.0 + len(self.mean) ** 2 / n
        chosen = np.concatenate([moving, self.dimension + moving])
        S = self.covariance[np.ix_(chosen, chosen)] * (n / (n + s))
        still = deviation[chosen] == 0
        S[still], S[:, still] = 0.0, 0.0
        np.fill_diagonal(S, deviation[chosen] ** 2)
        return np.asarray(S)

    def _far(self, row: Array, deviation: Array) -> NDArray[np.bool_]:
        """Return which values are far off, by themselves and by their steps, (2, p)."""
        away = np.concatenate([row, row - self.last]) - self.mean
        variance = deviation**2
        variance[self.dimension :] += np.diagonal(self.unsure)
        far = (np.abs(away) > FAR * np.sqrt(variance)) & (variance > 0.0)
        return np.asarray(far.reshape(2, -1))

    def _deviation(self) -> Array:
        """Return deviations, zero where they are rounding."""
        deviation = np.sqrt(np.maximum(np.diagonal(self.covariance), 0.0))
        size = np.abs(self.mean[: self.dimension])
        return np.where(deviation > STILL * np.concatenate([size, size]), deviation, 0.0)

    def prime(self, rows: Array) -> None:
        """Fill columns without a value so far with their first value in rows (n, p)."""
        for j in np.flatnonzero(~self.known & ~np.isnan(rows).all(axis=0)).tolist():
            self._begin(j, float(rows[~np.isnan(rows[:, j]), j][0]))

    def _begin(self, column: int, value: float) -> None:
        """Let a column begin with a value; what it was filled with before becomes that value."""
        self.mean, self.last, self.known = self.mean.copy(), self.last.copy(), self.known.copy()
        self.mean[column] = self.last[column] = value
        self.known[column] = True

    def learn(self, filled: Filled) -> None:
        """Take in a row that `fill` has returned."""
        p, given = self.dimension, np.ones(self.dimension, dtype=bool)
        given[filled.missing] = False
        for j in np.flatnonzero(given & ~self.known).tolist():
            self._begin(j, float(filled.row[j]))
        deviation = self._deviation()
        far = self._far(filled.row, deviation) & given
        some = bool(far.any())
        doubted = _alone(far)[1] & (self.runs[1] == 0) if some else far[1]
        if doubted.any():
            filled = self.fill(np.where(given & ~doubted, filled.row, np.nan))
        last, left, share = self._looking_back(filled.row)
        steps = filled.row - last if self.count else np.zeros(p)
        away = np.concatenate([filled.row, steps]) - self.mean
        if some:
            limit = np.where(deviation > 0, FAR * 2.0 ** self.runs.ravel() * deviation, np.inf)
            away = np.clip(away, -limit, limit)
        self.count += 1
        rate = 3.0 / (self.count + 2)
        if some or self.runs.any():
            self.runs = np.where(given, np.minimum(self.runs + 1, MOST) * far, self.runs)
        self.mean = self.mean + rate * away
        covariance = (1.0 - rate) * (self.covariance + rate * np.outer(away, away))
        self.follow(filled)
        if len(filled.missing):
            shares = np.concatenate([np.ones(p), share])
            covariance += rate * np.outer(shares, shares) * np.tile(self.unsure, (2, 2))
        covariance.ravel()[:: 2 * p + 1][p:] += rate * left  # on the diagonal
        self.covariance = covariance

    def follow(self, filled: Filled) -> None:
        """Let a row be the one that the next one to fill follows."""
        self.last, self.unsure = filled.row, np.zeros_like(self.unsure)
        self.unsure[np.ix_(filled.missing, filled.missing)] = filled.covariance

    def _looking_back(self, row: Array) -> tuple[Array, Array, Array]:
        """Return the last row as this one shows it, its variances, and shares of the step.

        Each column for itself, x = a·last + e, where the last value is unsure. The share is that of
        a deviation of x which is one of the step.
        """
        p, doubt = self.dimension, np.diagonal(self.unsure)
        last, left, share = self.last.copy(), np.zeros(p), np.ones(p)
        u = np.flatnonzero(doubt)
        if len(u):
            of_x, of_step = self.covariance[u, u], self.covariance[p + u, p + u]
            crossed = of_x - self.covariance[u, p + u]  # with the last value, x − d
            of_last = np.maximum(2.0 * crossed - of_x + of_step, TINY)
            a = np.clip(crossed / of_last, -1.0, 1.0)
            told = a * doubt[u] / np.maximum(of_x - a * crossed + a * a * doubt[u], TINY)
            centre = self.mean[u] + a * (self.last[u] - self.mean[u] + self.mean[p + u])
            last[u] += told * (row[u] - centre)
            left[u], share[u] = doubt[u] * (1.0 - a * told), 1.0 - told
        return last, left, share

    def copy(self) -> Imputer:
        """Return an imputer of the same state; no array is ever changed in place."""
        other = Imputer(self.dimension)
        other.__dict__.update(self.__dict__)
        return other

    def state(self) -> dict[str, Any]:
        """Return the state, as JSON can hold it."""
        return {
            "dimension": self.dimension,
            "count": self.count,
            **{name: getattr(self, name).tolist() for name in (*NUMBERS, *FLAGS)},
        }

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Self:
        """Return the imputer that `state` described."""
        imputer = cls(int(state["dimension"]))
        imputer.count = int(state["count"])
        for name in NUMBERS:
            value = np.array(state.get(name, getattr(imputer, name)), dtype=np.float64)
            if value.shape != getattr(imputer, name).shape or not np.isfinite(value).all():
                raise ValueError(f"{name} of an imputer must be finite and of its shape")
            setattr(imputer, name, value)
        for name in FLAGS:
            value = np.array(state.get(name, getattr(imputer, name)), dtype=bool)
            setattr(imputer, name, value.reshape(imputer.dimension))
        if "unsure" not in state:
            imputer._from_rows()
        return imputer

    def _from_rows(self) -> None:
        """Go from moments of a row and the row before, which older files have, to its step."""
        one, none = np.eye(self.dimension), np.zeros((self.dimension, self.dimension))
        change = np.block([[one, none], [one, -one]])
        self.mean = change @ self.mean
        self.covariance = change @ self.covariance @ change.T


class _Given(NamedTuple):
    """A row once some of its values are given, and how likely these were."""

    mean: Array
    covariance: Array
    density: float


def _alone(far: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which values (2, p) are far off and no others: errors do not come together."""
    return np.asarray(far & (far.sum(axis=1, keepdims=True) == 1))


def _given(row: Array, there: NDArray[np.bool_], mean: Array, covariance: Array) -> _Given:
    """Return the mean and the covariance of a normal row given the values that are there."""
    given = np.flatnonzero(there)
    if len(given) == 0:
        return _Given(mean, covariance, 0.0)
    unit = np.sqrt(np.diagonal(covariance)[given])
    factor = cholesky(covariance[np.ix_(given, given)] / np.outer(unit, unit), lower=True)
    white = solve_triangular(factor, (row - mean)[given] / unit, lower=True)
    told = solve_triangular(factor, covariance[given] / unit[:, None], lower=True)
    density = -np.log(np.diagonal(factor) * unit).sum() - white @ white / 2
    left = covariance - told.T @ told
    return _Given(mean + white @ told, (left + left.T) / 2, float(density))
