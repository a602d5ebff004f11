"""Kernel recursive least squares: with the ALD test (Engel et al. 2004), and the tracker (2012)."""

from numpy.typing import ArrayLike

from pogp import validation
from pogp.compression import Compression
from pogp.criteria import AbsorbedCriterion, KeepAll, LeastError
from pogp.models.absorbed import AbsorbedModel
from pogp.models.base import Argument


class KRLSALD(AbsorbedModel):
    """Keep an input only if those before it do not nearly determine its value; never remove one.

    Engel, Mannor & Meir (2004). The test is for approximate linear dependence: the prior variance
    of f(x) given the kept points is at most `tolerance`, as a fraction of κ(x, x). Such a sample is
    observed as a linear function of the kept points, wᵀu. With inputs in a bounded region the size
    is bounded, whatever the length of the stream. Their least squares has no noise and gives no
    variance; here it is the GP's posterior with the noise that is given.

    >>> import numpy as np, pogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (500, 1))
    >>> model = KRLSALD(pogp.RBF(), noise=0.01, tolerance=1e-3)
    >>> trace = model.learn(X, np.sin(X[:, 0]))
    >>> model.size < 20
    True
    """

    changeable = ("tolerance",)

    def __init__(
        self, kernel: object, noise: float, tolerance: float = 1e-2, *, mean: ArrayLike = 0.0
    ) -> None:
        self._tolerance = validation.non_negative("tolerance", tolerance)
        criterion: AbsorbedCriterion = KeepAll(tolerance=self._tolerance, reduce=False)
        super().__init__(kernel, noise, mean, Compression(criterion))

    tolerance = Argument[float]("The variance left open, of κ(x, x), up to which no point is made.")


class KRLST(AbsorbedModel):
    """The KRLS tracker: at most `max_size` points, and a belief that drifts back to the prior.

    Van Vaerenbergh, Lázaro-Gredilla & Santamaría (2012). With each sample what was learned before
    is worth `forgetting` of what it was: S ← λS + (1 − λ)K, m ← √λ m. Above the cap the point goes
    whose removal changes the mean least at the points, (α_j/Q_jj)², by marginalising. Their
    estimate of the signal's power along the stream, and their other way to forget, are left out.

    >>> import numpy as np, pogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (2000, 1))
    >>> sign = np.where(np.arange(2000) < 1000, 1, -1)  # the function turns over
    >>> model = KRLST(pogp.RBF(), noise=0.01, max_size=20, forgetting=0.98)
    >>> trace = model.learn(X, sign * np.sin(X[:, 0]))
    >>> mean, variance = model.predict([1.0])
    >>> bool(abs(mean + np.sin(1.0)) < 0.1)
    True
    """

    changeable = ("max_size", "forgetting", "tolerance")

    def __init__(
        self,
        kernel: object,
        noise: float,
        max_size: int,
        *,
        forgetting: float = 0.999,
        tolerance: float = 1e-6,
        mean: ArrayLike = 0.0,
    ) -> None:
        self._tolerance = validation.non_negative("tolerance", tolerance)
        criterion: AbsorbedCriterion = LeastError(marginalise=True, tolerance=self._tolerance)
        compression = Compression(criterion, None, validation.count("max_size", max_size, 1))
        super().__init__(kernel, noise, mean, compression, forgetting)

    forgetting = Argument[float]("What a sample's evidence is worth after one more.")
    tolerance = Argument[float]("The variance left open, of κ(x, x), up to which no point is made.")
