"""The command `pogp`. Each subcommand is a module with an `add_parser`, listed in `COMMANDS`.

Exit codes: 0 for success, 2 for what the user can put right, 3 for a row that cannot be used where
each has to be, 130 after Ctrl-C, 141 if nobody reads on what is written.
"""

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import nullcontext

import pogp
from pogp.blas import one_thread
from pogp.cli import info, learn, predict, run
from pogp.cli.tally import BadRowError

COMMANDS = (run, learn, predict, info)
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
    arguments.words = sys.argv[1:] if argv is None else list(argv)
    try:
        # `run` has a dense GP, whose products are large; the other models limit themselves.
        with nullcontext() if arguments.command is run.execute else one_thread:
            code: int = arguments.command(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("pogp: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # What is still in the buffer would fail again when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except _FORESEEN as error:
        print(f"pogp: error: {_one_line(error)}", file=sys.stderr)
        return 3 if isinstance(error, BadRowError) else 2
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
