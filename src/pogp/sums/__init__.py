"""One table in many parts: points from a sample, then sums that can be added in any division.

>>> import numpy as np
>>> from pogp import sums
>>> rng = np.random.default_rng(0)
>>> X = rng.uniform(-3, 3, (4000, 1))
>>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=4000)
>>> plan = sums.plan(X[:300], y[:300], max_size=20, kernel="RBF")
>>> parts = [plan.sums([(X[rows], y[rows])]) for rows in np.split(np.arange(4000), 4)]
>>> model = plan.model(sums.total(parts), calibration=(X[1000:2000], y[1000:2000]))
>>> model.seen, bool(abs(model.predict([1.0])[0] - np.sin(1.0)) < 0.02)
(4000, True)
"""

from pogp.sums.parts import Sums, total
from pogp.sums.planning import Plan, plan

__all__ = ["Plan", "Sums", "plan", "total"]
