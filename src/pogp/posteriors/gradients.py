"""How a posterior changes from place to place: its derivatives by the inputs."""

from pogp.arrays import Array
from pogp.kernels import Kernel


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
