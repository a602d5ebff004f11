import numpy as np
from numpy.typing import NDArray

from pogp.arrays import Array

def learn(
    row: Array,
    last: Array,
    unsure: Array,
    runs: Array,
    known: NDArray[np.bool_],
    mean: Array,
    covariance: Array,
    rate: float,
    far: float,
    still: float,
    new_mean: Array,
    new_covariance: Array,
) -> bool: ...
