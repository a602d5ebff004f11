"""The simplest predictors, which are always among what is weighed."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from pogp.arrays import Array
from pogp.online import mixing_core
from pogp.online.mixing import LEAST_VARIANCE
from pogp.online.rows import Samples
from pogp.online.scales import Scales
from pogp.slices import CALLS, Work

NAMES = ("mean", "last", "linear", "linear with lags")
FOLLOWERS = [1, 3]
"""The places of those that need the last targets."""
LAGS = 5
"""The last targets that the second linear model sees."""
WINDOW = 50
"""The error of an expert is averaged over about so many samples."""
OUTLIER = 25.0
"""A squared error counts for at most so many times the average."""
FORGETTING = 0.999
"""Of the linear models."""
VAGUE = 100.0
"""The prior variance of a coefficient, in units of deviations."""
LARGEST = 1e6
"""Coefficients that the stream says nothing of become no more uncertain than this."""


class Linear:
    """Recursive least squares with forgetting; several outputs share the inputs."""

    def __init__(self, inputs: int, outputs: int) -> None:
        self.P = VAGUE * np.eye(inputs)
        self.w = np.zeros((inputs, outputs))
        self.gain = np.zeros(inputs)
        self._mixing = mixing_core()

    @classmethod
    def taught(cls, H: Array, Y: Array) -> Self:
        """Return a model that has learned these samples, one row each, in order."""
        line = cls(H.shape[1], Y.shape[1])
        discounts = FORGETTING ** np.arange(len(H) - 1.0, -1.0, -1.0)
        weighted = H.T * discounts
        prior = FORGETTING ** len(H) / VAGUE
        P = np.linalg.inv(weighted @ H + prior * np.eye(H.shape[1]))
        line.P = np.asarray(0.5 * (P + P.T), dtype=np.float64)
        line.w = np.asarray(line.P @ (weighted @ Y))
        return line

    def learn(self, h: Array, y: Array) -> None:
        """Learn one sample."""
        if not self._mixing.least_squares(self.P, self.w, h, y, self.gain, FORGETTING, LARGEST):
            self.reset()

    def reset(self) -> None:
        """Begin anew: rounding has won."""
        self.P[...], self.w[...] = VAGUE * np.eye(len(self.P)), 0.0


class Experts:
    """The running mean, the last target, and linear models without and with the last targets."""

    def __init__(self, dimension: int, outputs: int) -> None:
        self.count = 0
        self.mean, self.last = np.zeros((2, outputs))
        self.held = np.zeros((LAGS, outputs))
        """The last targets that are no outliers, the latest first."""
        self.errors = np.zeros((len(NAMES), outputs))
        features = dimension + 1 + self.held.size
        self.linear = [Linear(dimension + 1, outputs), Linear(features, outputs)]
        self.informed = np.zeros(features)
        self.plain = self.informed[: dimension + 1]
        """What the linear models see of a sample, with the last targets and without."""
        self.targets = np.zeros((2, outputs))
        self._units = (np.zeros(outputs), np.ones(outputs))  # without scales
        self._mixing = mixing_core()

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        lines = sum(line.P.nbytes + line.w.nbytes for line in self.linear)
        return lines + self.mean.nbytes + self.last.nbytes + self.errors.nbytes

    def glance(self, scaled: Array, scales: Scales | None, means: Array, variances: Array) -> None:
        """Fill means and variances, (experts, outputs), at an input in these scales, if any."""
        if scales is not None:
            self._mixing.foresee(
                scaled,
                self.mean,
                self.last,
                self.held,
                self.linear[0].w,
                self.linear[1].w,
                scales.target_centre,
                scales.unit,
                self.errors,
                self.informed,
                means,
                variances,
            )
        else:
            means[0], means[1] = self.mean, self.last
            means[2], means[3] = self.mean, self.last
            np.maximum(self.errors, LEAST_VARIANCE, out=variances)

    def predict_many(self, X: Array, scales: Scales | None) -> tuple[Array, Array]:
        """Return means and variances, (experts, n, outputs), at many inputs."""
        count = len(X)
        plain = [np.repeat(value[None], count, axis=0) for value in (self.mean, self.last)]
        lines = plain
        if scales is not None:
            ones = np.column_stack([X, np.ones(count)])
            lags = np.clip(scales.targets(self.held), -1e3, 1e3).ravel()
            known = np.column_stack([ones, np.repeat(lags[None], count, axis=0)])
            fits = zip((ones, known), self.linear, strict=True)
            lines = [scales.target_centre + (h @ line.w) * scales.unit for h, line in fits]
        variances = np.maximum(self.errors, LEAST_VARIANCE)[:, None]
        return np.array([*plain, *lines]), np.repeat(variances, count, axis=1)

    def gradients(self, X: Array, scales: Scales | None) -> Array:
        """Return the derivatives of the means by raw inputs, (experts, n, p, outputs)."""
        slopes = np.zeros((len(NAMES), *X.shape, len(self.mean)))
        if scales is not None:
            for i, line in enumerate(self.linear, start=2):
                weights = line.w[: X.shape[1]] * scales.unit
                slopes[i] = scales.slopes(X)[:, :, None] * weights
        return slopes

    def learn(
        self,
        y: Array,
        means: Array,
        scales: Scales | None,
        guarded: float,
        weight: float = 1.0,
    ) -> None:
        """Learn the target of the input predicted last.

        With `guarded` > 0 the sample is an outlier and counts for no more than so many deviations.
        One of a weight below one counts for that much.
        """
        targets = self.targets
        centre, unit = self._units if scales is None else (scales.target_centre, scales.unit)
        self._mixing.average(
            y,
            means,
            self.errors,
            self.mean,
            self.last,
            self.held,
            centre,
            unit,
            targets,
            self.count,
            WINDOW,
            min(weight, 1.0),
            guarded,
            OUTLIER,
        )
        self.count += 1
        if scales is not None:
            plain, informed = self.plain, self.informed
            if weight != 1.0:
                root = float(np.sqrt(weight))
                plain, informed, targets = root * plain, root * informed, root * targets
            self.linear[0].learn(plain, targets[0])
            self.linear[1].learn(informed, targets[1])

    def join(self, other: Experts) -> None:
        """Go on as after the samples of another; the linear models stay in their units."""
        total = self.count + other.count
        self.mean = (self.count * self.mean + other.count * other.mean) / total
        self.last, self.held = other.last.copy(), other.held.copy()
        self.errors = np.maximum(self.errors, other.errors)
        self.count = total

    @staticmethod
    def shown(scales: Scales, samples: Samples) -> tuple[list[Array], Array]:
        """Return what the two linear models see of samples after the first, and their targets.

        In these scales, and each row times the root of the sample's weight.
        """
        U, targets = scales.inputs(samples.X), scales.targets(samples.Y)
        ones = np.column_stack([U[1:], np.ones(max(len(U) - 1, 0))])
        now = np.arange(1, len(U))
        lags = [targets[np.maximum(now - lag, 0)] for lag in range(1, LAGS + 1)]
        known = np.column_stack([ones, np.clip(np.hstack(lags), -1e3, 1e3)])
        roots = np.sqrt(samples.weights[1:, None])
        return [roots * ones, roots * known], roots * targets[1:]

    @classmethod
    def refitted(cls, scales: Scales, samples: Samples) -> Work[list[Linear]]:
        """Return the linear models anew, taught by some samples in order, in other units."""
        yield CALLS + 20 * samples.X.size
        features, targets = cls.shown(scales, samples)
        lines = []
        for H in features:
            yield CALLS + 20 * H.size
            lines.append(Linear.taught(H, targets))
        return lines

    def state(self) -> dict[str, Any]:
        """Return the state, as arrays and numbers."""
        lines = {f"P{i}": line.P.copy() for i, line in enumerate(self.linear)}
        lines |= {f"w{i}": line.w.copy() for i, line in enumerate(self.linear)}
        plain = {"mean": self.mean.copy(), "last": self.last.copy(), "errors": self.errors.copy()}
        return {"count": self.count, **plain, "held": self.held.copy(), **lines}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over what `state` returned."""
        self.count = int(state["count"])
        for name in ("mean", "last", "errors"):
            setattr(self, name, np.array(state[name], dtype=np.float64))
        # older files have one such target or none, and fewer coefficients
        self.held[...] = state.get("held", self.last)
        for i, line in enumerate(self.linear):
            P, w = np.array(state[f"P{i}"]), np.array(state[f"w{i}"])
            line.reset()
            line.P[: len(P), : len(P)], line.w[: len(w)] = P, w
