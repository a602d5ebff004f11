"""Models: a posterior, a criterion and a budget, wired together behind one protocol."""

from pogp.models.controls import RandomSubset, SlidingWindow
from pogp.models.dense import DenseGP
from pogp.models.model import Model, OnlineModel
from pogp.models.pog import POG

__all__ = ["POG", "DenseGP", "Model", "OnlineModel", "RandomSubset", "SlidingWindow"]
