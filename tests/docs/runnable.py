"""Pages as programs: the code of a Markdown page, and the output that the page says it has.

The blocks of a page run in order, in one folder, and share their names, as for someone who reads
it. A `text` block right after one is what it prints. (`console` blocks, with a prompt, are never
run: they install things, say.) A line of shell that only calls `pogp` is a call of its `main`,
which needs no new process; in a pipe it is a fork of this one. All else is run by a shell.
"""

import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from pogp import cli

from ..processes import pogp

FENCED = re.compile(r"^```(\w+)\n(.*?)^```\n(?:\n?```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"(?<![\w.])([-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?)")
QUOTED = r"'[^']*'|\"[^\"]*\""
SLACK = 0.05
"""How far a number that is shown may be off elsewhere, unless by a unit of its last digit."""


@dataclass(frozen=True)
class Block:
    """Code, and what it prints if the page says so."""

    language: str
    code: str
    output: str


def blocks_of(page: Path) -> list[Block]:
    """The blocks of a page that could run."""
    found = [Block(*parts) for parts in FENCED.findall(page.read_text(encoding="utf-8"))]
    return [block for block in found if block.language in RUN]


def run(page: Path, languages: tuple[str, ...]) -> None:
    """Run a page's code in the current folder, and hold it to the output that the page shows."""
    names: dict[str, object] = {}
    for block in blocks_of(page):
        if block.language not in languages:
            continue
        printed = RUN[block.language](block.code, names)
        if block.output:
            differences = differing(block.output, printed)
            assert not differences, "what the page says and what was printed:\n" + differences


def run_python(code: str, names: dict[str, object]) -> str:
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(code, "<page>", "exec"), names)
    return printed.getvalue()


def run_shell(code: str, names: dict[str, object]) -> str:
    code = re.sub(r"\|\n\s*", "| ", code)
    commands = [code] if "\\\n" in code else code.splitlines()
    return "".join(map(run_line, commands))


def run_line(line: str) -> str:
    bare = re.sub(QUOTED, "", line)
    if re.fullmatch(r"pogp [^|<>&;$\\\n]*", line):
        return in_this_process(line)
    if re.search(r"(^|\| *)pogp ", bare) and not re.search(r"[;\\]|&&|\|\|", bare):
        return in_a_pipe(re.findall(rf"(?:{QUOTED}|[^|'\"])+", line))
    return in_a_shell(line)


def in_this_process(line: str) -> str:
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with redirect_stdout(printed):
        assert cli.main(shlex.split(line)[1:]) == 0, line
    return printed.buffer.getvalue().decode("utf-8")


def in_a_pipe(stages: list[str]) -> str:
    processes: list[subprocess.Popen[bytes]] = []
    for stage in stages:
        source = processes[-1].stdout if processes else subprocess.DEVNULL
        ours = re.fullmatch(r"\s*pogp ([^<>&$]*?)\s*(2>&1|2>/dev/null)?\s*", stage)
        if ours is None:
            after = subprocess.Popen(["sh", "-euc", stage], stdin=source, stdout=subprocess.PIPE)
        else:
            errors = {"2>&1": subprocess.STDOUT, "2>/dev/null": subprocess.DEVNULL}.get(ours[2])
            words = shlex.split(ours[1])
            after = pogp(*words, stdin=source, stdout=subprocess.PIPE, stderr=errors)
        if processes:
            processes[-1].stdout.close()  # so that it notices if no one reads on
        processes.append(after)
    printed, _ = processes[-1].communicate(timeout=120)
    codes = [process.wait(timeout=120) for process in processes]
    assert codes[-1] == 0, (stages, codes)
    return printed.decode("utf-8")


def in_a_shell(code: str) -> str:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["sh", "-euc", code],
        env={**os.environ, "PATH": path},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{code}\n{done.stdout}\n{done.stderr}"
    return done.stdout


RUN: dict[str, Callable[[str, dict[str, object]], str]] = {"python": run_python, "sh": run_shell}


def differing(said: str, printed: str) -> str:
    """The lines that differ by more than white space and the last digits of numbers."""
    ours, theirs = said.rstrip().splitlines(), printed.rstrip().splitlines()
    rows = max(len(ours), len(theirs))
    padded = (lines + [""] * (rows - len(lines)) for lines in (ours, theirs))
    pairs = zip(*padded, strict=True)
    return "\n".join(f"- {one}\n+ {other}" for one, other in pairs if not same(one, other))


def same(one: str, other: str) -> bool:
    """Whether two lines have the same words, and numbers that are nearly the same."""
    parts, others = NUMBER.split(one), NUMBER.split(other)
    if len(parts) != len(others):
        return False
    words = zip(parts[::2], others[::2], strict=True)
    numbers = zip(parts[1::2], others[1::2], strict=True)
    return all(a.split() == b.split() for a, b in words) and all(near(*pair) for pair in numbers)


def near(shown: str, printed: str) -> bool:
    number, other = (float(text.replace(",", "")) for text in (shown, printed))
    mantissa, _, exponent = shown.partition("e")
    unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    return abs(number - other) <= max(SLACK * abs(number), 1.01 * unit)
