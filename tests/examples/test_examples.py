"""The examples run, and say what someone who runs them would want to read."""

import runpy
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SAYS = {
    "arm.py": [
        "Dataset(arm: 1500 training and 1000 test samples, 8 inputs)",
        "after 1200 samples: 100 points",
        "samples  800 to 1200: SMSE",
        "calibrated: scale",
        "budget=0.5, max_size=100",
        "dense GP          1200 points",
        "the same predictions: True",
    ],
}
WRITES = {"arm.py": {"arm.pogp", "arm.png"}}
PROGRAMS = {
    "inverse_dynamics.py",
    "drifting_sensor.py",
    "bayesian_optimisation.py",
    "neutralisation.py",
}
"""With options of their own: `test_programs.py`."""


def test_every_example_is_run() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == {*SAYS, *PROGRAMS}
    assert set(SAYS) == set(WRITES)


@pytest.mark.parametrize("name", SAYS)
def test_example_runs(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "out"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [name, str(folder)])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    said = capsys.readouterr().out
    assert [line for line in SAYS[name] if line not in said] == []
    drawn = find_spec("matplotlib") is not None
    expected = {file for file in WRITES[name] if drawn or not file.endswith(".png")}
    assert {path.name for path in folder.iterdir()} == expected
    assert list(tmp_path.iterdir()) == [folder]  # and nothing where it was not told to
