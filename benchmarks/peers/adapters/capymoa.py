"""CapyMOA: SOKNL, the self-optimising nearest leaves of an adaptive random forest, in Java."""

from collections.abc import Sequence
from io import BytesIO
from typing import Any

from capymoa.core import RegressionInstance
from capymoa.core.io import save_model
from capymoa.regressor import SOKNL
from capymoa.stream import Schema

from benchmarks.peers.adapters import Prediction, Setting
from pogp.arrays import Array


class NearestLeaves:
    """`SOKNL` with its defaults: a hundred trees."""

    def __init__(self, setting: Setting) -> None:
        features = [f"x{column}" for column in range(setting.inputs)]
        self._schema = Schema.from_custom([*features, "y"], "y", name="stream")
        self._model = SOKNL(schema=self._schema, random_seed=setting.seed)

    def rows(self, X: Array) -> Sequence[Array]:
        """Return the rows as they are."""
        return list(X)

    def _instance(self, row: Array, y: float) -> Any:
        return RegressionInstance.from_array(self._schema, row, y)

    def predict(self, row: Array) -> Prediction:
        """Predict a point: there is no variance."""
        found = self._model.predict(self._instance(row, 0.0))
        return 0.0 if found is None else float(found), None

    def learn(self, row: Array, y: float) -> None:
        """Train on one instance."""
        self._model.train(self._instance(row, y))

    def to_bytes(self) -> bytes:
        """Return the model as CapyMOA saves it."""
        file = BytesIO()
        save_model(self._model, file)
        return file.getvalue()
