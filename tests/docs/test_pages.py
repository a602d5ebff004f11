"""The code in the README, CONTRIBUTING and docs/ runs as written, and prints what the pages say.

Links lead somewhere, and every model has a page.
"""

import inspect
import re
from pathlib import Path

import pytest

import pogp.models

from .runnable import blocks_of, differing, run

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
METHODS = DOCS / "methods"
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


def links_of(page: Path) -> list[str]:
    """The relative links of a page, images included, without what is in code."""
    prose = re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    links = re.findall(r"\]\(([^)\s]+)\)", prose)
    return [link for link in links if not re.match(r"[a-z]+:", link)]


def languages_of(page: Path) -> tuple[str, ...]:
    """What of a page runs: Python, and in docs/, where pages make their own files, commands."""
    return ("python", "sh") if DOCS in page.parents else ("python",)


WITH_CODE = [
    page for page in PAGES if any(block.language in languages_of(page) for block in blocks_of(page))
]
MODELS = [
    name for name in pogp.models.__all__ if not inspect.isabstract(getattr(pogp.models, name))
]
METHOD_PAGES = sorted(set(METHODS.glob("*.md")) - {METHODS / "README.md"})


def test_there_is_something_to_run() -> None:
    names = {name_of(page) for page in WITH_CODE}
    assert {"README.md", "CONTRIBUTING.md", "docs/start.md", "docs/methods/pog.md"} <= names


@pytest.mark.parametrize("page", WITH_CODE, ids=name_of)
def test_code_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(page, languages_of(page))


def test_output_is_compared_by_words_and_nearly_by_numbers() -> None:
    assert differing("9 points, error 0.203\nTrue\n", " 9 points,  error 0.204\nTrue") == ""
    assert differing("1,234 points\n", "1230 points\n") == ""
    assert differing("0.8 MB\n", "0.9 MB\n") == ""
    assert differing("0.80 MB\n", "0.90 MB\n") == "- 0.80 MB\n+ 0.90 MB"
    assert differing("8 points\n", "10 points\n") == "- 8 points\n+ 10 points"
    assert differing("True\n", "False\n") == "- True\n+ False"
    assert differing("a\n", "a\nb\n") == "- \n+ b"


def test_relative_links_lead_somewhere() -> None:
    for page in PAGES:
        targets = {link: link.partition("#")[0] for link in links_of(page)}
        missing = [link for link, path in targets.items() if not (page.parent / path).exists()]
        assert missing == [], f"links of {page}"


def test_every_model_has_a_page_in_the_table_of_methods() -> None:
    table = [
        line for line in (METHODS / "README.md").read_text().splitlines() if line.startswith("| [")
    ]
    for model in MODELS:
        rows = [line for line in table if f"| `{model}` |" in line]
        assert rows, f"no row for {model} in docs/methods/README.md"
        for row in rows:
            (page,) = re.findall(r"\]\(([a-z-]+\.md)\)", row)
            title = (METHODS / page).read_text().splitlines()[0]
            assert title.endswith(f"(`{model}`)")


def test_pages_of_methods_have_one_shape() -> None:
    for page in METHOD_PAGES:
        assert page.name in links_of(METHODS / "README.md")
        assert re.findall(r"^## (.*)$", page.read_text(), flags=re.MULTILINE) == SECTIONS
