"""Offline sparse GPs whose inducing inputs are chosen among the samples, greedily.

Smola & Bartlett (2001), Keerthi & Chu (2006) and Seeger, Williams & Lawrence (2003) differ in how
they score a candidate, `models.greedy_rules`. The posterior given the chosen inputs is the same:
all samples count, projected on them, as in VFE. See mathematics.md §7.
"""

from pogp import validation
from pogp.models.base import Argument
from pogp.models.baselines.greedy_model import GreedyModel
from pogp.models.baselines.greedy_rules import (
    AllCoefficients,
    InformationGain,
    OneCoefficient,
    Rule,
)


class SmolaBartlett(GreedyModel):
    """At each step the input, of a few drawn at random, that lowers the objective most.

    Each candidate is judged with all coefficients at their new optimum, at O(nM). Of 59 candidates
    one is among the best 5 % with a probability of 95 %.

    Parameters
    ----------
    kernel
        The covariance function.
    noise
        The noise variance.
    size
        How many inputs to choose.
    candidates
        How many to draw at each step.
    seed
        The seed of the draws.
    mean
        The constant prior mean.

    >>> import numpy as np, pogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (300, 1))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * np.random.default_rng(1).normal(size=300)
    >>> model = SmolaBartlett(pogp.RBF(), noise=0.01, size=12).fit(X, y)
    >>> model.size, model.seen
    (12, 300)
    >>> mean, variance = model.predict([1.0])
    >>> abs(mean - np.sin(2.0)) < 0.05
    np.True_
    """

    def __init__(
        self,
        kernel: object,
        noise: float,
        size: int,
        *,
        candidates: int = 59,
        seed: int = 0,
        mean: float = 0.0,
    ) -> None:
        count = validation.count("candidates", candidates, 1)
        super().__init__(kernel, noise, size, count, seed, mean)

    def _rule(self) -> Rule:
        return AllCoefficients(self._candidates)


class KeerthiChu(GreedyModel):
    """Matching pursuit: the input whose coefficient alone lowers the objective most.

    That is O(n) for each candidate, and the kernel's values between the best of those that were not
    chosen and all samples are kept, so that these are candidates again at the next step. All
    coefficients are at their optimum again after each choice.

    Parameters
    ----------
    kernel, noise, size, candidates, seed, mean
        As of `SmolaBartlett`.
    cache
        How many candidates that were not chosen are candidates at the next step too, beside the
        new ones.

    >>> import numpy as np, pogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (300, 1))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * np.random.default_rng(1).normal(size=300)
    >>> model = KeerthiChu(pogp.RBF(), noise=0.01, size=12).fit(X, y)
    >>> bool(np.all(model.dictionary == X[model.indices]))
    True
    """

    def __init__(
        self,
        kernel: object,
        noise: float,
        size: int,
        *,
        candidates: int = 59,
        cache: int = 59,
        seed: int = 0,
        mean: float = 0.0,
    ) -> None:
        self._count = validation.count("candidates", candidates, 1)
        self._cache = validation.count("cache", cache, 0)
        super().__init__(kernel, noise, size, self._count, seed, mean)

    cache = Argument[int]("How many candidates not chosen are candidates at the next step too.")

    def _rule(self) -> Rule:
        return OneCoefficient(self._count, self._cache)


class Seeger(GreedyModel):
    """At each step the input with the largest approximate information gain, at O(1) each.

    The score is the information gain if the sample there observed the function directly and the
    effect of the other samples stayed as it is. All samples are candidates at every step.

    Parameters
    ----------
    kernel, noise, size, seed, mean
        As of `SmolaBartlett`.
    candidates
        How many to draw at each step; all if None.

    >>> import numpy as np, pogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (300, 1))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * np.random.default_rng(1).normal(size=300)
    >>> model = Seeger(pogp.RBF(), noise=0.01, size=12).fit(X, y)
    >>> mean, variance = model.predict([1.0])
    >>> abs(mean - np.sin(2.0)) < 0.05
    np.True_
    """

    def __init__(
        self,
        kernel: object,
        noise: float,
        size: int,
        *,
        candidates: int | None = None,
        seed: int = 0,
        mean: float = 0.0,
    ) -> None:
        if candidates is not None:
            candidates = validation.count("candidates", candidates, 1)
        super().__init__(kernel, noise, size, candidates, seed, mean)

    def _rule(self) -> Rule:
        return InformationGain(self._candidates)
