"""A run as text: a table of the methods, with its settings above and its results in words below."""

from collections.abc import Callable, Sequence
from textwrap import fill

from pogp.evaluation.methods import METHODS
from pogp.report.prose import WIDTH, human_bytes
from pogp.report.run_record import Method, Record, Settings

CLEAR = 2.0
"""A difference of fewer standard errors than this is not called clear."""

COLUMNS: dict[str, Callable[[Method], str]] = {
    "method": lambda method: METHODS[method.name].label,
    "test SMSE": lambda method: fixed(method.final.test.smse),
    "MSLL": lambda method: f"{method.final.test.msll:.4f}",
    "NLPD": lambda method: f"{method.final.test.nlpd:.4f}",
    "in 95% band": lambda method: f"{100 * method.final.test.coverage:.1f}%",
    "order": lambda method: str(method.final.size),
    "samples": lambda method: str(method.final.seen),
    "µs/sample": lambda method: f"{method.microseconds:.0f}",
    "memory": lambda method: human_bytes(method.nbytes),
}


def text(record: Record) -> str:
    """Return the whole report of a run, ready to print."""
    rows = [[write(method) for write in COLUMNS.values()] for method in record.methods]
    return "\n".join(
        [
            *_paragraph(_what_was_run(record)),
            *_paragraph(_hyperparameters(record)),
            "",
            *grid([list(COLUMNS), *rows]),
            "",
            *_paragraph(_prequential(record)),
            *(line for note in _notes(record) for line in _paragraph(note)),
            "",
            *(line for sentence in reading(record) for line in _paragraph(sentence)),
        ]
    )


def grid(rows: Sequence[Sequence[str]]) -> list[str]:
    r"""Return rows of cells as lines, the first row ruled off, the first column to the left.

    >>> print("\n".join(grid([["method", "order"], ["POG", "12"]])))
    method  order
    ─────────────
    POG        12
    """
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    head, *body = (
        "  ".join(
            cell.rjust(width) if position else cell.ljust(width)
            for position, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
    return [head, "─" * len(head), *body]


def fixed(value: float) -> str:
    """Return a number with four decimals, or in powers of ten where those would hide it.

    >>> fixed(0.12345), fixed(1.2e-7)
    ('0.1235', '1.2e-07')
    """
    return f"{value:.4f}" if value == 0 or abs(value) >= 1e-3 else f"{value:.1e}"


def _what_was_run(record: Record) -> str:
    settings = record.settings
    inputs = "1 input" if record.inputs == 1 else f"{record.inputs} inputs"
    cap = "the size that POG ends with" if settings.max_size is None else settings.max_size
    return (
        f"{settings.data}, seed {settings.seed}: {record.streamed} samples streamed, "
        f"{record.test_samples} test samples, {inputs}. Cap on the points kept: {cap}. "
        f"POG: {', '.join(_options(settings))}."
    )


def _options(settings: Settings) -> list[str]:
    """Return POG's own options in words."""
    parts = [f"view {settings.view}"]
    parts.append("no budget" if settings.budget is None else f"budget {settings.budget:g}")
    if settings.max_removals is not None:
        parts.append(f"max-removals {settings.max_removals}")
    return parts


def _hyperparameters(record: Record) -> str:
    found = record.hyperparameters
    low, high = min(found.lengthscales), max(found.lengthscales)
    scales = f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"
    return (
        f"Hyperparameters from the {found.samples} samples before those ({found.seconds:.1f} s): "
        f"noise variance {found.noise:.3g}, signal variance {found.variance:.3g}, "
        f"length-scales {scales}. OnlineGP is not given them."
    )


def _prequential(record: Record) -> str:
    scores = (
        f"{METHODS[method.name].label} {fixed(method.prequential.smse)} "
        f"({100 * method.prequential.coverage:.1f}%)"
        for method in record.methods
    )
    return f"Each sample predicted before it was learned, SMSE (in 95% band): {', '.join(scores)}."


def _notes(record: Record) -> list[str]:
    notes = ["Time is the processor time of learning alone. Memory includes room to grow."]
    dense = record.method("dense")
    if dense is None:
        notes.append("The dense GP was left out (--dense-limit 0).")
    elif dense.final.seen < record.streamed:
        notes.append(
            f"The dense GP was fed the first {dense.final.seen} of {record.streamed} samples only "
            "(--dense-limit)."
        )
    return notes


def _paragraph(sentence: str) -> list[str]:
    filled = fill(sentence, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    return filled.splitlines()


# ---- results in words ------------------------------------------------------------------------


def reading(record: Record) -> list[str]:
    """Return sentences that compare each method with the random subset, and with the dense GP."""
    random = record.method("random")
    dense = record.method("dense")
    if random is None:
        return []
    bounded = [method for method in record.methods if method not in (random, dense)]
    sentences = [_against_random(method, random) for method in bounded]
    if dense is not None and bounded:
        sentences.append(_against_dense(min(bounded, key=_error), dense))
    return sentences


def _against_random(method: Method, random: Method) -> str:
    label, points = METHODS[method.name].label, method.final.size
    contrast = method.contrast
    if contrast.difference == 0:
        return f"{label} with {points} points is exactly as accurate as the random subset."
    deviations = (
        abs(contrast.difference) / contrast.standard_error if contrast.standard_error else 0
    )
    lower, clearly = contrast.difference < 0, deviations >= CLEAR
    return (
        f"{label} with {points} points is {'' if clearly else 'not clearly '}"
        f"{'more' if lower else 'less'} accurate than a random subset of {random.final.size}: "
        f"{_compared(_error(method), _error(random))} ({deviations:.1f} standard errors)."
    )


def _against_dense(best: Method, dense: Method) -> str:
    label = METHODS[best.name].label
    return (
        f"The dense GP keeps {_times(dense.final.size / best.final.size)} as many points as {label}"
        f" and needs {_times(dense.nbytes / best.nbytes)} as much memory: "
        f"{_compared(_error(dense), _error(best))}."
    )


def _compared(error: float, other: float) -> str:
    """Say by how much a squared error is lower or higher than another."""
    if error <= other:
        share = 1 - error / other
        return f"its squared error is {'over 99' if share > 0.99 else f'{100 * share:.0f}'}% lower"
    return f"its squared error is {100 * (error / other - 1):.0f}% higher"


def _error(method: Method) -> float:
    return method.final.test.smse


def _times(ratio: float) -> str:
    return f"{ratio:.0f} times" if ratio >= 10 else f"{ratio:.1f} times"
