"""Saving and loading models: their arguments and memory in one file (`_container`), and no code.

The header of the file is

    {"schema": 1, "model": "POG", "arguments": {...}, "memory": {...}}

where `arguments` is what the model was called with and `memory` the numbers it learned; the arrays
it learned are the file's arrays. A kernel or a budget is described by its `kind` and parameters.
One that is code of the user's has the kind "code", and is supplied again when loading.
"""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pogp import _container
from pogp.arrays import Array
from pogp.budgets import Budget, as_budget, budget_from_spec, budget_spec
from pogp.criteria import Criterion
from pogp.errors import FormatError
from pogp.kernels import as_kernel, kernel_from_spec

if TYPE_CHECKING:
    from pogp.models.model import Model


def _code_spec(name: str) -> Callable[[Any], Any]:
    """Describe what is text or None, and refuse what is code."""

    def describe(value: Any) -> Any:
        if value is None or isinstance(value, str):
            return value
        raise ValueError(
            f"the {name} {value!r} is code and cannot be saved; use save(path, without_code=True) "
            f"and supply it again with load(path, {name}=...)"
        )

    return describe


SCHEMA = 1
DESCRIBED: dict[str, Callable[[Any], Any]] = {
    "kernel": lambda kernel: kernel.to_spec(),
    "budget": budget_spec,
    "view": _code_spec("view"),
    "weight": _code_spec("weight"),
}
"""The arguments that may be code, and how the others are described."""
Path = str | os.PathLike[str]


def save(model: "Model", path: Path, without_code: bool = False) -> None:
    """Write a model to a file, atomically.

    What is code (a callable budget, a kernel of the user's own) raises ValueError, unless
    `without_code` leaves it out for `load` to be given again.
    """
    if type(model) is not _known(type(model).__name__):
        raise ValueError(
            f"{type(model).__name__} is a class of your own, which a file cannot bring back; save "
            "what it is made of, or use pickle"
        )
    arguments = model.arguments()
    for name, describe in DESCRIBED.items():
        if name in arguments:
            arguments[name] = _described(arguments[name], describe, without_code)
    if isinstance(arguments["kernel"], dict) and arguments["kernel"]["kind"] == "code":
        arguments["kernel"]["probe"] = _probe(model).tolist()
    memory = model.memory()
    arrays = {name: value for name, value in memory.items() if isinstance(value, np.ndarray)}
    numbers = {name: value for name, value in memory.items() if name not in arrays}
    header: dict[str, Any] = {
        "schema": SCHEMA,
        "model": type(model).__name__,
        "arguments": arguments,
        "memory": numbers,
    }
    _container.write(path, header, arrays)


def load(
    path: Path,
    *,
    kernel: object | None = None,
    budget: float | Budget | None = None,
    view: Criterion | None = None,
    weight: Callable[[Array], Any] | None = None,
) -> "Model":
    """Return the model that `save` wrote; from here on it does what the saved one would have done.

    `kernel`, `budget`, `view` and `weight` supply what is code and was saved without it; all but
    the kernel may also replace the one in the file. FormatError if the file is damaged or of a
    newer version.
    """
    header, arrays = _container.read(path)
    schema, arguments = header.get("schema"), header.get("arguments")
    if not isinstance(schema, int) or not isinstance(arguments, dict):
        raise FormatError(f"{os.fspath(path)}: a file of another kind, not a model of pogp")
    if schema > SCHEMA:
        raise FormatError(
            f"{os.fspath(path)}: schema {schema} is newer than {SCHEMA}, the newest this "
            "version of pogp can read; upgrade pogp"
        )
    described = arguments.get("kernel")
    probe = described.get("probe") if isinstance(described, dict) else None
    _supply(arguments, "kernel", kernel, path)
    _supply(arguments, "budget", budget, path)
    _supply(arguments, "view", view, path)
    _supply(arguments, "weight", weight, path)
    try:
        model = _restore(header, arrays)
        same = probe is None or np.allclose(_probe(model), probe, rtol=1e-9, atol=0.0)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise FormatError(
            f"{os.fspath(path)}: not a model this version can read: {error}"
        ) from error
    if not same:
        raise ValueError(f"the model in {os.fspath(path)} was learned with another kernel")
    return model


def _probe(model: "Model") -> Array:
    """Return the kernel at a few retained points: two kernels that agree there are taken as one."""
    points = model.dictionary[:5]
    return model.kernel(points) if len(points) else np.empty((0, 0))


def _described(value: Any, describe: Any, without_code: bool) -> Any:
    try:
        return describe(value)
    except ValueError:
        if not without_code:
            raise
        return {"kind": "code", "name": repr(value)}


def _supply(arguments: dict[str, Any], name: str, supplied: object | None, path: Path) -> None:
    """Put what the caller supplied in the place of what the file says."""
    saved: Any = arguments.get(name)
    is_code = isinstance(saved, dict) and saved.get("kind") == "code"
    if supplied is None:
        if is_code:
            raise ValueError(
                f"{os.fspath(path)} was saved without its {name} {saved['name']}, which is code; "
                f"supply it with load(path, {name}=...)"
            )
        return
    if name not in arguments:
        raise ValueError(f"the model in {os.fspath(path)} has no {name}, got {supplied!r}")
    if name == "kernel" and not is_code and as_kernel(supplied) != kernel_from_spec(saved):
        raise ValueError(
            f"the model in {os.fspath(path)} was learned with {saved}, not {supplied!r}"
        )
    arguments[name] = supplied


def _known(name: str) -> "type[Model] | None":
    """Return the model of this package that has this name."""
    from pogp import models  # the models save themselves through this module; it finds them by name

    return getattr(models, name) if name in models.__all__ else None


def _restore(header: dict[str, Any], arrays: dict[str, Any]) -> "Model":
    kind = _known(header["model"])
    if kind is None:
        raise ValueError(f"unknown model {header['model']!r}")
    arguments = dict(header["arguments"])
    if isinstance(arguments["kernel"], dict):
        arguments["kernel"] = kernel_from_spec(arguments["kernel"])
    if isinstance(arguments.get("budget"), dict):
        arguments["budget"] = budget_from_spec(arguments["budget"])
    elif "budget" in arguments:
        arguments["budget"] = as_budget(arguments["budget"])
    model = kind(**arguments)
    model.remember({**header["memory"], **arrays})
    return model
