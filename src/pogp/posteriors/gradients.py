"""Derivatives of the posterior mean and variance by the inputs."""

from typing import TYPE_CHECKING

import numpy as np

from pogp.arrays import Array
from pogp.kernels import Kernel

if TYPE_CHECKING:
    from pogp.posteriors.absorbed.state import AbsorbedState


def latent_gradients(
    kernel: Kernel, X: Array, Z: Array, weights: Array, solved: Array
) -> tuple[Array, Array]:
    """Return the derivatives of mean and latent variance by each row of X, (n, p) both.

    They are those of κ(x, Z)α and of κ(x, x) − κ(x, Z) C κ(Z, x), where α is `weights` (M,) and row
    i of `solved` (n, M) is C κ(Z, x_i). A prior mean is constant, and the variance is not cut off
    at zero here.
    """
    mean = kernel.input_gradient(X, Z, weights)
    variance = kernel.diag_gradient(X) - 2.0 * kernel.input_gradient(X, Z, solved)
    return mean, variance


def absorbed_gradients(
    kernel: Kernel, core: "AbsorbedState", X: Array, belief: int = 0
) -> tuple[Array, Array]:
    """Return the derivatives of the means, (n, p, k), and of the latent variance, (n, p).

    For a belief N(m, S) at the points α = Qm and C = Q − QSQ. Products with Q are refined by their
    residual, as in the core.
    """
    Q, K = core.inverse, core.gram
    values, S = core.values[belief], core.covariance_of(belief)
    w = core.regression(X)[0]
    alpha, spread = Q @ values, w @ S @ Q
    alpha += Q @ (values - K @ alpha)
    spread += (w @ S - spread @ K) @ Q
    means, variance = [], np.empty(0)
    for column in alpha.T:
        mean, variance = latent_gradients(kernel, X, core.inputs, column, w - spread)
        means.append(mean)
    return np.stack(means, axis=-1), variance
