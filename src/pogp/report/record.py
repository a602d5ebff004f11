"""What a run was and what came of it, as plain data: the table and the figure read nothing else."""

import json
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Self

from pogp import metrics
from pogp.arrays import Array


@dataclass(frozen=True)
class Settings:
    """What was asked for. None stands for: the data set's own, no budget, no limit."""

    data: str
    samples: int | None
    tune: int | None
    budget: float | None
    view: str
    max_size: int | None
    max_removals: int | None
    dense_limit: int
    seed: int


@dataclass(frozen=True)
class Hyperparameters:
    """What tuning found, on how many samples and in how many seconds."""

    samples: int
    seconds: float
    lengthscales: list[float]
    variance: float
    noise: float
    mean: float
    log_likelihood: float


@dataclass(frozen=True)
class Scores:
    """How good predictions were; see `pogp.metrics`. Coverage is of the 95 % band."""

    smse: float
    msll: float
    nlpd: float
    coverage: float

    @classmethod
    def of(cls, y: Array, mean: Array, variance: Array, train_variance: float) -> Self:
        """Score predictions of y."""
        return cls(
            smse=metrics.smse(y, mean, train_variance),
            msll=metrics.msll(y, mean, variance),
            nlpd=metrics.nlpd(y, mean, variance),
            coverage=metrics.coverage(y, mean, variance),
        )


@dataclass(frozen=True)
class Checkpoint:
    """How a model stood after `seen` samples: its order and its scores on the test set."""

    seen: int
    size: int
    test: Scores


@dataclass(frozen=True)
class Contrast:
    """How much larger a method's SMSE on the test set is than POG's, sample by sample."""

    difference: float
    standard_error: float


@dataclass(frozen=True)
class Method:
    """One model on the stream. `prequential` scores each sample predicted before it was learned.

    `microseconds` are of learning one sample, on average; `nbytes` are held at the end.
    """

    name: str
    microseconds: float
    nbytes: int
    prequential: Scores
    contrast: Contrast
    checkpoints: list[Checkpoint]

    @property
    def final(self) -> Checkpoint:
        """How the model stood at the end."""
        return self.checkpoints[-1]


@dataclass(frozen=True)
class Steps:
    """POG's trace, an entry per sample; `error` is squared, in units of the training variance."""

    error: list[float]
    novelty: list[float]
    change: list[float]
    spent: list[float]


@dataclass(frozen=True)
class Record:
    """A run: POG first among the methods, then what it is compared with."""

    settings: Settings
    environment: dict[str, str]
    source: str
    inputs: int
    streamed: int
    test_samples: int
    train_variance: float
    hyperparameters: Hyperparameters
    methods: list[Method]
    steps: Steps

    def method(self, name: str) -> Method | None:
        """Return what came of one method, if it was run."""
        return next((method for method in self.methods if method.name == name), None)

    def write(self, path: str | PathLike[str]) -> None:
        """Write the record as JSON, a line per field."""
        fields = (f"{json.dumps(key)}: {json.dumps(value)}" for key, value in asdict(self).items())
        Path(path).write_text("{\n" + ",\n".join(fields) + "\n}\n", encoding="utf-8")

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Self:
        """Read what `write` wrote."""
        fields = json.loads(Path(path).read_text(encoding="utf-8"))
        return cls(
            **fields
            | {
                "settings": Settings(**fields["settings"]),
                "hyperparameters": Hyperparameters(**fields["hyperparameters"]),
                "methods": [_method(method) for method in fields["methods"]],
                "steps": Steps(**fields["steps"]),
            }
        )


def _method(fields: dict[str, Any]) -> Method:
    return Method(
        **fields
        | {
            "prequential": Scores(**fields["prequential"]),
            "contrast": Contrast(**fields["contrast"]),
            "checkpoints": [
                Checkpoint(point["seen"], point["size"], Scores(**point["test"]))
                for point in fields["checkpoints"]
            ],
        }
    )
