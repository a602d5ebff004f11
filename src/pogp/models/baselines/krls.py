"""Kernel recursive least squares: with the ALD test (Engel et al. 2004), and the tracker (2012)."""

from typing import Any

from numpy.typing import ArrayLike

from pogp import validation
from pogp._core.absorber_reference import Rule
from pogp.models.absorbing_model import ReducingModel


class KRLSALD(ReducingModel):
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
        super().__init__(kernel, noise, mean, None, tolerance)

    @property
    def _rule(self) -> Rule:
        return Rule("keep", tolerance=self._tolerance, reduce=False)

    def arguments(self) -> dict[str, Any]:
        """Return what the model would have to be called with to start again."""
        return {
            "kernel": self._kernel,
            "noise": self._noise,
            "tolerance": self._tolerance,
            "mean": self._prior_mean.tolist(),
        }


class KRLST(ReducingModel):
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
        size = validation.count("max_size", max_size, 1)
        super().__init__(kernel, noise, mean, size, tolerance, forgetting)

    @property
    def forgetting(self) -> float:
        """What a sample's evidence is worth after one more."""
        return self._forgetting

    @property
    def _rule(self) -> Rule:
        return Rule("error", marginalise=True, tolerance=self._tolerance)

    def arguments(self) -> dict[str, Any]:
        """Return what the model would have to be called with to start again."""
        return {
            "kernel": self._kernel,
            "noise": self._noise,
            "max_size": self._max_size,
            "forgetting": self._forgetting,
            "tolerance": self._tolerance,
            "mean": self._prior_mean.tolist(),
        }
