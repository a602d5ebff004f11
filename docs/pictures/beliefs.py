"""Beliefs from the inside: what the public models do not show."""

import numpy as np

import pogp
from pogp.arrays import Array
from pogp.criteria import WholePosterior
from pogp.distances import distance_of_cost
from pogp.posteriors.absorbed.information import Information, information_of
from pogp.posteriors.absorbed.loop import AbsorbedLoop


def belief(kernel: pogp.Kernel, noise: float, X: Array, y: Array) -> AbsorbedLoop:
    """Return the belief about f at all of X, given y."""
    core = AbsorbedLoop(kernel, noise, np.zeros(1), X.shape[1])
    for i, (x, target) in enumerate(zip(X, y, strict=True)):
        core.append(core.look(x), np.array([target]), np.array([noise]), i)
    return core


def absorbing_prices(core: AbsorbedLoop) -> Array:
    """Return the Hellinger distance that the whole posterior moves as each point goes."""
    return distance_of_cost(WholePosterior().costs(core))


def discarding_prices(kernel: pogp.Kernel, noise: float, X: Array, y: Array) -> Array:
    """Return the same where the sample is discarded (mathematics.md §3)."""
    P = np.linalg.inv(kernel(X, X) + noise * np.eye(len(y)))
    alpha, diagonal = P @ y, np.diagonal(P)
    q = noise * diagonal
    shape = 0.5 * np.log1p((1 - np.sqrt(q)) ** 2 / (2 * np.sqrt(q)))
    return distance_of_cost(shape + alpha**2 * (1 - q) / (4 * diagonal * (1 + q)))


def said(model: pogp.AbsorbingPOG) -> Information:
    """Return what the data said to a model, Λ and η, at its points."""
    memory = model.state()
    core = AbsorbedLoop(model.kernel, model.noise, np.zeros(1), memory["inputs"].shape[1])
    core.restore(memory)
    return information_of(core)


def flat(predicted: tuple[Array, Array]) -> tuple[Array, Array]:
    """Return the mean and the variance of a single belief about a single output."""
    return predicted[0][0, :, 0], predicted[1][0]
