"""One table in parts on Ray: `python ray_sums.py`, or `python ray_sums.py auto` on a cluster."""

import sys

import numpy as np
import ray

from pogp import sums


@ray.remote
def part(plan: bytes, X: np.ndarray, y: np.ndarray) -> bytes:
    """Return the sums of one part of the table."""
    return sums.Plan.from_bytes(plan).sums([(X, y)]).to_bytes()


if __name__ == "__main__":
    environment = {"env_vars": {"OPENBLAS_NUM_THREADS": "1"}}
    ray.init(sys.argv[1] if len(sys.argv) > 1 else "local", runtime_env=environment)
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (20_000, 2))
    y = np.sin(2 * X[:, 0]) * np.cos(X[:, 1]) + 0.2 * rng.normal(size=len(X))

    plan = sums.plan(X[:2000], y[:2000], max_size=60, kernel="RBF")
    encoded = ray.put(plan.to_bytes())
    rows = np.array_split(np.arange(len(y)), 8)
    found = ray.get([part.remote(encoded, X[i], y[i]) for i in rows])
    total = sums.total(sums.Sums.from_bytes(data) for data in found)
    same = sums.total(plan.sums([(X[i], y[i])]) for i in rows)
    print("identical to plain Python:", total.to_bytes() == same.to_bytes())

    model = plan.model(total, calibration=(X[2000:4000], y[2000:4000]))
    grid = rng.uniform(-2, 2, (1000, 2))
    off = model.predict(grid)[0] - np.sin(2 * grid[:, 0]) * np.cos(grid[:, 1])
    print(f"{model.seen} rows, rms error below 0.02: {bool(np.std(off) < 0.02)}")
