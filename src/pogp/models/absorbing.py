"""Absorbing POG: points are removed, and their evidence is kept (mathematics.md §4 and §5)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pogp import validation
from pogp.arrays import Array, Indices
from pogp.budgets import Budget
from pogp.calibration import Calibration
from pogp.compression import Compression
from pogp.criteria import AbsorbedCriterion, WholePosterior
from pogp.interrupts import Uninterrupted
from pogp.kernels import Kernel
from pogp.models.absorbed import AbsorbedModel
from pogp.models.base import Argument
from pogp.models.merging import condense
from pogp.models.retuning import log_likelihood, retuned
from pogp.posteriors import AbsorbedPosterior
from pogp.reservoir import Reservoir
from pogp.trace import Trace
from pogp.tuning import Tuned

PROJECTIONS = ("condition", "marginalise")
SHARE = 0.01
"""The least variance of a point given the others, as a share of the noise."""
RESERVOIR = 1000
"""Raw samples kept for `retune` and `rehearsed`, by default."""


class AbsorbingPOG(AbsorbedModel):
    """Append each sample, then remove points while the whole posterior stays within the budget.

    The evidence of a removed point is projected onto the points that stay. The budget is the exact
    Hellinger distance between the whole posteriors before and after, added up over the removals of
    a step.

    Parameters
    ----------
    kernel, noise
        The covariance function, and the variance of the observation noise.
    budget
        The Hellinger distance that one step may cost: a number ≥ 0, `Constant`, `Decay`, a callable
        of the number of samples learned before, or None to remove only what `max_size` asks for.
    max_size
        A cap on the model order, kept whatever it costs.
    forgetting
        λ in (0, 1]: each sample multiplies the weight of all earlier ones by λ. For streams that
        drift.
    calibrate
        Scale every variance by the running mean of (y − mean)²/variance, as predicted before
        learning.
    mean
        The constant prior mean, a number or one for each output.
    share
        The least variance, given the other points, that a point must have, as a share of the noise.
        A sample with less is absorbed without becoming a point, and a point with less is removed.
        0 keeps every point that rounding allows.
    projection
        How a point is removed. "condition" sets the function there to what the others predict;
        "marginalise" adds the prior variance there, given the others, as noise.
    seed
        The seed of the draw of raw samples for `retune` and `rehearsed`.
    reservoir
        How many raw samples to keep for them. With 0 the model is smaller and cannot be retuned.

    >>> import numpy as np, pogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (2000, 1))
    >>> model = AbsorbingPOG(pogp.RBF(), noise=0.01, budget=0.1)
    >>> trace = model.learn(X, np.sin(X[:, 0]))
    >>> mean, variance = model.predict([1.0])
    >>> bool(abs(mean - np.sin(1.0)) < 0.02), model.size < 30
    (True, True)
    """

    changeable = ("budget", "max_size", "forgetting", "calibrate")

    def __init__(
        self,
        kernel: object,
        noise: float,
        budget: float | Budget | None = 0.1,
        *,
        max_size: int | None = None,
        forgetting: float = 1.0,
        calibrate: bool = False,
        mean: ArrayLike = 0.0,
        share: float = SHARE,
        projection: str = "condition",
        seed: int = 0,
        reservoir: int = RESERVOIR,
    ) -> None:
        if projection not in PROJECTIONS:
            raise ValueError(f"projection must be one of {PROJECTIONS}, got {projection!r}")
        self._projection = projection
        self._share = validation.non_negative("share", share)
        marginalise = projection == "marginalise"
        criterion: AbsorbedCriterion = WholePosterior(marginalise, self._share, reduce=marginalise)
        compression = Compression(criterion, budget, max_size)
        super().__init__(kernel, noise, mean, compression, forgetting)
        self._budget = compression.budget
        self._calibrate = validation.flag("calibrate", calibrate)
        self._seed = validation.seed(seed)
        self._reservoir = validation.count("reservoir", reservoir, 0)
        self._calibration: Calibration | None = None  # made with the first sample
        self._raw_samples: Reservoir | None = None
        self._rehearsed = 0  # samples before this one that are in the reservoir were rehearsed
        self._has_sample_noise = False  # whether samples had their own noise

    budget = Argument[Budget | None]("The budget, as a callable of the number of samples before.")
    forgetting = Argument[float]("What a sample's evidence is worth after one more.")
    calibrate = Argument[bool]("Whether variances are scaled by the residuals so far.")
    share = Argument[float]("The share of the noise that points must leave open to be kept.")
    reservoir = Argument[int]("How many raw samples are kept.")
    projection = Argument[str]('How a point is removed: "condition" or "marginalise".')

    @property
    def scale(self) -> float | Array:
        """The factor of all variances; one without `calibrate`."""
        if not self._calibrate or self._calibration is None:
            return 1.0
        return self._calibration.scale.copy() if self._target else float(self._calibration.scale[0])

    @property
    def nbytes(self) -> int:
        """Bytes held by the state."""
        return super().nbytes + (0 if self._raw_samples is None else self._raw_samples.nbytes)

    # ---- learning ---------------------------------------------------------------------------

    def _learned(self, X: Array, Y: Array, trace: Trace, own_noise: bool) -> None:
        outputs = Y.shape[1]
        self._has_sample_noise = self._has_sample_noise or own_noise
        if self._raw_samples is None or self._calibration is None:
            self._raw_samples = Reservoir(self._reservoir, X.shape[1], outputs, self._seed)
            self._calibration = Calibration(outputs)
        if len(Y) == 1:
            self._raw_samples.add_one(X, Y, 0)
        else:
            self._raw_samples.add(X, Y)
        if self._calibrate:
            scales = self._calibration.follow(Y, trace.means, trace.variances)
            trace.variances[...] *= scales

    # ---- predicting -------------------------------------------------------------------

    def predict(self, X: ArrayLike, latent: bool = False) -> tuple[Array, Array]:
        """Return the mean and the variance of y at each row of X; two numbers for a single (p,).

        With `latent=True` the variance is of the function, without the noise.
        """
        with self._state_lock:
            mean, variance = super().predict(X, latent)
            return mean, variance * self.scale

    def gradient(self, X: ArrayLike) -> tuple[Array, Array]:
        """Return the derivatives of the mean and of the latent variance by the inputs at X.

        They are exact, and (n, p) each; (p,) for a single point, (n, p, k) for k outputs.
        """
        with self._state_lock:
            mean, variance = super().gradient(X)
            return mean, variance * self.scale

    def covariance(self, X: ArrayLike, latent: bool = False) -> Array:
        """Return the covariance of y (or, latent, of f) between rows: (n, n) or (n, n, k)."""
        with self._state_lock:
            return super().covariance(X, latent) * self.scale

    # ---- merging and retuning --------------------------------------------------------------------

    def merge(self, *others: AbsorbingPOG) -> Self:
        """Add what other models have learned from other data; return this model.

        All must have the same kernel, noise, prior mean and forgetting. Positions in the stream
        are as if the samples of the other models came after those of this one. Forgotten
        information stays forgotten. All points are joined, and then points are removed once, to the
        cap and within the budget of one step. With no budget and no cap the result is exactly what
        one model would have learned from all streams. A sample that two of them learned counts
        twice.

        With a cap, merging costs accuracy: each model has chosen points for its own part. For one
        table in many parts `pogp.sums` is exact, and faster. Test SMSE and calibrated NLPD on
        kin40k, 30,000 rows, 300 points (`python -m benchmarks.engines quality merging`):

        ============================== ============= ===================
        SMSE and NLPD                  random parts  sorted by one input
        ============================== ============= ===================
        one model, row by row          .081 and .20  .107 and .42
        one of eight parts alone       .109 and .30  .205 and .57
        eight parts merged at once     .091 and .31  .093 and .33
        eight parts merged in a tree   .157 and .58  .134 and .50
        128 parts merged in a tree     .155 and .59  .129 and .49
        sums, any number of parts      .078 and .15  .078 and .15
        ============================== ============= ===================
        """
        for place, other in enumerate(others):
            self._require_mergeable(other)
            if other is self or any(other is earlier for earlier in others[:place]):
                raise ValueError(
                    "a model can be merged once, and not with itself: what it learned would count "
                    f"twice; got {other!r} again"
                )
        learned = [other for other in others if other._parts() is not None]
        if not learned:
            return self
        with self._learn_lock:
            merged = self.copy()  # a failure or an interrupt leaves this model unchanged
            if merged._parts() is None:
                merged.restore(learned.pop(0).state())
            merged._join(learned)
            merged._prune()
            self._replace_by(merged)
        return self

    def _join(self, others: list[AbsorbingPOG]) -> None:
        """Add what other models have learned, without removing any point."""
        mine = self._parts()
        theirs = [parts for other in others if (parts := other._parts()) is not None]
        if mine is None or not theirs:
            return
        offsets = self._seen + np.cumsum([0, *(other._seen for other in others[:-1])])
        mine[0].merge([parts[0] for parts in theirs], offsets.tolist())
        for other, (_, reservoir, calibration) in zip(others, theirs, strict=True):
            mine[1].join(reservoir)
            mine[2].join(calibration)
            self._seen += other._seen
        self._has_sample_noise = any(model._has_sample_noise for model in (self, *others))
        self._rehearsed = self._seen if any(model._rehearsed for model in (self, *others)) else 0

    def _parts(self) -> tuple[AbsorbedPosterior, Reservoir, Calibration] | None:
        """Return the information of the data, or None before the first sample."""
        if self._posterior is None or self._raw_samples is None or self._calibration is None:
            return None
        return self._posterior, self._raw_samples, self._calibration

    def _prune(self) -> None:
        """Remove points, to the cap and then within the budget of one step."""
        if self._posterior is not None:
            plan = self._compression.plan(self._seen, 1)
            condense(self._posterior, plan.max_size)
            self._posterior.prune(float(plan.limits[0]), plan.max_size)

    def _require_mergeable(self, other: object) -> None:
        if not isinstance(other, AbsorbingPOG):
            raise ValueError(f"other must be an AbsorbingPOG, got {other!r}")
        for name in ("kernel", "noise", "forgetting"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                raise ValueError(
                    f"other must have the same {name}, {mine!r}, got {theirs!r}; create all models "
                    "to merge with the same kernel and noise, for example from one `pogp.tune`"
                )
        if not np.array_equal(self._prior_mean, other._prior_mean):
            raise ValueError(f"other must have the same mean, {self.mean!r}, got {other.mean!r}")
        if None not in (self._target, other._target) and self._target != other._target:
            raise ValueError(
                f"other must have targets of shape {self._target}, as this, got {other._target}"
            )
        if None not in (self._dimension, other._dimension) and self._dimension != other._dimension:
            raise ValueError(f"other must have {self._dimension} inputs, got {other._dimension}")

    def rehearsed(self) -> Self:
        """Return a model in which the present points have learned the raw samples again.

        A sample is absorbed by the points of its time. A nearer point that is added later learns
        from the latest samples only. Up to a thousand raw samples, a uniform draw of the stream,
        are kept. The present points learn them again, in place of their share of what was learned.
        The error falls where these samples are a good part of the stream. The cost is O(M³).

        This model does not change. Continue to learn with it, and rehearse again when needed.

        >>> import pogp
        >>> arm = pogp.datasets.arm(1500)
        >>> model = AbsorbingPOG(pogp.RBF(2.5), noise=0.01, budget=None, max_size=50)
        >>> trace = model.learn(arm.x_train, arm.y_train)
        >>> means = [m.predict(arm.x_test)[0] for m in (model, model.rehearsed())]
        >>> [round(pogp.metrics.smse(arm.y_test, m, arm.y_train.var()), 3) for m in means]
        [0.266, 0.257]
        """
        fresh = self.copy()
        parts = fresh._parts()
        if parts is None:
            raise ValueError("there is nothing to rehearse: the model has not learned anything yet")
        self._require_raw_samples(parts[1])
        if self._forgetting < 1:
            raise ValueError(
                "a model that forgets cannot be rehearsed: old samples would count again"
            )
        if self._has_sample_noise:
            raise ValueError("samples had their own noise, which is not kept with the raw samples")
        posterior, held, _ = parts
        unrehearsed = held.positions >= self._rehearsed
        if posterior.size < self._seen and unrehearsed.any():
            share = 1 - np.count_nonzero(unrehearsed) / self._seen
            posterior.rehearse(held.inputs[unrehearsed], held.targets[unrehearsed], share)
            fresh._rehearsed = self._seen
        return fresh

    def retune(self, seed: int = 0) -> Tuned:
        """Tune the kernel and the noise again on the raw samples; return them.

        The belief is transferred to the new kernel, or the raw samples are learned from the
        beginning if that predicts better. If neither is better than before, nothing changes
        (`pogp.models.retuning` describes the test). Takes seconds, in which other threads may
        predict.
        """
        seed = validation.seed(seed)
        with self._learn_lock:
            parts = self._parts()
            if parts is None:
                raise ValueError(
                    "there is nothing to tune by: the model has not learned anything yet"
                )
            self._require_raw_samples(parts[1])
            posterior, reservoir, calibration = parts
            scale = calibration.scale if self._calibrate else None
            found = retuned(posterior, reservoir, scale, self._relearn, seed)
            if found is None:
                value = log_likelihood(self._kernel, self._noise, reservoir, posterior.mean)
                return Tuned(self._kernel, self._noise, value, evaluations=0, converged=True)
            with self._state_lock, Uninterrupted():
                self._kernel, self._noise = found.tuned.kernel, found.tuned.noise
                self._posterior = found.posterior
                calibration.scale = found.scale
                if found.relearned:
                    self._rehearsed = self._seen
            return found.tuned

    @staticmethod
    def _require_raw_samples(held: Reservoir) -> None:
        if not len(held):
            raise ValueError("the model keeps no raw samples: its reservoir is 0")

    def _relearn(self, kernel: Kernel, noise: float, which: Indices) -> AbsorbedPosterior:
        """Return the posterior of some samples of the reservoir under another prior."""
        parts = self._parts()
        if parts is None:
            raise ValueError("nothing was learned yet")
        old, held, _ = parts
        order = which[np.argsort(held.positions[which])]
        X, Y = held.inputs[order], held.targets[order]
        options = (self._compression.criterion, self._forgetting)
        fresh = AbsorbedPosterior(kernel, noise, old.mean, old.dimension, *options)
        ones, plan = np.ones(len(Y)), self._compression.plan(self._seen, len(Y))
        fresh.core, _ = fresh.learned(X, Y, noise * ones, ones, 0, plan, Uninterrupted())
        state = fresh.state()
        for name in ("arrivals", "recent_arrivals"):
            if name in state:
                state[name] = held.positions[order][state[name]]
        fresh.restore(state)
        return fresh

    # ---- state ------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return everything that was learned, as a flat mapping to arrays and numbers."""
        with self._state_lock:
            learned = super().state()
            # only if they apply
            learned |= {"rehearsed": self._rehearsed} if self._rehearsed else {}
            learned |= {"has_sample_noise": True} if self._has_sample_noise else {}
            for part in (self._calibration, self._raw_samples):
                if part is not None:
                    learned |= part.state()
            return learned

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned."""
        super().restore(state)
        if self._posterior is not None:
            dimension, outputs = state["inputs"].shape[1], state["weights"].shape[-1]
            self._calibration = Calibration(outputs)
            self._calibration.restore(state)
            self._raw_samples = Reservoir(self._reservoir, dimension, outputs, self._seed)
            self._raw_samples.restore(state)
        self._rehearsed = validation.count("rehearsed", state.get("rehearsed", 0), 0)
        self._has_sample_noise = state.get("has_sample_noise", False)
        if not isinstance(self._has_sample_noise, bool):
            raise ValueError(
                f"has_sample_noise must be true or false, got {self._has_sample_noise!r}"
            )
