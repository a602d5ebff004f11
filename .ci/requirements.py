"""Print the requirements of extras of pyproject.toml, for pip.

The Makefile installs extras from these lines, so that the package itself and its compiled core are
built only once. `--base` prints the requirements of the build and of the package. `--build` prints
everything in pyproject.toml that the set-up of every target depends on, so that a change can be
noticed.
"""

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROJECT = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())


def requirements(extra: str) -> Iterator[str]:
    """Yield what an extra requires, with that of the extras it names."""
    for line in PROJECT["project"]["optional-dependencies"][extra]:
        if own := re.fullmatch(r"pogp\[(.*)\]", line):
            for part in own[1].split(","):
                yield from requirements(part)
        else:
            yield line


def build() -> dict[str, Any]:
    """Return the sections that the build reads, and what figures require."""
    project = {
        name: PROJECT["project"][name] for name in ("name", "version", "dependencies", "scripts")
    }
    tool, system = PROJECT["tool"]["setuptools"], PROJECT["build-system"]
    plot = list(requirements("plot"))
    return {"build-system": system, "project": project, "tool": tool, "plot": plot}


def base() -> list[str]:
    """Return what the build and the package require."""
    return [*PROJECT["build-system"]["requires"], *PROJECT["project"]["dependencies"]]


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--build"]:
            print(json.dumps(build(), indent=1))
        case ["--base"]:
            print("\n".join(base()))
        case [extra]:
            print("\n".join(dict.fromkeys(requirements(extra))))
        case _:
            sys.exit(f"usage: {sys.argv[0]} EXTRA | --base | --build")
