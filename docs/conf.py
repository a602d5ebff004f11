"""How the documentation site is built: Sphinx, Markdown (MyST) and furo, without a network.

`python -m sphinx -W docs build/docs`. The pages are plain Markdown that also reads well where the
repository is browsed, so pages outside docs/ are brought in here, with their links put right.
"""

import os
import re
from pathlib import Path

from sphinx.application import Sphinx

import pogp
from pogp.models import Model

DOCS = Path(__file__).parent
ROOT = DOCS.parent
FROM_THE_REPOSITORY = {
    "project/readme": ROOT / "README.md",
    "project/architecture": ROOT / "ARCHITECTURE.md",
    "project/notation": ROOT / "NOTATION.md",
    "project/contributing": ROOT / "CONTRIBUTING.md",
    "project/changelog": ROOT / "CHANGELOG.md",
}
"""Pages that show a file outside docs/ in place of their own text."""
SHOWN_ONCE = sorted(
    {name for kind in (Model,) for name in vars(kind) if name[0] != "_"} - {"learn"}
)
"""What all models share is on the page of the protocol, not with each model again."""

project = "pogp"
author = "the pogp developers"
release = version = pogp.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["pictures"]
myst_heading_anchors = 3  # links to headings, as the repository's browser makes them

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # shapes are in the text; unions of types say less, at length
autodoc_preserve_defaults = True
autodoc_default_options = {"exclude-members": ", ".join(SHOWN_ONCE)}
default_role = "py:obj"  # `name` in a docstring links to what has that name, if anything has
smartquotes = False  # "newest" is an argument

html_theme = "furo"
html_title = f"pogp {release}"
html_show_copyright = False
html_show_sourcelink = False
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["site.css"]


def _read(app: Sphinx, docname: str, content: list[str]) -> None:
    """Put the text of another file in the place of a page's own, and its links right."""
    page = DOCS / f"{docname}.md"
    source = FROM_THE_REPOSITORY.get(docname, page)
    app.env.note_dependency(str(source))
    content[0] = _with_links(source.read_text(encoding="utf-8"), source, page)


def _with_links(text: str, source: Path, page: Path) -> str:
    """Return the Markdown of `source` with its relative links as `page` needs them."""
    shown_as = {path: DOCS / f"{docname}.md" for docname, path in FROM_THE_REPOSITORY.items()}

    def link(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0]
        path, mark, heading = found[1].partition("#")
        target = (source.parent / path).resolve()
        target = shown_as.get(target, target)
        return f"]({Path(os.path.relpath(target, page.parent)).as_posix()}{mark}{heading})"

    code = r"^```.*?^```|`[^`\n]*`"
    relative = r"\]\((?![a-z]+:|#)([^)\s]+)\)"
    return re.sub(f"{code}|{relative}", link, text, flags=re.DOTALL | re.MULTILINE)


def _format(
    app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """Read a docstring as the text it is: few marks in it mean anything to Sphinx.

    Underlined headings become ones that may stand inside a page; what follows them, terms with
    indented text, is a list of definitions as it is.
    """
    text = re.sub(r"^(\w+)\n-+$", r".. rubric:: \1\n", "\n".join(lines), flags=re.MULTILINE)
    marks = r"`[^`]+`|\||(?<=\w)_(?!\w)"
    paragraphs = [
        part if part.lstrip().startswith(">>>") else re.sub(marks, _as_it_is, part)
        for part in text.split("\n\n")
    ]
    lines[:] = "\n\n".join(paragraphs).split("\n")


def _as_it_is(mark: re.Match[str]) -> str:
    """Return `name`, which the default role may link, as it is, and all else as what it shows."""
    if mark[0][0] != "`":
        return f"\\{mark[0]}"
    return mark[0] if re.fullmatch(r"`[A-Za-z_][\w.]*`", mark[0]) else f"`{mark[0]}`"


def setup(app: Sphinx) -> None:
    """Have pages and docstrings read as above."""
    app.connect("source-read", _read)
    app.connect("autodoc-process-docstring", _format)
