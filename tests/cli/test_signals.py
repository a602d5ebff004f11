"""`pogp learn` as it runs: signals, pipes and memory."""

import re
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest

from pogp import OnlineGP, cli
from pogp.cli.console import Interruption
from pogp.interrupts import Uninterrupted

from ..conftest import assert_same_state, smooth_2d
from ..processes import pogp, started
from .conftest import OPTIONS, saved, text_of

ROOT = Path(__file__).parents[2]

# ---- signals


INTERRUPTED_IMPORT = """
import os, signal, sys

class Stop:
    def find_spec(name, *rest):
        if name == "pogp.cli":
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Stop)
import pogp_command
sys.exit(pogp_command.main())
"""


@pytest.mark.parametrize("module", ["numpy", "pogp.cli"])
def test_ctrl_c_while_modules_are_imported_ends_the_command_quietly(module):
    program = INTERRUPTED_IMPORT.replace("pogp.cli", module)
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (found.returncode, found.stdout, found.stderr) == (130, "", "pogp: interrupted\n")


def test_the_command_begins_before_anything_is_imported():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert settings["project"]["scripts"] == {"pogp": "pogp_command:main"}


def test_rows_that_are_being_learned_are_learned_whole():
    """Ctrl-C while the model learns is for the command, which saves; the model does not give up."""
    with Interruption() as interruption:
        before = signal.getsignal(signal.SIGINT)
        with Uninterrupted() as signals:
            signal.raise_signal(signal.SIGINT)
            assert not signals.wanted
            assert interruption.received is None
        assert interruption.received == signal.SIGINT
        assert signal.getsignal(signal.SIGINT) == before


class Stream:
    """`pogp learn` on standard input, fed by hand."""

    def __init__(self, save, *options, source="-"):
        command = ["learn", source, "--target", "y", "--save", save, *OPTIONS, *options]
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        self.process = pogp(*command, text=True, **pipes)

    def feed(self, text):
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def stop(self, number):
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err


def wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_saves_what_was_learned(tmp_path, data, expected, number):
    X, y = data
    save, lines = tmp_path / "m.pogp", text_of(X, y).splitlines(keepends=True)
    stream = Stream(save, "--checkpoint", "100")
    stream.feed("".join(lines[:601]) + lines[601][:5])
    wait_for(lambda: save.exists() and saved(save)[1].used == 600)
    stream.feed(lines[601][5:] + lines[602])
    time.sleep(0.5)  # these two are learned at once, and saved when it ends
    code, out, err = stream.stop(number)
    assert code == 128 + number
    assert "Learned 602 samples" in out
    assert "Stopped before line 604 of standard input. To continue with new rows: pogp" in err
    assert f"\nIf it starts again from its first row, use --resume instead of --from {save}." in err
    assert saved(save)[0].seen == 602
    if number != signal.SIGINT:
        return
    # The same again from the beginning: what was learned is passed over.
    stream = Stream(save, "--resume")
    _, err = stream.process.communicate("".join(lines), timeout=60)
    assert stream.process.returncode == 0
    assert "Skipping the first 602 rows of standard input, learned before" in err
    assert_same_state(saved(save)[0], expected)


@pytest.mark.parametrize("start", [False, True])
def test_the_command_to_continue_a_live_source_learns_its_new_rows(tmp_path, data, start):
    """The command that is printed is run as it is, on rows that follow."""
    X, y = data
    save, out = tmp_path / "m.pogp", tmp_path / "rows.csv"
    header, *lines = text_of(X[:200], y[:200]).replace(",", ";").splitlines(keepends=True)
    options = ["--delimiter", ";", "--checkpoint", "50", "--out", str(out)]
    if start:
        before = tmp_path / "before.csv"
        before.write_text(header + "".join(lines[:50]))
        names = ["--target", "y", "--save", str(save), "--delimiter", ";"]
        assert cli.main(["learn", str(before), *names, *OPTIONS]) == 0
        options += ["--from", str(save)]
    learned = 50 if start else 0
    stream = Stream(save, *options)
    stream.feed(header + "".join(lines[:100]))
    wait_for(lambda: save.exists() and saved(save)[0].seen == learned + 100)
    _, _, err = stream.stop(signal.SIGINT)
    command = re.search("To continue with new rows: pogp (.*)\n", err)[1]
    assert "rows-2.csv" in command
    with pogp(*shlex.split(command), stdin=subprocess.PIPE, text=True) as process:
        process.communicate(header + "".join(lines[100:]), timeout=60)
    assert process.returncode == 0
    assert saved(save)[0].seen == learned + 200
    assert len((tmp_path / "rows-2.csv").read_text().splitlines()) == 101


def test_the_command_to_continue_a_file_names_its_output(tmp_path, data):
    X, y = data
    table, save, out = tmp_path / "t.csv", tmp_path / "m.pogp", tmp_path / "rows.csv"
    table.write_text(text_of(X[:1000], y[:1000]))
    options = ["--checkpoint", "50", "--out", str(out), "--out-format", "csv"]
    stream = Stream(save, *options, "--quiet", source=table)
    wait_for(save.exists)
    code, _, err = stream.stop(signal.SIGINT)
    assert code == 130
    wanted = f"learn {table} --save {save} --resume --out {out} --out-format csv --checkpoint 50"
    wanted += " --quiet"
    assert f"To continue: pogp {wanted}\n" in err
    assert cli.main(shlex.split(wanted)) == 0
    assert out.read_text().splitlines()[-1].startswith("1000,")


def test_a_second_signal_stops_at_once(tmp_path, table):
    """In the middle of a search that would take long, and with nothing saved."""
    save = tmp_path / "m.pogp"

    def learn(self, X, y, *options):
        print("learning", flush=True)
        time.sleep(60)

    def program():
        OnlineGP.learn = learn
        return cli.main(["learn", str(table), "--target", "y", "--save", str(save), "--quiet"])

    process = started(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"learning\n"
    process.send_signal(signal.SIGINT)
    assert b"stopping; repeat" in process.stderr.readline() + process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"pogp: interrupted" in err
    assert not save.exists()


def test_rows_of_a_pipe_are_learned_as_they_arrive(tmp_path, data, expected):
    X, y = data
    save = tmp_path / "m.pogp"
    stream = Stream(save, "--checkpoint", "1")
    header, *lines = text_of(X, y).splitlines(keepends=True)
    stream.feed(header)
    for line in lines[:50]:
        stream.feed(line)
    wait_for(lambda: save.exists() and saved(save)[1].used == 50)
    assert stream.stop(signal.SIGTERM)[0] == 143
    assert not saved(save)[0].warming_up
    # Other rows, from where the sensor is now.
    stream = Stream(save, "--from", save)
    stream.feed(header + "".join(lines[50:]))
    stream.process.stdin.close()
    assert stream.process.wait(timeout=60) == 0
    stream.process.stdout.close()
    stream.process.stderr.close()
    assert_same_state(saved(save)[0], expected)


# ---- memory


def peak_memory(path, tmp_path):
    """Return the largest size in MiB that the process had."""
    code = (
        "import resource, sys; from pogp.cli import main; "
        "code = main(['learn', sys.argv[1], '--target', 'y', '--quiet', '--max-size', '10', "
        "'--method', 'absorbing', '--warmup', '20', '--save', sys.argv[2], '--overwrite']); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024); sys.exit(code)"
    )
    command = [sys.executable, "-c", code, path, tmp_path / "big.pogp"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=200)
    return float(done.stdout.splitlines()[-1])


def test_memory_does_not_grow_with_the_table(tmp_path):
    X, y = smooth_2d(5000)
    wide = np.hstack([X] * 10)
    names = [*(f"x{i}" for i in range(20)), "y"]
    header, rows = text_of(wide, y, names).split("\n", 1)
    small, large = tmp_path / "small.csv", tmp_path / "large.csv"
    small.write_text(header + "\n" + rows)  # enough for all that is read ahead
    large.write_text(header + "\n" + 5 * rows)
    numbers = 4 * 5000 * 21 * 8 / 2**20
    assert large.stat().st_size / 2**20 > numbers > 2.7
    assert peak_memory(large, tmp_path) - peak_memory(small, tmp_path) < numbers / 2
