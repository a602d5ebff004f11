"""The numbers of the package: every value is a float64, every count an int64."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.int64]

LARGEST = 1e100
"""Inputs, targets and kernel values beyond this are refused: their squares would overflow."""
