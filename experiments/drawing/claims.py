"""Sentences of the report that stand only as long as the records bear them out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from experiments.readings.estimates import Estimate


class Claims:
    """What the template calls to make a claim; what does not hold is left out, and kept here."""

    def __init__(self) -> None:
        self.failed: list[str] = []

    def __call__(self, holds: bool, caller: Callable[[], str]) -> str:
        """Return what is inside the call if it holds.

        >>> claims = Claims()
        >>> claims(True, lambda: "Two is more than one."), claims(False, lambda: "One is more.")
        ('Two is more than one.', '')
        >>> claims.failed
        ['One is more.']
        """
        sentence = caller()
        if holds:
            return sentence
        self.failed.append(" ".join(sentence.split()))
        return ""


def compared(excess: Estimate, lower: str = "lower than", higher: str = "higher than") -> str:
    """Return how one score stands to another, given how much higher it is.

    >>> compared(Estimate.of([-0.2, -0.21])), compared(Estimate.of([-0.2, 0.3]))
    ('clearly lower than', 'not clearly different from')
    """
    if not excess.clear:
        return "not clearly different from"
    return f"clearly {lower if excess.mean < 0 else higher}"


def close_to(ones: Sequence[float], others: Sequence[float]) -> bool:
    """Return whether numbers are pairwise the same, to a hundredth.

    >>> close_to([0.5, 1.0], [0.501, 1.0]), close_to([0.5], [0.6])
    (True, False)
    """
    return bool(np.allclose(ones, others, rtol=0.0, atol=0.01))
