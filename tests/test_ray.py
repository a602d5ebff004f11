"""The program of the page on Ray prints what the page says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="Ray is not installed")

ROOT = Path(__file__).parents[1]


def test_the_program_on_ray_prints_what_its_page_says():
    program = ROOT / "examples" / "engines" / "ray_sums.py"
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(program)],
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=True,
        env=environment,
    )
    page = (ROOT / "docs" / "howto" / "ray.md").read_text(encoding="utf-8")
    expected = page.split("```text\n")[1].split("```")[0]
    assert done.stdout.strip() == expected.strip()
