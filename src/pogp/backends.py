"""Which implementation of the hot loops is live: the compiled one, or NumPy's."""

import os
from importlib.machinery import PathFinder
from pathlib import Path

# A source tree that was not built works all the same, a hundred times slower. A build that is there
# and does not load is an error: it must not pass for one that is missing.
# Looked for by its path: `importlib.util.find_spec` would import the package that it is in.
BUILT = PathFinder.find_spec("compiled", [str(Path(__file__).parent / "kernels")]) is not None
VARIABLE = "POGP_BACKEND"


def backend() -> str:
    """Return which implementation is used by models that begin to learn: "compiled" or "reference".

    The environment variable POGP_BACKEND selects one; without it the compiled one is used where it
    was built. A kernel written in Python always runs on the reference.
    """
    chosen = os.environ.get(VARIABLE) or ("compiled" if BUILT else "reference")
    if chosen not in ("compiled", "reference"):
        raise ValueError(f"{VARIABLE} must be 'compiled' or 'reference', got {chosen!r}")
    if chosen == "compiled" and not BUILT:
        raise ImportError(f"{VARIABLE} asks for the compiled core, which was not built")
    return chosen
