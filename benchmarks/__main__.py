"""Print the benchmark tables: `make bench`, or `python -m benchmarks [--quick]`."""

import argparse
import platform
import resource
import sys
from functools import partial

import numpy as np
import scipy

import pogp
from benchmarks import learn_csv, steps, tuning
from benchmarks.streams import streams
from benchmarks.workloads import (
    SIZES,
    full_absorbing,
    full_model,
    full_sogp,
    microseconds,
    stream,
)


def main() -> int:
    """Run everything and print it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes and short streams")
    quick = parser.parse_args().quick
    if pogp.backend() != "compiled":
        print(f"the compiled core is not live: backend {pogp.backend()}", file=sys.stderr)
        return 2
    print(
        f"pogp {pogp.__version__}, backend {pogp.backend()}, NumPy {np.__version__}, "
        f"SciPy {scipy.__version__}, {platform.machine()}, one BLAS thread\n"
    )
    sizes = SIZES[:3] if quick else SIZES
    times = table(sizes)
    growth(sizes, times)
    absorbing(tuple(size for size in sizes[1:] if size < 1000))
    if not quick:
        large_absorbing(sizes[-1])
    recorded(2000 if quick else 6000)
    flatness(20_000 if quick else 500_000)
    tuning.table(tuning.SIZES[:2] if quick else tuning.SIZES)
    learn_csv.table(20 if quick else 200, max_size=50)
    return 0


def table(sizes: tuple[int, ...]) -> list[float]:
    """Print one line per model order; return the compiled loop's times."""
    print("Steady state, 8 inputs: each sample is appended and one of M + 1 points goes.")
    print("Microseconds per sample: medians, the best of three rounds in which everything takes")
    print("its turn. Batches are of 64; 1 by 1 is of single calls, ÷ floor; p99 is theirs.\n")
    columns = ("M", "naive", "reference", "batches", "floor", "÷floor", "naive÷", "p99÷", "1 by 1")
    print("".join(f"{name:>11}" for name in (*columns, "predict")))
    medians = []
    for size in sizes:
        rounds = [one_round(size) for _ in range(3)]
        naive, reference, compiled, floor, call, p99, predict = np.min(rounds, axis=0)
        medians.append(float(compiled))
        cells = (
            f"{size}",
            f"{naive:,.0f}",
            f"{reference:,.0f}",
            f"{compiled:.1f}",
            f"{floor:.1f}",
            f"{compiled / floor:.2f}",
            f"{naive / compiled:,.0f}",
            f"{p99:.2f}",
            f"{call / floor:.2f}",
            f"{predict:.1f}",
        )
        print("".join(f"{cell:>11}" for cell in cells), flush=True)
    return medians


def one_round(size: int) -> tuple[float, ...]:
    """Time everything once at one model order."""
    calls = steps.single(full_model(size))
    return (
        steps.naive(size),
        steps.reference(size),
        float(np.median(steps.batches(full_model(size)))),
        float(np.median(steps.floor(size))),
        float(np.median(calls)),
        float(np.percentile(calls, 99) / np.median(calls)),
        float(np.median(steps.predict(size))),
    )


def absorbing(sizes: tuple[int, ...]) -> None:
    """Print one line per model order for the models that absorb what they forget."""
    print("\nAbsorbing, the same samples, steady state at the cap M. Microseconds per sample:")
    print(
        "medians, the best of three rounds. The floor is of one matrix; SOGP's updates are of its"
    )
    print(
        "two matrices, one by one. 1 by 1 is of single calls, ÷ floor; 1 call is what they add.\n"
    )
    columns = (
        "M",
        "Absorbing",
        "floor",
        "÷floor",
        "1 by 1",
        "1 call",
        "SOGP",
        "updates",
        "÷updates",
    )
    print("".join(f"{name:>11}" for name in (*columns, "1 call")))
    for size in sizes:
        rounds = [one_absorbing_round(size) for _ in range(3)]
        ours, floor, call, sogp, updates, sogp_call = np.min(rounds, axis=0)
        cells = (
            f"{size}",
            f"{ours:.1f}",
            f"{floor:.1f}",
            f"{ours / floor:.2f}",
            f"{call / floor:.2f}",
            f"{call - ours:+.1f}",
            f"{sogp:.1f}",
            f"{updates:.1f}",
            f"{sogp / updates:.2f}",
            f"{sogp_call - sogp:+.1f}",
        )
        print("".join(f"{cell:>11}" for cell in cells), flush=True)


def large_absorbing(size: int) -> None:
    """Print one ratio for a model that is larger than the caches."""
    model = full_absorbing(size)
    # each round has a copy: samples that were learned before would not become points
    rounds = [(steps.batches(model.copy(), 512), steps.floor(size, 60)) for _ in range(3)]
    ours, floor = np.min([[np.median(part) for part in each] for each in rounds], axis=0)
    print(f"{size:>11}{ours:>11.0f}{floor:>11.0f}{ours / floor:>11.2f}", flush=True)


def recorded(samples: int, size: int = 300) -> None:
    """Print what a sample of each stream takes at a cap, tuned on 300 samples drawn at random."""
    print(f"\nAbsorbing at a cap of {size}, the second half of each stream in one batch, ÷ floor:")
    for name, data in streams([], samples):
        rows = np.random.default_rng(0).permutation(len(data.y))[:300]
        mean, half = float(data.y[rows].mean()), len(data.y) // 2
        tuned = pogp.tune(data.X[rows], data.y[rows], mean=mean, restarts=1)
        model = pogp.AbsorbingPOG(tuned.kernel, tuned.noise, None, max_size=size, mean=mean)
        model.learn(data.X[:half], data.y[:half])
        learn = partial(model.learn, data.X[half:], data.y[half:])
        each = microseconds(learn, 1)[0] / (len(data.y) - half)
        ratio = each / float(np.median(steps.floor(size)))
        print(f"  {name:<16}{ratio:6.2f}  {model.size} points", flush=True)


def one_absorbing_round(size: int) -> tuple[float, ...]:
    """Time everything of `absorbing` once at one model order."""
    times = (
        steps.batches(full_absorbing(size)),
        steps.floor(size),
        steps.single(full_absorbing(size)),
        steps.batches(full_sogp(size)),
        steps.updates(size),
        steps.single(full_sogp(size)),
    )
    return tuple(float(np.median(part)) for part in times)


def growth(sizes: tuple[int, ...], times: list[float]) -> None:
    """Print how the time grows with the model order."""
    exponents = np.diff(np.log(times)) / np.diff(np.log(sizes))
    print("\nGrowth of the compiled time with M, as a power, between successive sizes:")
    print("  " + "  ".join(f"{exponent:.2f}" for exponent in exponents))


def flatness(samples: int) -> None:
    """Print time and memory along a long stream at M = 50."""
    model = full_model(50)
    data = stream(samples)
    rows = np.array_split(np.arange(samples), 10)
    times, memory = [], []
    for part in rows:
        learn = partial(model.learn, data.X[part], data.y[part])
        times.append(microseconds(learn, 1)[0])
        memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    per_sample = np.array(times) / len(rows[0])
    print(f"\nFlatness with t: {samples:,} samples at M = 50, by tenths of the stream.")
    print("  µs per sample   " + "  ".join(f"{value:.2f}" for value in per_sample))
    print("  peak memory MB  " + "  ".join(f"{value:.0f}" for value in memory))


if __name__ == "__main__":
    sys.exit(main())
