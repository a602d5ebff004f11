"""Where results go: places that can be written to, and at the expense of nothing."""

import os
from pathlib import Path


def require_place(path: Path, read: dict[str, str | Path]) -> None:
    """Raise ValueError unless a file can be put there, in the place of nothing that is `read`."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder; expected the name of a file")
    if not path.parent.is_dir():
        raise ValueError(f"{path} cannot be written: there is no folder {path.parent}")
    for what, other in read.items():
        if is_same(path, other):
            raise ValueError(f"{path} is {what}, and would be overwritten")


def is_same(path: Path, other: str | Path) -> bool:
    """Return whether both name the same file, which exists."""
    return path.exists() and os.path.exists(other) and path.samefile(other)
