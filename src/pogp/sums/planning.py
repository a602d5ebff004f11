"""Plans: from the rows of a table to sums, and from sums to a model."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cholesky, solve_triangular
from scipy.linalg.blas import dsyrk, dtrsm

from pogp import validation
from pogp.arrays import Array, spread
from pogp.calibration import settled
from pogp.errors import FormatError
from pogp.files import container
from pogp.kernels import Kernel, evaluate, kernel_from_spec, prior_variance
from pogp.models.absorbing import AbsorbingPOG
from pogp.online.tuning import FAR
from pogp.posteriors.absorbed.information import Information
from pogp.posteriors.slots import packed, symmetric
from pogp.search import Progress
from pogp.slices import finished
from pogp.sums.parts import Sums, decoded
from pogp.sums.points import Chosen, chosen, fitting
from pogp.sums.rows import Checker, blocks, sample

SCHEMA = 1
SAMPLE = ("gram", "vector")
TINY = np.finfo(float).tiny


def plan(
    X: ArrayLike,
    y: ArrayLike,
    *,
    max_size: int = 300,
    kernel: object = None,
    scale: bool = True,
    seed: int = 0,
    progress: Progress | None = None,
) -> Plan:
    """Return points, a kernel and a noise for a table, found from a sample of its rows.

    If rows of the sample are outliers, it is done once more without them, and rows like them will
    count less in the sums.

    Parameters
    ----------
    X, y
        The sample: rows drawn at random from the whole table, X (n, p), y (n,) or (n, k). Its size
        decides how good the points are; 10,000 rows are enough for 300 points.
    max_size
        The number of points, at most.
    kernel
        A class of kernels or its name, which gets a length-scale for each input and is tuned, or a
        kernel to start from. If None, RBF and Matern32 are tried.
    scale
        Whether each of several outputs is taken in units of its own deviation, so that one kernel
        and noise suit them all.
    seed
        Of the order in which the sample is learned, and of the search.
    progress
        Called after each evaluation of a likelihood, as in `pogp.tune`; there are several searches
        in turn, and raising StopIteration ends one. The loggers "pogp.sums" and "pogp.tuning"
        report each kernel that was tried, and each search.
    """
    X, Y, target = sample(X, y)
    max_size = validation.count("max_size", max_size, 1)
    seed = validation.seed(seed)
    if not isinstance(scale, bool | np.bool_):
        raise ValueError(f"scale must be True or False, got {scale!r}")
    flat = target == ()

    def suggested(X: Array, Y: Array) -> tuple[Chosen, Plan]:
        units = np.ones(Y.shape[1])
        if scale and not flat:
            deviations = spread(Y)
            units = deviations / np.sqrt(np.mean(deviations**2))
        best = chosen(X, Y / units, kernel, max_size, seed, progress)
        mean = np.asarray(Y.mean(axis=0))
        return best, Plan(best.points, best.kernel, best.noise, mean, units, flat, max_size)

    best, found = suggested(X, Y)
    kept = fitting(X, Y / found.units, best)
    if kept.all():
        return found
    X, Y = X[kept], Y[kept]
    _, found = suggested(X, Y)
    sums = found.sums([(X, Y.reshape(-1, *target))])
    return replace(found, sample=(sums.gram, sums.vector))


@dataclass(frozen=True, eq=False)
class Plan:
    """All that is needed to compute the sums of a part of a table."""

    points: Array
    """Z, (M, p)."""
    kernel: Kernel
    noise: float
    """The noise variance, σ²."""
    mean: Array
    """The prior mean of each output, (k,)."""
    units: Array
    """The unit of each output, (k,): kernel and noise are those of an output with the unit one."""
    flat: bool
    """Whether targets are y (n,), and not (n, 1)."""
    max_size: int
    sample: tuple[Array, Array] | None = None
    """If the sample had outliers, the gram and the vector of the sums of its other rows. Rows far
    from the prediction of these have less weight."""

    def __repr__(self) -> str:
        return f"<Plan: {self.size} points, kernel {self.kernel!r}, noise {self.noise:.4g}>"

    def __post_init__(self) -> None:
        self.to_bytes()  # raises for a kernel that is code, which cannot be sent to workers
        _ = self._factor  # and for points that determine one another
        _ = self._expected  # and for sums that are not positive semidefinite

    @property
    def size(self) -> int:
        """The number of points M."""
        return len(self.points)

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of the plan; sums with the same one can be added."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    @cached_property
    def _factor(self) -> Array:
        """L with LLᵀ = κ(Z, Z)."""
        gram = evaluate(self.kernel, self.points, self.points)
        try:
            return np.asfortranarray(cholesky(gram, lower=True))
        except np.linalg.LinAlgError:
            raise ValueError("the points determine one another: κ(Z, Z) is singular") from None

    @cached_property
    def _expected(self) -> tuple[Array, Array] | None:
        """The belief after the sample, as in `_Belief`: H with HHᵀ = P, and Hᵀμ."""
        if self.sample is None:
            return None
        gram, vector = self.sample
        half = np.asfortranarray(self._half(gram))
        return half, solve_triangular(half, vector / self.noise, lower=True)

    def _half(self, gram: Array) -> Array:
        """Return H with HHᵀ = P, the precision of the belief after sums with this gram."""
        P = np.eye(self.size) + symmetric(gram, self.size) / self.noise
        return np.asarray(cholesky(P, lower=True))

    def _trust(self, F: Array, open_: Array, R: Array, weights: Array | None) -> Array | None:
        """Return the weight of each row, None if all weights are one.

        The weight is one up to `FAR` deviations from the prediction of the sample. A row beyond
        gets a larger noise, with which it is `FAR` deviations away. The weight depends on the row
        and the plan alone.
        """
        if self._expected is None:
            return None
        half, mean = self._expected
        H = solve_triangular(half, F, lower=True)
        own = self.noise if weights is None else self.noise / np.clip(weights, TINY, 1.0)
        deviation = np.sqrt(own + open_ + np.einsum("ij,ij->j", H, H))
        size = np.abs(R - H.T @ mean).max(axis=1) / deviation
        return np.asarray((FAR / np.maximum(size, FAR)) ** 2)

    @property
    def _target(self) -> tuple[int, ...]:
        return () if self.flat else self.mean.shape

    # ---- rows into sums ----------------------------------------------------------------------

    def sums(self, batches: Iterable[Any], *, skip: bool = False, where: str = "") -> Sums:
        """Return the sums over the rows of some batches, which may be one at a time in memory.

        A batch is (X, y), (X, y, noise) or (X, y, noise, weights): `noise` is a variance and
        `weights` are how many rows each row stands for, numbers or None. How the rows are divided
        into batches does not change a bit. A row with a value that is missing or not finite raises
        ValueError with its number, counted from 0, after `where`; with `skip` it is left out and
        counted.
        """
        size, outputs = self.size, len(self.mean)
        checker = Checker(self.points.shape[1], self._target, self.noise, skip, where)
        gram = np.zeros((size, size), order="F")
        vector, squares = np.zeros((size, outputs)), np.zeros(outputs)
        slack = weight = 0.0
        for rows in blocks(batches, checker):
            cross = np.ascontiguousarray(evaluate(self.kernel, rows.X, self.points))
            F = dtrsm(1.0, self._factor, cross.T, lower=1, overwrite_b=1)  # L⁻¹κ(Z, X)
            explained = np.einsum("ij,ij->i", F.T, F.T)
            open_ = np.maximum(prior_variance(self.kernel, rows.X) - explained, 0.0)
            R = (rows.Y - self.mean) / self.units
            weights = rows.weights
            if (trust := self._trust(F, open_, R, weights)) is not None:
                weights = trust if weights is None else trust * weights
            if weights is not None:
                root = np.sqrt(weights)
                F, R, open_ = F * root, R * root[:, None], open_ * weights
            gram = dsyrk(1.0, F, beta=1.0, c=gram, overwrite_c=1)
            vector += F @ R
            squares += np.sum(R**2, axis=0)
            slack += float(np.sum(open_))
            weight += len(rows) if weights is None else float(np.sum(weights))
        return Sums(
            self.fingerprint,
            packed(gram),
            vector,
            squares,
            np.array(slack),
            np.array(weight),
            checker.seen - checker.skipped,
            checker.skipped,
        )

    # ---- sums into a model -------------------------------------------------------------------

    def model(
        self, sums: Sums, calibration: tuple[ArrayLike, ArrayLike] | None = None
    ) -> AbsorbingPOG:
        """Return the regression of all summed rows on the points, a model that can learn more rows.

        `calibration` are rows of the table, X and y, that were not in the sample: variances are
        scaled so that their squared errors are what the model expects. (In the sample errors are
        smaller, since the points are from there.) Without it the sums say how large the errors
        were over all rows, on average.

        The model holds no raw samples. As positions in the stream its points have 0, 1, 2, ….
        """
        if not isinstance(sums, Sums) or sums.plan != self.fingerprint:
            raise ValueError(f"sums must come from this plan, got {sums!r:.100}")
        belief = _Belief(self, sums)
        if calibration is None:
            return self._made(belief, belief.scale() * self.units**2, sums.count)
        X, Y, _ = validation.vector_samples(*calibration, self.points.shape[1], self._target)
        if len(Y) == 0:
            raise ValueError("calibration must have at least one row, got none")
        model = self._made(belief, np.ones(len(self.mean)), 0)
        mean, variance = (part.reshape(Y.shape) for part in model.predict(X))
        return self._made(belief, settled((Y - mean) ** 2 / variance), len(Y))

    def left_out(self, sums: Sums, X: ArrayLike, y: ArrayLike) -> Array:
        """Return the errors of rows that are among the sums, each given all others, (n, k).

        A row that was learned has an error e = (1 − h) times that, where h is its share in its own
        prediction: fᵀP⁻¹f/σ².
        """
        X, Y, _ = validation.vector_samples(X, y, self.points.shape[1], self._target)
        half = self._half(sums.gram)
        F = solve_triangular(self._factor, evaluate(self.kernel, self.points, X), lower=True)
        open_ = np.maximum(prior_variance(self.kernel, X) - np.einsum("ij,ij->j", F, F), 0.0)
        R = (Y - self.mean) / self.units
        trust = self._trust(F, open_, R, None)
        H = solve_triangular(half, F, lower=True)
        own = np.einsum("ij,ij->j", H, H) / self.noise * (1.0 if trust is None else trust)
        errors = R - H.T @ solve_triangular(half, sums.vector / self.noise, lower=True)
        return np.asarray(errors / np.maximum(1 - own, np.finfo(float).eps)[:, None] * self.units)

    def _made(self, belief: _Belief, scale: Array, residuals: int) -> AbsorbingPOG:
        """Return the model with some scale of the variances."""
        model = AbsorbingPOG(
            self.kernel,
            self.noise,
            None,
            max_size=self.max_size,
            calibrate=True,
            mean=self.mean.reshape(self._target),
            reservoir=0,
        )
        count, (size, dimension) = belief.sums.count, self.points.shape
        state = {
            **belief.state,
            "seen": max(count, size),
            "flat": self.flat,
            "scale": scale,
            "residuals": residuals,
            "reservoir_inputs": np.empty((0, dimension)),
            "reservoir_targets": np.empty((0, len(self.mean))),
            "reservoir_positions": np.empty(0, dtype=np.int64),
            "reservoir_seen": max(count, size),
        }
        model.restore(state)
        return model

    # ---- bytes -------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Return the plan as bytes."""
        header: dict[str, container.JSON] = {
            "schema": SCHEMA,
            "kind": "plan",
            "kernel": cast(container.JSON, self.kernel.to_spec()),
            "noise": self.noise,
            "flat": self.flat,
            "max_size": self.max_size,
        }
        arrays = {"points": self.points, "mean": self.mean, "units": self.units}
        if self.sample is not None:
            arrays |= dict(zip(SAMPLE, self.sample, strict=True))
        return b"".join(container.encode(header, arrays))

    @classmethod
    def from_bytes(cls, data: bytes) -> Plan:
        """Return the plan that `to_bytes` wrote; FormatError if the bytes are damaged."""
        header, arrays = decoded(data, "plan", SCHEMA)
        try:
            kernel = kernel_from_spec(header["kernel"])
            points, mean, units = (arrays[name] for name in ("points", "mean", "units"))
            if points.ndim != 2 or mean.ndim != 1 or mean.shape != units.shape:
                raise ValueError(f"shapes {points.shape}, {mean.shape} and {units.shape}")
            if not all(np.isfinite(part).all() for part in arrays.values()) or (units <= 0).any():
                raise ValueError("points, mean or units are not finite, or units not positive")
            noise = validation.noise_variance(header["noise"], kernel)
            if not isinstance(header["flat"], bool) or (header["flat"] and len(mean) != 1):
                raise ValueError(f"flat is {header['flat']!r} for {len(mean)} outputs")
            max_size = validation.count("max_size", header["max_size"], len(points))
            sample = None
            if SAMPLE[0] in arrays:
                sample = gram, vector = arrays[SAMPLE[0]], arrays[SAMPLE[1]]
                size = len(points)
                if gram.shape != (size * (size + 1) // 2,) or vector.shape != (size, len(mean)):
                    raise ValueError(
                        f"shapes {gram.shape} and {vector.shape} of the sums of the sample"
                    )
            return cls(points, kernel, noise, mean, units, header["flat"], max_size, sample)
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(f"the bytes are not a plan: {error}") from error

    def __reduce__(self) -> tuple[Any, ...]:
        return Plan.from_bytes, (self.to_bytes(),)


class _Belief:
    """The belief given sums about u = f(Z) = Lv: v ~ N(μ, P⁻¹) with P = I + G/σ²."""

    def __init__(self, plan: Plan, sums: Sums) -> None:
        self.plan, self.sums = plan, sums
        self._gram = symmetric(sums.gram, plan.size)
        L, noise = plan._factor, plan.noise
        half = solve_triangular(L, self._gram / noise, lower=True, trans="T")
        information = Information(
            plan.points,
            np.arange(plan.size, dtype=np.int64),
            np.ones(plan.size),
            solve_triangular(L, half.T, lower=True, trans="T")[None],
            solve_triangular(L, sums.vector / noise * plan.units, lower=True, trans="T")[None],
        )
        gram = evaluate(plan.kernel, plan.points, plan.points)
        self.state = finished(information.state(gram, has_information=True))

    def scale(self) -> Array:
        """Return the errors over all rows in units of what was expected, (k,).

        Errors of rows that were learned are smaller than those of new ones by the share of the
        rows that the points could fit by themselves.
        """
        sums, noise = self.sums, self.plan.noise
        if sums.count == 0 or sums.weight <= 0:
            return np.ones(len(self.plan.mean))
        P = np.eye(self.plan.size) + self._gram / noise
        covariance = np.linalg.inv(P)
        mu = covariance @ (sums.vector / noise)
        misfit = sums.squares - 2 * np.sum(sums.vector * mu, axis=0)
        misfit += np.einsum("ik,ij,jk->k", mu, self._gram, mu)
        known = float(np.sum(covariance * self._gram))  # Σω fᵀP⁻¹f
        weight = float(sums.weight)
        expected = float(sums.slack) + known + weight * noise
        fitted = min(known / noise / weight, 1 - 1 / (1 + weight))
        floor = np.finfo(float).eps * np.maximum(sums.squares, noise)
        return np.asarray(np.maximum(misfit, floor) / (1 - fitted) ** 2 / expected)
