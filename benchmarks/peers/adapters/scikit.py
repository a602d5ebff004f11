"""scikit-learn: a Gaussian process refitted, and SGD on Nyström features."""

import warnings
from collections.abc import Sequence
from pickle import dumps
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import SGDRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.peers.adapters import Prediction, Setting
from benchmarks.peers.adapters.refitting import Refitted
from benchmarks.peers.adapters.simple import RunningMean
from pogp.arrays import Array

WINDOW = 500
"""The samples that a fit of the Gaussian process takes: its time grows with their cube."""


class GaussianProcess(Refitted):
    """`GaussianProcessRegressor` on scaled inputs, its hyperparameters found at each fit."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, WINDOW)
        self._setting = setting

    def fit(self, X: Array, y: Array) -> Any:
        """Return the Gaussian process of the latest samples."""
        kernel = ConstantKernel() * RBF(np.ones(self._setting.inputs)) + WhiteKernel()
        regressor = GaussianProcessRegressor(kernel, normalize_y=True)
        with warnings.catch_warnings():  # a length-scale at its bound is an irrelevant input
            warnings.simplefilter("ignore", ConvergenceWarning)
            return make_pipeline(StandardScaler(), regressor).fit(X, y)

    def predict_fitted(self, row: Array) -> Prediction:
        """Predict a normal distribution; the white noise of the kernel is in its variance."""
        mean, deviation = self.fitted.predict(row, return_std=True)
        return float(mean[0]), float(deviation[0]) ** 2 or None


class NystromSGD:
    """`SGDRegressor.partial_fit` on `Nystroem` features; scaler and features of the first slice."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._before = RunningMean(setting)
        self._slice: list[tuple[Array, float]] = []
        self._features: Any = None
        self._targets: Any = None
        self._regressor: Any = SGDRegressor(random_state=setting.seed)

    def rows(self, X: Array) -> Sequence[Array]:
        """Return rows of shape (1, p)."""
        return list(X[:, None, :])

    def predict(self, row: Array) -> Prediction:
        """Predict a point: there is no variance."""
        if self._features is None:
            return self._before.predict(row)
        scaled = self._regressor.predict(self._features.transform(row))
        return float(self._targets.inverse_transform(scaled[:, None])[0, 0]), None

    def learn(self, row: Array, y: float) -> None:
        """Take one step of gradient descent, or collect the first slice."""
        if self._features is not None:
            self._step(row, y)
            return
        self._before.learn(row, y)
        self._slice.append((row, y))
        if len(self._slice) == self._setting.first:
            self._begin()

    def _begin(self) -> None:
        X = np.vstack([row for row, _ in self._slice])
        nystrom = Nystroem(n_components=min(100, len(X)), random_state=self._setting.seed)
        self._features = make_pipeline(StandardScaler(), nystrom).fit(X)
        self._targets = StandardScaler().fit([[y] for _, y in self._slice])
        for row, y in self._slice:
            self._step(row, y)
        self._slice.clear()

    def _step(self, row: Array, y: float) -> None:
        target = self._targets.transform([[y]])[0]
        self._regressor.partial_fit(self._features.transform(row), target)

    def to_bytes(self) -> bytes:
        """Return the pickled features, scaler and regressor."""
        return dumps((self._features, self._targets, self._regressor))
