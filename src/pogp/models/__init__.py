"""Models: a posterior, a criterion and a budget, wired together behind one protocol."""

from pogp.models.controls import RandomSubset, SlidingWindow
from pogp.models.dense import DenseGP
from pogp.models.model import Model, OnlineModel
from pogp.models.pog import POG
from pogp.models.pseudo_inputs import SPGP, VFE
from pogp.models.sogp import SOGP
from pogp.models.streaming import StreamingVFE

__all__ = [
    "POG",
    "SOGP",
    "SPGP",
    "VFE",
    "DenseGP",
    "Model",
    "OnlineModel",
    "RandomSubset",
    "SlidingWindow",
    "StreamingVFE",
]
