"""Models: a posterior, a criterion and a budget, wired together behind one protocol."""

from pogp.models.absorbing import AbsorbingPOG
from pogp.models.base import Model
from pogp.models.baselines.greedy import KeerthiChu, Seeger, SmolaBartlett
from pogp.models.baselines.krls import KRLSALD, KRLST
from pogp.models.baselines.pseudo_inputs import SPGP, VFE
from pogp.models.baselines.sogp import SOGP, McIntire
from pogp.models.baselines.streaming import StreamingVFE
from pogp.models.baselines.subsets import RandomSubset, SlidingWindow
from pogp.models.dense import DenseGP
from pogp.models.online import OnlineGP
from pogp.models.pog import POG
from pogp.models.selftuning.model import SelfTuning

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
    "RandomSubset",
    "Seeger",
    "SelfTuning",
    "SlidingWindow",
    "SmolaBartlett",
    "StreamingVFE",
]
