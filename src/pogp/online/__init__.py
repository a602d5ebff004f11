"""The parts of `OnlineGP`; what is done with each sample in NumPy and compiled."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

from pogp.backends import BUILT, backend
from pogp.online import mixing

if BUILT:
    from pogp.online import compiled_mixing

if TYPE_CHECKING:
    from pogp.online.group import Group
    from pogp.online.steps import GroupStep, StreamStep
    from pogp.online.stream import Stream


def mixing_core() -> ModuleType:
    """Return the arithmetic of mixtures of the live implementation."""
    return compiled_mixing if backend() == "compiled" else mixing


def group_step(group: Group) -> GroupStep:
    """Return what a group does with each sample, bound to its arrays as they are now."""
    made: GroupStep = _steps().GroupStep(group)
    return made


def stream_step(stream: Stream) -> StreamStep:
    """Return the same for a stream."""
    made: StreamStep = _steps().StreamStep(stream)
    return made


def _steps() -> ModuleType:
    if backend() == "compiled":
        from pogp.online import compiled_steps

        return compiled_steps
    from pogp.online import steps

    return steps
