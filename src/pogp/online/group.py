"""One kernel, one dictionary and several beliefs, one for each speed of forgetting."""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple

import numpy as np

from pogp.arrays import Array
from pogp.criteria import WholePosterior
from pogp.kernels import evaluate
from pogp.online import group_step, mixing_core
from pogp.online.mixing import DOUBT
from pogp.online.mixture import DISCOUNTS
from pogp.online.rows import Mask, Samples
from pogp.online.scales import Scales
from pogp.online.tuning import Found, Prior
from pogp.posteriors.absorbed import absorbed_core
from pogp.posteriors.absorbed.information import Information, information_of
from pogp.posteriors.gradients import absorbed_gradients
from pogp.slices import CALLS, FRESH, Work
from pogp.trace import REMOVED, REST

FORGETTING = (0.999, 0.99, 0.9999)
"""What a sample is worth after one more: the second belief has one of these, the first 1."""
FORMERLY = (1.0, 0.9999, 0.999)
"""The beliefs of a group in older files."""
ROOM = 512
"""Up to so many points, room for all is made at once."""
SHARE = 0.1
"""Points leave more than this share of the noise open; see `AbsorbingPOG`."""
CONDITION = WholePosterior(share=SHARE)
MARGINALISE = WholePosterior(share=SHARE, marginalise=True)
"""How points go, and what that costs; see `AbsorbingPOG`."""
LEAST_FACTOR = 0.01
"""The least factor of the noise."""
LEAST_NOISE = 1e-7
"""The noise stays above this, in units of the targets' variance."""
BESIDES, PER_INPUT, SLICE = 10_000, 4, 100_000
"""Ticks of learning a sample beside those of matrices, for each input of a point, and the least in
a slice."""
BORN = 200_000
"""Ticks that a new group takes beside its memory."""
GUARD = 3.5
"""Deviations beyond which an outlier counts no more."""
STATE = ("factor", "product", "square", "residual", "unit", "narrow", "scores")


class Candidate(NamedTuple):
    """What is raced beside hyperparameters."""

    family: str
    forgetting: float
    """Of the second belief."""
    marginalise: bool
    """How points go."""


FIRST = Candidate("Matern32", FORGETTING[0], False)
"""What is tried first."""


class Group:
    """Beliefs that share a kernel, its units and the points.

    Each belief is a member of the mixture twice: as it is, and corrected by the part of its last
    residual that is known to return. Its noise follows its residuals.
    """

    def __init__(
        self,
        found: Found,
        scales: Scales,
        outputs: int,
        max_size: int,
        forgetting: tuple[float, ...] = (1.0, FORGETTING[0]),
        marginalise: bool = False,
    ) -> None:
        self.found = found
        self.forgetting = forgetting
        self.criterion = MARGINALISE if marginalise else CONDITION
        self.scales = scales
        self.max_size = max_size
        self.noise = found.noise
        self.least = max(LEAST_FACTOR, LEAST_NOISE / self.noise)  # factor of it
        shape = (np.zeros(outputs), len(scales.centre))
        self.core = absorbed_core(
            found.kernel, self.noise, *shape, forgetting, informed=False, taught=True
        )
        beliefs = len(forgetting)
        self.factor = np.ones(beliefs)
        self.product, self.square, self.residual, self.unit = np.zeros((4, beliefs, outputs))
        self.narrow = np.ones((beliefs, outputs))
        self.scores, self.after = np.zeros((2, len(DISCOUNTS), 2 * beliefs, outputs))
        self.gained = 0.0  # log-likelihood since the last race began
        self.born = 0
        self.carried = False
        self.kept = False
        self.removals = 1.0  # of points by a sample that it was taught lately
        self.step = group_step(self)

    def reserve(self) -> None:
        """Make room for all points, so that no step of a stream has to wait for it."""
        self.core.reserve(min(self.max_size, ROOM) + 1)

    @property
    def size(self) -> int:
        """The number of points."""
        return self.core.size

    @property
    def ticks(self) -> int:
        """What learning a sample counts for; the removal of a point as much as its arrival."""
        each = 0.6 * (1.0 + self.removals) * self.size + PER_INPUT * len(self.scales.centre)
        return BESIDES + int(self.size * each)

    @property
    def candidate(self) -> Candidate:
        """What it is beside its hyperparameters."""
        return Candidate(self.label, self.forgetting[-1], self.criterion.marginalise)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return int(self.core.nbytes + sum(getattr(self, name).nbytes for name in STATE))

    @property
    def name(self) -> str:
        """The family, where the kernel was found, and what it began with.

        That is what another group knew, or what it knew itself before the stream changed.
        """
        began = " (kept)" if self.kept else " (carried over)" if self.carried else ""
        return f"{self.label} of {self.born}{began}"

    @property
    def names(self) -> list[str]:
        """The name of each member."""
        return [
            f"{self.name}, forgetting {forgetting}{corrected}"
            for corrected in ("", ", residual carried")
            for forgetting in self.forgetting
        ]

    @property
    def lengthscales(self) -> Array:
        """The length-scales of the columns that count, in units of their deviations."""
        return np.exp(self.found.parameters[: len(self.found.prior.columns)])

    @property
    def members(self) -> int:
        """How many members of the mixture it is: each belief twice."""
        return 2 * len(self.forgetting)

    @property
    def label(self) -> str:
        """The family of the kernel."""
        return self.found.prior.family

    # ---- predicting ---------------------------------------------------------------------------

    def predict(self, X: Array, resting: bool = False) -> tuple[Array, Array, Array]:
        """Return means and variances of y, (members, n, outputs), and latent shares, at raw inputs.

        A latent share is the part of a variance that is not noise. If the stream is `resting`, the
        last residual says nothing of what comes, and no member is corrected by it.
        """
        means, latent = self.core.predict(self.scales.inputs(X))
        variance = latent + (self.factor * self.noise)[:, None]
        reach = 3.0 * np.sqrt(variance)[:, :, None]
        returns, narrow = self._carried(resting)
        corrected = means + returns[:, None] * np.clip(self.residual[:, None], -reach, reach)
        unit = self.scales.unit
        user = self.scales.target_centre + np.concatenate([means, corrected]) * unit
        both = [np.ones_like(narrow)[:, None], narrow[:, None]]
        variances = np.concatenate([variance[:, :, None] * factor for factor in both])
        shares = np.concatenate([latent / variance] * 2)
        return user, variances * unit**2, shares

    def _carried(self, resting: bool) -> tuple[Array, Array]:
        """Return the share of the last residuals that returns, and what is then left of variances.

        (beliefs, outputs) each. When the stream rests nothing returns, and nothing is saved by it.
        """
        if resting:
            return np.zeros_like(self.narrow), np.ones_like(self.narrow)
        return np.clip(self.product / (self.square + DOUBT), -1.0, 1.0), self.narrow

    def gradients(self, X: Array, resting: bool = False) -> tuple[Array, Array]:
        """Return the derivatives of means and variances of y by raw inputs, (members, n, p, k)."""
        U, unit = self.scales.inputs(X), self.scales.unit
        _, latent = self.core.predict(U)
        deviation = np.sqrt(latent + (self.factor * self.noise)[:, None])
        held = np.abs(self.residual)[:, None] > 3.0 * deviation[:, :, None]  # (beliefs, n, k)
        returns, narrow = self._carried(resting)
        pull = np.where(held, 1.5 * returns[:, None] * np.sign(self.residual)[:, None], 0.0)
        parts = [absorbed_gradients(self.found.kernel, self.core, U, b) for b in range(len(latent))]
        by = self.scales.slopes(X)[:, :, None]
        means = np.array([mean * by for mean, _ in parts])
        spreads = np.array([variance[:, :, None] * by for _, variance in parts])
        corrected = means + (pull / deviation[:, :, None])[:, :, None] * spreads
        both = [np.ones_like(narrow)[:, None, None], narrow[:, None, None]]
        variances = np.concatenate([spreads * factor * unit**2 for factor in both])
        return np.concatenate([means, corrected]) * unit, variances

    def keep_to_cap(self) -> None:
        """Let go of the cheapest points above the cap."""
        if self.size > self.max_size:
            self.core.prune(self.criterion, -np.inf, self.max_size)

    @property
    def forgets(self) -> bool:
        """Whether a belief that forgets has the best long score."""
        beliefs = len(self.forgetting)
        scores = self.scores[-1].sum(axis=1)
        return bool(np.argmax(np.maximum(scores[:beliefs], scores[beliefs:])) > 0)

    def correlation(self, X: Array) -> Array:
        """Return the correlation of f between rows of raw inputs, by the belief that leads."""
        U = self.scales.inputs(X)
        w, _, k = self.core.regression(U)
        S = self.core.covariance_of(self.core.lead)
        covariance = evaluate(self.found.kernel, U, U) - w @ k.T + w @ S @ w.T
        deviation = np.sqrt(np.maximum(np.diagonal(covariance), 1e-300))
        correlation = (covariance + covariance.T) / 2 / np.outer(deviation, deviation)
        np.fill_diagonal(correlation, 1.0)
        return np.asarray(np.clip(correlation, -1.0, 1.0))

    # ---- where it comes from -------------------------------------------------------------------

    def teach(
        self, samples: Samples, still: Mask | None = None, scored: bool = False
    ) -> Work[None]:
        """Learn raw samples in order; if `scored`, members are scored by how they predict them.

        `still` says which of them are at rest, if they do not show it themselves.
        """
        still = samples.still if still is None else still
        strange, work = 0.0, 0
        yield CALLS + 15 * samples.X.size
        means, variances, gains = np.empty((3, self.members, samples.Y.shape[1]))
        mixing, step, ends = mixing_core(), self.step, (self.members,)
        uncertain, weights = samples.extra.any(), samples.weights.tolist()
        inputs, positions = self.scales.inputs(samples.X), samples.positions.tolist()
        rows = zip(inputs, samples.Y, positions, strict=True)
        for i, (scaled, y, position) in enumerate(rows):
            extra = samples.extra[i] if uncertain else None
            step.glance(scaled, extra, weights[i], means, variances)
            if scored:
                if extra is not None:
                    variances += extra
                told = (y, means, variances, DISCOUNTS, ends)
                self.gained += mixing.score(*told, gains, self.scores)[0]
            odd = step.surprise(y) > GUARD
            strange += 0.2 * (odd - strange)
            guard = GUARD if odd and strange < 0.5 else 0.0
            removed = float(step.learn(y, position, guard, bool(still[i]))[REMOVED - len(REST)])
            self.removals += 0.2 * (removed - self.removals)
            work += self.ticks
            if work > SLICE:
                yield work  # what the next samples take, which is as much
                work = 0

    def carry(self, old: Group, said: Information) -> Work[None]:
        """Take over what a group's data said (see `told`), under this kernel.

        Noise and residuals are those of `old`.
        """
        kernel = self.found.kernel
        # the belief that prices the points does so for as long as the group lives
        spaced, gram = yield from said.spaced(kernel, self.noise, CONDITION)
        state = yield from spaced.state(gram, informed=False, lead=int(old.forgets))
        fresh = FRESH * len(spaced.inputs) ** 2
        yield CALLS + 2 * fresh + len(spaced.inputs) * spaced.inputs.size // 4
        self.core.restore(state, trusted=True)
        yield CALLS + 2 * fresh  # and all that was needed for it is given back
        scale = _common(old.scales.unit / self.scales.unit)
        self.factor[...] = np.clip(
            old.factor[old.sources] * old.noise * scale**2 / self.noise,
            max(0.1, LEAST_NOISE / self.noise),
            10.0,
        )
        self.residual[...] = old.residual[old.sources] * (old.scales.unit / self.scales.unit)
        for name in ("product", "square", "unit", "narrow"):
            getattr(self, name)[...] = getattr(old, name)[old.sources]
        self.carried = True
        self.keep_to_cap()

    @property
    def sources(self) -> list[int]:
        """The beliefs that the two of the next group begin as: those of this one.

        If the one that forgets is better, both begin as that one, and the first forgets nothing
        from then on.
        """
        last = len(self.forgetting) - 1
        return [last if self.forgets else 0, last]

    def told(self, scales: Scales) -> Work[Information]:
        """Return what the data said to the beliefs of the next group, in its units."""
        ratio = self.scales.unit / scales.unit
        offset = (self.scales.target_centre - scales.target_centre) / scales.unit
        inputs = self.core.inputs
        if self.scales is not scales:
            inputs = scales.inputs(self.scales.user_inputs(inputs))
        said = yield from information_of(self.core, self.sources)
        yield FRESH * said.matrices.size
        return said.moved(inputs, _common(ratio), ratio, offset)

    # ---- state ---------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the state, as arrays and numbers."""
        found = self.found
        return {
            **{f"core_{name}": value for name, value in self.core.state().items()},
            **{f"scales_{name}": value for name, value in self.scales.state().items()},
            **{name: getattr(self, name).copy() for name in STATE},
            **({"after": self.after.copy()} if self.after.any() else {}),  # older files have none
            "family": found.prior.family,
            "columns": found.prior.columns.copy(),
            "parameters": found.parameters.copy(),
            "value": float(found.value),
            "gained": float(self.gained),
            "born": self.born,
            "carried": self.carried,
            # nor have they these
            **({} if self.forgetting == FORMERLY else {"forgetting": np.array(self.forgetting)}),
            **({"marginalise": True} if self.criterion.marginalise else {}),
            **({"kept": True} if self.kept else {}),
        }

    @classmethod
    def restored(
        cls, state: dict[str, Any], outputs: int, max_size: int, trusted: bool = False
    ) -> Group:
        """Return the group that `state` described; `trusted` if it does not come from a file."""
        prior = Prior(state["family"], np.array(state["columns"], dtype=np.int64))
        parameters = np.array(state["parameters"], dtype=np.float64)
        found = Found(prior, parameters, float(state["value"]), np.empty(0, dtype=bool))
        forgetting = tuple(float(share) for share in state.get("forgetting", FORMERLY))
        scales = Scales.restored(part(state, "scales_"))
        marginalise = bool(state.get("marginalise", False))
        group = cls(found, scales, outputs, max_size, forgetting, marginalise)
        group.reserve()
        group.core.restore(part(state, "core_"), trusted=trusted)
        for name in (*STATE, "after"):
            value = np.array(state.get(name, group.after), dtype=np.float64)
            if value.shape != getattr(group, name).shape:
                raise ValueError(f"{name} must have shape {getattr(group, name).shape}")
            getattr(group, name)[...] = value
        group.gained, group.born = float(state["gained"]), int(state["born"])
        group.carried, group.kept = bool(state["carried"]), bool(state.get("kept", False))
        return group

    def copy(self) -> Group:
        """Return an independent group that will behave as this one."""
        twin = copy(self)
        twin.core = self.core.copy()
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                setattr(twin, name, value.copy())
        twin.step = group_step(twin)
        return twin


def _common(ratio: Array) -> float:
    """Return the unit that outputs have in common."""
    return float(np.exp(np.mean(np.log(ratio))))


def part(state: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Return the entries whose names begin with a prefix, without it."""
    return {name[len(prefix) :]: value for name, value in state.items() if name.startswith(prefix)}
