"""River: pipelines of a scaler and a regressor, one dict at a time."""

from collections.abc import Sequence
from pickle import dumps
from typing import Any

from river import forest, linear_model, neighbors, preprocessing, tree

from benchmarks.peers.adapters import Prediction, Setting
from pogp.arrays import Array

Row = dict[int, float]


class Pipeline:
    """A regressor behind a `StandardScaler`, as River's own examples have it."""

    def __init__(self, regressor: Any) -> None:
        self.model = preprocessing.StandardScaler() | regressor

    def rows(self, X: Array) -> Sequence[Row]:
        """Return dicts of features."""
        return [dict(enumerate(row)) for row in X.tolist()]

    def predict(self, row: Row) -> Prediction:
        """Predict a point: these regressors have no variance."""
        return self.model.predict_one(row), None

    def learn(self, row: Row, y: float) -> None:
        """Learn one sample."""
        self.model.learn_one(row, y)

    def to_bytes(self) -> bytes:
        """Return the pickled pipeline, as River recommends."""
        return dumps(self.model)


class WithVariance(Pipeline):
    """`BayesianLinearRegression` has no intercept, so the target is scaled too.

    `TargetStandardScaler` passes no distribution on; what it does to a mean is done here to the
    variance as well.
    """

    def predict(self, row: Row) -> Prediction:
        """Predict a normal distribution."""
        scaler, target = self.model.steps.values()
        found = target.regressor.predict_one(scaler.transform_one(row), with_dist=True)
        variance = target.var.get()
        return found.mu * variance**0.5 + target.var.mean.get(), found.sigma**2 * variance or None


def bayesian_linear(setting: Setting) -> Pipeline:
    """Return Bayesian linear regression."""
    regressor = linear_model.BayesianLinearRegression()
    return WithVariance(preprocessing.TargetStandardScaler(regressor=regressor))


def neighbours(setting: Setting) -> Pipeline:
    """Return nearest neighbours with River's default engine, SWINN, in a window of 1,000."""
    engine = neighbors.SWINN(seed=setting.seed)
    return Pipeline(neighbors.KNNRegressor(engine=engine))


def adaptive_tree(setting: Setting) -> Pipeline:
    """Return a Hoeffding adaptive tree."""
    return Pipeline(tree.HoeffdingAdaptiveTreeRegressor(seed=setting.seed))


def adaptive_forest(setting: Setting) -> Pipeline:
    """Return an adaptive random forest of ten trees."""
    return Pipeline(forest.ARFRegressor(seed=setting.seed))
