"""The command `pogp`. Each subcommand is a module with an `add_parser`, listed in `COMMANDS`.

Exit codes: 0 for success, 2 for what the user can put right, 130 after Ctrl-C.
"""

import argparse
import sys
from collections.abc import Sequence

import pogp
from pogp.cli import run

COMMANDS = (run,)
_FORESEEN = (
    ValueError,
    OSError,
    ImportError,
    MemoryError,
    pogp.datasets.DataUnavailable,
    pogp.datasets.DigestError,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line, without the program's name in `argv`, and return the exit code."""
    arguments = _parser().parse_args(argv)
    try:
        code: int = arguments.command(arguments)
    except KeyboardInterrupt:
        print("pogp: interrupted", file=sys.stderr)
        return 130
    except _FORESEEN as error:
        print(f"pogp: error: {_one_line(error)}", file=sys.stderr)
        return 2
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pogp",
        description="Parsimonious Online Gaussian Processes: regression on endless streams.",
        epilog="'pogp COMMAND --help' explains a command.",
    )
    parser.add_argument("--version", action="version", version=f"pogp {pogp.__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_parser(subparsers)
    return parser


def _one_line(error: BaseException) -> str:
    """Return the message of an error, which may be a list over several lines, as one."""
    lines = [line.strip() for line in str(error).splitlines()]
    return "; ".join(lines).replace(":; ", ": ") or type(error).__name__
