"""An outcome is kept until the store has it, and the store's errors cost no message its outcome."""

from collections.abc import Sequence
from contextlib import suppress

import pytest
import structlog

from clarion.domain.call import Accepted, Deferred, Refused
from clarion.domain.claim import CallResult
from clarion.domain.outgoing import OutgoingMessage, OutgoingStatus
from clarion.errors import Bug, ClarionError, InvalidInput, OperatorError, StoreBusy, StoreUnreachable
from clarion.testing.clock import ManualClock
from clarion.testing.store import SqliteInMemory
from tests.unit.pipeline_line import TENANT, Line, Scripted

DOWN = StoreUnreachable("the store is down", hint="start it")
BUSY = StoreBusy("the store is busy", hint="try again")
ENDED = [OutgoingStatus.SENT_TO_PROVIDER, OutgoingStatus.FAILED_FINAL, OutgoingStatus.RETRY_READY]


class Failing(SqliteInMemory):
    """A store that fails to record so often, before or after its commit, and never takes the results of some rows."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        super().__init__(self.clock)
        self.errors: list[ClarionError] = []
        self.after_commit = False
        self.unstorable: set[int] = set()
        self.asked: list[int] = []  # how many results each time

    async def record_outgoing(self, results: Sequence[CallResult], *, actor: str) -> None:
        self.asked.append(len(results))
        if self.unstorable & {result.id for result in results}:
            raise InvalidInput("one of them cannot be stored", field="result", hint="leave it out")
        if self.errors and not self.after_commit:
            raise self.errors.pop(0)
        await super().record_outgoing(results, actor=actor)
        if self.errors:
            raise self.errors.pop(0)

    async def states(self) -> list[OutgoingStatus]:
        return [row.status for row in await self.rows(TENANT, OutgoingMessage)]


async def called(messages: int) -> tuple[Line, Failing]:
    """Send so many messages, and have them called for; nothing is recorded yet."""
    store = Failing()
    line = Line(store, store.clock, Scripted())
    await line.seed()
    for number in range(messages):
        await line.send(to=f"user-{number}@example.com")
    await line.queue()
    return line, store


async def drain(line: Line) -> None:
    """Run the stages as their loop does: a step that fails is run again."""
    for _ in range(10):
        with suppress(OperatorError):
            await line.drain()


@pytest.mark.parametrize("after_commit", [False, True], ids=["before", "after the commit"])
@pytest.mark.parametrize("error", [DOWN, BUSY], ids=["down", "busy"])
async def test_an_outcome_is_recorded_once_the_store_is_back(error: ClarionError, after_commit: bool) -> None:
    line, store = await called(3)
    line.provider.answers = [Accepted(), Refused(reason="no"), Deferred(reason="later")]
    store.errors, store.after_commit = [error] * 3, after_commit
    await drain(line)
    assert (await store.states(), len(line.provider.calls), store.errors) == (ENDED, 3, [])


async def test_while_the_store_is_down_the_slots_are_taken_and_nothing_is_forgotten() -> None:
    """I-14: what is not recorded may still become uncertain, so nothing more is claimed for it."""
    line, store = await called(15)
    store.errors = [DOWN] * 5
    for _ in range(5):
        with pytest.raises(StoreUnreachable):
            await line.drain()
        assert len(line.provider.calls) <= 10, "of ten slots"
    await drain(line)
    assert (await store.states(), len(line.provider.calls)) == ([OutgoingStatus.SENT_TO_PROVIDER] * 15, 15)


async def test_one_outcome_that_cannot_be_stored_costs_no_other_its_own() -> None:
    line, store = await called(3)
    line.provider.answers = [Accepted(), Refused(reason="no"), Deferred(reason="later")]
    store.unstorable = {(await store.rows(TENANT, OutgoingMessage))[1].id or 0}
    with structlog.testing.capture_logs() as logs:
        await drain(line)
    assert await store.states() == [ENDED[0], OutgoingStatus.SENDING, ENDED[2]]
    assert [entry["outgoing_id"] for entry in logs if "outgoing_id" in entry] == [*store.unstorable]


async def test_a_store_that_goes_down_while_outcomes_are_recorded_one_by_one_costs_none() -> None:
    line, store = await called(3)
    line.provider.answers = [Accepted(), Refused(reason="no"), Deferred(reason="later")]
    store.errors = [Bug("the set cannot be stored", hint="report it"), DOWN, BUSY]
    await drain(line)
    assert (await store.states(), len(line.provider.calls)) == (ENDED, 3)
    assert store.asked[:2] == [3, 1], "first together, then one by one"
