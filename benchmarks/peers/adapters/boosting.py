"""LightGBM, refitted to all samples so far."""

from typing import Any

from lightgbm import LGBMRegressor

from benchmarks.peers.adapters import Prediction, Setting
from benchmarks.peers.adapters.refitting import Refitted
from pogp.arrays import Array


class LightGBM(Refitted):
    """Gradient-boosted trees with LightGBM's defaults, on one thread."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._seed = setting.seed

    def fit(self, X: Array, y: Array) -> Any:
        """Return the trees of all samples so far."""
        return LGBMRegressor(n_jobs=1, verbose=-1, random_state=self._seed).fit(X, y)

    def predict_fitted(self, row: Array) -> Prediction:
        """Predict a point: boosted trees have no variance."""
        return float(self.fitted.booster_.predict(row, num_threads=1)[0]), None
