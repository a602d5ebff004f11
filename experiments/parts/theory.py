"""Where the theory is looked at: a stream that meets its conditions, and the models on it.

Lemma 1 asks for independent inputs from the unit cube and a kernel that fits. Here the inputs are
uniform, and the function is a draw from the prior that the models are given, noise included.
"""

from functools import cache
from typing import Any

import numpy as np

import pogp
from experiments.streams import Hyperparameters
from pogp.arrays import Array
from pogp.budgets import Budget
from pogp.models.base import Model

LENGTHSCALE, NOISE = 0.5, 0.01
FEATURES = 512
FORMS: dict[str, dict[str, Any]] = {
    "pog-published": {"max_removals": 1},
    "pog-written": {},
    "pog-everywhere": {"view": "everywhere"},
}


def model(case: str, given: Hyperparameters, budget: Budget) -> Model:
    """Return a model by its name in `experiments.methods`; a dense one has no use for a budget."""
    kernel, noise, mean = given.kernel, given.noise, given.mean
    if case == "dense":
        return pogp.DenseGP(kernel, noise, mean=mean)
    if case == "absorbing":
        # what the budget alone does: no point is redundant
        return pogp.AbsorbingPOG(kernel, noise, budget, mean=mean, share=0.0)
    return pogp.POG(kernel, noise, budget, mean=mean, **FORMS[case])


def prior(inputs: int) -> Hyperparameters:
    """Return the prior of the function: variance 1, the same length-scale in every input."""
    return Hyperparameters(pogp.RBF(lengthscale=np.full(inputs, LENGTHSCALE)), NOISE, 0.0)


@cache
def stream(inputs: int, count: int, seed: int) -> tuple[Array, Array]:
    """Return uniform inputs (count, inputs) and noisy values of one function of the prior.

    A draw by random Fourier features (Rahimi & Recht 2007). A longer stream begins with the shorter
    one.
    """
    function, places, errors = np.random.default_rng([seed, inputs]).spawn(3)
    frequencies = function.standard_normal((inputs, FEATURES)) / LENGTHSCALE
    phases = function.uniform(0.0, 2.0 * np.pi, FEATURES)
    weights = function.standard_normal(FEATURES) * np.sqrt(2.0 / FEATURES)
    x = places.uniform(size=(count, inputs))
    clean = np.cos(x @ frequencies + phases) @ weights
    return x, clean + np.sqrt(NOISE) * errors.standard_normal(count)
