"""The record of a run, as plain data. The table and the figure read nothing else."""

import json
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Self

from pogp.evaluation.scores import Scores


@dataclass(frozen=True)
class Settings:
    """The settings of a run; budget, view and max_removals are those of POG."""

    data: str
    samples: int | None  # for training; None for the usual number of the data set
    tune: int | None  # those of them used for tuning
    budget: float | None
    view: str
    max_size: int | None  # of every bounded model; None for the size that POG's budget leads to
    max_removals: int | None
    dense_limit: int  # the most samples that the dense GP learns
    seed: int  # of the data, of tuning and of the models


@dataclass(frozen=True)
class Hyperparameters:
    """The hyperparameters found by tuning, with its samples and seconds."""

    samples: int
    seconds: float
    lengthscales: list[float]
    variance: float
    noise: float
    mean: float
    log_likelihood: float


@dataclass(frozen=True)
class Checkpoint:
    """A model after `seen` samples: its order and its scores on the test set."""

    seen: int
    size: int
    test: Scores


@dataclass(frozen=True)
class Contrast:
    """How much larger a method's SMSE on the test set is than the random subset's.

    The differences are paired, sample by sample.
    """

    difference: float
    standard_error: float


@dataclass(frozen=True)
class Method:
    """The results of one method."""

    name: str  # in `evaluation.methods.METHODS`
    microseconds: float  # mean processor time of learning one sample
    nbytes: int  # memory held at the end
    prequential: Scores  # of the predictions made for each sample just before learning it
    contrast: Contrast  # with the random subset
    checkpoints: list[Checkpoint]  # along the stream

    @property
    def final(self) -> Checkpoint:
        """The model at the end."""
        return self.checkpoints[-1]


@dataclass(frozen=True)
class Record:
    """A run: settings, environment and the results of each method."""

    settings: Settings
    environment: dict[str, str]
    inputs: int
    streamed: int
    test_samples: int
    train_variance: float
    hyperparameters: Hyperparameters
    methods: list[Method]

    def method(self, name: str) -> Method | None:
        """Return the results of one method, or None if it was not run."""
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
