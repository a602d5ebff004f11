"""The methods that are compared: how each is made from hyperparameters, and how it looks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pogp
from experiments.streams import Hyperparameters
from pogp.models.base import Model

Make = Callable[[Hyperparameters, dict[str, Any], int], Model]
"""From hyperparameters, the options of a task and a seed."""


@dataclass(frozen=True)
class Method:
    """A model, what its label says, and whether it learns online and by whose hyperparameters."""

    label: str
    make: Make
    look: str
    """Whose colour it has in `drawing.style`."""
    offline: bool = False
    own_tuning: bool = False
    batch: int = 1
    """Samples of a step; the model is looked at after whole steps only."""
    rehearsed: bool = False
    """Whether it is the rehearsed model that is looked at."""


def _pog(**fixed: Any) -> Make:
    def make(given: Hyperparameters, options: dict[str, Any], seed: int) -> Model:
        settings: dict[str, Any] = {"budget": options.get("budget")}
        settings |= {"max_size": options.get("size")} | fixed
        return pogp.POG(given.kernel, given.noise, mean=given.mean, **settings)

    return make


def _capped(kind: Callable[..., Model], **fixed: Any) -> Make:
    """Return how to make a model with a cap."""

    def make(given: Hyperparameters, options: dict[str, Any], seed: int) -> Model:
        cap = {"max_size": options["size"]} | fixed
        return kind(given.kernel, given.noise, mean=given.mean, **cap)

    return make


def _seeded(kind: Callable[..., Model]) -> Make:
    """Return how to make a model whose size is its third argument, and which draws lots."""

    def make(given: Hyperparameters, options: dict[str, Any], seed: int) -> Model:
        return kind(given.kernel, given.noise, options["size"], mean=given.mean, seed=seed)

    return make


def _graded(kind: Callable[..., Model], grade: str, **fixed: Any) -> Make:
    """Return how to make a model whose size follows from a number of its own."""

    def make(given: Hyperparameters, options: dict[str, Any], seed: int) -> Model:
        return kind(given.kernel, given.noise, options[grade], mean=given.mean, **fixed)

    return make


def _dense(given: Hyperparameters, options: dict[str, Any], seed: int) -> Model:
    return pogp.DenseGP(given.kernel, given.noise, mean=given.mean)


_ABSORBING = _capped(pogp.AbsorbingPOG, budget=None)

METHODS = {
    "dense": Method("dense GP", _dense, "dense"),
    "spgp": Method("SPGP", _seeded(pogp.SPGP), "spgp", offline=True, own_tuning=True),
    "vfe": Method("VFE", _seeded(pogp.VFE), "vfe", offline=True, own_tuning=True),
    "pog-published": Method("POG as published", _pog(max_removals=1, max_size=None), "pog"),
    "pog-written": Method("POG as written", _pog(max_size=None), "pog-written"),
    "pog-everywhere": Method("POG everywhere", _pog(view="everywhere", budget=None), "everywhere"),
    "sogp": Method("SOGP", _capped(pogp.SOGP), "sogp"),
    "streaming-vfe": Method("streaming VFE", _seeded(pogp.StreamingVFE), "streaming", batch=100),
    "random": Method("random subset", _seeded(pogp.RandomSubset), "random"),
    "window": Method("sliding window", _capped(pogp.SlidingWindow), "window"),
    "absorbing": Method("absorbing POG", _ABSORBING, "absorbing"),
    "absorbing-calibrated": Method(
        "absorbing POG, calibrated",
        _capped(pogp.AbsorbingPOG, budget=None, calibrate=True),
        "absorbing",
    ),
    "absorbing-rehearsed": Method(
        "absorbing POG, rehearsed", _ABSORBING, "absorbing", rehearsed=True
    ),
    "absorbing-eighth": Method("absorbing POG, an eighth", _ABSORBING, "absorbing"),
    "mcintire": Method("McIntire et al.", _graded(pogp.McIntire, "threshold"), "mcintire"),
    "krls-ald": Method("KRLS (ALD)", _graded(pogp.KRLSALD, "tolerance"), "krls-ald"),
    "krls-t": Method("KRLS tracker", _capped(pogp.KRLST, forgetting=1.0), "krls-t"),
}
