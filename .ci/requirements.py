"""Print the requirements of an extra of pyproject.toml, or with --build those of the build.

The Makefile installs extras by these lines: the package itself, and with it the compiled core, is
built only once. With --build everything in pyproject.toml that the build depends on is printed, so
that a change of it can be noticed.
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
    """Return the sections that the build reads."""
    project = {
        name: PROJECT["project"][name] for name in ("name", "version", "dependencies", "scripts")
    }
    tools = {name: PROJECT["tool"][name] for name in ("setuptools", "distutils")}
    return {"build-system": PROJECT["build-system"], "project": project, "tool": tools}


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--build"]:
            print(json.dumps(build(), indent=1))
        case ["--build-requires"]:
            print("\n".join(PROJECT["build-system"]["requires"]))
        case [extra]:
            print("\n".join(dict.fromkeys(requirements(extra))))
        case _:
            sys.exit(f"usage: {sys.argv[0]} EXTRA | --build | --build-requires")
