"""The dense GP: nothing is forgotten."""

from pogp.compression import Compression
from pogp.criteria import Newest
from pogp.models.retained import RetainedModel
from pogp.posteriors import CholeskyPosterior


class DenseGP(RetainedModel):
    """Keep everything: the exact posterior, at O(t²) memory and O(t²) time for the t-th sample.

    A batch is learned in blocks, which is far faster than its samples one by one and agrees with
    them to rounding.

    >>> import numpy as np, pogp
    >>> model = DenseGP(pogp.RBF(), noise=0.01)
    >>> trace = model.learn(np.linspace(0, 3, 20)[:, None], np.sin(np.linspace(0, 3, 20)))
    >>> model.size
    20
    """

    one_thread = False  # its products are large

    def __init__(self, kernel: object, noise: float, *, mean: float = 0.0) -> None:
        super().__init__(kernel, noise, mean, Compression(Newest(), None))

    def _new_posterior(self, dimension: int) -> CholeskyPosterior:
        return CholeskyPosterior(self._kernel, self._noise, self._mean, dimension)
