"""Why OnlineGP loses where it does, in words, each with what the records have to show for it.

A stream on which it loses and that has no reason here, or one that the records do not bear out,
fails the page, as a claim without evidence. What was tried is in the records.
"""

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.peers.readings import MAIN, Comparison

EXACT = ("gpytorch-fantasies", "goppy", "sklearn-gp")
TREES = ("lightgbm", "river-forest", "river-tree", "soknl")
TUNED_ONCE = ("absorbing", "pog", "sogp", "streaming-vfe")
STEADY = 2.0
"""The factor within which OnlineGP's times on long streams are called alike."""


@dataclass(frozen=True)
class Reason:
    """A sentence or two, and whether a stream's records bear them out."""

    text: str
    holds: Callable[[Comparison], bool]


def _last_value_is_hard_to_beat(found: Comparison) -> bool:
    place = found.place("last")
    return place is not None and place <= 3


WHY: dict[str, Reason] = {
    "magnetometer": Reason(
        "Neighbouring samples of the walk are nearly the same, so that the last value is hard to "
        "beat. The last value is one of OnlineGP's members, but the others keep some weight.",
        _last_value_is_hard_to_beat,
    ),
    "pol": Reason(
        "There are 26 inputs, many of them irrelevant, little noise, and a function with jumps: "
        "trees suit it, a smooth kernel does not.",
        lambda found: found.first.case in TREES,
    ),
    "kin40": Reason(
        "Samples are independent, the function is smooth, and nothing drifts: a kernel tuned once "
        "on the first 300 samples suits all of the stream. OnlineGP begins with kernels of fewer "
        "samples, and its points serve several beliefs at once.",
        lambda found: found.first.case in TUNED_ONCE,
    ),
    "boston": Reason(
        "There are some hundred samples in all: an exact GP of all of them can be afforded.",
        lambda found: found.first.case in EXACT and found.samples < 1_000,
    ),
    "co2": Reason(
        "The date is the only input, and each sample lies beyond all before it. The last value "
        "carries most of what can be known.",
        _last_value_is_hard_to_beat,
    ),
}
"""By stream; used only where OnlineGP loses."""

SLOW = (
    "OnlineGP weighs several beliefs and simple predictors at each sample, and tunes in slices "
    "along the stream. That takes about the same time on all long streams, also where a simpler "
    "model predicts nearly as well."
)
"""Why it is slower than some peers of comparable error."""


def why(found: Comparison) -> tuple[bool, str]:
    """Return whether there is a reason for a loss that the records bear out, and its text."""
    if found.topic not in WHY:
        return False, f"Why OnlineGP loses on {found.topic} is not explained."
    reason = WHY[found.topic]
    return reason.holds(found), reason.text


def is_steady(found: list[Comparison]) -> bool:
    """Return whether OnlineGP takes about the same time on all streams of full length."""
    length = max(each.samples for each in found)
    rows = [each.row(MAIN) for each in found if each.samples == length]
    times = [row.mean("mean_us") for row in rows if row is not None]
    return max(times) <= STEADY * min(times)
