"""Saving and loading models: their arguments and memory in one file (`_container`), and no code.

The header of the file is

    {"schema": 1, "model": "POG", "arguments": {...}, "memory": {...}}

where `arguments` is what the model was called with, its kernel and budget described by their
`kind` and parameters (or null where they are code of the user's), and `memory` is the numbers it
learned; the arrays it learned are the file's arrays.
"""

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from pogp import _container
from pogp.budgets import Budget, as_budget, budget_from_spec, budget_spec
from pogp.errors import FormatError
from pogp.kernels import as_kernel, kernel_from_spec

if TYPE_CHECKING:
    from pogp.models.model import Model

SCHEMA = 1


def save(model: "Model", path: str | os.PathLike[str]) -> None:
    """Write a model to a file, atomically; ValueError names what is code and cannot be saved."""
    arguments = model.arguments()
    arguments["kernel"] = arguments["kernel"].to_spec()
    if "budget" in arguments:
        arguments["budget"] = budget_spec(arguments["budget"])
    memory = model.memory()
    arrays = {name: value for name, value in memory.items() if isinstance(value, np.ndarray)}
    numbers = {name: value for name, value in memory.items() if name not in arrays}
    header = {
        "schema": SCHEMA,
        "model": type(model).__name__,
        "arguments": arguments,
        "memory": numbers,
    }
    _container.write(path, header, arrays)


def load(
    path: str | os.PathLike[str],
    *,
    kernel: object | None = None,
    budget: float | Budget | None = None,
) -> "Model":
    """Return the model that `save` wrote; from here on it does what the saved one would have done.

    `kernel` and `budget` replace the ones in the file.
    """
    header, arrays = _container.read(path)
    try:
        return _restore(header, arrays, kernel, budget)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"{os.fspath(path)}: not a model this version can read: {error}") from error


def _restore(
    header: dict[str, Any],
    arrays: dict[str, Any],
    kernel: object | None,
    budget: float | Budget | None,
) -> "Model":
    from pogp import models  # the models know how to save themselves; this knows how to find them

    if header["schema"] > SCHEMA:
        raise FormatError(
            f"the file has schema {header['schema']}, newer than {SCHEMA}; upgrade pogp to read it"
        )
    if header["model"] not in models.__all__:
        raise FormatError(f"unknown model {header['model']!r}")
    arguments = header["arguments"]
    arguments["kernel"] = (
        kernel_from_spec(arguments["kernel"]) if kernel is None else as_kernel(kernel)
    )
    if "budget" in arguments:
        arguments["budget"] = (
            budget_from_spec(arguments["budget"]) if budget is None else as_budget(budget)
        )
    model: Model = getattr(models, header["model"])(**arguments)
    model.remember({**header["memory"], **arrays})
    return model
