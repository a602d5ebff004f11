"""The Python in the README, CONTRIBUTING and docs/ runs as written; links lead somewhere.

The blocks of a page run in order and share their names, as for someone who reads it.
"""

import inspect
import re
from pathlib import Path

import pytest

import pogp.models

ROOT = Path(__file__).parent.parent
METHODS = ROOT / "docs" / "methods"
GENERATED = {"build", "dist"}
FOLDERS = [
    path
    for path in sorted(ROOT.iterdir())
    if path.is_dir() and not path.name.startswith(".") and path.name not in GENERATED
]
PAGES = sorted(ROOT.glob("*.md")) + [page for top in FOLDERS for page in sorted(top.rglob("*.md"))]
SECTIONS = [
    "What it keeps",
    "What it forgets",
    "Cost",
    "Guarantee",
    "When to choose it, and when not",
    "Use",
    "Departures",
    "Reference",
]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks_of(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def links_of(page: Path) -> list[str]:
    """The relative links of a page, images included, without what is in code."""
    prose = re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    links = re.findall(r"\]\(([^)\s]+)\)", prose)
    return [link for link in links if not re.match(r"[a-z]+:", link)]


WITH_CODE = [page for page in PAGES if blocks_of(page)]
MODELS = [
    name for name in pogp.models.__all__ if not inspect.isabstract(getattr(pogp.models, name))
]
METHOD_PAGES = sorted(set(METHODS.glob("*.md")) - {METHODS / "README.md"})


def test_there_is_something_to_run() -> None:
    names = {name_of(page) for page in WITH_CODE}
    assert {"README.md", "CONTRIBUTING.md", "docs/methods/pog.md"} <= names


@pytest.mark.parametrize("page", WITH_CODE, ids=name_of)
def test_code_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks_of(page):
        exec(compile(block, name_of(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_relative_links_lead_somewhere(page: Path) -> None:
    targets = {link: link.partition("#")[0] for link in links_of(page)}
    missing = [link for link, path in targets.items() if not (page.parent / path).exists()]
    assert missing == []


@pytest.mark.parametrize("model", MODELS)
def test_every_model_has_a_page_in_the_table_of_methods(model: str) -> None:
    rows = [
        line
        for line in (METHODS / "README.md").read_text().splitlines()
        if line.startswith("| [") and f"| `{model}` |" in line
    ]
    assert rows, f"no row for {model} in docs/methods/README.md"
    for row in rows:
        (page,) = re.findall(r"\]\(([a-z-]+\.md)\)", row)
        title = (METHODS / page).read_text().splitlines()[0]
        assert title.endswith(f"(`{model}`)")


@pytest.mark.parametrize("page", METHOD_PAGES, ids=name_of)
def test_pages_of_methods_have_one_shape(page: Path) -> None:
    assert page.name in links_of(METHODS / "README.md")
    assert re.findall(r"^## (.*)$", page.read_text(), flags=re.MULTILINE) == SECTIONS
