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

    def rows(self, X: Array, y: Array) -> Sequence[Any]:
        """Return labelled instances, as CapyMOA's own evaluation has them.

        SOKNL compares its prediction with the target when it predicts, to choose k for those after.
        """
        make = RegressionInstance.from_array
        return [make(self._schema, row, target) for row, target in zip(X, y, strict=True)]

    def predict(self, row: Any) -> Prediction:
        """Predict a point: there is no variance."""
        found = self._model.predict(row)
        return 0.0 if found is None else float(found), None

    def learn(self, row: Any, y: float) -> None:
        """Train on one instance."""
        self._model.train(row)

    def to_bytes(self) -> bytes:
        """Return the model as CapyMOA saves it."""
        file = BytesIO()
        save_model(self._model, file)
        return file.getvalue()
