"""The results of a run in words. Every word is chosen by a number."""

from pogp.evaluation.methods import METHODS
from pogp.report.record import Method, Record

CLEAR = 2.0
"""A difference of fewer standard errors than this is not called clear."""


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
        return f"its squared error is {_percent(1 - error / other)} lower"
    return f"its squared error is {100 * (error / other - 1):.0f}% higher"


def _error(method: Method) -> float:
    return method.final.test.smse


def _percent(share: float) -> str:
    return "over 99%" if share > 0.99 else f"{100 * share:.0f}%"


def _times(ratio: float) -> str:
    return f"{ratio:.0f} times" if ratio >= 10 else f"{ratio:.1f} times"
