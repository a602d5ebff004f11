"""`pogp info`: what is in a model file."""

import argparse
import json
import math
import sys
from dataclasses import asdict
from pathlib import Path
from textwrap import fill
from typing import Any

import pogp
from pogp.cli.console import say
from pogp.cli.notes import Notes
from pogp.cli.score import Score
from pogp.files import container
from pogp.models.base import Model
from pogp.report import prose
from pogp.report.axes import number
from pogp.report.journal import Journal
from pogp.report.prose import WIDTH, human_bytes
from pogp.report.summary import ModelSettings, Summary
from pogp.report.verdicts import verdicts

SHOWN = 5
"""The most members and decisions that are listed; `--json` has all."""

DESCRIPTION = """\
Describe a model file: inputs, target, number of samples, position in the table, size, and
hyperparameters in the units of the data.
"""

EPILOG = """\
exit codes:
  0  it is a model; 2 if it is not, or cannot be read

examples:
  pogp info m.pogp
  pogp info m.pogp --json | jq .samples
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("model", type=Path, metavar="MODEL", help="a file that --save has written")
    parser.add_argument("--json", action="store_true", help="print JSON")


def execute(arguments: argparse.Namespace) -> int:
    """Print the description of a model file."""
    found = described(arguments.model)
    say(json.dumps(found, indent=2) if arguments.json else text(found), sys.stdout)
    return 0


def described(path: Path) -> dict[str, Any]:
    """Return the description of a model file, for JSON; None for what is not known."""
    model, notes = pogp.load(path), Notes.read(path)
    summary = None if notes is None else _summary(notes, model)
    header, _ = container.read(path)
    dimension = model.dictionary.shape[1]
    columns = notes.columns if notes else [f"x{i}" for i in range(1, dimension + 1)]
    labels = notes.encoding().labels if notes else columns
    facts = ModelSettings.of(model, len(labels), 1)
    return {
        "file": str(path),
        "bytes": path.stat().st_size,
        "schema": header["schema"],
        "version": notes and notes.version,
        "target": notes and notes.target,
        "columns": columns,
        "inputs": labels,
        "model": header["model"],
        "arguments": header["arguments"],
        "warming_up": facts.warming_up,
        "samples": model.seen,
        "size": model.size,
        "memory": model.nbytes,
        "kernel": facts.kernel,
        "lengthscales": _lengthscales(labels, facts),
        "noise_variance": float(facts.noise[0]),
        "relevance": _relevance(labels, model, summary),
        "weights": getattr(model, "weights", None),
        "history": _history(labels, model, summary),
        "source": notes and _source(notes),
        "scores": summary and _scores(summary.journal),
        "score_of_two_passes": notes and notes.score and notes.score._asdict(),
        "verdicts": summary and [asdict(verdict) for verdict in verdicts(summary)],
    }


def _summary(notes: Notes, model: Model) -> Summary:
    """Return the summary for a report on the table that was learned."""
    written = {} if notes.out is None else {"--out": notes.out}
    return Summary.of_table(
        Journal.of(notes.journal), model, notes.encoding(), notes.target, notes.command, written
    )


def _lengthscales(columns: list[str], facts: ModelSettings) -> dict[str, float] | None:
    if facts.lengthscales is None or facts.warming_up:
        return None
    scales = zip(columns, facts.lengthscales.tolist(), strict=True)
    return {name: scale for name, scale in scales if math.isfinite(scale)}


def _relevance(
    columns: list[str], model: Model, summary: Summary | None
) -> dict[str, float] | None:
    """Return the spread of each input in its length-scales, as a report has it.

    If the inputs are not known, it is the relevance that the model reports, if any.
    """
    found = getattr(model, "relevance", None)
    if summary is not None and summary.journal.seen and summary.settings.lengthscales is not None:
        found = summary.relevance
    if found is None or len(found) != len(columns) or getattr(model, "warming_up", False):
        return None
    return dict(zip(columns, found.tolist(), strict=True))


def _history(columns: list[str], model: Model, summary: Summary | None) -> list[list[Any]] | None:
    """Return the decisions of the model with the names of inputs, and with the row, if known."""
    events = getattr(model, "history", [])
    journal = Journal() if summary is None else summary.journal
    return [
        [at, what, prose.decision(why, columns), journal.row(at)] for at, what, why in events
    ] or None


def _source(notes: Notes) -> dict[str, Any]:
    return {
        "name": notes.source,
        "used": notes.used,
        "skipped": notes.skipped,
        "unit": notes.unit,
        "next": notes.position.line,
    }


def _scores(journal: Journal) -> dict[str, float] | None:
    """Return how well the last tenth was predicted before it was learned."""
    recent = journal.recent() if journal.seen else None
    if recent is None or not recent.predicted[0]:
        return None
    return {
        "samples": int(recent.predicted[0]),
        "rmse": float(recent.rmse[0, 0]),
        "outliers": journal.recent_outliers(),
        "rmse_without_outliers": float(journal.recent_ordinary().rmse[0, 0]),
        "relative_squared_error": float(recent.error[0]),
        "coverage_95": float(recent.coverage(0.95)[0]),
    }


def text(found: dict[str, Any]) -> str:
    """Return the description as text."""
    inputs = prose.inputs(len(found["columns"]), len(found["inputs"]))
    tuned = not found["warming_up"]
    lines = {
        "method": found["arguments"].get("method", found["model"])
        + (", still collecting samples for tuning" if found["warming_up"] else ""),
        "learned": f"{prose.counted(found['samples'], 'sample')}{_progress(found['source'])}",
        "keeps": f"{prose.counted(found['size'], 'point')}, "
        f"{human_bytes(found['memory'])} in memory, {human_bytes(found['bytes'])} on disk",
        "scores": _scores_text(found["scores"]),
        "two passes": str(Score(**passes)) if (passes := found["score_of_two_passes"]) else "",
        "noise": f"deviation {number(math.sqrt(found['noise_variance']))}" if tuned else "",
        "kernel": found["kernel"] if tuned else "",
        "length-scales": _lengthscales_text(found["lengthscales"]),
        "relevance": _lengthscales_text(found["relevance"]),
        "weights": _weights(found["weights"]),
        "decisions": _decisions(found["history"]),
        "options": _options(found["arguments"]),
        "written by": f"pogp {found['version']}" if found["version"] else "",
        "schema": str(found["schema"]),
    }
    head = max(map(len, lines)) + 4
    whole = [f"{found['file']} predicts {found['target'] or 'y'} from {inputs}."]
    for label, line in lines.items():
        if line:
            start, indent = f"  {label}".ljust(head), " " * head
            whole.append(fill(line, WIDTH, initial_indent=start, subsequent_indent=indent))
    for verdict in found["verdicts"] or ():
        advice = [f"  Try: {verdict['command']}"] if verdict["command"] else []
        whole += [fill(verdict["sentence"], WIDTH), *advice]
    return "\n".join(whole)


def _weights(weights: dict[str, float] | None) -> str:
    """Return the members that carry the next prediction, the heaviest first."""
    heavy = sorted((weights or {}).items(), key=lambda pair: -pair[1])[:SHOWN]
    return "; ".join(f"{name}: {prose.percent(weight)}" for name, weight in heavy if weight > 0.005)


def _decisions(history: list[list[Any]] | None) -> str:
    """Return the latest decisions."""
    latest = (history or [])[-SHOWN:]
    return "; ".join(
        f"after {f'sample {sample:,}' if row is None else f'row {row:,}'} {what}: {why}"
        for sample, what, why, row in latest
    )


def _options(arguments: dict[str, Any]) -> str:
    """Return the arguments of the model, except those that have their own line."""
    shown = {name: value for name, value in arguments.items() if value is not None}
    for name in ("method", "kernel", "noise"):
        shown.pop(name, None)
    for name, value in shown.items():
        if isinstance(value, dict):  # a budget, which has a kind and numbers
            numbers = [str(part) for key, part in value.items() if key != "kind"]
            shown[name] = " ".join([str(value.get("kind", "")).lower(), *numbers]).strip()
    return ", ".join(f"{name} {value}" for name, value in shown.items())


def _progress(source: dict[str, Any] | None) -> str:
    if source is None:
        return ""
    skipped = f", {prose.counted(source['skipped'], 'row')} skipped" if source["skipped"] else ""
    return (
        f"; of {source['name']} {prose.counted(source['used'], 'row')}{skipped}, "
        f"{source['unit']} {source['next']} comes next"
    )


def _scores_text(scores: dict[str, float] | None) -> str:
    if scores is None:
        return ""
    outliers, without = scores["outliers"], number(scores["rmse_without_outliers"])
    besides = f" ({without} without {prose.counted(int(outliers), 'surprise')})" if outliers else ""
    count = int(scores["samples"])
    samples = "sample," if count == 1 else f"{prose.counted(count, 'sample')}, each"
    return (
        f"of the last {samples} predicted before it was learned: root mean squared error "
        f"{number(scores['rmse'])}{besides}, "
        f"{prose.percent(scores['coverage_95'])} in the 95 % band"
    )


def _lengthscales_text(lengthscales: dict[str, float] | None) -> str:
    if lengthscales is None:
        return ""
    return ", ".join(f"{name} {number(value)}" for name, value in lengthscales.items())
