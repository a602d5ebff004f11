"""The page: what it says follows from the records, and the committed one is up to date."""

import re
from collections.abc import Mapping
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

from benchmarks.peers import __main__ as command
from benchmarks.peers import reasons, tables
from benchmarks.peers.readings import comparison, comparisons, overall
from benchmarks.peers.registry import PEERS
from benchmarks.peers.report import FIGURES, NAME, draw, report
from benchmarks.peers.table_file import read_table
from benchmarks.peers.tasks import FULL, QUICK, available, plan, stream_of
from experiments.records import Record, Records, environment
from experiments.tasks import Task
from pogp.cli.console import Console

RESULT = {
    "versions": {"river": "0.26"},
    "samples": 900,
    "inputs": 2,
    "nlpd": None,
    "crps": 0.3,
    "inside": None,
    "mean_us": 100.0,
    "median_us": 90.0,
    "p999_us": 200.0,
    "max_us": 300.0,
    "peak_megabytes": 80.0,
    "saved_bytes": 2000,
    "useful_samples": 10,
    "useful_seconds": 0.5,
    "ready_seconds": 0.1,
}
ERRORS = {"online": 0.1, "river-knn": 0.2, "last": 0.4}


def make(folder: Path, errors: Mapping[str, float], topic: str = "arm", **more: object) -> Records:
    records = Records(folder)
    for case, error in errors.items():
        task = Task("peers", topic, case, 0, {"samples": 900})
        result = RESULT | {"smse": error, "mean_us": 100.0 / error} | more
        records.add(Record(task, result, 1.0, environment(), "python -m benchmarks.peers"))
    return records


def test_rows_are_ranked_and_rivals_found(tmp_path: Path) -> None:
    found = comparison(make(tmp_path, {"online": 0.11, "river-knn": 0.1, "last": 0.4}), "arm")
    assert [row.case for row in found.rows] == ["river-knn", "online", "last"]
    assert found.place() == 2
    assert found.behind() == pytest.approx(1.1)
    assert [row.case for row in found.rivals()] == ["river-knn"]
    assert found.slower() == pytest.approx(1 / 1.1)
    (first, *_) = overall([found])
    assert (first.case, first.error) == ("river-knn", 1.0)


def test_other_settings_of_ours_are_listed_but_not_ranked(tmp_path: Path) -> None:
    errors = {"online": 0.3, "online-600": 0.05, "river-knn": 0.1}
    records = make(tmp_path, errors)
    found = comparison(records, "arm")
    assert (found.first.case, found.place()) == ("river-knn", 2)
    assert [row.case for row in found.frontier] == ["online", "river-knn"]
    text = " ".join(report(records).markdown.split())
    assert "Tried: OnlineGP, 600 points, with an error of 0.0500 in 2,000 µs per sample;" in text


def test_a_failure_is_last_and_told(tmp_path: Path) -> None:
    records = make(tmp_path, ERRORS)
    task = Task("peers", "arm", "goppy", 0, {"samples": 900})
    reason = "did not end within 27 s of processor time: 500 of 900 samples were done"
    failed = {"samples": 900, "failure": reason}
    records.add(Record(task, failed, 1.0, environment(), "python -m benchmarks.peers"))
    found = comparison(records, "arm")
    assert found.rows[-1].failure == reason
    assert f"failed: {reason}" in tables.scores(found)
    assert f"failed: {reason}" in tables.text(found)
    assert "goppy" not in {each.case for each in overall([found])}
    assert tables.summary([found]).splitlines()[-1] == "| GopPy | – | – | – | 1 | – |"


def test_tables_are_printed_where_no_peer_came_to_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = make(tmp_path, {"online-100": 0.2}, failure="out of numbers")
    assert comparisons(records) == []
    command.main(["--draw-only", "--print-only", "--records", str(tmp_path)])
    assert "OnlineGP, 100 points  failed: out of numbers" in capsys.readouterr().out


def test_streams_that_a_peer_was_not_run_on_are_counted(tmp_path: Path) -> None:
    make(tmp_path, ERRORS)
    found = comparisons(make(tmp_path, {"online": 0.1, "online-100": 0.2}, "sensor"))
    assert "| **OnlineGP** | 1.00 | 1,000 | 2 | – | – |" in tables.summary(found)
    assert tables.summary(found).splitlines()[-1] == "| last value | – | – | 1 | – | 1 |"
    assert "100 points" not in tables.summary(found)
    assert "was run on each stream" not in report(Records(tmp_path)).markdown
    assert "was run on each stream" in report(make(tmp_path / "other", ERRORS)).markdown


def test_the_page_has_a_table_for_each_stream(tmp_path: Path) -> None:
    make(tmp_path, ERRORS, "sensor")
    records = make(tmp_path, ERRORS)
    written = report(records)
    for found in comparisons(records):
        assert tables.scores(found) in written.markdown
    assert written.failed == []
    text = " ".join(written.markdown.split())
    assert "OnlineGP has the lowest error, or is within 10 % of it, on 2 of 2 streams." in text
    assert "nowhere more than 10 % above the lowest" in text
    assert "river 0.26" in text
    lines = [line for line in written.markdown.splitlines() if line[:1] not in ("|", "!")]
    assert max(map(len, lines)) <= 115


def test_a_loss_has_a_reason_that_the_records_bear_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = make(tmp_path, ERRORS | {"online": 0.3, "online-600": 0.25})
    (sentence,) = report(records).failed
    assert "loses on arm" in sentence
    reason = reasons.Reason("It was asleep.", lambda found: found.first.case == "river-knn")
    monkeypatch.setattr(reasons, "WHY", {"arm": reason})
    explained = report(records)
    assert explained.failed == []
    assert "1.50 times as much. It was asleep. Tried: " in " ".join(explained.markdown.split())
    other = make(tmp_path / "other", {"online": 0.3, "online-600": 0.25, "last": 0.1})
    assert report(other).failed == ["It was asleep."]


def test_a_loss_fails_the_page_where_nothing_was_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reasons, "WHY", {"arm": reasons.Reason("It was asleep.", lambda _: True)})
    (sentence,) = report(make(tmp_path, ERRORS | {"online": 0.3})).failed
    assert sentence.startswith("What was tried where OnlineGP loses on Simulated arm")


def test_the_reason_for_slowness_is_held_to_the_times(tmp_path: Path) -> None:
    times = {"online": 0.1, "last": 0.1}
    make(tmp_path, times, "sensor", mean_us=1000.0)
    records = make(tmp_path, times, mean_us=1500.0)
    assert reasons.is_steady(comparisons(records))
    assert not reasons.is_steady(comparisons(make(tmp_path, times, "demand", mean_us=300.0)))


def test_figures_are_drawn_and_small(tmp_path: Path) -> None:
    records = make(tmp_path / "records", ERRORS)
    assert draw(records, tmp_path, Console(None)) == 0
    for name in FIGURES:
        assert 5_000 < (tmp_path / NAME / f"{name}.png").stat().st_size < 200_000
    said = StringIO()
    assert draw(Records(tmp_path / "nothing"), tmp_path, Console(said)) == 1
    assert "nothing to draw" in said.getvalue()


def test_the_plan_has_seeds_where_there_is_chance() -> None:
    tasks = plan(FULL, ["arm"])
    seeds = {case: [task.seed for task in tasks if task.case == case] for case in PEERS}
    assert seeds["online"] == [0, 1, 2, 3, 4]
    assert seeds["lightgbm"] == [0]
    assert available(QUICK, Console(None)) == ["arm", "sensor", "demand"]


def test_a_table_of_the_users_own_is_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "own.csv"
    rows = [f"{i % 7},{i % 5},{i % 7 + 1}" for i in range(90)]
    path.write_text("\n".join(["a,b,y", *rows, "x,1,2"]) + "\n")
    arguments = ["--csv", str(path), "--target", "y", "--peers", "last,mean", "--jobs", "1"]
    assert command.main(arguments) == 0
    printed = capsys.readouterr().out
    assert "own: 91 samples" in printed
    assert re.search(r"last value +\d", printed)
    options = {"samples": 70, "table": str(path), "target": "y"}
    stream = stream_of(Task("peers", "own", "last", 0, options))
    assert stream.X[3].tolist() == [3.0, 3.0]
    assert len(stream.y) == 70


def test_a_table_of_ones_own_may_have_texts_times_and_gaps(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    lines = ['when,"room, floor",load,id,nothing,y']
    for i in range(120):
        day, hour, load = 1 + i // 24, i % 24, "" if i % 3 == 1 else i + 0.5
        y = "broken" if i == 7 else i % 5
        lines.append(f'2024-01-{day:02}T{hour:02}:00,"{"abé?"[i % 4]}",{load},#{i},,{y}')
    path.write_text("\n".join(lines) + "\n")
    said: list[str] = []
    stream = read_table(str(path), "y", 1000, said.append)
    assert stream.X.shape == (119, 7 + 3 + 1 + 1)  # a time, three texts, and a number twice
    assert np.isfinite(stream.X).all()
    assert stream.X[2:5, 7:10].tolist() == [[0, 0, 1], [0, 0, 0], [1, 0, 0]]  # "?" is missing
    # A missing number is the mean of those before it: 0.5, then of 0.5, 2.5 and 3.5.
    assert stream.X[:5, 10].tolist() == pytest.approx([0.5, 0.5, 2.5, 3.5, 6.5 / 3])
    assert said[0] == "Left out: 1 row without a number in 'y'."
    assert "column 'id'; it has more than 100 different texts" in said[1]
    with pytest.raises(ValueError, match="60 usable rows or more, got 0"):
        read_table(str(path), "id", 1000)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--csv", "nowhere.csv"], "needs --target"),
        (["--samples", "50"], "--samples must be 60 or more, got 50"),
        (["--seeds", "0"], "--seeds must be 1 or more, got 0"),
        (["--quick", "--only", "moon"], "no stream 'moon'; there are arm"),
        (["--quick", "--peers", "moon"], "no peer 'moon'; there are online"),
    ],
)
def test_wrong_arguments_are_refused(arguments: list[str], reason: str, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=reason):
        command.main([*arguments, "--records", str(tmp_path)])


def test_a_missing_package_is_a_reason() -> None:
    peer = replace(PEERS["goppy"], packages=("no-such-package",))
    assert peer.missing == "the package no-such-package is not installed"
    assert PEERS["online"].missing is None


# ---- the committed page


def test_the_committed_page_is_that_of_the_committed_records() -> None:
    written = report(Records(command.COMMITTED))
    assert (command.DOCS / f"{NAME}.md").read_text() == written.markdown
    assert written.failed == []
    pictures = sorted((command.DOCS / NAME).iterdir())
    assert [path.stem for path in pictures] == sorted(FIGURES)
    assert max(path.stat().st_size for path in pictures) < 300_000
