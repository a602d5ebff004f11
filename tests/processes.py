"""Processes without the imports of a new interpreter, which take a second of a processor each."""

import os
import signal
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import pogp_command


def pogp(*words: object, **options: Any) -> subprocess.Popen:
    """Start the command with these words; the options are those of `subprocess.Popen`."""

    def program() -> int:
        sys.argv = ["pogp", *map(str, words)]
        return pogp_command.main()

    return started(program, **options)


def started(program: Callable[[], int | None], **options: Any) -> subprocess.Popen:
    """Start a process that runs a function, whose result is the exit code, and no executable.

    It is a fork of this one, with the streams and signals of one that was just started.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside other threads
        return subprocess.Popen(["forked"], preexec_fn=lambda: _run(program), **options)


def _run(program: Callable[[], int | None]) -> None:
    code: Any = 1
    try:
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))  # Popen waits for one of them to be closed
        sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
        sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace")
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        for number in (signal.SIGHUP, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            code = program()
        except SystemExit as end:
            code = end.code
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code or 0)
