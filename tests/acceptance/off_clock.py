"""The program on a machine whose wall clock is wrong: `python -m tests.acceptance.off_clock SECONDS COMMAND ...`.

Only the wall clock is: what counts the time since the machine started is true, as after `date --set`.
"""

import sys
from datetime import datetime, timedelta

from clarion.adapters.host import HostClock
from clarion.cli import main

right_now = HostClock.now
off_by = timedelta(seconds=float(sys.argv.pop(1)))


def wrong_now(clock: HostClock) -> datetime:
    return right_now(clock) + off_by


setattr(HostClock, "now", wrong_now)  # noqa: B010  (mypy knows that a method is not to be replaced; this one is)
sys.argv[0] = "clarion"
main()
