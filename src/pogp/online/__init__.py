"""The parts of `OnlineGP`; the arithmetic of mixtures in NumPy and compiled."""

from types import ModuleType

from pogp.backends import BUILT, backend
from pogp.online import mixing

if BUILT:
    from pogp.online import compiled_mixing


def mixing_core() -> ModuleType:
    """Return the arithmetic of mixtures of the live implementation."""
    return compiled_mixing if backend() == "compiled" else mixing
