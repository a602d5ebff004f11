"""The simple predictors, which are always members of the mixture."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from pogp.arrays import Array
from pogp.online import arithmetic_core
from pogp.online.arithmetic import LEAST_VARIANCE, log_densities
from pogp.online.mixture import DISCOUNTS, OCCASIONS
from pogp.online.samples import Mask, Samples
from pogp.online.scales import FARTHEST, VERY_FAR, Scales
from pogp.slices import CALL_TICKS, Work

NAMES = ("mean", "last", "linear", "linear with lags")
LAST, WITH_LAST = 1, [1, 3]
"""The indices of the predictors that use the last targets."""
LINEAR = slice(2, 4)
"""Those of the linear models. Their inputs are not compressed."""
INFLUENCE = 3.5
"""A sample with a far input changes a linear model at most like an error of so many deviations."""
TRUST_DISCOUNT, TRUSTED = 0.9, 1.0
"""The trust in the linear models at far inputs remembers about ten of them. It takes more than one
nat: a nat is the gain of an error that is e times smaller."""
ABSURD = 4.0
"""An input this many times as far from its centre as any before may be absurd."""
LAGS = 8
"""The number of last targets in the second linear model, of all outputs together."""
WINDOW = 50
"""The squared error of a predictor is averaged over about so many samples."""
LARGEST_RATIO = 25.0
"""A squared error counts for at most so many times the average."""
FORGETTING = 0.999
"""The forgetting factor of the linear models."""
PRIOR_VARIANCE = 100.0
"""The prior variance of a coefficient, in units of deviations."""
COLLINEAR = 1e-9
"""What is added to the diagonal of a matrix that has no inverse, relative to it."""
LARGEST_VARIANCE = 1e6
"""Forgetting stops while a coefficient has a larger variance."""


def n_lags(outputs: int) -> int:
    """Return how many last samples the second linear model sees."""
    return max(1, LAGS // outputs)


class LinearModel:
    """Recursive least squares with forgetting; all outputs have the same inputs."""

    def __init__(self, inputs: int, outputs: int) -> None:
        self.P = PRIOR_VARIANCE * np.eye(inputs)
        self.w = np.zeros((inputs, outputs))
        self.gain = np.zeros(inputs)
        self._arithmetic = arithmetic_core()

    @classmethod
    def fitted(cls, H: Array, Y: Array) -> Self:
        """Return a model that has learned the rows of H and Y in order."""
        model = cls(H.shape[1], Y.shape[1])
        discounts = FORGETTING ** np.arange(len(H) - 1.0, -1.0, -1.0)
        weighted = H.T * discounts
        prior = FORGETTING ** len(H) / PRIOR_VARIANCE
        P = _inverse(weighted @ H + prior * np.eye(H.shape[1]))
        model.P = 0.5 * (P + P.T)
        model.w = np.asarray(model.P @ (weighted @ Y))
        return model

    def bounded(self, H: Array, Y: Array, error: Array, bound: float) -> Array:
        """Return targets Y (n, k) no further from the predictions than the bound.

        It is in deviations of predictions at H: those of the noise, of which `error` is the
        variance, and of the coefficients.
        """
        means, spread = H @ self.w, 1.0 + np.maximum(np.einsum("ni,ni->n", H @ self.P, H), 0.0)
        reach = bound * np.sqrt(error * spread[:, None])
        return np.asarray(np.clip(Y, means - reach, means + reach))

    def learn(self, h: Array, y: Array) -> None:
        """Learn one sample."""
        numbers = (self.gain, FORGETTING, LARGEST_VARIANCE)
        if not self._arithmetic.least_squares(self.P, self.w, h, y, *numbers):
            self.reset()

    def reset(self) -> None:
        """Return to the prior, after rounding errors."""
        self.P[...], self.w[...] = PRIOR_VARIANCE * np.eye(len(self.P)), 0.0


class SimplePredictors:
    """The running mean, the last target, and linear models without and with the last targets."""

    def __init__(self, dimension: int, outputs: int) -> None:
        self.count = 0
        self.mean, self.last = np.zeros((2, outputs))
        self.lags = np.zeros((n_lags(outputs), outputs))
        """The last targets that are not outliers, the latest first."""
        self.errors = np.zeros((len(NAMES), outputs))
        self.left_out = False
        """Whether the last target was an outlier, and is not among `lags`."""
        self.trust = 0.0
        """By how much the linear models were better at far inputs, in nats."""
        self.judged = np.zeros(dimension)
        """The last input at which they were compared with the others."""
        self.farthest = np.zeros(dimension)
        """How far from their centres the inputs were that were far, in the user's units."""
        self.linear = [
            LinearModel(dimension + 1, outputs),
            LinearModel(dimension + 1 + self.lags.size, outputs),
        ]
        self.features_with_lags = np.zeros(dimension + 1 + self.lags.size)
        self.features = self.features_with_lags[: dimension + 1]
        """The inputs of the linear models for the current sample."""
        self.targets = np.zeros((2, outputs))
        """The targets that the linear models learn."""
        self.scores = np.zeros((len(DISCOUNTS), len(NAMES), outputs))
        self.occasion_scores = np.zeros((len(OCCASIONS), *self.scores.shape))
        """As those of a `Group`."""
        self._no_units = (np.zeros(outputs), np.ones(outputs))
        self._arithmetic = arithmetic_core()

    @property
    def trusted(self) -> bool:
        """Whether the linear models alone predict at very far inputs, and not all others."""
        return self.trust > TRUSTED

    def very_far(self, scales: Scales) -> float | Array:
        """Return beyond how many deviations an input is very far, for all columns or for each.

        While neither the linear models nor the others are better there, values up to `ABSURD` times
        as far as earlier ones are not: they are in the tail of a heavy-tailed input.
        """
        if abs(self.trust) > TRUSTED or not self.farthest.any():
            return VERY_FAR
        with np.errstate(over="ignore"):
            return np.maximum(VERY_FAR, ABSURD * self.farthest * scales.inverse)

    def remember_far(self, x: Array, scales: Scales) -> None:
        """Remember how far the inputs of a learned sample are; an absurd value counts for less."""
        least = VERY_FAR / ABSURD * scales.deviation
        known = ABSURD * np.maximum(self.farthest, least)
        self.farthest = np.maximum(self.farthest, np.minimum(np.abs(x - scales.centre), known))

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        linear = sum(model.P.nbytes + model.w.nbytes for model in self.linear)
        return linear + self.mean.nbytes + self.last.nbytes + self.errors.nbytes

    def predict_one(
        self, scaled: Array, scales: Scales | None, means: Array, variances: Array
    ) -> None:
        """Fill means and variances, (predictors, outputs), at an input in these scales."""
        if scales is None:
            means[0], means[1] = self.mean, self.last
            means[2], means[3] = self.mean, self.last
            np.maximum(self.errors, LEAST_VARIANCE, out=variances)
            return
        targets = (self.mean, self.last, self.lags)
        fitted = (*(model.w for model in self.linear), scales.target_centre, scales.unit)
        out = (self.features_with_lags, means, variances)
        self._arithmetic.predict_simple(scaled, *targets, *fitted, self.errors, *out)

    def predict(self, X: Array, scales: Scales | None) -> tuple[Array, Array]:
        """Return means and variances, (predictors, n, outputs), at inputs in these scales."""
        count = len(X)
        constant = [np.repeat(value[None], count, axis=0) for value in (self.mean, self.last)]
        linear = constant
        if scales is not None:
            ones = np.column_stack([X, np.ones(count)])
            lags = np.clip(scales.targets(self.lags), -1e3, 1e3).ravel()
            with_lags = np.column_stack([ones, np.repeat(lags[None], count, axis=0)])
            fits = zip((ones, with_lags), self.linear, strict=True)
            linear = [scales.target_centre + (H @ model.w) * scales.unit for H, model in fits]
        variances = np.maximum(self.errors, LEAST_VARIANCE)[:, None]
        return np.array([*constant, *linear]), np.repeat(variances, count, axis=1)

    def gradients(self, X: Array, scales: Scales | None) -> Array:
        """Return the derivatives of the means by raw inputs, (predictors, n, p, outputs)."""
        slopes = np.zeros((len(NAMES), *X.shape, len(self.mean)))
        if scales is not None:
            of_inputs = np.where(np.abs(scales.straight(X)) < FARTHEST, scales.inverse, 0.0)
            for i, model in enumerate(self.linear, start=2):
                weights = model.w[: X.shape[1]] * scales.unit
                slopes[i] = of_inputs[:, :, None] * weights
        return slopes

    def learn(
        self,
        y: Array,
        means: Array,
        scales: Scales | None,
        bound: float,
        weight: float = 1.0,
        far: bool = False,
    ) -> None:
        """Learn the target of the input that was predicted last.

        If `bound` > 0 the sample is an outlier, and its error is clipped at so many deviations. So
        is that of the linear models if the input is `far`. A weight below one reduces the influence
        of the sample.
        """
        targets, before = self.targets, self.errors[LINEAR].copy()
        last, stays = self.last.copy(), self.left_out and self._is_near_last(y)
        centre, unit = self._no_units if scales is None else (scales.target_centre, scales.unit)
        arrays = (self.errors, self.mean, self.last, self.lags, centre, unit, targets)
        numbers = (self.count, WINDOW, min(weight, 1.0), bound, LARGEST_RATIO)
        self._arithmetic.update_simple(y, means, *arrays, *numbers)
        self.count += 1
        if weight > 0.0:  # the target is not stuck
            self._complete_lags(last, bound > 0.0, stays)
        if far and not self.trusted:
            self.errors[LINEAR] = before  # they did not predict
        if scales is not None:
            features, with_lags = self.features, self.features_with_lags
            if bound > 0.0 or far:
                near, error = (y - centre) / unit, before / unit**2
                for i, (model, h) in enumerate(
                    zip(self.linear, (features, with_lags), strict=True)
                ):
                    only = (h[None], near[None], error[i], bound or INFLUENCE)
                    targets[i] = model.bounded(*only)[0]
            if weight != 1.0:
                root = float(np.sqrt(weight))
                features, with_lags, targets = root * features, root * with_lags, root * targets
            self.linear[0].learn(features, targets[0])
            self.linear[1].learn(with_lags, targets[1])

    def _is_near_last(self, y: Array) -> bool:
        """Whether targets are nearer to the last ones, which were outliers, than to the lags."""
        return bool((np.abs(y - self.last) < np.abs(y - self.lags[0])).all())

    def _complete_lags(self, last: Array, outlier: bool, stays: bool) -> None:
        """Add targets that were left out to the lags if they stayed: the level has changed."""
        if stays:
            own = self.last[None] if outlier else self.lags[:1]
            rest = self.lags if outlier else self.lags[1:]
            self.lags[...] = np.concatenate([own, last[None], rest])[: len(self.lags)]
        self.left_out = outlier and not stays

    def join(self, other: SimplePredictors) -> None:
        """Add the samples of another stream; the linear models do not change."""
        total = self.count + other.count
        self.mean = (self.count * self.mean + other.count * other.mean) / total
        self.last, self.lags = other.last.copy(), other.lags.copy()
        self.left_out, self.farthest = other.left_out, np.maximum(self.farthest, other.farthest)
        self.errors = np.maximum(self.errors, other.errors)
        self.count = total

    @staticmethod
    def training_data(
        scales: Scales, samples: Samples, used: Mask | None = None
    ) -> tuple[list[Array], Array]:
        """Return the features of the two linear models, and the targets, in these scales.

        The first sample has no target before it and is left out. Each row is multiplied by the
        square root of its weight, or by zero if it is not `used`: by default if an input is far.
        """
        U, targets = scales.straight(samples.X), scales.targets(samples.Y)
        ones = np.column_stack([U[1:], np.ones(max(len(U) - 1, 0))])
        rows = np.arange(1, len(U))
        count = n_lags(targets.shape[1])
        lags = [targets[np.maximum(rows - lag, 0)] for lag in range(1, count + 1)]
        with_lags = np.column_stack([ones, np.clip(np.hstack(lags), -1e3, 1e3)])
        used = ~_far(scales, samples) if used is None else used
        roots = np.sqrt(np.where(used, samples.weights, 0.0)[1:, None])
        return [roots * ones, roots * with_lags], roots * targets[1:]

    @classmethod
    def fitted_linear(cls, scales: Scales, samples: Samples) -> Work[list[LinearModel]]:
        """Return new linear models in these scales that have learned the samples in order.

        They learn a sample with a far input only if the other samples do not contradict it.
        """
        yield CALL_TICKS + 20 * samples.X.size
        far, models = _far(scales, samples), []
        features, targets = cls.training_data(scales, samples)
        far_features, far_targets = cls.training_data(scales, samples, far)
        for H, at_far in zip(features, far_features, strict=True):
            yield CALL_TICKS + 20 * H.size
            model = LinearModel.fitted(H, targets)
            if far.any():
                error = np.mean((targets - H @ model.w)[~far[1:]] ** 2, axis=0)
                bounded = model.bounded(at_far, far_targets, error, INFLUENCE)
                agreed = far[1:] & (bounded == far_targets).all(axis=1)
                if agreed.any():
                    H, Y = H.copy(), targets.copy()
                    H[agreed], Y[agreed] = at_far[agreed], far_targets[agreed]
                    model = LinearModel.fitted(H, Y)
            models.append(model)
        return models

    def begin_linear(self, scales: Scales, samples: Samples) -> None:
        """Let new linear models learn the latest samples in order, each predicted before.

        Their scores are those of the mean and of the last target, and what they gain over these.
        """
        latest = samples.select(np.arange(len(samples.X))[-WINDOW:])
        features, targets = self.training_data(scales, latest)
        means = np.cumsum(targets, axis=0) / np.arange(1.0, len(targets) + 1.0)[:, None]
        for i, (H, simple) in enumerate(zip(features, (means, targets), strict=True)):
            model, found = LinearModel(H.shape[1], targets.shape[1]), np.empty_like(targets)
            for j in range(len(H)):
                found[j] = H[j] @ model.w
                model.learn(H[j], targets[j])
            ours, theirs = ((targets[1:] - each) ** 2 for each in (found[1:], simple[:-1]))
            gain = _log_likelihood(ours) - _log_likelihood(theirs)
            self.linear[i], self.scores[:, 2 + i] = model, self.scores[:, i] + gain
            self.errors[2 + i] = ours.mean(axis=0) * scales.unit**2

    def judge_far(self, x: Array, y: Array, ours: Array, theirs: Array) -> None:
        """Compare two predictions (k,) at a far input: of the linear models, and of all others."""
        self.judged = x.copy()
        noise = np.maximum(self.errors[LINEAR].min(axis=0), LEAST_VARIANCE)
        squares = [(y - mean) ** 2 + noise for mean in (theirs, ours)]
        gain = 0.5 * float(np.mean(np.log(squares[0]) - np.log(squares[1])))
        self.trust = TRUST_DISCOUNT * self.trust + gain

    def state(self) -> dict[str, Any]:
        """Return the state, as arrays and numbers."""
        linear = {f"P{i}": model.P.copy() for i, model in enumerate(self.linear)}
        linear |= {f"w{i}": model.w.copy() for i, model in enumerate(self.linear)}
        simple = {"mean": self.mean.copy(), "last": self.last.copy(), "errors": self.errors.copy()}
        trust: dict[str, Any] = (
            {"trust": self.trust, "judged": self.judged.copy()} if self.trust else {}
        )
        trust |= {"left_out": True} if self.left_out else {}
        trust |= {"farthest": self.farthest.copy()} if self.farthest.any() else {}
        return {"count": self.count, **simple, "held": self.lags.copy(), **linear, **trust}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned."""
        self.count = int(state["count"])
        self.trust = float(state.get("trust", 0.0))
        self.left_out = bool(state.get("left_out", False))
        self.judged = np.array(state.get("judged", self.judged), dtype=np.float64)
        self.farthest = np.array(state.get("farthest", self.farthest), dtype=np.float64)
        shapes = {self.judged.shape, self.farthest.shape}
        if shapes != {(len(self.features) - 1,)} or not (self.farthest >= 0).all():
            raise ValueError(f"far inputs must be {len(self.features) - 1} numbers each")
        for name in ("mean", "last", "errors"):
            setattr(self, name, np.array(state[name], dtype=np.float64))
        # older files have at most one such target, and no coefficients for the others
        self.lags[...] = state.get("held", self.last)
        for i, model in enumerate(self.linear):
            P, w = np.array(state[f"P{i}"]), np.array(state[f"w{i}"])
            model.reset()
            model.P[: len(P), : len(P)], model.w[: len(w)] = P, w


def _far(scales: Scales, samples: Samples) -> Mask:
    """Return which samples have far inputs, unless all have."""
    far = scales.are_far(samples.X)
    return far & ~far[1:].all()


def _inverse(A: Array) -> Array:
    """Return the inverse of a positive definite matrix.

    If columns are collinear, and so large that the prior is rounded away, it is that of a matrix
    with a little more on its diagonal.
    """
    try:
        P = np.linalg.inv(A)
    except np.linalg.LinAlgError:
        P = np.zeros_like(A)
    if not np.diagonal(P).min() > 0.0 or not np.isfinite(P).all():
        P = np.linalg.inv(A + COLLINEAR * np.diag(np.diagonal(A)))
    return np.asarray(P, dtype=np.float64)


def _log_likelihood(squares: Array) -> Array:
    """Return that of squared errors (n, k), with their average as variance."""
    variance = np.maximum(squares.mean(axis=0), LEAST_VARIANCE)
    return np.asarray(log_densities(np.sqrt(squares), 0.0 * squares, variance).sum(axis=0))
