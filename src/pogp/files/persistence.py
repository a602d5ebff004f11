"""Saving and loading models: their arguments and state in one file (`container`), and no code.

The header of the file is

    {"schema": 3, "model": "POG", "arguments": {...}, "state": {...}, "notes": {...}}

where `arguments` is what the model was called with and `state` the numbers it learned; the arrays
it learned are the file's arrays. `notes` are the caller's, and left out where there are none. A
kernel or a budget is described by its `kind` and parameters. One that is code of the user's has the
kind "code", and is supplied again when loading.
"""

import contextlib
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pogp import validation
from pogp.arrays import Array
from pogp.budgets import Budget, as_budget, budget_from_spec, budget_spec
from pogp.criteria import Criterion
from pogp.errors import FormatError
from pogp.files import container, migration
from pogp.kernels import as_kernel, kernel_from_spec

if TYPE_CHECKING:
    from pogp.models.base import Model

SCHEMA = 3
DEPTH = 100
"""How many mappings and lists may be inside one another."""
Path = str | os.PathLike[str]


def _text(name: str) -> Callable[[Any], Any]:
    """Return what describes text or None as it is, and refuses anything else as code."""

    def describe(value: Any) -> Any:
        if value is None or isinstance(value, str):
            return value
        raise ValueError(
            f"the {name} {value!r} is code and cannot be saved; use save(path, without_code=True) "
            f"and supply it again with load(path, {name}=...)"
        )

    return describe


def _kernel_spec(kernel: Any) -> Any:
    """Describe a kernel; the name of a class, in a model that is yet to find its own, is text."""
    return kernel if isinstance(kernel, str) else kernel.to_spec()


def _kernel_made(spec: Any) -> Any:
    return spec if isinstance(spec, str) else kernel_from_spec(spec)


Codec = tuple[Callable[[Any], Any], Callable[[Any], Any]]
CODECS: dict[str, Codec] = {
    "kernel": (_kernel_spec, _kernel_made),
    "budget": (budget_spec, budget_from_spec),
    "view": (_text("view"), _text("view")),
    "weight": (_text("weight"), _text("weight")),
}
"""The arguments that may be code, and how the others are described and made again."""


@dataclass(frozen=True)
class _Code:
    """In the place of an argument that is code, and was left out of the file."""

    name: str
    probe: list[list[float]] | None


@dataclass(frozen=True)
class _Source:
    """Where a model comes from, and the call that loads it, for messages."""

    name: str
    call: str


def save(
    model: "Model",
    path: Path,
    without_code: bool = False,
    notes: Mapping[str, Any] | None = None,
) -> None:
    """Write a model to a file, atomically.

    What is code (a callable budget, a kernel of the user's own) raises ValueError, unless
    `without_code` leaves it out for `load` to be given again. `notes`, a mapping of text to what
    JSON can hold, are written beside the model.
    """
    container.write(path, *_content(model, without_code, notes))


def to_bytes(
    model: "Model", without_code: bool = False, notes: Mapping[str, Any] | None = None
) -> bytes:
    """Return what `save` would write."""
    return b"".join(container.encode(*_content(model, without_code, notes)))


def _content(
    model: "Model", without_code: bool, notes: Mapping[str, Any] | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the header and the arrays of a model's file."""
    if type(model) is not _known(type(model).__name__):
        raise ValueError(
            f"{type(model).__name__} is a class of your own, which a file cannot bring back; save "
            "what it is made of, or use pickle"
        )
    with model.locked():
        state, arguments = model.state(), _described(model, without_code)
    arrays = {name: value for name, value in state.items() if isinstance(value, np.ndarray)}
    numbers = {name: value for name, value in state.items() if name not in arrays}
    header = {
        "schema": SCHEMA,
        "model": type(model).__name__,
        "arguments": arguments,
        "state": _plain(numbers, "state"),
    }
    if notes is not None:
        if not isinstance(notes, Mapping):
            raise ValueError(f"notes must be a mapping, got {notes!r}")
        header["notes"] = _plain(notes, "notes")
    return header, arrays


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
    supplied = _supplied(kernel, budget, view, weight)
    source = _Source(os.fspath(path), "load(path")
    return _model(*container.read(path), supplied, source)


def from_bytes(
    data: bytes,
    *,
    kernel: object | None = None,
    budget: float | Budget | None = None,
    view: Criterion | None = None,
    weight: Callable[[Array], Any] | None = None,
) -> "Model":
    """Return the model that `to_bytes` wrote, or that is in a file with this content; see `load`.

    >>> import pogp
    >>> pogp.from_bytes(pogp.POG(pogp.RBF(), 0.1).to_bytes()).noise
    0.1
    """
    if not isinstance(data, bytes | bytearray | memoryview):
        raise ValueError(f"data must be bytes, as model.to_bytes() returns, got {data!r:.100}")
    supplied = _supplied(kernel, budget, view, weight)
    source = _Source("the bytes", "from_bytes(data")
    try:
        header, arrays = container.decode(bytes(data))
    except FormatError as error:
        raise FormatError(f"{source.name}: {error}") from error
    return _model(header, arrays, supplied, source)


def _supplied(
    kernel: object | None,
    budget: float | Budget | None,
    view: Criterion | None,
    weight: Callable[[Array], Any] | None,
) -> dict[str, Any]:
    """Return what the caller supplies, checked before anything is read."""
    made = None if kernel is None else as_kernel(kernel)
    return {"kernel": made, "budget": as_budget(budget), "view": view, "weight": weight}


def _model(
    header: dict[str, Any], arrays: dict[str, Any], supplied: dict[str, Any], source: _Source
) -> "Model":
    """Return the model of a file's content, with what the caller supplied."""
    _require_model(header, source.name)
    with _in_the_file(source.name):
        header = migration.upgraded(header, arrays)
        arguments = {name: _made(name, value) for name, value in header["arguments"].items()}
    probe = getattr(arguments.get("kernel"), "probe", None)
    for name, value in supplied.items():
        _supply(arguments, name, value, source)
    hint = "" if probe is None else "; or it was learned with another kernel"
    with _in_the_file(source.name, hint):
        state = {**header["state"], **arrays}
        other = migration.retired(state) if header["schema"] < 2 else set()
        model = _restored(header["model"], arguments, state, other)
        same = probe is None or np.allclose(_probe(model), probe, rtol=1e-9, atol=0.0)
    if not same:
        raise ValueError(f"the model in {source.name} was learned with another kernel")
    return model


def notes(path: Path) -> dict[str, Any]:
    """Return the notes that were saved beside a model, an empty mapping if there were none."""
    header, _ = container.read(path)
    _require_model(header, os.fspath(path))
    found = header.get("notes", {})
    if not isinstance(found, dict):
        raise FormatError(f"{os.fspath(path)}: its notes are not a mapping")
    return found


def _require_model(header: dict[str, Any], where: str) -> None:
    """Raise FormatError unless this is the header of a model of a schema known here."""
    schema = header.get("schema")
    if not isinstance(schema, int) or not isinstance(header.get("arguments"), dict):
        raise FormatError(f"{where}: a file of another kind, not a model of pogp")
    if schema > SCHEMA:
        raise FormatError(
            f"{where}: schema {schema} is newer than {SCHEMA}, the newest this version of pogp can "
            "read; upgrade pogp"
        )


@contextlib.contextmanager
def _in_the_file(where: str, hint: str = "") -> Iterator[None]:
    """Turn any error into FormatError: a damaged file can fail anywhere in the model."""
    try:
        yield
    except Exception as error:
        raise FormatError(f"{where}: not a model this version can read: {error}{hint}") from error


# ---- arguments ----------------------------------------------------------------------------------


def _described(model: "Model", without_code: bool) -> dict[str, Any]:
    """Return the arguments of a model by what JSON can hold."""
    arguments = model.arguments()
    for name in CODECS.keys() & arguments.keys():
        describe, _ = CODECS[name]
        try:
            arguments[name] = describe(arguments[name])
        except ValueError:
            if not without_code:
                raise
            label = re.sub(" at 0x[0-9a-f]+", "", repr(arguments[name]))  # a place in memory
            arguments[name] = {"kind": "code", "name": label}
            if name == "kernel":
                arguments[name]["probe"] = _probe(model).tolist()
    return arguments


def _made(name: str, value: Any) -> Any:
    """Return the argument that `_described` described."""
    if name not in CODECS:
        return value
    if isinstance(value, dict) and value.get("kind") == "code":
        return _Code(value["name"], value.get("probe"))
    _, make = CODECS[name]
    return make(value)


def _supply(arguments: dict[str, Any], name: str, supplied: object | None, source: _Source) -> None:
    """Replace values of the file by those that the caller supplied."""
    saved = arguments.get(name)
    if supplied is None:
        if isinstance(saved, _Code):
            raise ValueError(
                f"{source.name} was saved without its {name} {saved.name}, which is code; "
                f"supply it with {source.call}, {name}=...)"
            )
        return
    if name not in arguments:
        raise ValueError(f"the model in {source.name} has no {name}, got {supplied!r}")
    if name == "kernel" and not isinstance(saved, _Code) and supplied != saved:
        raise ValueError(f"the model in {source.name} was learned with {saved!r}, not {supplied!r}")
    arguments[name] = supplied


def _probe(model: "Model") -> Array:
    """Return the kernel at a few retained points: two kernels that agree there are taken as one."""
    points = model.dictionary[:5]
    return model.kernel(points) if len(points) else np.empty((0, 0))


def _plain(value: Any, where: str, depth: int = 0) -> Any:
    """Return a copy of `value` in the types that JSON has; ValueError says what it has not."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if depth == DEPTH and isinstance(value, Mapping | list | tuple):
        raise ValueError(f"{where:.40}… is more than {DEPTH} mappings and lists deep")
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise ValueError(f"the keys of {where} must be text, got {key!r}")
        return {key: _plain(item, f"{where}[{key!r}]", depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, f"{where}[{i}]", depth + 1) for i, item in enumerate(value)]
    raise ValueError(
        f"{where} is {value!r}; expected what JSON can hold: text, finite numbers, True, False, "
        "None, and lists and mappings of them"
    )


# ---- the model itself ---------------------------------------------------------------------------


def _known(name: str) -> "type[Model] | None":
    """Return the model of this package that has this name."""
    from pogp import models  # the models save themselves through this module; it finds them by name

    return getattr(models, name) if name in models.__all__ else None


def _restored(
    name: str, arguments: dict[str, Any], state: dict[str, Any], retired: set[str]
) -> "Model":
    """Return the model of this name; raise if its state is invalid.

    `retired` are the names in the state that the model does not have in this form any more.
    """
    kind = _known(name)
    if kind is None:
        raise ValueError(f"unknown model {name!r}")
    for key, value in state.items():
        _require_numbers(key, value)
    model = kind(**arguments)
    model.restore(state)
    _require_same(model.arguments(), arguments)
    _require_same(model.state(), {k: v for k, v in state.items() if k not in retired})
    _require_sane(model)
    return model


def _require_numbers(name: str, value: Any) -> None:
    if isinstance(value, np.ndarray) and not np.isfinite(value).all():
        raise ValueError(f"{name} is not finite")
    if isinstance(value, int) and abs(value) >= 2**63:
        raise ValueError(f"{name} is {value}, beyond what 64 bits hold")


def _require_same(found: dict[str, Any], saved: dict[str, Any]) -> None:
    """Raise ValueError unless a restored model has all that was saved, with the same values.

    It may have more, where an argument is newer than the file. Of arrays only type and dimensions
    are compared, as the two implementations of the core may divide their content differently.
    """
    for name, value in saved.items():
        mine = found.get(name)
        if isinstance(value, np.ndarray) and isinstance(mine, np.ndarray):
            same = (mine.dtype, mine.ndim) == (value.dtype, value.ndim)
        else:
            same = not isinstance(mine, np.ndarray) and bool(mine == value)
        if name not in found or not same:
            raise ValueError(f"{name} cannot be {value!r:.100}")


def _require_sane(model: "Model") -> None:
    """Raise ValueError unless the model can count and, where it can be asked, predict."""
    validation.count("seen", model.seen, 0)
    points = model.dictionary[:5]
    if len(points) == 0:  # it can be asked if it knows how many inputs there are
        if points.shape[1] == 0:
            return
        points = np.zeros((1, points.shape[1]))
    with np.errstate(all="ignore"):
        mean, variance = model._trial(points)
    if not (np.isfinite(mean).all() and np.isfinite(variance).all() and (variance >= 0).all()):
        raise ValueError("what it learned does not give predictions")
