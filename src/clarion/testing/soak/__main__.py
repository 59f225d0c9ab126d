"""The door of the soak: both legs on a store, and one line or one JSON object about them.

It ends with 1 where anything was lost, delivered twice, invented or otherwise wrong.
"""

import argparse
import asyncio
import contextlib
import sys
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from random import Random

import msgspec

from clarion.errors import ClarionError
from clarion.testing.postgres import postgres_server
from clarion.testing.soak.client import Moment
from clarion.testing.soak.leg import LEASE, Leg, Place, Plan
from clarion.testing.soak.verdict import Verdict, summed

DEDUPE = timedelta(hours=24)
"""For how long the provider knows a key again; longer than anything here takes."""

SLOTS = 2
SLOTS_WITH_DEDUPE = 50
"""Few where what a kill leaves stays uncertain; many where nothing does."""

MESSAGES_FOR_A_KILL = 4
"""Each kill and each crash waits for the next message of its leg; with fewer some would wait in vain."""

STRIKES = (Moment.TOLD, Moment.CALLED, Moment.ASKED, Moment.CALLED)
"""The kills, in turn: `serve` just after an answer, whichever program has just called, `serve` while it is asked."""


def plans(*, messages: int, kills: int, lease: timedelta | None) -> tuple[Plan, Plan]:
    """Halve a soak: without de-duplication and with it."""
    moments = tuple(STRIKES[number % len(STRIKES)] for number in range(kills))
    half = kills - kills // 2
    return (
        Plan(messages=messages - messages // 2, strikes=moments[:half], dedupe=None, slots=SLOTS, lease=lease),
        Plan(messages=messages // 2, strikes=moments[half:], dedupe=DEDUPE, slots=SLOTS_WITH_DEDUPE, lease=lease),
    )


async def soak(store: str, *, messages: int, kills: int, lease: timedelta | None, seed: int) -> list[Verdict]:
    """Run both legs at once, each on a new store: they spend much of their time waiting for leases."""
    with contextlib.ExitStack() as closing:
        legs = [
            Leg(plan, closing.enter_context(_place(store)), chance=Random(f"{seed}:{number}"))
            for number, plan in enumerate(plans(messages=messages, kills=kills, lease=lease))
        ]
        return await asyncio.gather(*(leg.run() for leg in legs))


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m clarion.testing.soak", description="Kill programs and count.")
    parser.add_argument("--store", choices=("sqlite", "postgres"), required=True, help="which engine the programs use")
    parser.add_argument("--messages", type=int, default=2000, help="how many are sent (default: 2000)")
    parser.add_argument("--kills", type=int, default=100, help="how often a program is killed (default: 100)")
    parser.add_argument("--lease", type=float, help="seconds; without it the programs run as users start them")
    parser.add_argument("--seed", type=int, default=0, help="draws how long after its moment each kill comes")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args(arguments)
    if (wrong := _wrong(given)) is not None:
        parser.exit(2, f"{parser.prog}: {wrong}\n")
    lease = None if given.lease is None else timedelta(seconds=given.lease)
    try:
        verdicts = asyncio.run(
            soak(given.store, messages=given.messages, kills=given.kills, lease=lease, seed=given.seed)
        )
    except (ClarionError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    total = summed(verdicts)
    if given.json:
        shown = msgspec.to_builtins(total) | {"store": given.store, "violations": len(total.violations)}
        legs_shown = [msgspec.to_builtins(verdict) for verdict in verdicts]
        sys.stdout.write(f"{msgspec.json.encode({**shown, 'legs': legs_shown}).decode()}\n")
    else:
        sys.stdout.write(
            f"{given.store}: {total.messages} messages, {total.kills} kills, {total.outages} outages: {total.lost} "
            f"lost, {total.duplicate} duplicate, {total.phantom} phantom, {total.uncertain} uncertain, "
            f"{total.delivered} delivered\n"
        )
    for violation in total.violations:
        sys.stderr.write(f"{violation}\n")
    return int(bool(total.lost or total.duplicate or total.phantom or total.violations))


def _wrong(given: argparse.Namespace) -> str | None:
    """Say what is wrong with the arguments and what to do, before programs are started for them."""
    if given.kills < 0:
        return f"--kills {given.kills} is no number of kills: give 0 or more"
    if given.messages < (fewest := MESSAGES_FOR_A_KILL * (given.kills + 1)):
        return f"--messages {given.messages} are too few for {given.kills} kills: send at least {fewest}"
    if given.lease is not None and not 1 <= given.lease <= LEASE.total_seconds():
        return f"--lease {given.lease:g} is no lease: give 1 to {LEASE.total_seconds():g} seconds"
    return None


@contextlib.contextmanager
def _place(store: str) -> Iterator[Place]:
    """Make a new store of a kind, and remove it in the end."""
    with tempfile.TemporaryDirectory(prefix="clarion-soak-") as name, contextlib.ExitStack() as closing:
        folder = Path(name)
        if store == "sqlite":
            yield Place(folder=folder, store=f"sqlite:///{folder}/clarion.db", server=None)
        else:
            server = closing.enter_context(postgres_server(durable=True))
            yield Place(folder=folder, store=closing.enter_context(server.database()), server=server)


if __name__ == "__main__":
    sys.exit(main())
