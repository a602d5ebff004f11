"""GPyTorch: an exact model conditioned on each sample, and a variational one by gradient steps."""

from io import BytesIO
from typing import Any

import gpytorch
import numpy as np
import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.means import ConstantMean
from gpytorch.mlls import ExactMarginalLogLikelihood, VariationalELBO
from gpytorch.models import ApproximateGP, ExactGP
from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy

from benchmarks.peers.adapters import Setting
from benchmarks.peers.adapters.first_slice import FirstSlice
from pogp.arrays import Array

torch.set_num_threads(1)
EXACT_STEPS, EXACT_RATE = 50, 0.1
"""Of Adam, as in GPyTorch's tutorial on exact regression."""
INDUCING, BATCH, RATE = 100, 32, 0.01
"""Of the variational model: inducing points, a mini-batch, and Adam's rate in the tutorial."""
FIRST_EPOCHS, BATCH_STEPS = 50, 10
"""Passes over the first slice, and steps on each mini-batch from then on."""


class _Exact(ExactGP):
    def __init__(self, X: Any, y: Any, likelihood: Any) -> None:
        super().__init__(X, y, likelihood)
        self.mean_module = ConstantMean()
        self.covar_module = ScaleKernel(RBFKernel(ard_num_dims=X.shape[1]))

    def forward(self, x: Any) -> Any:
        """Return the prior at x."""
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


class _Variational(ApproximateGP):
    def __init__(self, inducing: Any) -> None:
        distribution = CholeskyVariationalDistribution(len(inducing))
        super().__init__(VariationalStrategy(self, inducing, distribution))
        self.mean_module = ConstantMean()
        self.covar_module = ScaleKernel(RBFKernel(ard_num_dims=inducing.shape[1]))

    def forward(self, x: Any) -> Any:
        """Return the prior at x."""
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


class GPyTorch(FirstSlice):
    """What the two models share: double precision, a Gaussian likelihood, predictions."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        torch.manual_seed(setting.seed)
        self.model: Any = None
        self.likelihood: Any = GaussianLikelihood().double()

    def predict_scaled(self, x: Array) -> tuple[float, float]:
        """Predict one point, noise included."""
        with torch.no_grad(), gpytorch.settings.fast_pred_var():
            found = self.likelihood(self.model(torch.from_numpy(x)))
        return float(found.mean), float(found.variance)

    def to_bytes(self) -> bytes:
        """Return the state of the model as `torch.save` writes it, with the samples it needs."""
        file = BytesIO()
        samples = getattr(self.model, "train_inputs", None), getattr(self.model, "train_targets", 0)
        torch.save((self.model.state_dict(), self.likelihood.state_dict(), samples), file)
        return file.getvalue()


class Fantasies(GPyTorch):
    """An exact GP, tuned on the first slice; each sample becomes a fantasy. It only grows."""

    def begin(self, X: Array, y: Array) -> None:
        """Tune by the marginal likelihood."""
        inputs, targets = torch.from_numpy(X), torch.from_numpy(y)
        self.model = _Exact(inputs, targets, self.likelihood).double()
        self.model.train()
        self.likelihood.train()
        adam = torch.optim.Adam(self.model.parameters(), lr=EXACT_RATE)
        objective = ExactMarginalLogLikelihood(self.likelihood, self.model)
        for _ in range(EXACT_STEPS):
            adam.zero_grad()
            loss = -objective(self.model(inputs), targets)
            loss.backward()
            adam.step()
        self.model.eval()
        self.likelihood.eval()

    def learn_scaled(self, x: Array, y: float) -> None:
        """Condition on one sample more."""
        with torch.no_grad(), gpytorch.settings.fast_pred_var():
            point = torch.from_numpy(x)
            if self.model.prediction_strategy is None:
                self.model(point)  # fills the caches that a fantasy starts from
            self.model = self.model.get_fantasy_model(point, torch.tensor([y]).double())
        self.likelihood = self.model.likelihood


class StreamingVariational(GPyTorch):
    """A sparse variational GP; each mini-batch of the stream is a few steps of Adam."""

    def begin(self, X: Array, y: Array) -> None:
        """Choose inducing points in the slice, and fit it in mini-batches."""
        rng = np.random.default_rng(self.setting.seed)
        inducing = X[rng.permutation(len(X))[:INDUCING]]
        self.model = _Variational(torch.from_numpy(inducing)).double()
        parameters = [*self.model.parameters(), *self.likelihood.parameters()]
        self._adam = torch.optim.Adam(parameters, lr=RATE)
        self._seen, self._waiting = len(y), list[tuple[Array, float]]()
        for _ in range(FIRST_EPOCHS):
            order = rng.permutation(len(y))
            for start in range(0, len(y), BATCH):
                self._step(X[order[start : start + BATCH]], y[order[start : start + BATCH]])
        self._rest()

    def learn_scaled(self, x: Array, y: float) -> None:
        """Wait for a mini-batch, then take steps on it."""
        self._waiting.append((x[0], y))
        if len(self._waiting) < BATCH:
            return
        X, targets = (np.array(part) for part in zip(*self._waiting, strict=True))
        self._seen += BATCH
        for _ in range(BATCH_STEPS):
            self._step(X, targets)
        self._waiting.clear()
        self._rest()

    def _step(self, X: Array, y: Array) -> None:
        """Take one step of Adam on the evidence bound of all samples so far."""
        self.model.train()
        self.likelihood.train()
        bound = VariationalELBO(self.likelihood, self.model, num_data=self._seen)
        self._adam.zero_grad()
        loss = -bound(self.model(torch.from_numpy(X)), torch.from_numpy(y))
        loss.backward()
        self._adam.step()

    def _rest(self) -> None:
        self.model.eval()
        self.likelihood.eval()
