"""The package's imports go one way, and importing it brings in NumPy and SciPy only."""

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

import pogp

ROOT = Path(pogp.__file__).parent
ADAPTERS = ("sklearn", "river", "dask", "spark")
LAYERS = (
    ("arrays", "backends", "blas", "errors"),
    ("trace", "blocks", "interrupts", "slices"),
    ("kernels", "distances", "datasets"),
    ("budgets", "priors", "validation"),
    ("criteria", "search", "metrics"),
    ("compression",),
    ("posteriors",),
    ("tuning", "files", "calibration", "reservoir", "alarms"),
    ("online",),
    ("models",),
    ("encoding",),
    ("checks", "survey", "sums", "evaluation", "streaming"),
    ("report",),
    ("plot",),
    ("cli",),
    ("__main__", *ADAPTERS),
)
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}


@cache
def parsed(path: Path) -> ast.Module:
    """The code of a file."""
    return ast.parse(path.read_text())


def top_level_imports(path: Path) -> set[str]:
    """The parts of the package that a file imports when it is itself imported."""
    names = set()
    for node in parsed(path).body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("pogp"):
            parts = node.module.split(".")
            names |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
    return names


FILES = [path for path in sorted(ROOT.rglob("*.py")) if path != ROOT / "__init__.py"]


def test_imports_go_one_way() -> None:
    for path in FILES:
        part = path.relative_to(ROOT).parts[0].removesuffix(".py")
        assert part in RANK, f"say in LAYERS where {part} belongs"
        for name in top_level_imports(path):
            assert name == part or RANK[name] < RANK[part], f"{path} must not import {name}"


@cache
def imports(path: Path) -> set[str]:
    """All that a file imports, wherever it does: modules, and what is taken from them."""
    names = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_an_adapter_alone_imports_its_framework_and_nobody_imports_it(adapter: str) -> None:
    for path in ROOT.rglob("*.py"):
        if path.relative_to(ROOT).parts[0].removesuffix(".py") == adapter:
            continue
        for name in imports(path):
            assert name.split(".")[0] != adapter, f"{path} must not import {name}"
            assert name.split(".")[:2] != ["pogp", adapter], f"{path} must not import {name}"


def test_importing_the_package_brings_in_numpy_and_scipy_without_what_is_slow() -> None:
    code = "import sys, pogp; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = set(done.stdout.split())
    others = {"matplotlib", "sklearn", "pandas", "polars", "pyarrow", "river", "torch"}
    slow = {"scipy.optimize", "scipy.spatial", "scipy.special", "scipy.cluster", "scipy.stats"}
    assert "scipy.linalg" in found
    assert found & (others | slow) == set()


def test_the_entry_point_of_a_command_is_installed() -> None:
    project = tomllib.loads((ROOT.parents[1] / "pyproject.toml").read_text())
    modules = project["tool"]["setuptools"]["py-modules"]
    for target in project["project"]["scripts"].values():
        first = target.split(":")[0].split(".")[0]
        assert first in modules or (ROOT.parent / first / "__init__.py").exists()


def test_every_line_of_slow_txt_names_a_test() -> None:
    tests = Path(__file__).parent
    lines = (tests / "slow.txt").read_text().splitlines()
    for line in [line for line in lines if not line.startswith("#")]:
        path, _, name = line.partition(" ")[0].partition("::")
        text = (tests.parent / path).read_text()
        assert not name or name.rpartition(".")[2] in text, f"slow.txt names {line}"


def test_one_sample_passes_at_most_nine_files() -> None:
    page = (ROOT.parents[1] / "ARCHITECTURE.md").read_text()
    walk = page.split("## The path of one sample")[1].split("```")[1]
    files = re.findall(r"^(?:  ├─ )?([a-z_/]+\.pyx?)", walk, re.MULTILINE)
    assert "posteriors/absorbed/compiled_loop.pyx" in files
    assert len(files) <= 9, files
    for file in files:
        assert (ROOT / file).exists(), f"ARCHITECTURE.md names {file}"


MODEL = ("pogp.models.online", "pogp.models.base", "pogp.kernels", "pogp.validation", "pogp.blas")
"""What the constructor of the model enters: no part of the walk to `learn`."""


def test_pogp_learn_passes_at_most_fifteen_modules_on_its_way_to_the_model(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,y\n" + "".join(f"{i},{i % 3}\n" for i in range(8)))
    code = (
        "import inspect, sys\n"
        "import pogp.cli, pogp.cli.learn\n"
        "modules, learned = [], []\n"
        "def trace(frame, event, argument):\n"
        "    name = frame.f_globals.get('__name__', '')\n"
        "    if event != 'call' or not frame.f_code.co_flags & inspect.CO_OPTIMIZED:\n"
        "        return\n"  # a module or a class as it is imported
        "    if (name, frame.f_code.co_name) == ('pogp.models.online', 'learn'):\n"
        "        learned.append(name)\n"
        "    elif name.startswith('pogp') and not learned and name not in modules:\n"
        "        modules.append(name)\n"
        "sys.setprofile(trace)\n"
        "pogp.cli.main(['learn', sys.argv[1], '--target', 'y'])\n"
        "sys.setprofile(None)\n"
        "print(*modules)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "t.csv")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    walk = [name for name in done.stdout.splitlines()[-1].split() if not name.startswith(MODEL)]
    assert "pogp.cli.learning" in walk
    assert len(walk) <= 15, walk


def test_every_file_that_the_architecture_names_exists() -> None:
    text = (ROOT.parents[1] / "ARCHITECTURE.md").read_text()
    paths = set(re.findall(r"[\w/]+/(?:\w+\.(?:pyx|py|md))?(?=[`,\s)])", text))
    assert {"kernels/", "report/page.py", "docs/mathematics.md"} <= paths
    for path in paths:
        assert (ROOT / path).exists() or (ROOT.parents[1] / path).exists(), path
