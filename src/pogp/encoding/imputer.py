"""Imputation of missing inputs by a Gaussian of the inputs and of their steps from row to row."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular

from pogp.arrays import Array, Indices
from pogp.backends import backend

COMPILED = backend() == "compiled"
if COMPILED:
    from pogp.encoding import compiled_imputer

STILL = 1e-12
"""A smaller deviation, relative to the mean, is a rounding error."""
FAR = 16.0
"""A value more than so many deviations from its mean is far off. Columns with many zeros can have
values ten deviations away."""
HALF = 5
"""A row with missing values is represented by at least twice as many points."""
MOST = 60.0
"""The most times that the bound is doubled in a row."""
TINY = 1e-300
NUMBERS = ("mean", "covariance", "last", "unsure", "runs")
FLAGS = ("known",)
NOWHERE, CERTAIN = np.zeros(0, dtype=np.int64), np.zeros((0, 0))
"""The missing values of a row that has all of them, and their covariance."""


class Filled(NamedTuple):
    """An imputed row, and the covariance of its imputed values."""

    row: Array
    missing: Indices
    """(m,), the indices of the missing values."""
    covariance: Array
    """(m, m), the covariance of the missing values given the others."""
    gap: bool = False
    """Whether a value is missing in a column that has had one."""

    def points(self) -> Array:
        """Return the row, or equally likely rows with its mean and covariance."""
        if not self.gap:
            return self.row[None]
        count = len(self.missing)
        values, axes = np.linalg.eigh(self.covariance)
        unit = unit_points(count)
        points = np.repeat(self.row[None], len(unit), axis=0)
        points[:, self.missing] += unit @ (np.sqrt(np.maximum(values, 0.0)) * axes).T
        return points


@cache
def unit_points(dimension: int) -> Array:
    """Return points (n, m) with the mean and the covariance of a standard normal distribution.

    They are pairs ±z of orthogonalised normal quantiles of a quasi-random sequence (Roberts 2018,
    with generalised golden ratios). Their coordinates along each axis differ, so that an even or
    periodic function does not look constant.
    """
    from scipy.special import ndtri  # slow to import, and only needed for missing values

    half, ratio = max(dimension, HALF), 1.0
    for _ in range(50):  # g^(m + 1) = g + 1
        ratio = (1.0 + ratio) ** (1.0 / (dimension + 1))
    places = np.arange(1, half + 1)[:, None] * ratio ** -np.arange(1.0, dimension + 1)
    left, _, right = np.linalg.svd(ndtri((0.5 + places) % 1.0), full_matrices=False)
    points = np.sqrt(half) * (left @ right)
    return np.concatenate([points, -points])


class Imputer:
    """Recursive estimates of the mean and the covariance of a row (p,) and of its step.

    The step is the difference from the row before. A missing value is replaced by its expectation
    given the other values and the row before, unless the values show that the two rows are
    unrelated. Imputed values of the row before keep their uncertainty (a Kalman filter), so that
    the variance grows during an outage. Rows with missing values contribute expected products, as
    in the EM algorithm (Little & Rubin 2002, §11.2), with one step for each row. Early rows were
    imputed by poor estimates and must be forgotten: the step size is γ_t = 3/(t + 2), so that row t
    has a weight in proportion to t(t + 1) (Cappé & Moulines 2009).

    The influence of outliers is bounded. If a single value of a row has a step that is far off, it
    is treated as missing. If the next value of the column is far off, too, the column has changed.
    Values and steps are clipped at `FAR` deviations. This bound is doubled for each value that was
    far off immediately before.

    The correlations are shrunk, strongly while there are fewer rows than inputs. A column without
    any value so far is filled with 0.
    """

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.count = 0
        self.mean = np.zeros(2 * dimension)
        self.covariance = np.zeros((2 * dimension, 2 * dimension))
        self.last = np.zeros(dimension)
        self.unsure = np.zeros((dimension, dimension))  # the covariance of the last row
        self.runs = np.zeros((2, dimension))  # consecutive values, and steps, that were far off
        self.known = np.zeros(dimension, dtype=bool)  # whether there was a value in a column

    @property
    def effective(self) -> float:
        """The effective number of rows, (Σ w)²/Σ w²."""
        n = self.count
        return 5 * n * (n + 1) * (n + 2) / (3 * (3 * n * n + 6 * n + 1))

    def fill(self, row: Array, resting: bool = False) -> Filled:
        """Impute the missing values of a row (p,), which are NaN.

        If the stream is at rest (`resting`), the row does not follow the last one.
        """
        gaps = np.isnan(row)
        if not gaps.any():
            return Filled(row, NOWHERE, CERTAIN)
        missing = np.flatnonzero(gaps).astype(np.int64)
        p, deviation = self.dimension, self._deviation()
        filled, covariance = np.where(gaps, self.mean[:p], row), np.zeros((p, p))
        moving = np.flatnonzero(deviation[:p] > 0)  # the others are constant
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
        gap = bool(self.known[missing].any())
        return Filled(filled, missing, covariance[np.ix_(missing, missing)], gap)

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
        """Return the covariance of values and steps, shrunk by s rows without correlation.

        One of them is an inverse Wishart prior under which a correlation is uniform between −1 and
        1. The others, (2p)²/n, outnumber the n rows while n is below 2p.
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
        """Return which values, and which steps, are far off, (2, p)."""
        away = np.concatenate([row, row - self.last]) - self.mean
        variance = deviation**2
        variance[self.dimension :] += np.diagonal(self.unsure)
        far = (np.abs(away) > FAR * np.sqrt(variance)) & (variance > 0.0)
        return np.asarray(far.reshape(2, -1))

    def _deviation(self) -> Array:
        """Return deviations, zero for constants."""
        deviation = np.sqrt(np.maximum(np.diagonal(self.covariance), 0.0))
        size = np.abs(self.mean[: self.dimension])
        return np.where(deviation > STILL * np.concatenate([size, size]), deviation, 0.0)

    def prime(self, rows: Array) -> None:
        """Fill columns without a value so far with their first value in rows (n, p)."""
        for j in np.flatnonzero(~self.known & ~np.isnan(rows).all(axis=0)).tolist():
            self._begin(j, float(rows[~np.isnan(rows[:, j]), j][0]))

    def _begin(self, column: int, value: float) -> None:
        """Set the first value of a column; earlier rows count as if they had it."""
        self.mean, self.last, self.known = self.mean.copy(), self.last.copy(), self.known.copy()
        self.mean[column] = self.last[column] = value
        self.known[column] = True

    def learn(self, filled: Filled) -> None:
        """Learn a row that `fill` has returned."""
        if not self._learn_plain(filled):
            self._learn_any(filled)

    def _learn_plain(self, filled: Filled) -> bool:
        """Learn a complete row after another, unless a value is far off; return if it was learned.

        The result equals that of `_learn_any`, bit for bit, in a fraction of the time.
        """
        if len(filled.missing) or self.count == 0 or not COMPILED:
            return False
        row, last = np.ascontiguousarray(filled.row), np.ascontiguousarray(self.last)
        before = (last, self.unsure, self.runs, self.known, self.mean, self.covariance)
        mean, covariance = np.empty_like(self.mean), np.empty_like(self.covariance)
        rate = 3.0 / (self.count + 3)
        if not compiled_imputer.learn(row, *before, rate, FAR, STILL, mean, covariance):
            return False
        self.count += 1
        self.last, self.mean, self.covariance = row, mean, covariance
        return True

    def _learn_any(self, filled: Filled) -> None:
        """Learn any row."""
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
        """Set the row that precedes the next one."""
        self.last, self.unsure = filled.row, np.zeros_like(self.unsure)
        self.unsure[np.ix_(filled.missing, filled.missing)] = filled.covariance

    def _looking_back(self, row: Array) -> tuple[Array, Array, Array]:
        """Return the last row given this one, its variances, and shares of the step.

        Each column is treated separately: x = a·last + e with an uncertain last value. A share is
        the part of a deviation of x that is due to the step.
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
        """Return a copy; arrays are shared, as they are never changed in place."""
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
        """Convert moments of a row and the row before, as in older files, to those of the step."""
        one, none = np.eye(self.dimension), np.zeros((self.dimension, self.dimension))
        change = np.block([[one, none], [one, -one]])
        self.mean = change @ self.mean
        self.covariance = change @ self.covariance @ change.T


class _Given(NamedTuple):
    """The distribution of a row given some of its values, and the density of these."""

    mean: Array
    covariance: Array
    density: float


def _alone(far: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which values (2, p) are the only ones of their row that are far off."""
    return np.asarray(far & (far.sum(axis=1, keepdims=True) == 1))


def _given(row: Array, there: NDArray[np.bool_], mean: Array, covariance: Array) -> _Given:
    """Return the distribution of a normal row given the values that are present."""
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
