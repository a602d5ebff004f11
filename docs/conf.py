"""How the documentation site is built: Sphinx, Markdown (MyST) and furo, without a network.

`python -m sphinx -W docs build/docs`. The pages are plain Markdown that also reads well where the
repository is browsed, so pages outside docs/ are brought in here, with their links put right.
"""

import os
import re
from pathlib import Path

from sphinx.application import Sphinx

import pogp
from pogp.models import Model, OnlineModel

DOCS = Path(__file__).parent
ROOT = DOCS.parent
FROM_THE_REPOSITORY = {
    ROOT / "README.md": "project/readme",
    ROOT / "ARCHITECTURE.md": "project/architecture",
    ROOT / "NOTATION.md": "project/notation",
    ROOT / "CONTRIBUTING.md": "project/contributing",
    ROOT / "CHANGELOG.md": "project/changelog",
}
"""Pages outside docs/, and the page that shows each."""
SHOWN_ONCE = sorted(
    {name for kind in (Model, OnlineModel) for name in vars(kind) if name[0] != "_"} - {"learn"}
)
"""What all models share is on the page of the protocol, not with each model again."""

project = "pogp"
author = "the pogp developers"
release = version = pogp.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
]
exclude_patterns = ["pictures"]
myst_heading_anchors = 3  # links to headings, as the repository's browser makes them

autosummary_generate = False  # tables only; the pages of api/ say what goes where
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # shapes and meanings are in the text, types in the signatures' source
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


def _text_of(docname: str, text: str) -> str:
    """Return a page's Markdown: its own, or that of the file it stands for."""
    page = DOCS / f"{docname}.md"
    for source, shown_as in FROM_THE_REPOSITORY.items():
        if shown_as == docname:
            return _with_links(source.read_text(encoding="utf-8"), source, page)
    return _with_links(text, page, page)


def _with_links(text: str, source: Path, page: Path) -> str:
    """Return the Markdown of `source` with its relative links as `page` needs them."""

    def link(match: re.Match[str]) -> str:
        path, mark, heading = match[1].partition("#")
        target = (source.parent / path).resolve()
        if target in FROM_THE_REPOSITORY:
            target = DOCS / f"{FROM_THE_REPOSITORY[target]}.md"
        return f"]({Path(os.path.relpath(target, page.parent)).as_posix()}{mark}{heading})"

    return re.sub(r"\]\((?![a-z]+:|#)([^)\s]+)\)", link, text)


def _read(app: Sphinx, docname: str, content: list[str]) -> None:
    content[0] = _text_of(docname, content[0])
    for source, shown_as in FROM_THE_REPOSITORY.items():
        if shown_as == docname:
            app.env.note_dependency(str(source))


def _format(
    app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """Read a docstring as the text it is: few marks in it mean anything to Sphinx.

    Underlined headings become ones that may stand inside a page; what follows them, terms with
    indented text, is a list of definitions as it is.
    """
    text = re.sub(r"^( *)(\w+)\n *-+$", r"\1.. rubric:: \2\n", "\n".join(lines), flags=re.MULTILINE)
    paragraphs = re.split(r"\n\n", text)
    plain = r"`[^`]+`|\||(?<=\w)_(?!\w)"
    lines[:] = "\n\n".join(
        part if part.lstrip().startswith(">>>") else re.sub(plain, _as_it_is, part)
        for part in paragraphs
    ).split("\n")


def _as_it_is(mark: re.Match[str]) -> str:
    """Return a name for the default role to link to, other `code` as code, a bar as a bar."""
    if mark[0][0] != "`":
        return f"\\{mark[0]}"
    return mark[0] if re.fullmatch(r"`[A-Za-z_][\w.]*`", mark[0]) else f"`{mark[0]}`"


def setup(app: Sphinx) -> None:
    """Connect the two."""
    app.connect("source-read", _read)
    app.connect("autodoc-process-docstring", _format)
