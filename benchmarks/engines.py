"""One table in many parts: accuracy of sums and of merging, and rows per second.

    python -m benchmarks.engines quality     # kin40k in 2 to 128 parts, random and sorted
    python -m benchmarks.engines rounds      # a plan from few rows, then one from more
    python -m benchmarks.engines merging     # the same models merged, for comparison
    python -m benchmarks.engines streams     # sums against one model on recorded streams
    python -m benchmarks.engines rate        # one core: sums against learning row by row
    python -m benchmarks.engines spark       # two cores: warm Spark against two processes
    python -m benchmarks.engines fleet       # bytes of state and rows per second of one key

The first four need the data that `POGP_DATA` points at.
"""

import os
import sys
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import pogp
from pogp import sums
from pogp.arrays import Array
from pogp.models.selftuning.factory import made

ROWS, SAMPLE, CALIBRATION, POINTS = 30_000, 10_000, 5_000, 300
STREAMS = ("co2", "kuka_kr300", "magnetometer", "turbine_nox", "pol", "protein")


class Table:
    """kin40k: 30,000 rows to learn, drawn at random, and 10,000 to test by."""

    def __init__(self, seed: int = 0) -> None:
        data = pogp.datasets.load("kin40k")
        X = np.vstack([data.x_train, data.x_test])
        y = np.append(data.y_train, data.y_test)
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(y))
        train, test = order[:ROWS], order[ROWS:]
        self.X, self.y, self.X_test, self.y_test = X[train], y[train], X[test], y[test]
        drawn = rng.permutation(ROWS)
        self.sample, self.held_out = drawn[:SAMPLE], drawn[SAMPLE : SAMPLE + CALIBRATION]

    def rows(self, which: Any) -> tuple[Array, Array]:
        """Return some rows to learn."""
        return self.X[which], self.y[which]

    def plan(self) -> sums.Plan:
        """Return the plan that the sample suggests."""
        return sums.plan(*self.rows(self.sample), max_size=POINTS)

    def scores(self, mean: Array, variance: Array) -> str:
        """Return SMSE, NLPD and the coverage of 95 % bands on the test rows."""
        smse = pogp.metrics.smse(self.y_test, mean, float(self.y.var()))
        nlpd = pogp.metrics.nlpd(self.y_test, mean, variance)
        covered = pogp.metrics.coverage(self.y_test, mean, variance)
        return f"SMSE {smse:.4f}  NLPD {nlpd:.3f}  coverage {covered:.3f}"

    def orders(self) -> dict[str, Any]:
        """Return the rows in random order, and sorted by one input."""
        random = np.random.default_rng(1).permutation(ROWS)
        return {"random": random, "sorted": np.argsort(self.X[:, 0])}


def quality() -> None:
    """Print the scores of sums for several divisions, and how far they are apart."""
    table = Table()
    plan = table.plan()
    whole = plan.sums([table.rows(slice(None))])
    mean, variance = plan.model(whole, table.rows(table.held_out)).predict(table.X_test)
    print(f"one part:            {table.scores(mean, variance)}")
    for name, order in table.orders().items():
        for count in (2, 8, 32, 128):
            parts = [plan.sums([table.rows(rows)]) for rows in np.array_split(order, count)]
            total = sums.total(parts)
            model = plan.model(total, table.rows(table.held_out))
            found = model.predict(table.X_test)
            apart = np.abs(total.gram - whole.gram).max() / np.abs(whole.gram).max()
            means = np.abs(found[0] - mean).max() / np.abs(mean).max()
            variances = np.abs(found[1] / variance - 1).max()
            print(
                f"{count:4d} parts, {name}: {table.scores(*found)}  apart: sums {apart:.0e} "
                f"means {means:.0e} variances {variances:.0e}",
                flush=True,
            )


def rounds() -> None:
    """Print the scores of a plan from a tenth of the sample, and of a second one from all of it."""
    table = Table()
    few = table.rows(table.sample[: SAMPLE // 10])
    first = sums.plan(*few, max_size=POINTS, kernel="RBF")
    second = sums.plan(*table.rows(table.sample), max_size=POINTS, kernel=first.kernel)
    for name, plan in (("first", first), ("second", second)):
        total = plan.sums([table.rows(slice(None))])
        model = plan.model(total, table.rows(table.held_out))
        print(f"{name} round: {table.scores(*model.predict(table.X_test))}", flush=True)


def merging() -> None:
    """Print the scores of models that were merged in a tree, and all at once."""
    table = Table()
    plan = table.plan()
    X, y = table.rows(table.held_out)

    def scored(name: str, model: pogp.AbsorbingPOG) -> None:
        mean, variance = model.predict(X)
        scale = float(np.mean((y - mean) ** 2 / variance))
        mean, variance = model.predict(table.X_test)
        print(f"{name}: {table.scores(mean, scale * variance)}", flush=True)

    def learned(rows: Any) -> pogp.AbsorbingPOG:
        options: dict[str, Any] = {"max_size": POINTS, "mean": float(plan.mean[0])}
        model = pogp.AbsorbingPOG(plan.kernel, plan.noise, None, **options)
        model.learn(*table.rows(rows))
        return model

    for name, order in table.orders().items():
        scored(f"one model, {name}", learned(order))
        for count in (8, 128):
            parts = [learned(rows) for rows in np.array_split(order, count)]
            if count == 8:
                scored(f"one of 8 parts alone, {name}", parts[0])
                scored(f"8 parts merged at once, {name}", parts[0].copy().merge(*parts[1:]))
            while len(parts) > 1:
                parts = [a.merge(b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
            scored(f"{count} parts merged in a tree, {name}", parts[0])


def streams() -> None:
    """Print the SMSE of sums and of one model with the same kernel on recorded streams.

    Tested on a tenth of the rows drawn at random, and on the end of the recording, where some of
    the streams have moved on and no model of the past predicts well.
    """
    folder = Path(os.environ["POGP_DATA"]) / "streams"
    for name in STREAMS:
        data = np.load(folder / f"{name}.npz")
        X, y = data["x_train"], data["y_train"]
        drawn = np.random.default_rng(0).permutation(len(y))
        inside, kept = np.sort(drawn[: len(y) // 10]), np.sort(drawn[len(y) // 10 :])
        tests = {"random": (X[inside], y[inside]), "end": (data["x_test"], data["y_test"])}
        X, y = X[kept], y[kept]
        order = np.random.default_rng(1).permutation(len(y))
        cut = min(SAMPLE, 2 * len(y) // 3)
        rows, rest = order[:cut], order[cut:]
        plan = sums.plan(X[rows], y[rows], max_size=POINTS)
        model = plan.model(plan.sums([(X, y)]), (X[rest], y[rest]))
        one = pogp.AbsorbingPOG(
            plan.kernel, plan.noise, None, max_size=POINTS, mean=float(plan.mean[0])
        )
        one.learn(X, y)
        for test, (X_test, y_test) in tests.items():
            ours, theirs = (
                pogp.metrics.smse(y_test, each.predict(X_test)[0], float(y.var()))
                for each in (model, one)
            )
            ratio = ours / theirs
            print(f"{name}, {test}: SMSE {ours:.4f}, one model {theirs:.4f}: {ratio:.3f}")


def rate() -> None:
    """Print rows per second of one core, of the processor's time."""
    table = Table()
    plan = table.plan()
    options: dict[str, Any] = {"max_size": POINTS, "mean": float(plan.mean[0])}
    one = pogp.AbsorbingPOG(plan.kernel, plan.noise, None, **options)
    one.learn(*table.rows(slice(3000)))
    streamed = _per_second(lambda: one.learn(*table.rows(slice(3000, 9000))), 6000)
    summed = _per_second(lambda: plan.sums([table.rows(slice(None))]), ROWS)
    print(f"sums {summed:,.0f} rows/s, learning {streamed:,.0f} rows/s: {summed / streamed:.1f}")


def _per_second(work: Callable[[], object], rows: int) -> float:
    start = time.process_time()
    work()
    return rows / (time.process_time() - start)


def _part(encoded: bytes, X: Array, y: Array) -> bytes:
    return sums.Plan.from_bytes(encoded).sums([(X, y)]).to_bytes()


def spark() -> None:
    """Print rows per second of warm Spark and of two plain processes, by the clock."""
    from pyspark.sql import SparkSession

    from pogp.spark.parts import total
    from pogp.sums.columns import Columns, Job

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "20000")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    table, repeats = Table(), 10
    plan = table.plan()
    encoded = plan.to_bytes()
    columns = [f"x{i}" for i in range(table.X.shape[1])]
    work = Job(Columns(tuple(columns), ("y",)), 10)
    import pandas as pd

    frame = pd.DataFrame(np.tile(table.X, (repeats, 1)), columns=columns)
    frame["y"] = np.tile(table.y, repeats)
    df = session.createDataFrame(frame).repartition(8).cache()
    df.count()

    def of_part(pieces: Any, read: Any, number: int) -> bytes:
        return work.sums(pieces, read, number, encoded)

    total(df, of_part, sums.Sums)  # warms up the workers
    start = time.perf_counter()
    total(df, of_part, sums.Sums)
    by_spark = repeats * ROWS / (time.perf_counter() - start)
    session.stop()
    parts = [np.array_split(array, 8) for array in (frame[columns].to_numpy(), frame["y"])]
    with ProcessPoolExecutor(2) as pool:
        list(pool.map(_part, [encoded] * 2, *[[part[:100] for part in side[:2]] for side in parts]))
        start = time.perf_counter()
        found = pool.map(
            _part, [encoded] * 8, *[[np.asarray(part) for part in side] for side in parts]
        )
        sums.total([sums.Sums.from_bytes(data) for data in found])
        plain = repeats * ROWS / (time.perf_counter() - start)
    print(f"Spark {by_spark:,.0f} rows/s, two processes {plain:,.0f}: {by_spark / plain:.2f}")


def fleet() -> None:
    """Print the bytes of a key's state, and what a micro-batch of one key costs."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (400, 3))
    y = np.sin(X.sum(axis=1)) + 0.1 * rng.normal(size=400)
    for name, options in (("with a reservoir", {}), ("without", {"reservoir": 0})):
        fixed: dict[str, Any] = {"kernel": pogp.RBF(2.0), "noise": 0.01, "warmup": 50}
        model = made("absorbing", max_size=50, scale=True, **fixed, **options)
        model.learn(X[:300], y[:300])
        print(f"{name}: {model.size} points, {len(model.to_bytes()):,} bytes")
    data = model.to_bytes()
    start = time.process_time()
    for i in range(100):
        model = pogp.from_bytes(data)  # type: ignore[assignment]
        model.learn(X[300 + i : 301 + i], y[300 + i : 301 + i])
        data = model.to_bytes()
    cost = (time.process_time() - start) / 100
    print(f"a micro-batch of one row of one key: {1e3 * cost:.2f} ms, its bytes read and written")


PARTS = (quality, rounds, merging, streams, rate, spark, fleet)

if __name__ == "__main__":
    parts = {part.__name__: part for part in PARTS}
    parser = ArgumentParser(
        "python -m benchmarks.engines",
        description=__doc__,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help="all if left out")
    for wanted in parser.parse_args().parts or parts:
        if wanted not in parts:
            parser.error(f"PART must be one of {', '.join(parts)}, got {wanted!r}")
        parts[wanted]()
