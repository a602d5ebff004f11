"""The methods that `pogp run` compares, and how any method is made from hyperparameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pogp
from pogp.evaluation.streams import Hyperparameters
from pogp.models.base import Model

Make = Callable[[Hyperparameters, dict[str, Any], int], Model]
"""From hyperparameters, options such as `size` and `budget`, and a seed."""


@dataclass(frozen=True)
class Method:
    """A method: its label, its maker, and how it is run."""

    label: str  # in tables and figures
    make: Make
    look: str  # the colour in `report.style`, or the line in `experiments.drawing.style`
    offline: bool = False  # fitted to all samples at once
    own_tuning: bool = False  # the model finds hyperparameters of its own
    batch: int = 1  # samples per step; the model is evaluated after whole steps only
    rehearsed: bool = False  # the rehearsed model is evaluated


def capped(kind: Callable[..., Model], **fixed: Any) -> Make:
    """Return a maker of models with a cap on their size."""

    def make(given: Hyperparameters, options: dict[str, Any], seed: int) -> Model:
        cap = {"max_size": options["size"]} | fixed
        return kind(given.kernel, given.noise, mean=given.mean, **cap)

    return make


def seeded(kind: Callable[..., Model]) -> Make:
    """Return a maker of models whose third argument is the size and which use a seed."""

    def make(given: Hyperparameters, options: dict[str, Any], seed: int) -> Model:
        return kind(given.kernel, given.noise, options["size"], mean=given.mean, seed=seed)

    return make


def graded(kind: Callable[..., Model], grade: str, **fixed: Any) -> Make:
    """Return a maker of models whose size follows from the option named `grade`."""

    def make(given: Hyperparameters, options: dict[str, Any], seed: int) -> Model:
        return kind(given.kernel, given.noise, options[grade], mean=given.mean, **fixed)

    return make


def pog(**fixed: Any) -> Make:
    """Return a maker of POG; the options are its own, with `size` for the cap."""

    def make(given: Hyperparameters, options: dict[str, Any], seed: int) -> Model:
        settings: dict[str, Any] = {"budget": options.get("budget")}
        settings |= {"max_size": options.get("size")}
        settings |= {name: options[name] for name in ("view", "max_removals") if name in options}
        return pogp.POG(given.kernel, given.noise, mean=given.mean, **settings | fixed)

    return make


def _online(given: Hyperparameters, options: dict[str, Any], seed: int) -> Model:
    """Return an OnlineGP, which is given no hyperparameters."""
    return pogp.OnlineGP(max_size=options["size"], seed=seed)


def _dense(given: Hyperparameters, options: dict[str, Any], seed: int) -> Model:
    return pogp.DenseGP(given.kernel, given.noise, mean=given.mean)


METHODS = {
    "online": Method("OnlineGP", _online, "online", own_tuning=True),
    "absorbing": Method("AbsorbingPOG", capped(pogp.AbsorbingPOG, budget=None), "absorbing"),
    "pog": Method("POG", pog(), "pog"),
    "random": Method("random subset", seeded(pogp.RandomSubset), "random"),
    "dense": Method("dense GP", _dense, "dense"),
}
"""The methods of `pogp run`, in the order of its table."""
