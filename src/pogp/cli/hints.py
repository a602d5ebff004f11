"""What a user may want to be told of a model, though nothing went wrong."""

from collections.abc import Iterator

import numpy as np

from pogp.cli.learning import Learning

ENOUGH = 50
"""Samples below which nothing is said."""
POOR = 0.9
"""A mean squared error above this share of the variance is hardly worth a model."""


def hints(learning: Learning) -> Iterator[str]:
    """Return what seems worth a second look."""
    if learning.model.warming_up or learning.journal.seen < ENOUGH:
        return
    if rising := _rising(learning):
        yield (
            f"Hint: {', '.join(rising)} only ever went up, as counters and clocks do, and what is "
            "learned about them may not hold for rows to come: --exclude leaves columns out."
        )
    recent = learning.journal.recent()
    if recent.relative and recent.error[0] > POOR:
        yield (
            "Hint: that is hardly better than always predicting the mean. Other columns may say "
            "more; --forgetting 0.999 helps where what the data follow has changed on the way, "
            "and a larger --max-size where all points are in use."
        )


def _rising(learning: Learning) -> list[str]:
    """Return the inputs, of several, that rose all along, by the samples that the journal kept."""
    samples = learning.journal.samples
    steps = np.diff(samples.inputs[np.argsort(samples.positions)], axis=0)
    names = zip(learning.columns, steps.T, strict=True)
    rising = [name for name, column in names if (column > 0).all()]
    return rising if len(learning.columns) > 1 else []
