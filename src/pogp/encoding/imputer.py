"""Missing inputs, filled by a Gaussian of the inputs now and one row before."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular

from pogp.arrays import Array, Indices

STILL = 1e-12
"""A deviation below this, relative to the mean, is rounding."""


class Filled(NamedTuple):
    """A row without gaps, and what is known of the values that were missing."""

    row: Array
    missing: Indices
    """(m,), the places of the missing values."""
    covariance: Array
    """(m, m), of the missing values given the others."""

    def points(self) -> Array:
        """Return the row itself, or 2m rows with its mean and covariance (sigma points).

        Wan & van der Merwe 2000, with the centre left out: the rows are equally likely.
        """
        count = len(self.missing)
        if count == 0:
            return self.row[None]
        values, axes = np.linalg.eigh(self.covariance)
        steps = (np.sqrt(count * np.maximum(values, 0.0)) * axes).T
        points = np.repeat(self.row[None], 2 * count, axis=0)
        points[:, self.missing] += np.concatenate([steps, -steps])
        return points


class Imputer:
    """The mean and the covariance of a row (p,) and of the row before it, row by row.

    A missing value is filled with its expectation given the values that are there and the row
    before, unless these values say that the row before has nothing to do with it. Rows with gaps
    count with their expected products, as in the EM algorithm (Little & Rubin 2002, §11.2), one
    step for each row. Rows that came early were filled with little knowledge, so the statistics
    have to forget them: the step is γ_t = 3/(t + 2), which weighs row t in proportion to t(t + 1)
    (Cappé & Moulines 2009).

    The correlations are shrunk, strongly as long as there are fewer rows than inputs. A column
    without any value yet is filled with 0.
    """

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.count = 0
        self.mean = np.zeros(2 * dimension)
        self.covariance = np.zeros((2 * dimension, 2 * dimension))
        self.last = np.zeros(dimension)
        self.known = np.zeros(dimension, dtype=bool)  # whether there was a value in a column

    @property
    def effective(self) -> float:
        """The number of equally weighed rows that would tell as much: (Σ w)²/Σ w²."""
        n = self.count
        return 5 * n * (n + 1) * (n + 2) / (3 * (3 * n * n + 6 * n + 1))

    def fill(self, row: Array) -> Filled:
        """Return a row (p,), NaN where a value is missing, without gaps."""
        gaps = np.isnan(row)
        missing = np.flatnonzero(gaps).astype(np.int64)
        if len(missing) == 0:
            return Filled(row, missing, np.zeros((0, 0)))
        mean, deviation = self.mean[: self.dimension], self._deviation()
        moving = missing[deviation[missing] > 0]  # the others stay at their mean, for certain
        filled = np.where(gaps, mean, row)
        covariance = np.zeros((len(missing), len(missing)))
        if len(moving):
            there = np.concatenate([~gaps, np.full(self.dimension, self.count > 0)])
            given = np.flatnonzero(there & (deviation > 0)).astype(np.int64)
            known = np.concatenate([row, self.last])[given]
            z = (known - self.mean[given]) / deviation[given]
            expected, spread = self._conditional(moving, given, z, deviation)
            filled[moving] = mean[moving] + expected * deviation[moving]
            places = np.searchsorted(missing, moving)
            scale = np.outer(deviation[moving], deviation[moving])
            covariance[np.ix_(places, places)] = spread * scale
        return Filled(filled, missing, covariance)

    def _conditional(
        self, missing: Indices, given: Indices, z: Array, deviation: Array
    ) -> tuple[Array, Array]:
        """Return mean and covariance of missing values, both in units of their deviations."""
        m, own = len(missing), int(np.searchsorted(given, self.dimension))
        R = self._correlation(np.concatenate([missing, given]), deviation)
        if not _follows(R[m:, m:], z, own):
            R, z = R[: m + own, : m + own], z[:own]
        if len(z) == 0:
            return np.zeros(m), R
        cross = R[m:, :m]
        weights = cho_solve(cho_factor(R[m:, m:], lower=True), cross)
        covariance = R[:m, :m] - cross.T @ weights
        return z @ weights, (covariance + covariance.T) / 2

    def _correlation(self, chosen: Indices, deviation: Array) -> Array:
        """Return correlations, shrunk towards none as if s more rows had shown none.

        One row is an inverse Wishart prior under which a correlation is anywhere between −1 and 1
        with equal chances. The others, (2p)²/n, outnumber the n rows as long as n is below 2p.
        """
        n = self.effective
        s = 1.0 + len(self.mean) ** 2 / n
        scale = np.outer(deviation[chosen], deviation[chosen])
        R = n * self.covariance[np.ix_(chosen, chosen)] / scale
        return np.asarray((R + s * np.eye(len(chosen))) / (n + s))

    def _deviation(self) -> Array:
        """Return deviations, zero where they are rounding."""
        deviation = np.sqrt(np.maximum(np.diagonal(self.covariance), 0.0))
        return np.where(deviation > STILL * np.abs(self.mean), deviation, 0.0)

    def prime(self, rows: Array) -> None:
        """Fill columns without a value so far with their first value in rows (n, p)."""
        for j in np.flatnonzero(~self.known & ~np.isnan(rows).all(axis=0)).tolist():
            self._begin(j, float(rows[~np.isnan(rows[:, j]), j][0]))

    def _begin(self, column: int, value: float) -> None:
        """Let a column begin with a value; what it was filled with before becomes that value."""
        self.mean, self.last, self.known = self.mean.copy(), self.last.copy(), self.known.copy()
        self.mean[[column, self.dimension + column]] = self.last[column] = value
        self.known[column] = True

    def learn(self, filled: Filled) -> None:
        """Take in a row that `fill` has returned."""
        if not self.known.all():
            given = np.ones(self.dimension, dtype=bool)
            given[filled.missing] = False
            for j in np.flatnonzero(given & ~self.known).tolist():
                self._begin(j, float(filled.row[j]))
        both = np.concatenate([filled.row, self.last if self.count else filled.row])
        self.count += 1
        step = 3.0 / (self.count + 2)
        away = both - self.mean
        self.mean = self.mean + step * away
        covariance = (1.0 - step) * (self.covariance + step * np.outer(away, away))
        if len(filled.missing):
            covariance[np.ix_(filled.missing, filled.missing)] += step * filled.covariance
        self.covariance = covariance
        self.last = filled.row

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
            "mean": self.mean.tolist(),
            "covariance": self.covariance.tolist(),
            "last": self.last.tolist(),
            "known": self.known.tolist(),
        }

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Self:
        """Return the imputer that `state` described."""
        imputer = cls(int(state["dimension"]))
        imputer.count = int(state["count"])
        imputer.known = np.array(state["known"], dtype=bool).reshape(imputer.dimension)
        for name in ("mean", "covariance", "last"):
            value = np.array(state[name], dtype=np.float64)
            if value.shape != getattr(imputer, name).shape or not np.isfinite(value).all():
                raise ValueError(f"{name} of an imputer must be finite and of its shape")
            setattr(imputer, name, value)
        return imputer


def _follows(R: Array, z: Array, own: int) -> bool:
    """Return whether a row, the first `own` of z, is likelier after the row before than anywhere.

    z ~ N(0, R) has the values of both rows. Rows to predict may be from anywhere in the stream, and
    streams have breaks.
    """
    return _log_density(R, z) >= (
        _log_density(R[:own, :own], z[:own]) + _log_density(R[own:, own:], z[own:])
    )


def _log_density(R: Array, z: Array) -> float:
    """Return log N(z; 0, R), up to a constant for each entry of z."""
    if len(z) == 0:
        return 0.0
    factor = cholesky(R, lower=True)
    white = solve_triangular(factor, z, lower=True)
    return float(-np.log(np.diagonal(factor)).sum() - white @ white / 2)
