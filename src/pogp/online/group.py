"""A group: one kernel, one dictionary and a belief for each forgetting factor."""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple

import numpy as np

from pogp.arrays import Array
from pogp.criteria import WholePosterior
from pogp.kernels import evaluate
from pogp.online import arithmetic_core, group_step
from pogp.online.arithmetic import PRIOR_COUNT
from pogp.online.mixture import DISCOUNTS, OCCASIONS
from pogp.online.samples import Mask, Samples
from pogp.online.scales import Scales
from pogp.online.tuning import NOISY, Hyperparameters, Prior
from pogp.posteriors.absorbed import absorbed_core
from pogp.posteriors.absorbed.information import Information, information_of
from pogp.posteriors.gradients import absorbed_gradients
from pogp.posteriors.linalg.sliced import product
from pogp.posteriors.slots import packed
from pogp.slices import ALLOCATION_TICKS, CALL_TICKS, Work
from pogp.trace import REMOVED, REST

FORGETTING = (0.999, 0.99, 0.9999)
"""Forgetting factors of the second belief; the first does not forget."""
OLD_FORGETTING = (1.0, 0.9999, 0.999)
"""The beliefs of a group in older files."""
RESERVED_POINTS = 512
"""Memory is reserved for up to so many points at once."""
SHARE = 0.1
"""The least variance of a point given the others, as a share of the noise."""
CONDITION = WholePosterior(share=SHARE)
MARGINALISE = WholePosterior(share=SHARE, marginalise=True)
"""How points are removed, and what that costs; see `AbsorbingPOG`."""
LEAST_FACTOR = 0.01
"""The least factor of the noise."""
LEAST_NOISE = 1e-7
"""The least noise, in units of the targets' variance."""
TICKS_PER_SAMPLE, TICKS_PER_INPUT, SLICE_TICKS = 10_000, 4, 100_000
"""The ticks of a sample besides those of matrices, of each input of a point, and of a slice, at
least."""
NEW_GROUP_TICKS = 200_000
"""Ticks to make a group, besides its memory."""
OUTLIER_BOUND = 3.5
"""The influence of an outlier is that of an error of so many deviations."""
RATE = 0.2
"""The rate of running averages while samples are learned in slices."""
STATE = {
    "factor": "noise_factor",
    "product": "lag_product",
    "square": "lag_square",
    "residual": "residual",
    "unit": "last_z",
    "narrow": "corrected_factor",
    "scores": "scores",
}
"""The arrays of the state: the name in files, and that of the attribute."""


class Candidate(NamedTuple):
    """The choices of a group besides its hyperparameters."""

    family: str
    forgetting: float
    """The forgetting factor of the second belief."""
    marginalise: bool
    """Whether removed points are marginalised; otherwise the belief is conditioned."""


FIRST_CANDIDATE = Candidate("Matern32", FORGETTING[0], False)


class Group:
    """Beliefs that share a kernel, its units and the points.

    Each belief is a member of the mixture twice: as it is, and with the part of its last residual
    added that is expected to recur (ρ, the lag-one correlation of its residuals). The noise of each
    belief follows its residuals.

    Attributes
    ----------
    noise_factor
        The factor of the noise of each belief, (beliefs,).
    residual, last_z
        The last residual of each belief, and the same in deviations, (beliefs, outputs).
    lag_product, lag_square
        Discounted sums of z_t·z_{t−1} and z_{t−1}², from which ρ is estimated.
    corrected_factor
        The factor of the variance of a belief whose mean is corrected by its last residual.
    scores, occasion_scores
        The scores of the members, (discounts, members, outputs): of all samples, and of those of
        each occasion, (occasions, discounts, members, outputs).
    race_score
        The log-likelihood since the last race began.
    tuned_at
        The position at which the search for the hyperparameters began.
    transferred, led_before
        Whether the group began with the belief of another, or led before a change of the stream.
    """

    def __init__(
        self,
        hyperparameters: Hyperparameters,
        scales: Scales,
        outputs: int,
        max_size: int,
        forgetting: tuple[float, ...] = (1.0, FORGETTING[0]),
        marginalise: bool = False,
    ) -> None:
        self.hyperparameters = hyperparameters
        self.forgetting = forgetting
        self.criterion = MARGINALISE if marginalise else CONDITION
        self.scales = scales
        self.max_size = max_size
        self.noise = hyperparameters.noise
        self.least_factor = max(LEAST_FACTOR, LEAST_NOISE / self.noise)
        shape = (np.zeros(outputs), len(scales.centre))
        self.core = absorbed_core(
            hyperparameters.kernel, self.noise, *shape, forgetting, has_information=False
        )
        beliefs = len(forgetting)
        self.noise_factor = np.ones(beliefs)
        self.lag_product, self.lag_square = np.zeros((2, beliefs, outputs))
        self.residual, self.last_z = np.zeros((2, beliefs, outputs))
        self.corrected_factor = np.ones((beliefs, outputs))
        self.scores = np.zeros((len(DISCOUNTS), 2 * beliefs, outputs))
        self.occasion_scores = np.zeros((len(OCCASIONS), *self.scores.shape))
        self.race_score = 0.0
        self.tuned_at = 0
        self.transferred = False
        self.led_before = False
        self.removal_rate = 1.0  # points removed per sample, while samples are learned in slices
        self.step = group_step(self)

    def reserve(self) -> None:
        """Reserve memory for all points, so that no later step has to wait for it."""
        self.core.reserve(min(self.max_size, RESERVED_POINTS) + 1)

    @property
    def size(self) -> int:
        """The number of points."""
        return self.core.size

    @property
    def needed_points(self) -> int:
        """The points that a search has to consider: a third of them, if there is much noise."""
        return self.size // 3 if self.noise > NOISY else self.size

    @property
    def ticks(self) -> int:
        """Ticks to learn a sample; removing a point takes as long as adding one."""
        each = 0.6 * (1.0 + self.removal_rate) * self.size + TICKS_PER_INPUT * len(
            self.scales.centre
        )
        return TICKS_PER_SAMPLE + int(self.size * each)

    @property
    def candidate(self) -> Candidate:
        """The choices besides the hyperparameters."""
        return Candidate(self.family, self.forgetting[-1], self.criterion.marginalise)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return int(self.core.nbytes + sum(getattr(self, name).nbytes for name in STATE.values()))

    @property
    def family(self) -> str:
        """The family of the kernel."""
        return self.hyperparameters.prior.family

    @property
    def name(self) -> str:
        """The family, the position at which it was tuned, and where its belief comes from."""
        origin = " (previous leader)" if self.led_before else ""
        if self.transferred and not self.led_before:
            origin = " (transferred)"
        return f"{self.family} tuned at {self.tuned_at}{origin}"

    @property
    def member_names(self) -> list[str]:
        """The name of each member."""
        return [
            f"{self.name}, forgetting {forgetting}{corrected}"
            for corrected in ("", ", with last residual")
            for forgetting in self.forgetting
        ]

    @property
    def lengthscales(self) -> Array:
        """The length-scales of the columns in use, in units of their deviations."""
        columns = self.hyperparameters.prior.columns
        return np.exp(self.hyperparameters.parameters[: len(columns)])

    @property
    def n_members(self) -> int:
        """The number of members of the mixture: two for each belief."""
        return 2 * len(self.forgetting)

    # ---- predicting ---------------------------------------------------------------------------

    def predict(self, X: Array, resting: bool = False) -> tuple[Array, Array, Array]:
        """Return means and variances of y at raw inputs, (members, n, outputs), and latent shares.

        A latent share, (members, n), is the part of a variance that is not noise. If the stream is
        at rest (`resting`), no member is corrected by its last residual.
        """
        means, latent = self.core.predict(self.scales.inputs(X))
        variance = latent + (self.noise_factor * self.noise)[:, None]
        reach = 3.0 * np.sqrt(variance)[:, :, None]
        rho, factor = self._correction(resting)
        corrected = means + rho[:, None] * np.clip(self.residual[:, None], -reach, reach)
        unit = self.scales.unit
        user = self.scales.target_centre + np.concatenate([means, corrected]) * unit
        factors = (np.ones_like(factor), factor)
        variances = np.concatenate([variance[:, :, None] * each[:, None] for each in factors])
        shares = np.concatenate([latent / variance] * 2)
        return user, variances * unit**2, shares

    def _correction(self, resting: bool) -> tuple[Array, Array]:
        """Return ρ and the factor of the variance of corrected members, (beliefs, outputs) each."""
        if resting:
            return np.zeros_like(self.residual), np.ones_like(self.residual)
        rho = np.clip(self.lag_product / (self.lag_square + PRIOR_COUNT), -1.0, 1.0)
        return rho, self.corrected_factor

    def gradients(self, X: Array, resting: bool = False) -> tuple[Array, Array]:
        """Return the derivatives of means and variances of y by raw inputs, (members, n, p, k)."""
        U, unit = self.scales.inputs(X), self.scales.unit
        of_means, of_latent = absorbed_gradients(self.hyperparameters.kernel, self.core, U)
        by = self.scales.slopes(X)[:, :, None]
        means, spreads = of_means * by, of_latent[:, :, :, None] * by
        rho, factor = self._correction(resting)
        corrected = means
        if rho.any():  # the correction is limited by the deviation, which depends on the inputs
            latent = self.core.predict(U)[1]
            deviation = np.sqrt(latent + (self.noise_factor * self.noise)[:, None])[:, :, None]
            limited = np.abs(self.residual)[:, None] > 3.0 * deviation  # (beliefs, n, k)
            pull = np.where(limited, 1.5 * rho[:, None] * np.sign(self.residual)[:, None], 0.0)
            corrected = means + (pull / deviation)[:, :, None] * spreads
        user = spreads * unit**2
        variances = np.concatenate([user, user * factor[:, None, None]])
        return np.concatenate([means, corrected]) * unit, variances

    def correlation(self, X: Array) -> Array:
        """Return the correlation of f between rows of raw inputs, by the leading belief."""
        U = self.scales.inputs(X)
        w, _, k = self.core.regression(U)
        S = self.core.covariance_of(self.core.lead)
        covariance = evaluate(self.hyperparameters.kernel, U, U) - w @ k.T + w @ S @ w.T
        deviation = np.sqrt(np.maximum(np.diagonal(covariance), 1e-300))
        correlation = (covariance + covariance.T) / 2 / np.outer(deviation, deviation)
        np.fill_diagonal(correlation, 1.0)
        return np.asarray(np.clip(correlation, -1.0, 1.0))

    # ---- learning ------------------------------------------------------------------------------

    def learn(
        self, samples: Samples, stopped: Mask | None = None, scored: bool = False
    ) -> Work[None]:
        """Learn raw samples in order, in slices.

        Parameters
        ----------
        samples
            The samples, in stream order.
        stopped
            Which targets are stopped; by default this follows from the samples themselves.
        scored
            Whether the members are scored by their predictions of the samples.
        """
        stopped = samples.stopped if stopped is None else stopped
        outlier_rate, ticks = 0.0, 0
        yield CALL_TICKS + 15 * samples.X.size
        means, variances, gains = np.empty((3, self.n_members, samples.Y.shape[1]))
        arithmetic, step, ends = arithmetic_core(), self.step, (self.n_members,)
        has_extra, weights = samples.extra.any(), samples.weights.tolist()
        inputs, positions = self.scales.inputs(samples.X), samples.positions.tolist()
        rows = zip(inputs, samples.targets_at_inputs, positions, strict=True)
        for i, (scaled, y, position) in enumerate(rows):
            extra = samples.extra[i] if has_extra else None
            step.predict(scaled, extra, weights[i], means, variances)
            if scored:
                if extra is not None:
                    variances += extra
                scores = arithmetic.score(y, means, variances, DISCOUNTS, ends, gains, self.scores)
                self.race_score += scores[0]
            outlier = step.surprise(y) > OUTLIER_BOUND
            if outlier and samples.outliers[i]:
                continue
            outlier_rate += RATE * (outlier - outlier_rate)
            bound = OUTLIER_BOUND if outlier and outlier_rate < 0.5 else 0.0
            record = step.learn(y, position, bound, bool(stopped[i]))
            removed = float(record[REMOVED - len(REST)])
            self.removal_rate += RATE * (removed - self.removal_rate)
            ticks += self.ticks
            if ticks > SLICE_TICKS:
                yield ticks  # the next samples take about as long
                ticks = 0

    def transfer(
        self, old: Group, information: Information | None, remembered: float = 1.0
    ) -> Work[None]:
        """Begin with the information of another group's data (see `information`).

        Without it, the kernel and the scales are those of `old`, and so are the beliefs, of which
        a share is `remembered`. Noise factors and residuals are those of `old`, in these units.
        """
        if information is None:
            state = yield from self._same_beliefs(old, remembered)
        else:
            # the belief chosen here prices the points for the lifetime of the group
            lead, prior = int(old.prefers_forgetting), (self.hyperparameters.kernel, self.noise)
            kept, gram = yield from information.well_spaced(*prior, CONDITION)
            state = yield from kept.state(gram, has_information=False, lead=lead)
        inputs = state["inputs"]
        fresh = ALLOCATION_TICKS * len(inputs) ** 2
        yield CALL_TICKS + 2 * fresh + len(inputs) * inputs.size // 4
        self.core.restore(state, trusted=True)
        yield CALL_TICKS + 2 * fresh  # temporary memory is freed
        scale, sources = _mean_ratio(old.scales.unit / self.scales.unit), old.source_beliefs
        self.noise_factor[...] = old.noise_factor[sources] * old.noise * scale**2 / self.noise
        if information is not None:  # the noise is new, too
            least = max(0.1, LEAST_NOISE / self.noise)
            np.clip(self.noise_factor, least, 10.0, out=self.noise_factor)
        self.residual[...] = old.residual[sources] * (old.scales.unit / self.scales.unit)
        for name in ("lag_product", "lag_square", "last_z", "corrected_factor"):
            getattr(self, name)[...] = getattr(old, name)[sources]
        self.transferred = True
        self.prune_to_cap()

    def _same_beliefs(self, old: Group, remembered: float) -> Work[dict[str, Any]]:
        """Return the state of a core with the beliefs of another, for the same kernel and scales.

        Recent samples are left out, since their covariances with all points take long. If the share
        `remembered` is below one, the beliefs forget once: S ← λS + (1 − λ)K, m ← √λ m.
        """
        sources, lead = old.source_beliefs, int(old.prefers_forgetting)
        fresh = ALLOCATION_TICKS * old.size**2
        yield CALL_TICKS + 2 * fresh
        state = old.core.state()
        state = {name: part for name, part in state.items() if not name.startswith("recent_")}
        covariances: dict[int, Array] = {}
        nothing = np.empty((0, old.size))
        for belief, source in enumerate(sources):
            yield fresh
            if source not in covariances:
                covariances[source] = old.core.covariance_of(source)
                if remembered < 1.0:
                    yield 3 * fresh
                    prior = (1.0 - remembered) * old.core.gram
                    covariances[source] = remembered * covariances[source] + prior
            yield fresh
            name, S = f"covariance{belief}", covariances[source]
            state |= {name: packed(S), f"{name}_left": nothing, f"{name}_right": nothing}
        values = np.sqrt(remembered) * state["values"][sources]
        if sources[lead] != old.core.lead or remembered < 1.0:
            yield 2 * fresh
            Q = old.core.inverse
            half = yield from product(Q, covariances[sources[lead]])
            state["weights"] = Q @ values[lead]
            state["spread"] = np.einsum("ij,ij->i", half, Q)  # the diagonal of QSQ
        beliefs = {"kept": np.ones(len(sources)), "shift": np.zeros(len(sources)), "lead": lead}
        return state | beliefs | {"values": values}

    def has(self, hyperparameters: Hyperparameters, scales: Scales) -> bool:
        """Return whether the kernel, the noise and the scales are these."""
        mine = self.hyperparameters
        same = mine.prior.family == hyperparameters.prior.family and np.array_equal(
            mine.parameters, hyperparameters.parameters
        )
        return same and self.scales.equals(scales)

    def prune_to_cap(self) -> None:
        """Remove the cheapest points above the cap."""
        if self.size > self.max_size:
            self.core.prune(self.criterion, -np.inf, self.max_size)

    @property
    def prefers_forgetting(self) -> bool:
        """Whether a belief that forgets has the best score at the longest discount."""
        beliefs = len(self.forgetting)
        scores = self.scores[-1].sum(axis=1)
        return bool(np.argmax(np.maximum(scores[:beliefs], scores[beliefs:])) > 0)

    @property
    def source_beliefs(self) -> list[int]:
        """The beliefs of this group with which the two beliefs of the next group begin.

        If the belief that forgets is better, both begin with that one.
        """
        last = len(self.forgetting) - 1
        return [last if self.prefers_forgetting else 0, last]

    def information(self, scales: Scales) -> Work[Information]:
        """Return the information of the data for the beliefs of the next group, in `scales`."""
        ratio = self.scales.unit / scales.unit
        offset = (self.scales.target_centre - scales.target_centre) / scales.unit
        inputs = self.core.inputs
        if not self.scales.equals(scales):  # not by identity: a copy or a loaded model has its own
            inputs = scales.inputs(self.scales.user_inputs(inputs))
        information = yield from information_of(self.core, self.source_beliefs)
        yield ALLOCATION_TICKS * information.matrices.size
        return information.moved(inputs, _mean_ratio(ratio), ratio, offset)

    # ---- state ---------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the state, as arrays and numbers; older files do not have all of it."""
        found = self.hyperparameters
        default = self.forgetting == OLD_FORGETTING
        return {
            **{f"core_{name}": value for name, value in self.core.state().items()},
            **{f"scales_{name}": value for name, value in self.scales.state().items()},
            **{name: getattr(self, attribute).copy() for name, attribute in STATE.items()},
            **occasion_state(self.occasion_scores),
            "family": found.prior.family,
            "columns": found.prior.columns.copy(),
            "parameters": found.parameters.copy(),
            "value": float(found.value),
            "gained": float(self.race_score),
            "born": self.tuned_at,
            "carried": self.transferred,
            **({} if default else {"forgetting": np.array(self.forgetting)}),
            **({"marginalise": True} if self.criterion.marginalise else {}),
            **({"kept": True} if self.led_before else {}),
        }

    @classmethod
    def restored(cls, state: dict[str, Any], outputs: int, max_size: int) -> Group:
        """Return the group that `state` described."""
        prior = Prior(state["family"], np.array(state["columns"], dtype=np.int64))
        parameters = np.array(state["parameters"], dtype=np.float64)
        found = Hyperparameters(prior, parameters, float(state["value"]), np.empty(0, dtype=bool))
        forgetting = tuple(float(factor) for factor in state.get("forgetting", OLD_FORGETTING))
        scales = Scales.restored(with_prefix(state, "scales_"))
        marginalise = bool(state.get("marginalise", False))
        group = cls(found, scales, outputs, max_size, forgetting, marginalise)
        group.reserve()
        group.core.restore(with_prefix(state, "core_"))
        for name, attribute in STATE.items():
            value = np.array(state[name], dtype=np.float64)
            if value.shape != getattr(group, attribute).shape:
                raise ValueError(f"{name} must have shape {getattr(group, attribute).shape}")
            getattr(group, attribute)[...] = value
        group.occasion_scores[...] = restored_occasions(state, group.scores.shape)
        group.race_score, group.tuned_at = float(state["gained"]), int(state["born"])
        group.transferred = bool(state["carried"])
        group.led_before = bool(state.get("kept", False))
        return group

    def copy(self, compact: bool = False) -> Group:
        """Return an independent copy.

        A `compact` one takes less memory. Other groups begin with it, and it learns nothing more.
        """
        twin = copy(self)
        twin.core = self.core.compact_copy() if compact else self.core.copy()
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                setattr(twin, name, value.copy())
        twin.step = group_step(twin)
        return twin


def _mean_ratio(ratios: Array) -> float:
    """Return the geometric mean over the outputs."""
    return float(np.exp(np.mean(np.log(ratios))))


def occasion_state(scores: Array) -> dict[str, Array]:
    """Return the scores of each occasion that has occurred, by its name in files."""
    return {name: own.copy() for name, own in zip(OCCASIONS, scores, strict=True) if own.any()}


def restored_occasions(state: dict[str, Any], shape: tuple[int, ...]) -> Array:
    """Return the scores that `occasion_state` described; those of each have such a shape."""
    found = np.zeros((len(OCCASIONS), *shape))
    for name, own in zip(OCCASIONS, found, strict=True):
        value = np.array(state.get(name, own), dtype=np.float64)
        if value.shape != shape:
            raise ValueError(f"{name} must have shape {shape}")
        own[...] = value
    return found


def with_prefix(state: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Return the entries whose names begin with a prefix, without it."""
    return {name[len(prefix) :]: value for name, value in state.items() if name.startswith(prefix)}
