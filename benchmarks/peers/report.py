"""The page: a template filled from the records, with its figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from matplotlib.figure import Figure

from benchmarks.peers import frontier, readings, reasons, tables, tasks
from benchmarks.peers.readings import Comparison, Row, comparisons
from benchmarks.peers.registry import OURS, PEERS
from experiments.drawing.claims import Claims
from experiments.drawing.style import png
from experiments.drawing.wrapping import wrapped
from experiments.readings.estimates import number
from experiments.records import Records
from pogp.cli.console import Console

TEMPLATES = Path(__file__).parent
NAME = "comparison"
"""Of the page, and of the folder of pictures beside it."""
FIGURES: dict[str, Callable[[list[Comparison]], Figure]] = {
    "frontier": frontier.whole,
    "streams": frontier.each_stream,
}


@dataclass(frozen=True)
class Report:
    """A page in Markdown, and the claims that its records do not bear out."""

    found: list[Comparison]
    markdown: str
    failed: list[str]

    def write(self, folder: Path) -> None:
        """Draw the figures and write everything."""
        (folder / NAME).mkdir(parents=True, exist_ok=True)
        for name, draw_figure in FIGURES.items():
            picture = png(partial(draw_figure, self.found))
            (folder / NAME / f"{name}.png").write_bytes(picture)
        (folder / f"{NAME}.md").write_text(self.markdown, encoding="utf-8")


def draw(records: Records, folder: Path, console: Console) -> int:
    """Write the page into a folder; return the exit code, 1 if a claim no longer holds."""
    if not comparisons(records):
        console.note(f"There is nothing to draw: no records in {records.folder}.")
        return 1
    written = report(records)
    written.write(folder)
    console.note(f"Written: {folder / NAME}.md and {len(FIGURES)} figures.")
    for sentence in written.failed:
        console.note(f"The records do not bear out: {sentence}")
    return 1 if written.failed else 0


def report(records: Records) -> Report:
    """Return what the records have to say."""
    claims, found = Claims(), comparisons(records)
    present = {row.case for row in everyone(found)}
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # Markdown is written, not HTML
    )
    environment.filters["num"] = number
    text = environment.get_template("comparison.md.jinja").render(
        found=found,
        by_topic={each.topic: each for each in found},
        everyone=everyone(found),
        peers=PEERS,
        ours=OURS,
        limits={"close": readings.CLOSE, "slow": readings.SLOW, "sample": tasks.LIMIT},
        outcomes=readings.outcomes(found),
        seeds=seeds(found),
        environment=partial(readings.by_frequency, records),
        commands=sorted({record.command for record in records}),
        count=len(list(records)),
        absent=[peer.label for case, peer in PEERS.items() if case not in present],
        most=readings.MOST,
        length=max(each.samples for each in found),
        full_length=tasks.FULL.samples,
        reasons=reasons,
        why=lambda each: _claimed(claims, *reasons.why(each)),
        claim=claims,
        tables=tables,
    )
    return Report(found, wrapped(text), claims.failed)


def everyone(found: list[Comparison]) -> list[Row]:
    """Return a row of each peer that was run, in the order of the registry."""
    rows = {row.case: row for each in found for row in each.rows}
    return [rows[case] for case in PEERS if case in rows]


def seeds(found: list[Comparison]) -> list[int]:
    """Return the numbers of seeds that peers with chance were run with, in order."""
    rows = [row for each in found for row in each.rows]
    return sorted({len(row.records) for row in rows if row.peer.chance and not row.peer.variant})


def _claimed(claims: Claims, holds: bool, sentence: str) -> str:
    return claims(holds, lambda: sentence)
