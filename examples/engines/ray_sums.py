"""The same sums on Ray: each part is a task, and the total is the same to the last bit."""

import numpy as np
import ray

from pogp import sums


@ray.remote
def part(plan: bytes, X: np.ndarray, y: np.ndarray) -> bytes:
    """Return the sums of one part of the table."""
    return sums.Plan.from_bytes(plan).sums([(X, y)]).to_bytes()


if __name__ == "__main__":
    ray.init(num_cpus=2)  # ray.init("auto") on a cluster
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (20_000, 2))
    y = np.sin(2 * X[:, 0]) * np.cos(X[:, 1]) + 0.2 * rng.normal(size=len(X))
    plan = sums.plan(X[:3000], y[:3000], max_size=60)
    told = ray.put(plan.to_bytes())
    rows = np.array_split(np.arange(len(y)), 8)
    found = ray.get([part.remote(told, X[i], y[i]) for i in rows])
    total = sums.total(sums.Sums.from_bytes(data) for data in found)
    same = sums.total(plan.sums([(X[i], y[i])]) for i in rows)
    print("the bits of plain Python:", total.to_bytes() == same.to_bytes())
    print(plan.model(total, (X[3000:5000], y[3000:5000])))
