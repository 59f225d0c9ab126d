"""`clarion` with shorter leases: the one difference between a short soak and the program as users start it.

    python -m clarion.testing.soak.short 5 serve --port 0

A killed worker's claims come back when their leases end, after a minute. `make test` cannot wait so long. Users have no
setting for it: a lease that is too short for a slow provider would make messages uncertain.
"""

import sys
from datetime import timedelta

from clarion.domain.call_times import CallTimes
from clarion.workers import timings


def shorten(lease: timedelta) -> None:
    """Let this process's workers have such leases; a call may take half of one, and its record a quarter."""
    calls = CallTimes(timeout=lease / 2, record_max=lease / 4, lease=lease)
    short = timings.Timings(calls=calls, stage_lease=lease)
    timings.TIMINGS = short  # type: ignore[misc]  # a constant for everybody else
    from clarion.workers.supervisor import Supervisor  # it takes its default from there when it is imported

    if (Supervisor.__init__.__kwdefaults__ or {})["timings"] is not short:
        raise RuntimeError("the supervisor was imported before: its leases are as long as ever")


def main() -> None:
    """Run the program with what follows the lease."""
    shorten(timedelta(seconds=float(sys.argv.pop(1))))
    from clarion.cli import main as run_program

    run_program()


if __name__ == "__main__":
    main()
