"""A payload that changes on a smooth path: `python -m benchmarks.relations`.

Along the path the last residual hides the change. The table has the standardised mean squared error
of rows of the path much later, predicted by `OnlineGP` after `settle`, at some numbers of samples
after the change. Beside it is a new `OnlineGP` that has learned these samples only, and what the
first one had predicted along the path. Averages over the seeds are geometric.
"""

import argparse
from collections.abc import Callable

import numpy as np

import pogp
from benchmarks.streams import shoulder_torque
from pogp.arrays import Array
from pogp.metrics import coverage, smse

AFTER = (500, 1000, 2000, 4000)
"""Samples since the change."""
LATER = 3000
"""Rows to predict."""
FIRST, APART = 3300, 137
"""The position of the change in the first stream, and how much later it is in the next."""


def path(rng: np.random.Generator, count: int, joints: int) -> tuple[Array, Array, Array]:
    """Return angles, speeds and accelerations at 100 Hz: sums of four sines for each joint."""
    rates = rng.uniform(0.3, 2.5, (4, 1, joints))
    angle = rates * (np.arange(count) / 100)[:, None] + rng.uniform(0, 2 * np.pi, (4, 1, joints))
    speed = 0.5 * (rates * np.cos(angle)).sum(axis=0)
    return 0.5 * np.sin(angle).sum(axis=0), speed, -0.5 * (rates**2 * np.sin(angle)).sum(axis=0)


def friction(v: Array) -> Array:
    """Return viscous and dry friction."""
    return np.asarray(0.6 * v + np.tanh(5 * v))


def one_joint(rng: np.random.Generator, count: int, change: int) -> tuple[Array, Array, Array]:
    """Return inputs, torques and their means; the payload grows by 40 %."""
    q, v, a = path(rng, count, 1)
    load = np.where(np.arange(count) < change, 1.0, 1.4)
    torque = (1 + 0.3 * load) * a[:, 0] + 4 * load * np.cos(q[:, 0]) + friction(v[:, 0])
    return np.hstack([q, v, a]), torque + 0.05 * rng.normal(size=count), torque


def two_links(rng: np.random.Generator, count: int, change: int) -> tuple[Array, Array, Array]:
    """Return inputs, torques of the shoulder and their means; the payload is three times as large.

    Both links together have 7 kg, the payload .5 kg before the change and 1.5 kg after it.
    """
    q, v, a = path(rng, count, 2)
    load = np.where(np.arange(count) < change, 0.5, 1.5)
    torque = shoulder_torque(q, v, a, load) + friction(v[:, 0])
    return np.hstack([q, v, a]), torque + 0.2 * rng.normal(size=count), torque


ROBOTS: dict[str, Callable[[np.random.Generator, int, int], tuple[Array, Array, Array]]] = {
    "one joint": one_joint,
    "two links": two_links,
}


def compare(robot: str, seed: int) -> Array:
    """Return (numbers of samples, 4): errors at rest, of a new model, along the path; coverage."""
    change = FIRST + APART * seed
    X, y, truth = ROBOTS[robot](np.random.default_rng(seed), change + AFTER[-1] + LATER, change)
    later, model, found = slice(-LATER, None), pogp.OnlineGP(), []
    model.learn(X[:change], y[:change])
    start, variance = change, float(truth[later].var())
    for count in AFTER:
        new = slice(start, change + count)
        along = smse(y[new], model.learn(X[new], y[new]).mean, float(y.var()))
        start = change + count
        pair = model.copy(), pogp.OnlineGP()
        pair[1].learn(X[change:start], y[change:start])
        for each in pair:
            each.settle()
        (at_rest, band), (fresh, _) = (each.predict(X[later]) for each in pair)
        errors = [smse(truth[later], mean, variance) for mean in (at_rest, fresh)]
        found.append([*errors, along, coverage(y[later], at_rest, band)])
    return np.array(found)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=6)
    seeds = parser.parse_args().seeds
    print("robot       samples since    at rest (in band)    new model    along the path")
    for robot in ROBOTS:
        runs = np.array([compare(robot, seed) for seed in range(seeds)])
        means = np.exp(np.log(runs[:, :, :3]).mean(axis=0))
        for count, (at_rest, fresh, along), band in zip(
            AFTER, means, runs[:, :, 3].mean(axis=0), strict=True
        ):
            row = f"{at_rest:10.4f} ({band:6.1%}) {fresh:12.4f} {along:17.5f}"
            print(f"{robot:11} {count:13,} {row}", flush=True)


if __name__ == "__main__":
    main()
