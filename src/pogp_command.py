"""The entry point of the command `pogp`, which is not in the package: it runs before any import.

`import pogp` takes a part of a second, and Ctrl-C ends the command quietly from the start.
"""

import sys


def main() -> int:
    """Import the command and run it; return the exit code."""
    try:
        from pogp import cli

        return cli.main()
    except KeyboardInterrupt:
        print("pogp: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
