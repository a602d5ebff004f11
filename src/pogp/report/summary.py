"""The content of a report: the journal of a stream, its model, and names."""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy

import pogp
from pogp.arrays import Array
from pogp.budgets import Budget
from pogp.encoding import Encoder
from pogp.kernels import Elementary, Kernel, Product, Stationary, Sum
from pogp.models.base import Model
from pogp.models.online import OnlineGP
from pogp.report.axes import number
from pogp.report.journal import Journal
from pogp.report.markup import Markup, table
from pogp.report.variables import Variable, variables_of

LONGEST = 160
"""The most characters of a description."""
SAID_ELSEWHERE = ("kernel", "noise", "warmup", "family")
OUTPUTS = 8
"""The most outputs with a line of their own in a table."""


@dataclass(frozen=True)
class ModelSettings:
    """How a model is set up: that inside a self-tuning one, in the units of the data.

    `lengthscales` has one for each input, and is None for kernels without. `noise` and `signal`
    have a variance for each output; the latter is what the kernel gives each value of the function
    before anything is learned, NaN where that depends on the input.
    """

    method: str
    arguments: dict[str, str]
    kernel: str
    lengthscales: Array | None
    noise: Array
    signal: Array
    budget: Budget | None
    cap: int | None
    warming_up: bool

    @classmethod
    def of(cls, model: Model, dimension: int, outputs: int) -> Self:
        """Return the settings of a model with these numbers of inputs and outputs."""
        inside: Model = getattr(model, "model", None) or model
        input_spread, target_spread = _spreads(model)
        if isinstance(model, OnlineGP):  # which says them in the units of the data
            known = dimension > 0 and len(model.lengthscales) == dimension
            lengthscales, input_spread = model.lengthscales if known else None, 1.0
        else:
            lengthscales = _lengthscales(inside.kernel, dimension)
        given = inside.arguments() | {"scale": model.arguments().get("scale")}
        signal = np.nan if inside.kernel.kappa0 is None else inside.kernel.kappa0
        return cls(
            method=type(inside).__name__,
            arguments={
                name: described(value)
                for name, value in given.items()
                if name not in SAID_ELSEWHERE and value is not None
            },
            kernel=_family(inside.kernel),
            lengthscales=None if lengthscales is None else lengthscales * input_spread,
            noise=np.broadcast_to(inside.noise * target_spread**2, (outputs,)),
            signal=np.broadcast_to(signal * target_spread**2, (outputs,)),
            budget=getattr(inside, "budget", None),
            cap=getattr(inside, "max_size", None),
            warming_up=bool(getattr(model, "warming_up", False)),
        )

    def tables(
        self, targets: list[str], relevance: Sequence[tuple[Variable, float]]
    ) -> list[Markup]:
        """Return the settings, the length-scales and the versions as tables."""
        rows = [("model", [self.method]), ("kernel", [self.kernel])]
        rows += _by_output("signal deviation", np.sqrt(self.signal), targets)
        rows += _by_output("noise deviation", np.sqrt(self.noise), targets)
        rows += [(name.replace("_", " "), [text]) for name, text in self.arguments.items()]
        tables = [table("Model", rows, prose=True)]
        if self.lengthscales is not None and relevance:
            scales = [
                (each.name, [_range(self.lengthscales[list(each.inputs)]), f"{share:.2f}"])
                for each, share in relevance
            ]
            tables.append(table("Length-scales", scales, ("input", "length-scale", "relevance")))
        return [*tables, table("Made with", _versions(), prose=True)]


@dataclass(frozen=True)
class Summary:
    """The content of a report; `names` has one for each input, `targets` one for each output."""

    journal: Journal
    model: Model
    settings: ModelSettings
    names: list[str]
    targets: list[str]
    columns: list[str]
    """The column of the table that each input comes from."""
    all_variables: list[Variable]
    """The inputs; those of a column of categories are one variable."""
    command: tuple[str, ...] = ("pogp", "learn", "SOURCE")
    """The command that learned the stream, to which advice is added."""
    written: Mapping[str, str] = field(default_factory=dict)
    """The files that the command wrote beside the model, by option: of --out and --report."""

    @classmethod
    def of(
        cls,
        journal: Journal,
        model: Model,
        names: Sequence[str] | None,
        target: str | Sequence[str],
        command: Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
    ) -> Self:
        """Return the summary; inputs and outputs without a name are numbered.

        `columns` are those that the inputs come from, where a column becomes several inputs.
        """
        dimension, outputs = journal.dimension, journal.outputs
        inputs = [f"x{d}" for d in range(dimension)] if names is None else list(map(str, names))
        if dimension and len(inputs) != dimension:
            raise ValueError(f"names must be {dimension}, one for each input, got {inputs}")
        if isinstance(target, str):
            target = [target] if outputs < 2 else [f"{target} {k}" for k in range(outputs)]
        targets = list(map(str, target))
        if outputs and len(targets) != outputs:
            raise ValueError(f"target must be {outputs} names, one for each output, got {targets}")
        settings = ModelSettings.of(model, len(inputs), outputs)
        origins = inputs if columns is None else list(columns)
        words = tuple(command or cls.command)
        variables = variables_of(inputs)
        return cls(journal, model, settings, inputs, targets, origins, variables, words)

    @classmethod
    def of_table(
        cls,
        journal: Journal,
        model: Model,
        encoder: Encoder,
        target: str,
        command: Sequence[str],
        written: Mapping[str, str],
    ) -> Self:
        """Return the summary of a model that learned a table, whose columns the encoder knows."""
        summary = cls.of(journal, model, encoder.labels, target, command, encoder.origins)
        variables = variables_of(encoder.labels, encoder)
        return replace(summary, all_variables=variables, written=written)

    @cached_property
    def relevance(self) -> Array:
        """The spread of each input in its length-scales; of all alike where there are none.

        An input that never varied has none.
        """
        inputs, scales = self.journal.samples.inputs, self.settings.lengthscales
        if len(inputs) == 0:
            return np.zeros(inputs.shape[1])
        most = np.std(np.clip(inputs, *np.quantile(inputs, (0.01, 0.99), axis=0)), axis=0)
        spread = np.where(most > 0, most, np.std(inputs, axis=0))  # it may vary in rare samples
        spread = np.where(np.ptp(inputs, axis=0) > 0, spread, 0.0)
        return np.asarray(np.sign(spread) if scales is None else spread / scales)

    @property
    def inputs(self) -> list[str]:
        """The name of the variable that each input belongs to."""
        return [each.name for each in self.all_variables for _ in each.inputs]

    @cached_property
    def ranking(self) -> list[tuple[Variable, float]]:
        """The variables and their relevance, the most relevant first.

        Categories are as far apart as their codes, so the squares of all codes add up.
        """
        pairs = [
            (each, float(np.linalg.norm(self.relevance[list(each.inputs)])))
            for each in self.all_variables
        ]
        return sorted(pairs, key=lambda pair: -pair[1])

    @property
    def variables(self) -> list[Variable]:
        """The variables that varied, the most relevant first."""
        return [each for each, relevance in self.ranking if relevance > 0]


def described(value: object) -> str:
    """Return a value as a person would read it, cut where it is long."""
    text = number(value, 6) if isinstance(value, float) else str(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _range(values: Array) -> str:
    """Return one number, or the smallest and the largest of several."""
    ends = list(dict.fromkeys(number(float(value)) for value in (values.min(), values.max())))
    return " to ".join(ends)


def _by_output(what: str, values: Array, targets: list[str]) -> list[tuple[str, list[str]]]:
    """Return a row for each output, or one for all if they have it in common."""
    known = [(name, value) for name, value in zip(targets, values, strict=False) if value > 0]
    if len(known) > 1 and np.ptp(values) == 0:
        return [(f"{what}, each output", [number(values[0])])]
    return [(f"{what}, {name}", [number(value)]) for name, value in known[:OUTPUTS]]


def _versions() -> list[tuple[str, list[str]]]:
    return [
        ("pogp", [f"{pogp.__version__}, {pogp.backend()} core"]),
        ("Python", [platform.python_version()]),
        ("NumPy", [np.__version__]),
        ("SciPy", [scipy.__version__]),
        ("machine", [f"{platform.system()} {platform.machine()}"]),
    ]


def _spreads(model: Model) -> tuple[Any, Any]:
    """Return the units that the model inside has for inputs and targets."""
    if not model.arguments().get("scale"):
        return 1.0, 1.0
    state = model.state()
    return state.get("input_spread", 1.0), state.get("target_spread", 1.0)


def _family(kernel: Kernel) -> str:
    """Return the kinds of kernels that it is made of."""
    if isinstance(kernel, Elementary):
        return type(kernel).__name__
    if isinstance(kernel, Sum | Product):
        return f"({_family(kernel.left)} {kernel.symbol} {_family(kernel.right)})"
    return described(kernel)


def _lengthscales(kernel: Kernel, dimension: int) -> Array | None:
    """Return one for each input, ∞ for those left out; of two kernels joined, the shorter."""
    if isinstance(kernel, Stationary):
        scales = np.full(dimension, np.inf)
        scales[slice(None) if kernel.columns is None else list(kernel.columns)] = kernel.lengthscale
        return scales
    if isinstance(kernel, Sum | Product):
        parts = [_lengthscales(part, dimension) for part in (kernel.left, kernel.right)]
        known = [part for part in parts if part is not None]
        return np.asarray(np.min(known, axis=0)) if known else None
    return None
