"""What a report says of a model, whatever its kind, in the units of the data."""

import platform
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy

import pogp
from pogp.arrays import Array
from pogp.budgets import Budget
from pogp.kernels import Elementary, Kernel, Product, Stationary, Sum
from pogp.models.base import Model
from pogp.models.online import OnlineGP
from pogp.report.axes import number
from pogp.report.markup import Markup, table

LONGEST = 160
"""Descriptions beyond so many characters are cut off."""
SAID_ELSEWHERE = ("kernel", "noise", "warmup", "family")
OUTPUTS = 8
"""Outputs that have lines of their own in a table, at most."""


@dataclass(frozen=True)
class Facts:
    """Of the model that does the work, if there is one inside the model given.

    `lengthscales` has one for each input, and is None for kernels without. `noise` and `signal`
    have a variance for each output; the latter is what the kernel gives each value of the function
    before anything is learned, NaN where that depends on the input.
    """

    method: str
    settings: dict[str, str]
    kernel: str
    lengthscales: Array | None
    noise: Array
    signal: Array
    budget: Budget | None
    cap: int | None
    warming_up: bool

    @classmethod
    def of(cls, model: Model, dimension: int, outputs: int) -> Self:
        """Collect them."""
        inside: Model = getattr(model, "model", None) or model
        input_spread, target_spread = _spreads(model)
        if isinstance(model, OnlineGP):  # which says them in the units of the data
            lengthscales, input_spread = _known(model.lengthscales, dimension), 1.0
        else:
            lengthscales = _lengthscales(inside.kernel, dimension)
        arguments = inside.arguments() | {"scale": model.arguments().get("scale")}
        return cls(
            method=type(inside).__name__,
            settings={
                name: described(value)
                for name, value in arguments.items()
                if name not in SAID_ELSEWHERE and value is not None
            },
            kernel=_family(inside.kernel),
            lengthscales=None if lengthscales is None else lengthscales * input_spread,
            noise=np.broadcast_to(inside.noise * target_spread**2, (outputs,)),
            signal=np.broadcast_to(_signal(inside.kernel) * target_spread**2, (outputs,)),
            budget=getattr(inside, "budget", None),
            cap=getattr(inside, "max_size", None),
            warming_up=bool(getattr(model, "warming_up", False)),
        )

    def tables(self, names: list[str], targets: list[str], relevance: Array) -> list[Markup]:
        """Return the settings, the length-scales and the versions as tables."""
        rows = [("model", [self.method]), ("kernel", [self.kernel])]
        rows += _by_output("signal variance", self.signal, targets)
        rows += _by_output("noise variance", self.noise, targets)
        rows += [(name.replace("_", " "), [text]) for name, text in self.settings.items()]
        tables = [table("Model", rows, prose=True)]
        if self.lengthscales is not None and names:
            order = np.argsort(-relevance, kind="stable")
            scales = [
                (names[d], [number(self.lengthscales[d]), f"{relevance[d]:.2f}"]) for d in order
            ]
            tables.append(table("Length-scales", scales, ("input", "length-scale", "relevance")))
        return [*tables, table("Made with", _versions(), prose=True)]


def described(value: object) -> str:
    """Return a value as a person would read it, cut where it is long."""
    text = number(value, 6) if isinstance(value, float) else str(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


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


def _signal(kernel: Kernel) -> float:
    """Return κ(x, x) if it is the same for every x."""
    return np.nan if kernel.kappa0 is None else kernel.kappa0


def _known(lengthscales: Array, dimension: int) -> Array | None:
    """Return the length-scales, or None as long as there are none."""
    return lengthscales if len(lengthscales) == dimension and dimension else None


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
