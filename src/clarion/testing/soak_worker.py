"""One worker process of a soak: the real supervisor over a real store, made to be killed.

    python -m clarion.testing.soak_worker --slots 2 --lease 4

Reads the installation's settings from the environment, as `clarion work` does; its leases are short, so that what it
leaves behind comes back while the soak waits. SIGTERM stops it gracefully.
"""

import argparse
import asyncio
import signal
import sys
from datetime import timedelta

from clarion.bootstrap import load_settings, open_platform, run_service
from clarion.domain.call_times import CallTimes
from clarion.domain.identity import Channel
from clarion.workers.supervisor import Supervisor
from clarion.workers.timings import Timings
from clarion.workers.wake_up import WakeUp


async def work(*, slots: int, lease: timedelta) -> None:
    """Work until told to stop; a call may take half of its lease, and its record a quarter."""
    timings = Timings(
        calls=CallTimes(timeout=lease / 2, record_max=lease / 4, lease=lease),
        stage_lease=lease,
        poll=0.1,  # seconds: several processes share a store and nobody carries wake-ups between them
    )
    async with open_platform(load_settings()) as platform:
        supervisor = Supervisor(platform, wake_up=WakeUp(), channels=(Channel.EMAIL,), slots=slots, timings=timings)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, supervisor.stop)
        await supervisor.run()


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m clarion.testing.soak_worker", description="A worker to be killed.")
    parser.add_argument("--slots", type=int, required=True, help="calls at once")
    parser.add_argument("--lease", type=float, required=True, help="seconds")
    given = parser.parse_args(arguments)
    run_service(work(slots=given.slots, lease=timedelta(seconds=given.lease)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
