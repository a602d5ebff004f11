"""The command `pogp`. Each subcommand is a module with `configure` and `execute`.

Exit codes: 0 for success, 2 for an error that the user can correct, 3 for an unusable row where
every row has to be usable, 4 for an error above --require, 129, 130 and 143 after SIGHUP, Ctrl-C
and SIGTERM, 141 if the output pipe was closed.
"""

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module

import pogp
from pogp.cli.console import BadRowError, say, take_any_text

COMMANDS = {
    "run": "compare the methods on a stream, with a table and a figure",
    "learn": "learn a column of a CSV or Parquet file, or of standard input",
    "predict": "write mean, deviation and interval for each row of a table",
    "info": "describe a model file",
}
"""The modules of the subcommands; only the one that is called is imported."""
_EXPECTED = (
    ValueError,
    OSError,
    ImportError,
    MemoryError,
    pogp.datasets.DataUnavailable,
    pogp.datasets.DigestError,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line, without the program's name in `argv`, and return the exit code."""
    words = sys.argv[1:] if argv is None else list(argv)
    for stream in (sys.stdout, sys.stderr):
        take_any_text(stream)
    arguments = _parser(words).parse_args(words)
    arguments.words = words
    try:
        code: int = arguments.command(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("pogp: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # What is still in the buffer would fail again when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except _EXPECTED as error:
        say(f"pogp: error: {_one_line(error)}", sys.stderr)
        return 3 if isinstance(error, BadRowError) else 2
    return code


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """Return a parser that knows all commands, and the options of the one in `words`."""
    parser = argparse.ArgumentParser(
        prog="pogp",
        description="Parsimonious Online Gaussian Processes: regression on unbounded data streams.",
        epilog="'pogp COMMAND --help' explains a command.",
    )
    parser.add_argument("--version", action="version", version=f"pogp {pogp.__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, purpose in COMMANDS.items():
        command = subparsers.add_parser(
            name, help=purpose, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        if name in words[:1]:
            module = import_module(f"pogp.cli.{name}")
            command.description, command.epilog = module.DESCRIPTION, module.EPILOG
            command.set_defaults(command=module.execute)
            module.configure(command)
    return parser


def _one_line(error: BaseException) -> str:
    """Return the message of an error, which may be a list over several lines, as one."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    lines = [line.strip() for line in str(error).splitlines()]
    return "; ".join(lines).replace(":; ", ": ") or type(error).__name__
