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
    """Return the derivatives of mean and latent variance with respect to X, (n, p) both.

    They are those of κ(x, Z)α and of κ(x, x) − κ(x, Z) C κ(Z, x), where α is `weights` (M,) and row
    i of `solved` (n, M) is C κ(Z, x_i). A prior mean is constant, and the variance is not cut off
    at zero here.
    """
    both = np.stack([np.broadcast_to(weights, solved.shape), solved])
    mean, explained = kernel.input_gradient(X, Z, both)
    return mean, kernel.diag_gradient(X) - 2.0 * explained


def absorbed_gradients(kernel: Kernel, core: "AbsorbedState", X: Array) -> tuple[Array, Array]:
    """Return the derivatives of means, (beliefs, n, p, k), and latent variances, (beliefs, n, p).

    For a belief N(m, S) at the points α = Qm and C = Q − QSQ.
    """
    w, means = core.regression(X)[0], core.values.transpose(0, 2, 1)  # (n, M), (beliefs, k, M)
    beliefs, outputs, size = means.shape
    rows = np.empty((beliefs, outputs + len(X), size))
    rows[:, :outputs] = means
    for belief in range(beliefs):
        rows[belief, outputs:] = core.times_covariance(belief, w)
    solved = core.times_inverse(rows.reshape(-1, size)).reshape(rows.shape)
    weights = np.empty((beliefs, outputs + 1, len(X), size))
    weights[:, :-1] = solved[:, :outputs, None]
    weights[:, -1] = w - solved[:, outputs:]
    slopes = kernel.input_gradient(X, core.inputs, weights)  # (beliefs, k + 1, n, p)
    return slopes[:, :-1].transpose(0, 2, 3, 1), kernel.diag_gradient(X) - 2.0 * slopes[:, -1]
