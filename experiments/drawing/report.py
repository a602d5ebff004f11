"""The report: a template filled from the records, with its figures, as Markdown and as one page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

try:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from matplotlib.figure import Figure
except ImportError as error:
    raise ImportError(
        "the report needs what documentation does: pip install 'pogp[docs]'"
    ) from error

from experiments.drawing import consistency, curves, frontier, tables, theory
from experiments.drawing.claims import Claims, close_to, compared
from experiments.drawing.page import page
from experiments.drawing.style import png
from experiments.drawing.wrapping import wrapped
from experiments.methods import METHODS
from experiments.published import SETS
from experiments.readings.compare import comparison
from experiments.readings.consistency import PUBLISHED_P, implied_z
from experiments.readings.consistency import consistency as consistency_of
from experiments.readings.estimates import Estimate, number
from experiments.readings.frontier import frontier as frontier_of
from experiments.readings.runs import Runs
from experiments.readings.theory import theory as theory_of
from experiments.readings.tuning import tuning
from experiments.records import Records
from pogp.cli.console import Console

TEMPLATES = Path(__file__).parent.parent / "report"
NAME = "reproduction"
"""Of the files, and of the folder of pictures beside them."""
FIGURES: dict[str, Callable[[Records], Figure]] = {
    **consistency.FIGURES,
    **curves.FIGURES,
    **frontier.FIGURES,
    **theory.FIGURES,
}


@dataclass(frozen=True)
class Report:
    """A text in Markdown, the figures it shows, and the claims that its records do not bear out."""

    records: Records
    markdown: str
    figures: list[str]
    failed: list[str]

    def write(self, folder: Path) -> None:
        """Draw the figures and write everything; the pictures of an earlier report go."""
        pictures = {f"{NAME}/{name}.png": self._drawn(name) for name in self.figures}
        (folder / NAME).mkdir(parents=True, exist_ok=True)
        for old in (folder / NAME).glob("*.png"):
            old.unlink()
        for path, picture in pictures.items():
            (folder / path).write_bytes(picture)
        (folder / f"{NAME}.md").write_text(self.markdown, encoding="utf-8")
        (folder / f"{NAME}.html").write_text(page(self.markdown, pictures), encoding="utf-8")

    def _drawn(self, name: str) -> bytes:
        return png(partial(FIGURES[name], self.records))


def draw(records: Records, folder: Path, console: Console) -> int:
    """Write the report into a folder; return the exit code, 1 if a claim no longer holds."""
    if not list(records):
        console.note(f"There is nothing to draw: no records in {records.folder}.")
        return 1
    written = report(records)
    written.write(folder)
    console.note(
        f"Written: {folder / NAME}.md, {folder / NAME}.html and {len(written.figures)} figures."
    )
    if not written.failed or Runs(records).small:
        return 0
    console.note("The records do not bear out these sentences, which the report leaves out:")
    for sentence in written.failed:
        console.note(f"  {sentence}")
    return 1


def report(records: Records) -> Report:
    """Return what the records have to say."""
    claims, figures = Claims(), list[str]()

    def figure(name: str, shows: str) -> str:
        figures.append(name)
        return f"![{shows}]({NAME}/{name}.png)"

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # Markdown is written, not HTML
    )
    environment.filters |= {
        "pm": Estimate.text,
        "num": number,
        "compared": compared,
        "close_to": close_to,
    }
    template = environment.get_template("report.md.jinja")
    text = template.render(**_readings(records), claim=claims, figure=figure, tables=tables)
    return Report(records, wrapped(text), figures, claims.failed)


def _readings(records: Records) -> dict[str, Any]:
    """Return what the template may speak of. Sets that have not all been run are not there."""
    runs = Runs(records)
    there = [topic for topic in SETS if topic not in runs.missing]
    return {
        "runs": runs,
        "methods": METHODS,
        "sets": {topic: comparison(records, topic) for topic in there},
        "frontiers": {topic: frontier_of(records, topic) for topic in there},
        "tuned": {topic: tuning(records, topic) for topic in there},
        "gaussian": consistency_of(records, "gaussian"),
        "chi_square": consistency_of(records, "chi_square"),
        "published_p": PUBLISHED_P,
        "implied_z": implied_z,
        "theory": theory_of(records),
    }
