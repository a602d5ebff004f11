"""The report: what it says, what it leaves out, and whether the committed one is up to date."""

import re
from io import StringIO
from pathlib import Path

import pytest

from experiments.__main__ import DOCS, main
from experiments.drawing import tables
from experiments.drawing.page import anchor, page
from experiments.drawing.report import FIGURES, NAME, Report, draw, report
from experiments.readings.compare import comparison
from experiments.records import COMMITTED, Records
from pogp.cli.console import Console

from ..browser import DESKTOP, PHONE, Browser
from .made_up import make

LINK = re.compile(r"(?<!!)\[[^]]+\]\(([^)]+)\)")
PICTURE = re.compile(r"!\[[^]]+\]\(([^)]+)\)")
TOPICS = ("abalone", "kin40")
BEARING_OUT = {"random": 0.15, "sogp": 0.11, "absorbing": 0.1, "pog-published": 0.1953}
"""Levels of SMSE with which most of the report's claims hold."""


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Records:
    return make(tmp_path_factory.mktemp("records"), TOPICS, smse=BEARING_OUT)


@pytest.fixture(scope="module")
def written(records: Records) -> Report:
    """The report with one picture for all: what they show is in `test_drawing.py`."""
    found = report(records)
    picture = found._drawn(found.figures[0])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Report, "_drawn", lambda found, name: picture)
        found.write(records.folder)
    return found


def headings(markdown: str) -> set[str]:
    return {anchor(text) for text in re.findall(r"^#+ (.*)$", markdown, flags=re.MULTILINE)}


def test_the_tables_of_every_set_are_in_it(written: Report, records: Records) -> None:
    for topic in TOPICS:
        found = comparison(records, topic)
        assert found is not None
        assert tables.scores(found) in written.markdown
        assert tables.costs(found) in written.markdown


def test_it_is_files_that_fit_together(written: Report, records: Records) -> None:
    folder = records.folder
    assert (folder / f"{NAME}.md").read_text() == written.markdown
    shown = PICTURE.findall(written.markdown)
    assert shown == [f"{NAME}/{name}.png" for name in written.figures]
    assert {path.name for path in (folder / NAME).iterdir()} == {Path(path).name for path in shown}
    inner = [link[1:] for link in LINK.findall(written.markdown) if link.startswith("#")]
    assert set(inner) <= headings(written.markdown)
    assert inner


def test_pictures_of_an_earlier_report_go(written: Report, tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    (tmp_path / NAME / "old.png").write_bytes(b"")
    Report(written.records, "# Nothing\n", [], []).write(tmp_path)
    assert list((tmp_path / NAME).iterdir()) == []


def test_lines_are_wrapped(written: Report) -> None:
    prose = [line for line in written.markdown.splitlines() if line[:1] not in ("|", "!", "`")]
    assert max(map(len, prose)) <= 115
    assert not re.search(r"[^\n#]##+ |\n##+ [^\n]*\n[^\n]", written.markdown)  # a swallowed heading


def test_where_it_came_from_is_in_it(written: Report) -> None:
    made = " ".join(written.markdown.partition("## How this was made")[2].split())
    assert "abacus, 2 processors" in made
    assert "`0123456789ab`" in made
    assert "make reproduce" in made


# ---- claims


def test_a_claim_that_does_not_hold_is_left_out_and_reported(tmp_path: Path) -> None:
    claim = "**SOGP is far better"
    assert claim in report(make(tmp_path, TOPICS, smse=BEARING_OUT)).markdown
    changed = report(make(tmp_path, TOPICS, smse=BEARING_OUT | {"sogp": 0.9}))
    assert claim not in changed.markdown
    (sentence,) = (each for each in changed.failed if claim in each)
    assert "0.900 ± 0.004" in sentence


def test_a_failed_claim_fails_the_command_but_not_its_small_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Report] = []
    monkeypatch.setattr(Report, "write", lambda found, folder: drawn.append(found))
    said = StringIO()
    full = make(tmp_path, TOPICS, smse=BEARING_OUT | {"sogp": 0.9})
    assert draw(full, tmp_path, Console(said)) == 1
    assert "**SOGP is far better" in said.getvalue()
    small = make(tmp_path, TOPICS, smse=BEARING_OUT | {"sogp": 0.9}, samples=700)
    assert draw(small, tmp_path, Console(None)) == 0
    assert ["This is the small form" in found.markdown for found in drawn] == [False, True]


# ---- what is missing


def test_without_some_sets_it_says_which_and_how_to_get_them(tmp_path: Path) -> None:
    found = report(make(tmp_path, topics=("boston",)))
    text = " ".join(found.markdown.split())
    assert "Missing here: abalone, kin40." in text
    assert "`POGP_DATA`" in text
    assert "`make reproduce ONLY=kin40`" in text
    assert "### Boston" in found.markdown
    assert "### kin40" not in found.markdown
    assert all("boston" in name for name in found.figures if "-" in name)


def test_without_any_set_there_is_still_a_report(tmp_path: Path) -> None:
    records = make(tmp_path, topics=("boston",))
    for path in tmp_path.glob("compare-*"):
        path.unlink()
    found = report(Records(records.folder))
    assert "Missing here: boston, abalone, kin40." in found.markdown
    assert "## Errata, with evidence" in found.markdown
    assert "## Accuracy against memory" not in found.markdown


def test_nothing_to_draw_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--draw-only", "--records", str(tmp_path)]) == 1
    assert "no records in" in capsys.readouterr().err


# ---- the page


def test_the_page_needs_nothing_beside_itself() -> None:
    text = (
        "# Title\n\nSee [a file](file.md), [the web](https://x.org), [below](#b).\n\n## B & C\n\n"
    )
    made = page(text + "| a | b |\n|:--|--:|\n| 1 | 2 |\n\n![x](p.png)\n", {"p.png": b"picture"})
    assert "See a file," in made
    assert '<a href="https://x.org">' in made
    assert '<li><a href="#b--c">B &amp; C</a></li>' in made
    assert '<h2 id="b--c">' in made
    assert '<div class="scroll" tabindex="0">\n<table>' in made
    assert 'src="data:image/png;base64,cGljdHVyZQ=="' in made
    assert "<title>Title</title>" in made


@pytest.mark.parametrize("width", [PHONE, DESKTOP])
def test_the_page_is_right_in_a_browser(
    width: int, browser: Browser, written: Report, records: Records
) -> None:
    browser.open(records.folder / f"{NAME}.html", width)
    assert browser.faults() == []
    assert browser.complaints() == []
    assert browser.requests() == []
    assert browser.count("img") == len(written.figures)


# ---- the committed report


@pytest.fixture(scope="module")
def committed() -> Report:
    records = Records(COMMITTED)
    if not list(records):
        pytest.skip("no records are committed")
    return report(records)


def without_pictures(html: str) -> str:
    return re.sub(r"data:image/png;base64,[^\"]*", "", html)


def test_the_committed_report_is_that_of_the_committed_records(committed: Report) -> None:
    assert (DOCS / f"{NAME}.md").read_text() == committed.markdown
    assert committed.failed == []
    pictures = {f"{NAME}/{name}.png": b"" for name in committed.figures}
    html = (DOCS / f"{NAME}.html").read_text()
    assert without_pictures(html) == without_pictures(page(committed.markdown, pictures))


def test_the_committed_files_are_there_and_small(committed: Report) -> None:
    assert Records(COMMITTED).folder == COMMITTED
    pictures = sorted((DOCS / NAME).iterdir())
    assert {path.stem for path in pictures} == set(committed.figures) <= set(FIGURES)
    sizes = [path.stat().st_size for path in pictures]
    assert max(sizes) < 150_000
    assert sum(sizes) < 1_500_000
    assert (DOCS / f"{NAME}.html").stat().st_size < 2_500_000
