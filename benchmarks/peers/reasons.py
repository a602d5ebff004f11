"""Why OnlineGP loses where it does, and what was tried, in words.

A stream on which it loses and that has no reason here fails the page, as a claim without evidence.
"""

WHY: dict[str, str] = {
    "arm": (
        "The two differ only in the cap, and 100 points are enough for this part of the stream. "
        "One seed does not tell whether the difference is more than chance. Nothing was tried "
        "beside the defaults."
    ),
    "magnetometer": (
        "Neighbouring samples of the walk are nearly the same, so that the last value is hard to "
        "beat. The last value is one of OnlineGP's members, but the others keep some weight. "
        ""
    ),
    "pol": (
        "There are 26 inputs, many of them irrelevant, little noise, and a function with jumps: "
        "trees suit it, a smooth kernel does not."
    ),
    "protein": (
        "1,000 samples are few for this function, and the better peers are close together. GopPy "
        "keeps all samples, at several times the time."
    ),
    "kin40": (
        "Samples are independent, the function is smooth, and nothing drifts. A model tuned once "
        "on the first samples loses nothing by that, while OnlineGP learns with hyperparameters of "
        "fewer samples at first."
    ),
    "boston": (
        "There are some hundred samples in all: an exact GP of all of them can be afforded. "
    ),
    "co2": (
        "The date is the only input, and each sample lies beyond all before it. The last value "
        "carries most of what can be known."
    ),
    "turbine_nox": (
        "In this part of the recording a linear model of the inputs is about as good as any other. "
    ),
    "kuka_kr300": (
        "The arm hardly moves in this part of the recording, and there is little to learn but "
        "where it is."
    ),
}
"""By stream; used only where OnlineGP loses."""

slow = (
    "OnlineGP weighs several beliefs and simple predictors at each sample, and tunes in slices "
    "along the stream. Where a linear model or the last value predicts nearly as well, it costs "
    "next to nothing, and OnlineGP cannot match that."
)
"""Why it is slower than some peers of comparable error."""


def why(topic: str) -> str:
    """Return the reason for one stream, or what is missing."""
    return WHY.get(topic, f"Why OnlineGP loses on {topic} is not explained.")
