"""Gathering: who goes together, in which order, and what each caller is told. In virtual time."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

import pytest

from clarion.dispatch.gathering import BYTES_MAX, PATIENCE, SETS_MAX, Gathering
from clarion.errors import InvalidInput, StoreUnreachable
from clarion.ports.ensure import ITEMS_MAX
from clarion.testing.simulation.loop import SimulationLoop


class Sets:
    """Work that notes every set, waits until it is let go, and stumbles over what it is told to."""

    def __init__(self) -> None:
        self.begun: list[tuple[str, list[int]]] = []
        self.refused: set[int] = set()
        self.down = False
        self._held: dict[str, asyncio.Event] = {}
        self.gathering: Gathering[str, int, str] = Gathering(self.work)

    def hold(self, key: str) -> asyncio.Event:
        """Keep the sets of a key under way until the event is set."""
        return self._held.setdefault(key, asyncio.Event())

    async def work(self, key: str, items: Sequence[int]) -> list[str]:
        self.begun.append((key, list(items)))
        if key in self._held:
            await self._held[key].wait()
        if self.down:
            raise StoreUnreachable("the store is gone", hint="wait")
        if bad := self.refused & set(items):
            raise InvalidInput(f"it is {bad}", field="item", hint="take another")
        return [f"{key}{item}" for item in items]

    def ask(self, key: str, item: int, size: int = 0) -> asyncio.Task[str]:
        return asyncio.get_running_loop().create_task(self.gathering.ask(key, item, size=size))

    async def begin(self, key: str, *items: int, size: int = 0) -> list[asyncio.Task[str]]:
        """Ask for items one after the other, and give everything that can run its turn."""
        asked = [self.ask(key, item, size) for item in items]
        await asyncio.sleep(PATIENCE / 1000)
        return asked


def run(work: Coroutine[Any, Any, None]) -> None:
    loop = SimulationLoop("1", steps_max=100_000)
    loop.run_until_complete(work)
    loop.bury()


def test_whoever_comes_alone_is_served_alone_and_without_waiting() -> None:
    async def alone() -> None:
        sets, loop = Sets(), asyncio.get_running_loop()
        began_at = loop.time()
        assert [await sets.gathering.ask("a", item) for item in (1, 2)] == ["a1", "a2"]
        assert sets.begun == [("a", [1]), ("a", [2])]
        assert loop.time() == began_at, "no timer was waited for"

    run(alone())


def test_what_comes_while_a_set_is_under_way_is_the_next_set() -> None:
    async def together() -> None:
        sets = Sets()
        held = sets.hold("a")
        asked = await sets.begin("a", 1)
        asked += await sets.begin("a", 2)
        asked += await sets.begin("a", 3)
        assert sets.begun == [("a", [1])]
        held.set()
        assert sorted(await asyncio.gather(*asked)) == ["a1", "a2", "a3"]
        assert sets.begun == [("a", [1]), ("a", [2, 3])]

    run(together())


def test_keys_take_turns() -> None:
    """A hundred of one key do not go before the one of another that came first."""

    async def turns() -> None:
        sets, names = Sets(), "abcd"
        assert len(names) == SETS_MAX
        held = [sets.hold(name) for name in names]
        asked = [one for name in names for one in await sets.begin(name, 0)]
        asked += await sets.begin("late", 1)
        asked += await sets.begin("a", *range(1, 101), size=BYTES_MAX)  # a set for each
        assert [key for key, _ in sets.begun] == list(names), "no more sets at once than these"
        held[0].set()
        await asyncio.sleep(PATIENCE / 1000)
        assert [key for key, _ in sets.begun[SETS_MAX:]][:1] == ["late"]
        for one in held:
            one.set()
        assert len(await asyncio.gather(*asked)) == 105

    run(turns())


def test_a_set_has_its_bounds() -> None:
    async def bounds() -> None:
        sets = Sets()
        held = sets.hold("a")
        asked = await sets.begin("a", -1)
        asked += await sets.begin("a", *range(ITEMS_MAX + 1))
        asked += await sets.begin("a", 5000, 5001, 5002, size=BYTES_MAX // 2)
        asked += await sets.begin("a", 6000, size=2 * BYTES_MAX)
        held.set()
        await asyncio.gather(*asked)
        assert [len(items) for _, items in sets.begun] == [1, ITEMS_MAX, 3, 1, 1], "one too large goes by itself"

    run(bounds())


def test_what_is_wrong_with_one_item_is_told_to_its_caller_only() -> None:
    async def one_bad() -> None:
        sets = Sets()
        sets.refused = {7}
        held = sets.hold("a")
        asked = await sets.begin("a", 0)
        asked += await sets.begin("a", *range(1, 33))
        held.set()
        told = await asyncio.gather(*asked, return_exceptions=True)
        assert [one for one in told if isinstance(one, InvalidInput)] == [told[7]]
        assert [one for place, one in enumerate(told) if place != 7] == [f"a{n}" for n in range(33) if n != 7]
        assert len(sets.begun) <= 2 + 2 * 5, "looked for by halves"

    run(one_bad())


def test_a_store_that_is_gone_is_told_to_each_by_an_error_of_its_own() -> None:
    async def down() -> None:
        sets = Sets()
        held = sets.hold("a")
        asked = await sets.begin("a", 0) + await sets.begin("a", 1, 2)
        sets.down = True
        held.set()
        told = await asyncio.gather(*asked, return_exceptions=True)
        assert [(type(one), str(one)) for one in told] == [(StoreUnreachable, "the store is gone: wait")] * 3
        assert len({id(one) for one in told}) == 3, "each raises its own: a shared one would grow a traceback for each"
        assert len(sets.begun) == 2, "nothing is tried again: what became of it is not known, and the callers are told"
        sets.down = False
        assert await sets.gathering.ask("a", 9) == "a9"

    run(down())


@pytest.mark.parametrize("taken", [True, False], ids=["taken by a set", "still waiting"])
def test_a_caller_that_goes_away_leaves_the_others_as_they_are(taken: bool) -> None:
    async def gone() -> None:
        sets = Sets()
        held = sets.hold("a")
        asked = [] if taken else await sets.begin("a", 0)
        asked += [one for item in (1, 2, 3) for one in [sets.ask("a", item)]]
        await asyncio.sleep(PATIENCE / 1000)
        leaving = asked.pop(-2)
        leaving.cancel()
        held.set()
        told = await asyncio.gather(*asked)
        assert set(told) >= {"a1", "a3"}
        assert leaving.cancelled()
        assert (2 in sets.begun[-1][1]) is taken

    run(gone())


def test_a_set_that_hangs_holds_up_nobody_else() -> None:
    async def hangs() -> None:
        sets, loop = Sets(), asyncio.get_running_loop()
        held = sets.hold("a")
        (stuck,) = await sets.begin("a", 1)
        del sets._held["a"]
        began_at = loop.time()
        assert await sets.gathering.ask("a", 2) == "a2"
        assert loop.time() - began_at <= PATIENCE
        assert not stuck.done()
        held.set()
        assert await stuck == "a1"
        assert await sets.gathering.ask("a", 3) == "a3"

    run(hangs())


def test_a_task_that_is_canceled_with_its_set_leaves_no_caller_waiting() -> None:
    async def stopped() -> None:
        sets = Sets()
        sets.hold("a")
        (asked,) = await sets.begin("a", 1)
        (serving,) = sets.gathering._tasks
        serving.cancel()
        await asyncio.wait([asked])
        assert asked.cancelled()

    run(stopped())
