"""How far sums and fleets scale, simulated from rates measured on one core.

    python -m benchmarks.scaling              # measures, then simulates 10¹⁰ rows and 10⁶ keys

What a single machine cannot measure is assumed, and can be given: `--launch` (seconds in which the
driver starts a task), `--network` and `--disk` (bytes per second of one executor, from others and
from and to storage), `--cores` (of one executor).
"""

import argparse
import heapq
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import pogp
from pogp import sums
from pogp.models.selftuning.factory import made
from pogp.sums.columns import CALIBRATION, FAN, SAMPLE
from pogp.sums.drawing import Drawn, draw

INPUTS, POINTS, PART = 8, 300, 1_000_000
"""Inputs of a row, points of the model, and rows of a part."""
DIRECT = 64
"""Parts that go to the driver at once, as in `pogp.spark`."""
SMALL, LARGE = 8, 50
"""Points of the models of a fleet."""


@dataclass(frozen=True)
class Machines:
    """What is assumed."""

    launch: float
    network: float
    disk: float
    cores: int


@dataclass(frozen=True)
class Rates:
    """What is measured on one core, in seconds and bytes."""

    draw: float
    row: float
    add: float
    merge: float
    plan: float
    sums_bytes: int
    sample_bytes: int


def measured() -> Rates:
    """Return the costs of a row in both passes, and of an addition."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (30_000, INPUTS))
    y = np.sin(X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=len(X))
    kernel = pogp.RBF(np.full(INPUTS, 2.0))
    plan = sums.Plan(X[:POINTS], kernel, 0.01, np.zeros(1), np.ones(1), True, POINTS)
    size = SAMPLE + CALIBRATION
    batches = [(X, y)]
    sample = draw(batches, size, dimension=INPUTS)
    part = plan.sums(batches)
    encoded, drawn = part.to_bytes(), sample.to_bytes()
    return Rates(
        draw=_cost(lambda: draw(batches, size, dimension=INPUTS)) / len(X),
        row=_cost(lambda: plan.sums(batches)) / len(X),
        add=_cost(lambda: part + sums.Sums.from_bytes(encoded)),
        merge=_cost(lambda: sample + Drawn.from_bytes(drawn)),
        plan=_cost(lambda: sums.plan(X[:SAMPLE], y[:SAMPLE], max_size=POINTS), 1),
        sums_bytes=len(encoded),
        sample_bytes=len(drawn),
    )


def _cost(work: Callable[[], object], repeats: int = 5) -> float:
    """Return the least processor time of several tries."""
    costs = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        costs.append(time.process_time() - start)
    return min(costs)


# ---- one table ----------------------------------------------------------------------------------


def stage(tasks: Iterable[float], cores: int, launch: float) -> float:
    """Return the time of tasks that one driver starts in turn on free cores."""
    free = [0.0] * cores
    driver = 0.0
    for duration in tasks:
        driver = max(driver, free[0]) + launch
        heapq.heapreplace(free, driver + duration)
    return max(driver, max(free))


def levels(parts: int) -> Iterator[int]:
    """Yield the number of groups at each level of the tree, as in `pogp.spark`."""
    while parts > DIRECT:
        parts = -(-parts // FAN)
        yield parts


def passed(
    rows: int, cores: int, row: float, add: float, size: int, machines: Machines
) -> tuple[float, float, int]:
    """Return the seconds of one pass and of its tree, and the bytes that are moved."""
    parts = -(-rows // PART)
    reading = 8 * (INPUTS + 1) * machines.cores / machines.disk  # while rows are computed
    whole = stage((PART * max(row, reading) for _ in range(parts)), cores, machines.launch)
    share = machines.network / machines.cores  # all cores of an executor receive at once
    tree, moved, count = 0.0, 0, parts
    for groups in levels(parts):
        moved += count * size
        each = FAN * (size / share + add)
        tree += stage((each for _ in range(groups)), cores, machines.launch)
        count = groups
    moved += count * size
    tree += count * (size / machines.network + add)  # the driver takes the rest
    return whole, tree, moved


def table(rows: int, counts: Sequence[int], rates: Rates, machines: Machines) -> None:
    """Print what a table costs on several numbers of cores."""
    depth = len(list(levels(-(-rows // PART)))) + 1
    print(f"\n{rows:.0e} rows in parts of {PART:.0e}, a tree of {depth} levels\n")
    print("| cores | sample | its tree | plan | sums | their tree | total | busy | moved |")
    print("|---|---|---|---|---|---|---|---|---|")
    one = rows * (rates.draw + rates.row)
    for cores in counts:
        first = passed(rows, cores, rates.draw, rates.merge, rates.sample_bytes, machines)
        second = passed(rows, cores, rates.row, rates.add, rates.sums_bytes, machines)
        total = sum(first[:2]) + rates.plan + sum(second[:2])
        times = [first[0], first[1], rates.plan, second[0], second[1], total]
        cells = " | ".join(f"{seconds:,.0f} s" for seconds in times)
        moved = (first[2] + second[2]) / 1e9
        print(f"| {cores:,} | {cells} | {one / cores / total:.0%} | {moved:,.1f} GB |")


# ---- a fleet ------------------------------------------------------------------------------------


def member(points: int) -> tuple[int, float]:
    """Return the bytes of a key's model, and the processor time of a micro-batch of one row."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (400, 3))
    y = np.sin(X.sum(axis=1)) + 0.1 * rng.normal(size=len(X))
    options: dict[str, Any] = {"kernel": pogp.RBF(2.0), "noise": 0.01, "warmup": 50, "reservoir": 0}
    model = made("absorbing", max_size=points, scale=True, **options)
    model.learn(X[:300], y[:300])
    state, sizes = [model.to_bytes()], [0]

    def batch() -> None:
        again = pogp.from_bytes(state[0])
        again.learn(X[300:301], y[300:301])
        state[0] = again.to_bytes()
        sizes.append(len(state[0]))

    cost = _cost(batch, 30)
    return max(sizes), cost


def fleet(keys: int, counts: Sequence[int], machines: Machines) -> None:
    """Print what a micro-batch with a row of every key costs on several numbers of executors."""
    print(f"\n{keys:.0e} keys, a micro-batch with a row of each, {machines.cores} cores each\n")
    print("| points | executors | state of each | learning | checkpoint | rows per second |")
    print("|---|---|---|---|---|---|")
    for points in (SMALL, LARGE):
        size, cost = member(points)
        for executors in counts:
            cores = executors * machines.cores
            mine = keys / executors
            learning = stage([keys / cores * cost] * cores, cores, machines.launch)
            writing = mine * size / machines.disk
            print(
                f"| {points} | {executors:,} | {mine * size / 1e6:,.0f} MB | {learning:,.1f} s | "
                f"{writing:,.1f} s | {keys / (learning + writing):,.0f} |"
            )


def main() -> None:
    """Measure and simulate."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--launch", type=float, default=0.002)
    parser.add_argument("--network", type=float, default=1.25e8)
    parser.add_argument("--disk", type=float, default=2e8)
    parser.add_argument("--cores", type=int, default=4)
    arguments = parser.parse_args()
    machines = Machines(arguments.launch, arguments.network, arguments.disk, arguments.cores)
    rates = measured()
    print(
        f"measured: {1 / rates.draw:,.0f} rows/s drawn, {1 / rates.row:,.0f} rows/s summed, "
        f"{1e3 * rates.add:.1f} ms an addition of {rates.sums_bytes:,} bytes, "
        f"{1e3 * rates.merge:.1f} ms one of samples of {rates.sample_bytes:,} bytes, "
        f"{rates.plan:.0f} s the plan\nassumed: {machines}"
    )
    table(10**10, (100, 1_000, 10_000, 100_000), rates, machines)
    fleet(10**6, (10, 100, 1_000), machines)


if __name__ == "__main__":
    main()
