"""Tables 2 and 3 of the paper in Markdown: what we measured, what is printed, the difference."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import floor, isnan, log10

from experiments.methods import METHODS
from experiments.readings.compare import MATCHED, TITLES, Comparison, Row
from experiments.readings.estimates import Estimate, number
from experiments.readings.frontier import Frontier

MANY = 20
"""Standard errors beyond which their number says nothing: ours is not the only error."""
NONE = "–"
"""Where there is nothing to say."""
PRINTED = {"smse": ("SMSE", 4), "nlpd": ("NLPD", 4), "size": ("model order", 0)}
"""What the paper prints of our scores: our name, and its decimals."""


def scores(comparison: Comparison) -> str:
    """Return Table 2 of one set: errors, log losses and coverage."""
    lowest = {name: comparison.best_online(name) for name in ("smse", "nlpd")}

    def cells(row: Row) -> list[str]:
        return [
            row.method.label,
            "all samples" if row.method.own_tuning else "first slice",
            _marked(row.smse.text(4), row is lowest["smse"]),
            *_beside(row, "smse", 4),
            row.msll.text(3),
            _marked(row.nlpd.text(3), row is lowest["nlpd"]),
            *_beside(row, "nlpd", 3),
            f"{number(100 * row.coverage.mean, 1)} %",
        ]

    head = ["method", "tuned on", "SMSE", "paper", "difference", "MSLL", "NLPD", "paper"]
    return markdown([*head, "difference", "in 95 % band"], map(cells, comparison.rows.values()))


def costs(comparison: Comparison) -> str:
    """Return Table 3 of one set: model order and time."""

    def cells(row: Row) -> list[str]:
        decimals = 1 if row.size.error else 0
        return [
            row.method.label,
            row.size.text(decimals),
            *_beside(row, "size", decimals),
            *_times(row.seconds, row.printed("seconds")),
            *_times(row.microseconds, row.printed("microseconds")),
        ]

    head = ["method", "model order", "paper", "difference", "epoch, s", "paper, s", "paper ÷ ours"]
    head += ["update, µs", "paper, µs", "paper ÷ ours"]
    return markdown(head, map(cells, comparison.rows.values()))


def matches(comparisons: Iterable[Comparison], case: str) -> str:
    """Return a method's published figures beside ours: on average, and in the authors' order."""

    def cells(row: Row, name: str) -> list[str]:
        label, decimals = PRINTED[name][0], 1 if name == "size" else 4
        ours: Estimate = getattr(row, name)
        paper, apart = _beside(row, name, decimals)
        return [
            TITLES[row.topic],
            label,
            paper,
            ours.text(decimals),
            apart,
            "yes" if row.matched(name) else "no",
            number(row.in_the_authors_order(name), PRINTED[name][1]),
            number(ours.spread, decimals),
        ]

    head = ["set", "", "paper", "ours", "difference", f"within {MATCHED:g} s.e."]
    return markdown(
        [*head, "ours in the authors' order", "s.d. between orders"],
        (
            cells(comparison[case], name)
            for comparison in comparisons
            for name in PRINTED
            if not (name == "size" and comparison[case].unbounded)  # all samples, by definition
        ),
    )


def evidence(comparisons: Iterable[Comparison]) -> str:
    """Return what errata 5 to 7 rest on."""

    def cells(found: Comparison) -> list[str]:
        one, many = found["pog-published"], found["pog-written"]
        sogp, chance = found["sogp"], found["random"]
        return [
            found.title,
            *(row.size.text(0) for row in (one, many)),
            number(found.setting.size, 0),
            *(row.smse.text(3) for row in (one, many, chance)),
            number(found.setting.printed[one.case].smse, 3),
            sogp.smse.text(3),
            number(found.setting.printed[sogp.case].smse, 3),
        ]

    head = ["set", "points, one removal", "points, as written", "paper"]
    head += ["SMSE, one removal", "SMSE, as written", "SMSE, random subset", "paper"]
    return markdown([*head, "SMSE, SOGP", "paper"], map(cells, comparisons))


def best(frontiers: Iterable[Frontier], sizes: Sequence[int], places: int = 3) -> str:
    """Return the best methods of at most each size on each set, with their SMSE."""

    def cells(found: Frontier, size: int) -> list[str]:
        ranked = list(found.within(size).items())[:places]
        named = [f"{METHODS[case].label} {number(point.smse.mean, 3)}" for case, point in ranked]
        return [TITLES[found.topic], str(size), *named, *[NONE] * (places - len(named))]

    return markdown(
        ["set", "points at most", *("lowest", "second", "third", "fourth")[:places]],
        (cells(found, size) for found in frontiers for size in sizes),
    )


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose first column is to the left, the others to the right.

    >>> print(markdown(["method", "SMSE"], [["POG", "0.17"]]))
    | method | SMSE |
    |:---|---:|
    | POG | 0.17 |
    """
    rule = f"|:---|{'---:|' * (len(head) - 1)}"
    lines = ["| " + " | ".join(cells) + " |" for cells in (head, *rows)]
    return "\n".join([lines[0], rule, *lines[1:]])


def significant(value: float) -> str:
    """Return three significant digits, never as a power of ten.

    >>> significant(0.012345), significant(1.735), significant(393730)
    ('0.0123', '1.74', '394,000')
    """
    decimals = 2 - floor(log10(value))
    return number(round(value, decimals), max(decimals, 0))


def _beside(row: Row, name: str, decimals: int) -> tuple[str, str]:
    """Return the paper's figure, and by how much ours is above it, in numbers and in errors."""
    paper, ours = row.printed(name), getattr(row, name)
    if paper is None:
        return NONE, NONE
    apart = number(ours.mean - paper, decimals, sign="+")
    errors = ours.above(paper)
    if not isnan(errors):
        apart += f" ({number(errors, 1, sign='+') if abs(errors) < MANY else f'over {MANY}'} s.e.)"
    # Losses beyond ten have fewer decimals in the paper than others.
    return number(paper, PRINTED[name][1]) if paper < 10 else f"{paper:,.10g}", apart


def _times(ours: Estimate | None, paper: float | None) -> tuple[str, str, str]:
    """Return our time, the paper's, and how often ours goes into it."""
    if ours is None:
        return NONE, NONE, NONE
    if paper is None:
        return significant(ours.mean), NONE, NONE
    return significant(ours.mean), f"{paper:,.10g}", significant(paper / ours.mean)


def _marked(cell: str, best: bool) -> str:
    return f"**{cell}**" if best else cell
