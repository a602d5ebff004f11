"""Why OnlineGP loses where it does, in words; the records have what was tried.

A stream on which it loses and that has no reason here fails the page, as a claim without evidence.
"""

WHY: dict[str, str] = {
    "magnetometer": (
        "Neighbouring samples of the walk are nearly the same, so that the last value is hard to "
        "beat. The last value is one of OnlineGP's members, but the others keep some weight."
    ),
    "pol": (
        "There are 26 inputs, many of them irrelevant, little noise, and a function with jumps: "
        "trees suit it, a smooth kernel does not."
    ),
    "kin40": (
        "Samples are independent, the function is smooth, and nothing drifts: a kernel tuned once "
        "on the first 300 samples suits all of the stream. OnlineGP begins with kernels of fewer "
        "samples, and its points serve several beliefs at once."
    ),
    "boston": (
        "There are some hundred samples in all: an exact GP of all of them can be afforded."
    ),
    "co2": (
        "The date is the only input, and each sample lies beyond all before it. The last value "
        "carries most of what can be known."
    ),
}
"""By stream; used only where OnlineGP loses."""

slow = (
    "OnlineGP weighs several beliefs and simple predictors at each sample, and tunes in slices "
    "along the stream. A linear model, the last value, or trees that are refitted now and then "
    "cost next to nothing per sample. OnlineGP cannot match that where they predict nearly as well."
)
"""Why it is slower than some peers of comparable error."""


def why(topic: str) -> str:
    """Return the reason for one stream, or what is missing."""
    return WHY.get(topic, f"Why OnlineGP loses on {topic} is not explained.")
