"""HTML and SVG elements, with all text escaped."""

from collections.abc import Iterable, Sequence
from html import escape

CONTROLS = [*range(9), *range(0xB, 0x20), *range(0x7F, 0xA0), *range(0x2028, 0x202F)]
CONTROLS += [*range(0x2066, 0x206A), *range(0xD800, 0xE000)]
"""Characters that control a terminal or the direction of text, and bytes that are not text."""
ESCAPES = {code: repr(chr(code))[1:-1] for code in CONTROLS}
"""For `str.translate`: control characters from a file are shown as symbols."""
VOID = frozenset({"br", "col", "link", "meta"})
"""HTML elements that have no content and no end."""


class Markup(str):
    """Text that is already markup. Any other text is escaped."""

    __slots__ = ()


def element(tag: str, *content: object, **attributes: object) -> Markup:
    """Return an element; None among content and attributes stands for nothing.

    In the names of attributes `class_` is class, and any other underscore is a hyphen.

    >>> element("p", "1 < 2 ", element("b", "sure"), class_="note", aria_hidden="true", id=None)
    '<p class="note" aria-hidden="true">1 &lt; 2 <b>sure</b></p>'
    """
    named = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{_escaped(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    if tag in VOID:
        return Markup(f"<{tag}{named}>")
    return Markup(f"<{tag}{named}>{joined(*content)}</{tag}>")


def joined(*content: object) -> Markup:
    """Return pieces of content one after another."""
    given = (piece for piece in content if piece is not None)
    return Markup("".join(p if isinstance(p, Markup) else _escaped(p) for p in given))


def _escaped(value: object) -> str:
    return escape(str(value).translate(ESCAPES))


def table(
    caption: str,
    rows: Iterable[tuple[str, Sequence[str]]],
    heads: Sequence[str] = (),
    *,
    prose: bool = False,
) -> Markup:
    """Return a table: a name and cells in every row. If it is too wide, it has its own scroll bar.

    With `prose` the cells hold words, which wrap.
    """
    lines = (
        element("tr", element("th", name, scope="row"), *(element("td", cell) for cell in cells))
        for name, cells in rows
    )
    content = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *(element("th", name, scope="col") for name in heads)))
        if heads
        else None,
        element("tbody", *lines),
        class_="prose" if prose else None,
    )
    return element("div", content, class_="scroll", tabindex=0, role="region", aria_label=caption)


def legend(entries: Iterable[tuple[str, str]]) -> Markup:
    """Return a legend: a style and a text for each kind of mark."""
    return element(
        "ul", *(element("li", text, class_=look) for look, text in entries), class_="legend"
    )
