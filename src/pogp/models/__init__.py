"""Models: a posterior, a criterion and a budget, wired together behind one protocol."""

from pogp.models.absorbing import AbsorbingPOG
from pogp.models.controls import RandomSubset, SlidingWindow
from pogp.models.dense import DenseGP
from pogp.models.greedy import KeerthiChu, Seeger, SmolaBartlett
from pogp.models.krls import KRLSALD, KRLST
from pogp.models.model import Model, OnlineModel
from pogp.models.online import OnlineGP
from pogp.models.pog import POG
from pogp.models.pseudo_inputs import SPGP, VFE
from pogp.models.self_tuning import SelfTuning
from pogp.models.sogp import SOGP, McIntire
from pogp.models.streaming import StreamingVFE

__all__ = [
    "KRLSALD",
    "KRLST",
    "OnlineGP",
    "POG",
    "SOGP",
    "SPGP",
    "VFE",
    "AbsorbingPOG",
    "DenseGP",
    "KeerthiChu",
    "McIntire",
    "Model",
    "OnlineModel",
    "RandomSubset",
    "Seeger",
    "SelfTuning",
    "SlidingWindow",
    "SmolaBartlett",
    "StreamingVFE",
]
