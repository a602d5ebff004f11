"""Parsimonious Online Gaussian Processes.

Gaussian process regression that learns from a stream, one sample at a time, indefinitely. Memory is
set by an error you choose, not by the number of samples.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pogp import metrics
from pogp.backends import backend
from pogp.budgets import Constant, Decay
from pogp.distances import hellinger
from pogp.errors import FormatError
from pogp.files.persistence import from_bytes, load
from pogp.kernels import (
    RBF,
    Kernel,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    RationalQuadratic,
)
from pogp.models import (
    KRLSALD,
    KRLST,
    POG,
    SOGP,
    SPGP,
    VFE,
    AbsorbingPOG,
    DenseGP,
    KeerthiChu,
    McIntire,
    OnlineGP,
    RandomSubset,
    Seeger,
    SelfTuning,
    SlidingWindow,
    SmolaBartlett,
    StreamingVFE,
)
from pogp.survey import survey
from pogp.trace import Trace
from pogp.tuning import Tuned, tune

if TYPE_CHECKING:
    from pogp import datasets, plot, sums
    from pogp.alarms import Alarm
    from pogp.streaming import Step, stream

__version__ = "0.1.0"
_LATE_MODULES = ("datasets", "plot", "sums")
_LATE = {"Alarm": "pogp.alarms", "Step": "pogp.streaming", "stream": "pogp.streaming"}


def __getattr__(name: str) -> Any:
    """Import a part that not every program uses, on first access."""
    if name in _LATE_MODULES:
        return import_module(f"pogp.{name}")
    if name in _LATE:
        return getattr(import_module(_LATE[name]), name)
    raise AttributeError(f"module 'pogp' has no attribute {name!r}")


__all__ = [
    # models
    "OnlineGP",
    "POG",
    "AbsorbingPOG",
    "DenseGP",
    "RandomSubset",
    "SlidingWindow",
    "SOGP",
    "McIntire",
    "KRLSALD",
    "KRLST",
    "SPGP",
    "VFE",
    "SmolaBartlett",
    "KeerthiChu",
    "Seeger",
    "StreamingVFE",
    "SelfTuning",
    # what they are made of
    "RBF",
    "Matern12",
    "Matern32",
    "Matern52",
    "RationalQuadratic",
    "Periodic",
    "Linear",
    "Kernel",
    "Constant",
    "Decay",
    "Trace",
    # beside them
    "tune",
    "Tuned",
    "survey",
    "stream",
    "Step",
    "Alarm",
    "from_bytes",
    "load",
    "hellinger",
    "backend",
    "FormatError",
    "metrics",
    "plot",
    "datasets",
    "sums",
]
