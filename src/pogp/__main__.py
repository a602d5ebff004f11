"""`python -m pogp`: the command `pogp`."""

import sys

import pogp.cli

if __name__ == "__main__":
    sys.exit(pogp.cli.main())
