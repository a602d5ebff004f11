"""`python -m pogp`: the command `pogp`."""

import sys

import pogp_command

if __name__ == "__main__":
    sys.exit(pogp_command.main())
