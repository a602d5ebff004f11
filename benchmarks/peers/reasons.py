"""Why OnlineGP loses where it does, and what was tried, in words.

A stream on which it loses and that has no reason here fails the page, as a claim without evidence.
"""

WHY: dict[str, str] = {}
"""By stream."""

slow = ""
"""Why it is slower than some peers of comparable error."""


def why(topic: str) -> str:
    """Return the reason for one stream, or what is missing."""
    return WHY.get(topic, f"Why OnlineGP loses on {topic} is not explained.")
