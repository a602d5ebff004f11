"""A report in Markdown as one HTML page that needs nothing beside itself, not even a network."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

STYLESHEET = Path(__file__).with_name("page.css")
_BESIDE = re.compile(r"(?<!!)\[([^]]+)\]\((?!https?:|#)[^)]+\)")
"""A link to a file beside the report: the page may stand elsewhere, so only its text stays."""
LAYOUT = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<nav aria-label="Contents"><ol>
{contents}
</ol></nav>
<main>
{body}</main>
</body>
</html>
"""


def page(markdown: str, pictures: Mapping[str, bytes]) -> str:
    """Return the page; `pictures` are PNG, by the paths that the Markdown gives them."""
    parser = MarkdownIt("commonmark").enable("table")
    tokens = parser.parse(_BESIDE.sub(r"\1", markdown))
    headings = _name_headings(tokens)
    _frame_tables(tokens)
    for token in tokens:
        _put_in(pictures, token.children or [])
    title, *sections = headings
    return LAYOUT.format(
        title=escape(title[1]),
        style=STYLESHEET.read_text(encoding="utf-8"),
        contents="\n".join(
            f'<li><a href="#{name}">{escape(text)}</a></li>' for name, text in sections
        ),
        body=parser.renderer.render(tokens, parser.options, {}),
    )


def anchor(heading: str) -> str:
    """Return the name of a heading, as the repository's browser and Sphinx make it.

    >>> anchor("Errata, with evidence")
    'errata-with-evidence'
    """
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _name_headings(tokens: Sequence[Token]) -> list[tuple[str, str]]:
    """Give headings their names; return those of the first two levels, with their texts."""
    found = []
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open":
            name = anchor(inline.content)
            opening.attrSet("id", name)
            if opening.tag in ("h1", "h2"):
                found.append((name, inline.content))
    return found


def _frame_tables(tokens: list[Token]) -> None:
    """Put each table into a frame of its own, which scrolls where the page is too narrow."""
    for position in reversed(range(len(tokens))):
        kind = tokens[position].type
        if kind == "table_open":
            tokens.insert(position, _html('<div class="scroll" tabindex="0">\n'))
        elif kind == "table_close":
            tokens.insert(position + 1, _html("</div>\n"))


def _put_in(pictures: Mapping[str, bytes], tokens: Sequence[Token]) -> None:
    for token in tokens:
        if token.type == "image":
            picture = b64encode(pictures[str(token.attrs["src"])]).decode()
            token.attrs["src"] = f"data:image/png;base64,{picture}"


def _html(text: str) -> Token:
    return Token("html_block", "", 0, content=text)
