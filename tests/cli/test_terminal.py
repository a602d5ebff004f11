"""What reaches the terminal: names from a file are shown, whatever characters they have."""

import io
import os
import resource
import signal
import sys

import numpy as np

from pogp import cli

from ..conftest import smooth_2d

OPTIONS = ["--method", "absorbing", "--warmup", "40", "--max-size", "20"]


def write(path, names):
    rows = np.column_stack(smooth_2d(200)).tolist()
    lines = [names, *(",".join(map(repr, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def test_control_characters_in_names_are_shown_and_not_sent(tmp_path, capsys):
    table = write(tmp_path / "t\x1b[2J.csv", "a\x1b[31m,b\x07\u202e,y\x9b")
    page, model = tmp_path / "page.html", tmp_path / "m.pogp"
    learn = ["learn", table, "--target", "y\x9b", *OPTIONS, "--save", str(model)]
    assert cli.main([*learn, "--report", str(page)]) == 0
    assert cli.main(["info", str(model)]) == 0
    assert cli.main(["learn", table]) == 2
    assert cli.main(["learn", table, "--target", "nothing"]) == 2
    told = capsys.readouterr()
    for text in (told.out, told.err, page.read_text(encoding="utf-8")):
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(text)
    assert r"Learned 200 samples of y\x9b from 2 inputs" in told.out
    assert r"t\x1b[2J.csv has a\x1b[31m, b\x07\u202e, y\x9b" in told.err


def test_file_names_need_not_be_text(tmp_path, capsys):
    table = write(tmp_path / os.fsdecode(b"na\xffme.csv"), "a,b,y")
    page, model = tmp_path / os.fsdecode(b"\xfe.html"), tmp_path / os.fsdecode(b"\xfd.pogp")
    learn = ["learn", table, "--target", "y", *OPTIONS, "--save", str(model)]
    assert cli.main([*learn, "--report", str(page)]) == 0
    assert r"na\udcffme.csv" in page.read_text(encoding="utf-8")
    assert cli.main(["info", str(model)]) == 0
    assert cli.main(["learn", table, "--save", str(model), "--resume"]) == 0
    assert r"na\udcffme.csv" in capsys.readouterr().out


class AsciiTerminal:
    """A standard output and a standard error that hold ASCII only."""

    def __init__(self, monkeypatch):
        self.files = {
            name: io.TextIOWrapper(io.BytesIO(), "ascii") for name in ("stdout", "stderr")
        }
        for name, file in self.files.items():
            monkeypatch.setattr(sys, name, file)

    def written(self, name):
        self.files[name].flush()
        return self.files[name].buffer.getvalue().decode("ascii")


def test_an_ascii_terminal_shows_what_it_can(tmp_path, monkeypatch):
    terminal = AsciiTerminal(monkeypatch)
    table, model = write(tmp_path / "t.csv", "größe,β,y"), str(tmp_path / "m.pogp")
    assert cli.main(["learn", table, "--target", "y", *OPTIONS, "--save", model]) == 0
    assert cli.main(["info", model]) == 0
    assert cli.main(["predict", model, table, "--out", str(tmp_path / "p.csv")]) == 0
    run = ["--samples", "60", "--tune", "30", "--max-size", "5", "--no-figure", "--quiet"]
    assert cli.main(["run", *run, "--out", str(tmp_path / "run")]) == 0
    assert r"Learning y from gr\xf6\xdfe, \u03b2" in terminal.written("stderr")
    told = terminal.written("stdout")
    assert r"length-scales  gr\xf6\xdfe " in told
    assert "us/sample" in told
    assert "-" * 60 in told


def test_signs_that_ascii_lacks_are_written_with_similar_ones():
    file = io.TextIOWrapper(io.BytesIO(), "ascii")
    cli.take_any_text(file)
    file.write("1.5×10⁻¹² ≥ −2 µs …")
    file.flush()
    assert file.buffer.getvalue() == b"1.5x10^-12 >= -2 us ..."


def test_a_disk_that_is_full_at_a_checkpoint_is_reported_with_the_file(tmp_path, capsys):
    table, model = write(tmp_path / "t.csv", "a,b,y"), tmp_path / "m.pogp"
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
    try:
        code = cli.main(["learn", table, "--target", "y", *OPTIONS, "--save", str(model)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert code == 2
    assert f"{model}: File too large" in capsys.readouterr().err
    assert not model.exists()
