"""The parts of `OnlineGP`. The work of each sample is implemented in NumPy and compiled."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

from pogp.backends import BUILT, backend
from pogp.online import arithmetic

if BUILT:
    from pogp.online import compiled_arithmetic

if TYPE_CHECKING:
    from pogp.online.ensemble import Ensemble
    from pogp.online.group import Group
    from pogp.online.steps import EnsembleStep, GroupStep


def arithmetic_core() -> ModuleType:
    """Return `arithmetic` of the selected backend."""
    return compiled_arithmetic if backend() == "compiled" else arithmetic


def group_step(group: Group) -> GroupStep:
    """Return the step of a group, bound to its present arrays."""
    step: GroupStep = _steps().GroupStep(group)
    return step


def ensemble_step(ensemble: Ensemble) -> EnsembleStep:
    """Return the step of an ensemble, bound to its present arrays."""
    step: EnsembleStep = _steps().EnsembleStep(ensemble)
    return step


def _steps() -> ModuleType:
    if backend() == "compiled":
        from pogp.online import compiled_steps

        return compiled_steps
    from pogp.online import steps

    return steps
