"""The class of all data sets: a training stream, a test set and their source."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


# A generated __eq__ would raise, as arrays have no single truth value: compare by identity.
@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A training stream and a test set with p inputs each.

    Attributes
    ----------
    name : str
        The name of the data set.
    x_train, x_test : ndarray of shape (n, p) and (m, p)
        Inputs.
    y_train, y_test : ndarray of shape (n,) and (m,)
        Targets.
    source : str
        A description of the source.

    Examples
    --------
    >>> Dataset("line", np.eye(3), np.ones(3), np.eye(2, 3), np.ones(2), "made up")
    Dataset(line: 3 training and 2 test samples, 3 inputs)
    """

    name: str
    x_train: NDArray[np.float64]
    y_train: NDArray[np.float64]
    x_test: NDArray[np.float64]
    y_test: NDArray[np.float64]
    source: str

    def __post_init__(self) -> None:
        """Refuse arrays that do not fit together."""
        _check_pair("train", self.x_train, self.y_train)
        _check_pair("test", self.x_test, self.y_test)
        inputs, others = self.x_train.shape[1], self.x_test.shape[1]
        if inputs != others:
            raise ValueError(f"x_test must have {inputs} inputs like x_train, got {others}")

    def __repr__(self) -> str:
        n, p = self.x_train.shape
        inputs = "1 input" if p == 1 else f"{p} inputs"
        m = len(self.x_test)
        return f"Dataset({self.name}: {n} training and {m} test samples, {inputs})"


def _check_pair(part: str, x: NDArray[np.float64], y: NDArray[np.float64]) -> None:
    if x.ndim != 2 or 0 in x.shape:
        raise ValueError(f"x_{part} must have shape (n, p) with n, p ≥ 1, got {x.shape}")
    if y.shape != x.shape[:1]:
        raise ValueError(f"y_{part} must have shape {x.shape[:1]} like x_{part}, got {y.shape}")
    for name, array in ((f"x_{part}", x), (f"y_{part}", y)):
        if not np.isfinite(array).all():
            raise ValueError(f"{name} must be finite, but holds a NaN or an infinity")
