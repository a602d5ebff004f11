"""Models: a posterior, a criterion and a budget, wired together behind one protocol."""

from pogp.models.controls import RandomSubset, SlidingWindow
from pogp.models.dense import DenseGP
from pogp.models.model import Model
from pogp.models.pog import POG

__all__ = ["POG", "DenseGP", "Model", "RandomSubset", "SlidingWindow"]
