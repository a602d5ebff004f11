"""Data sets: three simulated streams and the published data sets of the paper.

| name | description |
|---|---|
| `arm(n)` | a simulated 8-link robot arm, as hard as kin40k |
| `gaussian(n)`, `chi_square(n)` | the paper's two checks of consistency |
| `load(name)` | `boston`, `abalone`, `kin40`, `kin40k` |

Each returns a `Dataset`.
"""

from ._dataset import Dataset
from ._published import DataUnavailable, DigestError, load
from ._synthetic import arm, chi_square, gaussian

__all__ = [
    "Dataset",
    "arm",
    "gaussian",
    "chi_square",
    "load",
    "DataUnavailable",
    "DigestError",
]
