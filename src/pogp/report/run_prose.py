"""What the numbers of a run say, in words. Every word is chosen by a number."""

from pogp.report.record import Method, Record

CLEAR = 2.0
"""A difference of fewer standard errors than this is not called clear."""


def reading(record: Record) -> list[str]:
    """Return a sentence for each method that POG is compared with."""
    pog, *others = record.methods
    sentences = {"random": _at_the_same_size, "dense": _without_limit}
    return [sentences[other.name](pog, other) for other in others]


def _at_the_same_size(pog: Method, random: Method) -> str:
    sentence = f"With {pog.final.size} points {_verdict(pog, random, 'a random subset')}."
    if _deviations(random) <= -CLEAR:
        sentence += " Choosing the points did not pay here."
    return sentence


def _without_limit(pog: Method, dense: Method) -> str:
    points = _times(dense.final.size / pog.final.size)
    time = _times(dense.microseconds / pog.microseconds)
    return (
        f"The dense GP keeps {points} as many points and takes {time} as long per sample: "
        f"{_verdict(pog, dense, 'it')}."
    )


def _verdict(pog: Method, other: Method, name: str) -> str:
    """Say which of the two is more accurate on the test set, by how much and how surely."""
    if other.contrast.difference == 0:
        return f"POG is exactly as accurate as {name}"
    better, worse = ("POG", name) if other.contrast.difference > 0 else (name, "POG")
    low, high = sorted((pog.final.test.smse, other.final.test.smse))
    deviations = abs(_deviations(other))
    return (
        f"{better} is {'' if deviations >= CLEAR else 'not clearly '}more accurate than {worse}, "
        f"with a squared error {_percent(1 - low / high)} lower ({deviations:.1f} standard errors)"
    )


def _deviations(method: Method) -> float:
    """Return by how many standard errors the method's error is above POG's."""
    contrast = method.contrast
    return contrast.difference / contrast.standard_error if contrast.standard_error else 0.0


def _percent(share: float) -> str:
    return "over 99%" if share > 0.99 else f"{100 * share:.0f}%"


def _times(ratio: float) -> str:
    return f"{ratio:.0f} times" if ratio >= 10 else f"{ratio:.1f} times"
