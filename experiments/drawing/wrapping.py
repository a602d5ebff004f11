"""Markdown with its paragraphs wrapped, so that a number that changes is a line that changes."""

import re
from textwrap import fill

WIDTH = 115
_VERBATIM = ("|", "#", "!", "```", "<")
"""How blocks begin that stay as they are: tables, headings, pictures, code."""
_ITEM = re.compile(r"(?m)^(?=(?:- |\d+\. ))")


def wrapped(text: str) -> str:
    r"""Return the text with each paragraph and each item of a list wrapped again.

    >>> print(wrapped("One\ntwo.\n\n\n- three\n  four\n- five\n"))
    One two.
    <BLANKLINE>
    - three four
    - five
    <BLANKLINE>
    """
    blocks = (block.strip("\n") for block in re.split(r"\n\s*\n", text))
    return "\n\n".join(_block(block) for block in blocks if block.strip()) + "\n"


def _block(block: str) -> str:
    if block.startswith(_VERBATIM):
        return block
    return "\n".join(_paragraph(item) for item in _ITEM.split(block) if item.strip())


def _paragraph(text: str) -> str:
    mark = re.match(r"- |\d+\. ", text)
    return fill(
        " ".join(text.split()),
        WIDTH,
        subsequent_indent=" " * len(mark[0]) if mark else "",
        break_long_words=False,
        break_on_hyphens=False,
    )
