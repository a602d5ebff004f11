"""The programs among the examples do what they say, in a small form."""

import re
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from .test_examples import EXAMPLES

pytest.importorskip("matplotlib", reason="programs draw only where matplotlib is installed")


@pytest.fixture
def said_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """What a program prints; the picture that it was told to draw is there."""

    def run(name: str, *options: str) -> str:
        picture = tmp_path / "picture.png"
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", [name, *options, "--figure", str(picture)])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert list(tmp_path.iterdir()) == [picture]
        return capsys.readouterr().out

    return run


def row(said: str, label: str) -> list[float]:
    """The numbers in the line that begins with a label."""
    (line,) = re.findall(rf"^ *{re.escape(label)} (.*)$", said, re.MULTILINE)
    return [float(number) for number in re.findall(r"[-\d.]+", line)]


def test_the_arm_follows_the_path_better_with_the_learned_model(
    said_by: Callable[..., str],
) -> None:
    said = said_by("inverse_dynamics.py", "--seconds", "2")
    nothing, last, learned = (
        row(said, label) for label in ("nothing added", "what was lacking last", "what was learned")
    )
    assert learned[0] < last[0] < nothing[0] / 3
    assert learned[1] < last[1] < nothing[1] / 3
    median, *_ = row(said, "of processor")
    assert median > 0


def test_the_sensor_is_watched_without_false_alarms(said_by: Callable[..., str]) -> None:
    said = said_by("drifting_sensor.py", "--days", "25")
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


def test_the_optimum_is_found_among_noise(said_by: Callable[..., str]) -> None:
    options = ("--trials", "120", "--repeats", "2")
    said = said_by("bayesian_optimisation.py", *options)
    model, random = row(said, "120")
    assert model < 0.5 < random  # the noise of a trial has a deviation of 5


def test_water_stays_neutral_under_control_by_gradients(said_by: Callable[..., str]) -> None:
    said = said_by("neutralisation.py", "--minutes", "160", "--seed", "1")
    feedback, gradients = row(said, "feedback"), row(said, "by gradients")
    assert gradients[0] < 0.7 * feedback[0]
    assert gradients[1] < 0.7 * feedback[1]
