"""GopPy: an exact Gaussian process that grows by one row per sample. It has no tuning."""

from pickle import dumps

import numpy as np
from goppy import OnlineGP, SquaredExponentialKernel

from benchmarks.peers.adapters.first_slice import FirstSlice
from pogp.arrays import Array


class GopPy(FirstSlice):
    """Kernel and noise of GopPy's own example, in units of the first slice."""

    def begin(self, X: Array, y: Array) -> None:
        """Fit the slice."""
        kernel = SquaredExponentialKernel([1.0])
        self.model = OnlineGP(kernel, noise_var=0.1)
        self.model.fit(X, y[:, None])

    def predict_scaled(self, x: Array) -> tuple[float, float]:
        """Predict; GopPy's mean squared error is of the function, so the noise is added."""
        found = self.model.predict(x, what=("mean", "mse"))
        return float(found["mean"][0, 0]), float(found["mse"][0]) + self.model.noise_var

    def learn_scaled(self, x: Array, y: float) -> None:
        """Add one row."""
        self.model.add(x, np.array([[y]]))

    def to_bytes(self) -> bytes:
        """Return the pickled inputs, targets and factor: the model itself holds a function."""
        arrays = (self.model.x_train, self.model.y_train, self.model.inv_chol)
        return dumps([np.asarray(array) for array in arrays])
