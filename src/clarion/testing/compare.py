"""The door of the comparison of the two engines: as many examples as one likes, other ones each time.

    python -m clarion.testing.compare --examples 2000 [--json]
    python -m clarion.testing.compare --seed 4711 --examples 100      # those examples again

Random operations are done to PostgreSQL, on a server that is started for it, and to SQLite in memory; every answer and
every row must be the same, instants to the microsecond. Examples are drawn in rounds of a hundred, a seed for each, and
the seeds count up from the first, which is drawn by chance unless it is given. It ends with 1 where the engines differ:
the example is shown with its seed, and again with no more operations than it needs.
"""

import argparse
import asyncio
import sys
from collections.abc import Iterator, Sequence
from datetime import timedelta
from operator import itemgetter
from typing import Final

import msgspec

from clarion.adapters.host import HostIds
from clarion.adapters.stores.migration import migrate_postgres
from clarion.testing.contracts.comparison import WORKS, Compared
from clarion.testing.contracts.set_clock import open_set_clock
from clarion.testing.contracts.side import Operation
from clarion.testing.postgres import postgres_server

ROUND: Final = 100
"""Examples of one seed: drawing them takes a second, and having them again a minute."""

SHOWN_MAX: Final = 3
"""After so many that differ it stops: they mostly have one cause."""

TRIES_MAX: Final = 200
"""How often an example is tried with fewer operations: some tens of seconds."""


class Differing(msgspec.Struct, frozen=True, kw_only=True):
    """An example after which the engines differ."""

    seed: int
    work: str
    number: int
    difference: str
    operations: tuple[str, ...]


class Summary(msgspec.Struct, kw_only=True):
    """What all examples came to."""

    first_seed: int
    examples: int = 0
    operations: int = 0
    differing: list[Differing] = []


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m clarion.testing.compare", description="The two engines compared.")
    parser.add_argument("--examples", type=int, default=ROUND, help="how many lists of operations")
    parser.add_argument("--seed", type=int, help="of the first hundred of them; by chance if it is not given")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args(arguments)
    if given.examples < 1:
        parser.exit(2, f"{parser.prog}: --examples {given.examples} proves nothing: run at least one\n")
    first = HostIds().new_guid().int % 10**9 if given.seed is None else given.seed
    with postgres_server() as server, server.database() as url:
        summary = asyncio.run(compare(url, first_seed=first, examples=given.examples))
    if given.json:
        sys.stdout.write(f"{msgspec.json.encode(summary).decode()}\n")
    else:
        sys.stdout.write(
            f"{summary.examples} examples, {summary.operations} operations, seeds from {first}: "
            f"{len(summary.differing)} differ\n"
        )
    return int(bool(summary.differing))


async def compare(url: str, *, first_seed: int, examples: int) -> Summary:
    """Compare a PostgreSQL database, which is empty, with SQLite until so many examples are done or some differ."""
    await migrate_postgres(url)
    summary = Summary(first_seed=first_seed)
    async with open_set_clock(url) as harness:
        compared = await Compared.open(harness, within=timedelta())
        try:
            for seed, work, number, example in drawn_examples(first_seed, examples):
                summary.examples += 1
                summary.operations += len(example)
                if summary.examples % ROUND == 0:
                    sys.stderr.write(f"{summary.examples} examples, the last of seed {seed}\n")
                if await compared.run(example) is None:
                    continue
                fewer = await shortened(compared, example)
                difference = await compared.run(fewer) or "it differed once, and not again"
                operations = tuple(map(str, fewer))
                one = Differing(seed=seed, work=work, number=number, difference=difference, operations=operations)
                summary.differing.append(one)
                sys.stderr.write(f"{shown(one)}\n")  # at once: a long run may be broken off
                if len(summary.differing) == SHOWN_MAX:
                    break
        finally:
            await compared.close()
    return summary


def drawn_examples(first_seed: int, examples: int) -> Iterator[tuple[int, str, int, tuple[Operation, ...]]]:
    """Draw examples, a hundred of each seed, the works mixed; give the seed, the work and the number within it too."""
    for done in range(0, examples, ROUND):
        seed = first_seed + done // ROUND
        of_round = [
            (number / work.share, seed, name, number, example)
            for name, work in WORKS.items()
            for number, example in enumerate(work.examples(work.share, seed=seed))
        ]
        of_round.sort(key=itemgetter(0))
        yield from (one[1:] for one in of_round[: examples - done])


async def shortened(compared: Compared, example: Sequence[Operation]) -> Sequence[Operation]:
    """Leave out operations, many at once and then fewer, as long as the engines differ without them."""
    tries, size = 0, len(example) // 2
    while size and tries < TRIES_MAX:
        place = 0
        while place < len(example) and tries < TRIES_MAX:
            fewer = (*example[:place], *example[place + size :])
            tries += 1
            if await compared.run(fewer) is None:
                place += size
            else:
                example = fewer
        size //= 2
    return example


def shown(one: Differing) -> str:
    """Tell what differs, after which operations, and how to have it again."""
    again = f"python -m clarion.testing.compare --seed {one.seed} --examples {ROUND}"
    return "\n".join(
        [
            f"example {one.number} of {one.work}, seed {one.seed}, differs; have it again with: {again}",
            "it still does with only:",
            *one.operations,
            one.difference,
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
