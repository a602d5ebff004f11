"""Parametrisation by a part of all combinations in which each pair of choices occurs."""

from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

import pytest


def pairwise(**choices: Sequence[Any]) -> pytest.MarkDecorator:
    """Return a mark for cases in which every two choices of two parameters occur together.

    Faults that depend on one or two parameters are found as by all combinations, in far fewer
    cases. A parameter named `backend` sets the fixture of that name.

    >>> pairwise(a=[0, 1], b=[0, 1], c=[0, 1]).args[1]
    [(0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 0)]
    """
    everything = list(product(*(range(len(values)) for values in choices.values())))
    missing = {pair for case in everything for pair in _pairs(case)}
    chosen = []
    while missing:
        best = max(everything, key=lambda case: len(missing & _pairs(case)))
        chosen.append(best)
        missing -= _pairs(best)
    values = list(choices.values())
    cases = [tuple(values[i][place] for i, place in enumerate(case)) for case in chosen]
    indirect = [name for name in choices if name == "backend"]
    return pytest.mark.parametrize(list(choices), cases, indirect=indirect)


def _pairs(case: tuple[int, ...]) -> set[tuple[tuple[int, int], ...]]:
    return set(combinations(enumerate(case), 2))
