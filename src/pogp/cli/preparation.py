"""From what was asked of `pogp learn` to a model at some place in a table."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pogp
from pogp.alarms import Alarm
from pogp.cli import options
from pogp.cli.learning import Learning
from pogp.cli.notes import Notes
from pogp.cli.output import STANDARD_OUTPUT, Output
from pogp.cli.paths import is_same, require_place
from pogp.cli.tables import Layout, Table
from pogp.cli.tables.table import find, inputs
from pogp.encoding import Encoder
from pogp.encoding.encoder import columns_of
from pogp.models.selftuning.factory import Made, made
from pogp.models.selftuning.registry import options_of

FILE_OPTIONS = {"--save", "--checkpoint", "--from", "--report", "--out", "--out-format", "--alarm"}
FILE_OPTIONS |= {"--require"}
FLAGS = {"--resume", "--overwrite", "--quiet"}
RATE = 0.01
"""False alarms per row, unless asked for."""
CAP = 300
"""The model order that is not exceeded, unless asked for."""


@dataclass(frozen=True)
class Kept:
    """What a file has of a model that learned before."""

    path: Path
    model: Made
    notes: Notes | None

    @classmethod
    def read(cls, path: Path) -> "Kept":
        """Read it."""
        model = pogp.load(path)
        if not isinstance(model, Made):
            raise ValueError(
                f"{path} holds a {type(model).__name__} made in Python, to go on with in Python; "
                "pogp learn goes on with pogp.OnlineGP and pogp.SelfTuning"
            )
        return cls(path, model, Notes.read(path))


def require_places(arguments: argparse.Namespace) -> None:
    """Raise ValueError where a file would be lost, or could not be written in the end."""
    save, report, out = arguments.save, arguments.report, arguments.out
    if arguments.resume and save is None:
        raise ValueError("--resume goes on with the file that --save names, and there is no --save")
    if arguments.resume and arguments.overwrite:
        raise ValueError("--resume goes on with a file and --overwrite replaces it: choose one")
    _require_output(arguments)
    files = [path for path in (save, report, out) if path is not None and path != STANDARD_OUTPUT]
    if len(set(files)) < len(files):
        raise ValueError("--save, --report and --out must name different files")
    for path in files:
        require_place(path, {"where the rows come from": arguments.source})
    if report is not None and report.is_file() and not _is_page(report):
        raise ValueError(f"{report} exists and is no page: --report would replace it")
    if save is None or not save.exists() or arguments.resume or arguments.overwrite:
        return
    if arguments.start is None or not is_same(save, arguments.start):
        raise ValueError(f"{save} exists: --resume goes on with it, --overwrite replaces it")


def _require_output(arguments: argparse.Namespace) -> None:
    out = arguments.out
    if out is None:
        if arguments.alarm is not None or arguments.out_format is not None:
            raise ValueError("--alarm and --out-format are about the lines of --out, got no --out")
        return
    if out != STANDARD_OUTPUT and out.exists() and not (arguments.resume or arguments.overwrite):
        raise ValueError(f"{out} exists: --overwrite replaces it")


def _is_page(path: Path) -> bool:
    """Return whether a file is empty or HTML, as a report is."""
    with path.open("rb") as file:
        start = file.read(64).lstrip().lower()
    return not start or start.startswith((b"<!doctype html", b"<html"))


def kept(arguments: argparse.Namespace) -> Kept | None:
    """Return what to go on with, if anything."""
    if arguments.start is not None:
        return Kept.read(arguments.start)
    if arguments.resume and arguments.save.exists():
        found = Kept.read(arguments.save)
        if found.notes is None:
            raise ValueError(
                f"{found.path} does not say how far into a table it is; --from {found.path} goes "
                "on with it at the beginning of one"
            )
        return found
    return None


def layout(arguments: argparse.Namespace, before: Kept | None) -> Layout:
    """Return how the table is to be read: when resuming, as before."""
    if arguments.resume and before is not None and before.notes is not None:
        return before.notes.layout
    return options.layout(arguments)


def begin(arguments: argparse.Namespace, table: Table, before: Kept | None) -> Learning:
    """Return the model and where in the table it begins."""
    if before is None:
        model, notes = _fresh(arguments), None
    else:
        model, notes = before.model, before.notes
        _change(arguments, before)
    target, columns = _columns(arguments, table, notes)
    if arguments.resume and notes is not None:
        learning = Learning.resume(model, notes, table)
    else:
        encoder = _encoder(arguments, table, columns) if notes is None else notes.encoding()
        learning = Learning.start(model, target, encoder, table)
        learning.command = _command(arguments, target)
    if arguments.out is not None:
        if not model.sequential:
            raise ValueError(f"--out is for methods that learn row by row, got {model.method}")
        learning.alarm = _alarm(arguments, notes)
    return learning


def _encoder(arguments: argparse.Namespace, table: Table, columns: list[str]) -> Encoder:
    """Return how the columns become inputs, by what the first rows hold."""
    for name in arguments.time:
        if name not in columns:
            raise ValueError(f"--time {name!r} is not among the inputs {', '.join(columns)}")
    first = table.peek(find(table.names, columns, table.name))
    return Encoder.of(
        columns, columns_of(first, len(columns)), times=arguments.time, numbers_in_text=True
    )


def _command(arguments: argparse.Namespace, target: str) -> list[str]:
    """Return the command that learns this table with this model, without its files."""
    return ["pogp", *_without_files(arguments.words)] + (
        [] if arguments.target else ["--target", target]
    )


def _without_files(words: Sequence[str]) -> Iterator[str]:
    """Return the words of a command less the options about files and what is told."""
    skip = False
    for word in words:
        option, _, value = word.partition("=")
        skip, drop = False, skip or option in FILE_OPTIONS or option in FLAGS
        if not drop:
            yield word
        elif option in FILE_OPTIONS and not value:
            skip = True


def _alarm(arguments: argparse.Namespace, notes: Notes | None) -> Alarm:
    """Return the alarm of the model, or one that begins if another rate is asked for."""
    before = None if notes is None or notes.alarm is None else Alarm.of(notes.alarm)
    if before is not None and arguments.alarm in (None, before.rate):
        return before
    return Alarm(RATE if arguments.alarm is None else arguments.alarm)


def output(arguments: argparse.Namespace, table: Table, before: Kept | None) -> Output | None:
    """Return where the lines go; when resuming, after those that were written before."""
    if arguments.out is None:
        return None
    notes = before.notes if before is not None and arguments.resume else None
    size = None if notes is None else notes.out_size
    if arguments.resume and size is None and arguments.out.exists():
        raise ValueError(f"{arguments.out} exists, and was not written along with the model")
    return Output(arguments.out, arguments.out_format, live=table.size is None, size=size)


def _columns(
    arguments: argparse.Namespace, table: Table, notes: Notes | None
) -> tuple[str, list[str]]:
    """Return the target and the inputs; where a model knows them, they must be what it knows."""
    target = arguments.target or (notes and notes.target)
    if not target:
        raise ValueError(
            f"--target has to say which column to learn; {table.name} has {', '.join(table.names)}"
        )
    asked = arguments.columns is not None or arguments.exclude
    if notes is None or asked:
        columns = inputs(table.names, target, arguments.columns, arguments.exclude)
    else:
        columns = notes.columns
    if notes is not None and (target, columns) != (notes.target, notes.columns):
        raise ValueError(
            f"the model predicts {notes.target!r} from {', '.join(notes.columns)}; got {target!r} "
            f"from {', '.join(columns)}"
        )
    return target, columns


def _fresh(arguments: argparse.Namespace) -> Made:
    method = getattr(arguments, "method", "online")
    return made(method, **(_usual(method) | _given(arguments, method)))


def _usual(method: str) -> dict[str, Any]:
    """Return what the command asks of a method unless told otherwise."""
    cap = _cap(method)
    scale = {} if method == "online" else {"scale": True}
    return scale | ({} if cap is None else {cap: CAP})


def _cap(method: str) -> str | None:
    """Return what a method calls its largest model order, None if it has none."""
    return next((name for name in ("max_size", "size") if name in options_of(method)), None)


def _given(arguments: argparse.Namespace, method: str) -> dict[str, Any]:
    """Return what was asked of the model, and nothing that was not."""
    names = ("kernel", "warmup", "scale", "seed", "budget", "forgetting", "calibrate")
    given = {name: getattr(arguments, name) for name in names if hasattr(arguments, name)}
    if hasattr(arguments, "max_size"):
        given[_cap(method) or "max_size"] = arguments.max_size
    for name, value in arguments.option:
        if name not in options_of(method):
            raise ValueError(
                f"{method} has no option {name!r}, but {', '.join(options_of(method))}"
            )
        given[name] = value
    return given


def _change(arguments: argparse.Namespace, before: Kept) -> None:
    """Give the model of --from the options asked for; that of --resume must have them."""
    model = before.model
    asked = getattr(arguments, "method", model.method)
    if asked != model.method:
        raise ValueError(f"the model in {before.path} is {model.method}, got --method {asked}")
    found, given = model.arguments(), _given(arguments, model.method)
    wanted = made(**{"method": model.method, **found, **given}).arguments()
    # `warmup` and `scale` are no arguments of an OnlineGP, which they do not concern
    own = {name: value for name, value in given.items() if name in found}
    other = {name: value for name, value in own.items() if wanted[name] != found[name]}
    if other and arguments.resume:
        name = next(iter(other))
        raise ValueError(
            f"the model in {before.path} was made with {name} {found[name]}, got {wanted[name]}; "
            "--from MODEL can change it"
        )
    if other:
        model.change(**other)
