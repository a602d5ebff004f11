"""The programs among the examples do what they say, in a small form."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from .test_examples import EXAMPLES

pytest.importorskip("matplotlib", reason="programs draw only where matplotlib is installed")


def said_by(name: str, folder: Path, *options: str) -> str:
    """What a program prints; the picture that it was told to draw is there."""
    picture = folder / "picture.png"
    command = [sys.executable, str(EXAMPLES / name), *options, "--figure", str(picture)]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, encoding="utf-8", timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert list(folder.iterdir()) == [picture]
    return done.stdout


def row(said: str, label: str) -> list[float]:
    """The numbers in the line that begins with a label."""
    (line,) = re.findall(rf"^ *{re.escape(label)} (.*)$", said, re.MULTILINE)
    return [float(number) for number in re.findall(r"[-\d.]+", line)]


def test_what_the_arm_learns_follows_the_path_better(tmp_path: Path) -> None:
    said = said_by("inverse_dynamics.py", tmp_path, "--seconds", "4")
    nothing, last, learned = (
        row(said, label) for label in ("nothing added", "what was lacking last", "what was learned")
    )
    assert learned[0] < last[0] < nothing[0] / 3
    assert learned[1] < last[1] < nothing[1] / 3
    median, *_ = row(said, "of processor")
    assert median > 0


def test_the_sensor_is_watched_without_false_alarms(tmp_path: Path) -> None:
    said = said_by("drifting_sensor.py", tmp_path, "--days", "25")
    forgetting, never = said.split("never forgetting")
    for part in (forgetting, never):
        for kind in ("bias", "stuck", "noise"):
            found, of = row(part, kind)[:2]
            assert found == of == 1
        false, _ = row(part, "false alarms:")
        assert false <= 1
    deviation, inside, _ = row(forgetting, "z without a fault: deviation")
    assert 0.9 < deviation < 1.1
    assert 92 < inside < 98


def test_the_optimum_is_found_among_noise(tmp_path: Path) -> None:
    options = ("--trials", "200", "--repeats", "3")
    said = said_by("bayesian_optimisation.py", tmp_path, *options)
    model, random = row(said, "200")
    assert model < 0.5 < random  # the noise of a trial has a deviation of 5


def test_water_stays_neutral_under_control_by_gradients(tmp_path: Path) -> None:
    said = said_by("neutralisation.py", tmp_path, "--minutes", "200")
    feedback, gradients = row(said, "feedback"), row(said, "by gradients")
    assert gradients[0] < 0.7 * feedback[0]
    assert gradients[1] < 0.7 * feedback[1]
