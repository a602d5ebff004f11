"""The group that led before the last change, and whether the function has changed.

Many streams change and change back: a machine stops and runs again or alternates between two
products, or a sensor is disconnected for a while. The leading group learns the new targets and
loses the old ones. When a change begins, a copy of the leading group is stored, and the copy that
was stored at the change before joins the mixture again. It leads after a few samples if the stream
has returned to its former state. If most of the following samples are far from their predictions,
in units of the errors before the change, the function is new.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pogp.arrays import Array
from pogp.online.group import OUTLIER_BOUND, Group

if TYPE_CHECKING:
    from pogp.online.ensemble import Ensemble

CHANGING, SETTLED = 0.3, 0.1
"""A change begins when the rate of surprises exceeds the first, as after two in a row. It has ended
when the rate falls below the second."""
WATCHED = 30
"""The number of samples after a surprise or a change that decide whether the function is new."""
EVERY, RATE = 8, 0.2
"""The usual variance is updated every so many samples, at this rate."""


class PreviousLeader:
    """The stored group, and the samples counted since the change."""

    def __init__(self, outputs: int) -> None:
        self.group: Group | None = None
        self.changing = False
        self.usual_variance = np.zeros(outputs)  # of predictions while nothing changes
        self.to_watch = self.n_far = 0  # samples left to watch, and those far off so far

    def copy_before_change(
        self, leading: Group | None, surprise_rate: float, returned: bool
    ) -> Group | None:
        """Return a copy of the leading group if a change begins with the current sample.

        `returned` says that the stored group explains the sample: the stream has changed back.
        """
        begins = not self.changing and (returned or surprise_rate > CHANGING)
        self.changing = begins or surprise_rate > (SETTLED if self.changing else CHANGING)
        return leading.copy() if begins and leading is not None else None

    def explains(self, x: Array, y: Array, mean: Array) -> bool:
        """Whether a member of the stored group predicts the targets y at a raw input x.

        It must also be closer than `mean`, the prediction of the mixture: a vague group would
        explain anything.
        """
        if self.group is None:
            return False
        means, variances, _ = self.group.predict(x[None])
        errors = np.abs(y - means[:, 0])
        near = errors < np.minimum(OUTLIER_BOUND * np.sqrt(variances[:, 0]), np.abs(y - mean))
        return bool(near.all(axis=1).any())

    def score(self, x: Array, y: Array, mean: Array, ensemble: Ensemble) -> None:
        """Score the stored group by the sample with which a change begins.

        Before it, all its members together have the weight of the best member of the ensemble. A
        group that is not closer to the targets than the mixture, of this `mean`, is given up.
        """
        group = self.group
        if group is None:
            return
        means, variances, _ = group.predict(x[None])
        if not (np.abs(y - means[:, 0]) < np.abs(y - mean)).all(axis=1).any():
            self.group = None
            return
        score = ensemble.best_scores(before=True)[:, None] - np.log(group.n_members)
        group.scores[...] = score + ensemble.gains_beside(y, means[:, 0], variances[:, 0])

    def exchange(self, group: Group) -> Group | None:
        """Store a group; return the one stored before."""
        previous, self.group, group.led_before = self.group, group, True
        self.to_watch, self.n_far = WATCHED, 0
        return previous

    def function_changed(self, y: Array, record: Array, seen: int, surprise: bool) -> bool:
        """Count a sample with its record; return whether the function is now known to be new.

        Samples are watched from a surprise on: bands soon grow, so that a second one may not come.
        """
        outputs = len(y)
        if surprise and not self.to_watch and self.usual_variance.any():
            self.to_watch, self.n_far = WATCHED, 0
        if self.to_watch:
            far = (y - record[:outputs]) ** 2 > OUTLIER_BOUND**2 * self.usual_variance
            self.n_far += bool(far.any())
            self.to_watch -= 1
            return self.to_watch == 0 and 2 * self.n_far > WATCHED
        if seen % EVERY == 0 and not self.changing:
            rate = RATE if self.usual_variance.any() else 1.0
            self.usual_variance += rate * (record[outputs : 2 * outputs] - self.usual_variance)
        return False

    def state(self) -> dict[str, Any]:
        """Return the state, as arrays and numbers."""
        variance = {"usual": self.usual_variance.copy()} if self.usual_variance.any() else {}
        numbers = {"unsettled": self.changing, "watched": self.to_watch, "far": self.n_far}
        kept = {name: number for name, number in numbers.items() if number}
        return {**variance, **kept, **({} if self.group is None else self.group.state())}

    def restore(self, state: dict[str, Any], max_size: int) -> None:
        """Restore what `state` returned; older files have none of it."""
        usual = np.array(state.get("usual", 0.0 * self.usual_variance), dtype=np.float64)
        outputs, valid = len(self.usual_variance), np.isfinite(usual) & (usual >= 0)
        if usual.shape != (outputs,) or not valid.all():
            raise ValueError(f"usual variances must be {outputs} numbers >= 0, got {usual}")
        self.usual_variance, self.changing = usual, bool(state.get("unsettled", False))
        self.to_watch, self.n_far = int(state.get("watched", 0)), int(state.get("far", 0))
        if not 0 <= self.n_far <= WATCHED - self.to_watch <= WATCHED:
            raise ValueError(f"{self.n_far} samples far off, {self.to_watch} of {WATCHED} to watch")
        stored = "family" in state
        self.group = Group.restored(state, len(usual), max_size) if stored else None
