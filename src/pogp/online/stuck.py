"""Whether the targets are stuck: they repeat although the inputs say that they should not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pogp.arrays import Array
from pogp.online.group import OUTLIER_BOUND, Group
from pogp.online.samples import SampleStore

if TYPE_CHECKING:
    from pogp.online.ensemble import Ensemble

STUCK = "targets stuck"
"""The decision in the history that targets are not learned because they repeat."""
WINDOW = 30
"""The inputs are compared with those of so many samples."""
MAX_REPEATS = 3
"""After so many exact repetitions a target that hardly ever repeated before is stuck."""
CHANCE, CHANCE_IF_CONTRADICTED = 1e-6, 1e-3
"""The largest probability that a stuck target repeats by chance: alone, and if the leading group
contradicts it."""


def is_stuck(
    x: Array,
    y: Array,
    at_inputs: Array,
    leading: Group | None,
    ensemble: Ensemble,
    samples: SampleStore,
) -> bool:
    """Return whether the targets y of the sample that was scored are stuck.

    A sensor has failed, or a machine stands. The leading group contradicts the targets, or they
    repeat for the `MAX_REPEATS`-th time or more while inputs move. They do not repeat by chance, as
    rounded targets do. All inputs are near those of the samples before, so that none of them
    explains it. This lasts until the targets move again.
    """
    if leading is None or not ensemble.repeated:
        return False
    if ensemble.stuck:
        return True
    repeats = samples.repetitions(y, WINDOW)
    contradicted = leading.step.surprise(at_inputs) > OUTLIER_BOUND
    if repeats < MAX_REPEATS and not contradicted:
        return False
    before = samples.latest(samples.seen - WINDOW, samples.seen - repeats)
    moved = bool((x != samples.last_input).any())
    often = moved and repeats >= MAX_REPEATS
    if len(before.X) < WINDOW // 2 or not (often or contradicted):
        return False
    low, high = before.X.min(axis=0), before.X.max(axis=0)
    if not bool((x >= 2 * low - high).all() and (x <= 2 * high - low).all()):
        return False
    chance = samples.repetition_rate(y, samples.seen - repeats) ** repeats
    return (often and chance < CHANCE) or (contradicted and chance < CHANCE_IF_CONTRADICTED)
