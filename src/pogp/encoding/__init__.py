"""Raw tables as inputs of a model: missing values, times and categories.

The command and both regressors use it in the same way: an `Encoder` turns columns of cells into
numbers and fills what is missing; `learn` and `predict` put a model behind it.
"""

from pogp.encoding.encoder import Encoder
from pogp.encoding.model import fill, fit, learn, mixed, predict

__all__ = ["Encoder", "fill", "fit", "learn", "mixed", "predict"]
