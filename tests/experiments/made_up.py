"""Records that were never run, with numbers that can be worked out by hand."""

from pathlib import Path
from typing import Any

from experiments.methods import METHODS
from experiments.parts.compare import ROWS
from experiments.parts.frontier import GRID
from experiments.published import SETS
from experiments.records import Record, Records
from experiments.tasks import Task

ENVIRONMENT = {
    "commit": "0123456789ab",
    "pogp": "0.1.0",
    "backend": "compiled",
    "python": "3.11.7",
    "numpy": "2.0.0",
    "scipy": "1.13.0",
    "cpu": "abacus, 2 processors",
    "blas_threads": "1",
}
REPEATS = 4
OFF = (0.0, 0.01, -0.01, 0.0)
"""What the repeats are off their mean by: the standard error is 0.01 · √(2/3) / 2 = 0.0041."""
SEEN = [1, 2, 50, 100, 150, 200]
SMSE = {case: round(0.10 + 0.02 * place, 2) for place, case in enumerate(ROWS)}
"""The methods in the order of the tables, the first the best."""


def record(
    part: str, topic: str, case: str, seed: int, options: dict[str, Any], result: dict[str, Any]
) -> Record:
    command = "python -m experiments" + (" --quick" if options["samples"] else "")
    return Record(Task(part, topic, case, seed, options), result, 9.0, ENVIRONMENT, command)


def passage(case: str, seed: int, smse: float) -> dict[str, Any]:
    """The result of a run whose scores follow from its SMSE."""
    test = {"smse": smse, "msll": smse + 1, "nlpd": smse + 1.9189, "coverage": 0.9 + smse / 10}
    if METHODS[case].offline:
        return {"size": 40, "test": test, "seconds": 2.0}
    size = SEEN if case == "dense" else [min(seen, 40) for seen in SEEN]
    curve = {
        "seen": SEEN,
        "size": size,
        "change": [smse / seen for seen in SEEN],
        "smse": [smse + 1 / seen for seen in SEEN],
        "nlpd": [smse + 2 + 1 / seen for seen in SEEN],
    }
    times = {"seconds": 0.5, "microseconds": 100.0 + seed}
    return {"size": 39.5, "test": test, "curve": curve} | times


def make(
    folder: Path,
    topics: tuple[str, ...] = tuple(SETS),
    samples: int | None = None,
    smse: dict[str, float] | None = None,
) -> Records:
    """Write the records of a whole reproduction of these sets."""
    for topic in topics:
        for part in (tuned(topic, samples), scored(topic, samples, smse), sized(topic, samples)):
            lines = "".join(each.line() + "\n" for each in part)
            (folder / f"{part[0].task.part}-{topic}.jsonl").write_text(lines)
    return Records(folder)


def tuned(topic: str, samples: int | None) -> list[Record]:
    kernel = {"lengthscale": [1.0, 2.0, 1000.0], "variance": 1.0, "kind": "RBF"}
    return [
        record("tune", topic, "first slice", seed, {"samples": samples}, result)
        for seed in range(REPEATS)
        for result in [{"kernel": kernel, "noise": 0.1 + seed, "mean": 0.0}]
    ]


def scored(topic: str, samples: int | None, smse: dict[str, float] | None) -> list[Record]:
    return [
        record("compare", topic, case, seed, {"samples": samples}, passage(case, seed, level + off))
        for case, level in (SMSE | (smse or {})).items()
        for seed, off in enumerate(OFF)
    ]


def sized(topic: str, samples: int | None) -> list[Record]:
    """The frontier: methods in their order a hundredth apart, twice the size a twentieth better."""
    return [
        record("frontier", topic, case, seed, {"samples": samples, grade: value}, result)
        for place, (case, (grade, values)) in enumerate(GRID.items())
        for rank, value in enumerate(values)
        for seed, off in enumerate(OFF)
        for score in [0.5 + 0.01 * place - 0.05 * rank + off]
        for result in [{"size": 10 * 2**rank, "smse": score, "nlpd": score + 1}]
    ]
