"""The program `clarion`: a door for people and scripts.

`main` runs a command and turns every error of ours into one line on standard error and an exit code: 2 where the
caller must ask differently, 1 where the installation or the program is at fault. No other module knows exit codes.
"""

import sys

from clarion.cli.program import program
from clarion.errors import CallerError, ClarionError


def main() -> None:
    """Run the command that the arguments name."""
    try:
        program()
    except ClarionError as error:
        sys.stderr.write(f"clarion: {error}\n")
        raise SystemExit(2 if isinstance(error, CallerError) else 1) from None
