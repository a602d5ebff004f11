"""The notebooks among the examples run from top to bottom."""

import ast
import io
import json
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from .test_examples import EXAMPLES

pytest.importorskip("matplotlib").use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

SAYS = {"heating.ipynb": ["in the 95 % band", "degrees per unit, truly 1.00", "15 points"]}


def run(path: Path) -> tuple[str, list[object]]:
    """What the cells of a notebook print, and the last expression of each that has one."""
    book = json.loads(path.read_text(encoding="utf-8"))
    assert book["nbformat"] == 4
    names: dict[str, object] = {}
    printed, shown = io.StringIO(), []
    for cell in book["cells"]:
        if cell["cell_type"] != "code":
            continue
        assert not cell["outputs"], "notebooks are kept without outputs"
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        with redirect_stdout(printed):
            exec(compile(tree, path.name, "exec"), names)
            if isinstance(last, ast.Expr):
                shown.append(eval(compile(ast.Expression(last.value), path.name, "eval"), names))
    return printed.getvalue(), shown


@pytest.mark.parametrize("name", SAYS)
def test_a_notebook_runs(name: str) -> None:
    printed, shown = run(EXAMPLES / name)
    assert all(text in printed for text in SAYS[name]), printed
    assert any("<table>" in getattr(value, "_repr_html_", str)() for value in shown)
    assert len(plt.get_fignums()) >= 3
    plt.close("all")


def test_every_notebook_is_run() -> None:
    assert {path.name for path in EXAMPLES.glob("*.ipynb")} == set(SAYS)
