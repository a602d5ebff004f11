"""The progress display of the commands."""

import io

import numpy as np

from pogp.cli import console as progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_gets_one_line_that_moves(monkeypatch):
    monkeypatch.setenv("COLUMNS", "90")
    now = iter([0.0, 1.0, 2.0])
    monkeypatch.setattr(progress.time, "perf_counter", lambda: next(now))
    terminal = Terminal()
    with progress.Console(terminal).progress("POG", 200) as bar:
        bar.update(50, "M 10, error 0.500")
        bar.update(100, "M 12, error 0.400")
    _, first, second = terminal.getvalue().split("\r")
    assert first.endswith(" 50/200     50/s   0:03 left  M 10, error 0.500")
    assert second.endswith("100/200     50/s   0:02 left  M 12, error 0.400\n")
    assert len(first) == len(second) - 1 == 89
    assert "[############.............]" in second


def test_without_a_total_the_count_and_the_share_are_shown(monkeypatch):
    monkeypatch.setenv("COLUMNS", "90")
    now = iter([0.0, 10.0, 20.0])
    monkeypatch.setattr(progress.time, "perf_counter", lambda: next(now))
    terminal = Terminal()
    # Of the second half of the way, which is all that is left, a tenth took ten seconds.
    with progress.Console(terminal).progress("table.csv", done=5000, share=0.5) as bar:
        bar.update(6000, "M 10", 0.55)
        bar.update(8000, "M 12", None)
    _, first, second = terminal.getvalue().split("\r")
    assert first.rstrip().endswith(" 6,000    100/s   1:30 left  M 10")
    assert "[#" in first
    assert second.rstrip().endswith(" 8,000    150/s   0:20  M 12")
    assert "[" not in second


def test_the_rate_is_that_of_the_last_seconds(monkeypatch):
    now = iter([0.0, 20.0, *np.arange(21.0, 61.0)])  # twenty seconds of tuning
    monkeypatch.setattr(progress.time, "perf_counter", lambda: next(now))
    terminal = Terminal()
    with progress.Console(terminal).progress("table.csv") as bar:
        for done in range(1000, 42_000, 1000):
            bar.update(done, "", done / 100_000)
    *_, last = terminal.getvalue().rstrip().split("\r")
    assert "  1000/s   0:59 left" in last


def test_the_bar_is_drawn_ten_times_a_second_at_most(monkeypatch):
    now = iter(np.arange(0.0, 1.0, 0.001))
    monkeypatch.setattr(progress.time, "perf_counter", lambda: next(now))
    terminal = Terminal()
    with progress.Console(terminal).progress("POG", 800) as bar:
        for done in range(1, 801):
            bar.update(done, "")
    assert 8 <= terminal.getvalue().count("\r") <= 10
    assert "800/800" in terminal.getvalue()


def test_without_a_terminal_lines_are_printed(monkeypatch):
    now = iter(np.arange(0.0, 200.0))
    monkeypatch.setattr(progress.time, "perf_counter", lambda: next(now))
    out = io.StringIO()
    with progress.Console(out).progress("stdin") as lines:
        for done in range(100):
            lines.update(1000 * done, "M 10")
    assert out.getvalue().count("\n") == 3


def test_a_note_takes_the_place_of_the_bar(monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    terminal = Terminal()
    console = progress.Console(terminal)
    with console.progress("POG", 200) as bar:
        bar.update(100, "M 10")
        console.note("line 7: skipped")
    drawn, note = terminal.getvalue().split("\r")[1:]
    assert note == "line 7: skipped".ljust(49) + "\n\n"
    assert len(drawn) == 49


def test_the_bar_fits_a_narrow_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    terminal = Terminal()
    with progress.Progress("POG", 200, terminal) as bar:
        bar.update(200, "M 10, error 0.500")
    assert len(terminal.getvalue().strip("\r\n")) == 39
