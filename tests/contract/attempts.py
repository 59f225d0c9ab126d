"""How often a message is called for that is always put off, through the real pipeline, on any store."""

from datetime import timedelta
from typing import Any

from clarion.domain.call import CallOutcome, Deferred, Replay, Unknown
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.support import SupportKind
from clarion.domain.timeline import OutgoingTimeline
from clarion.testing.clock import ManualClock
from clarion.testing.contracts.harness import StoreHarness
from tests.unit.pipeline_line import Line, Scripted

HOUR = timedelta(hours=1)
"""Longer than any wait between two attempts."""


async def tried(
    harness: StoreHarness, *answers: CallOutcome, replay: Replay | None = None
) -> tuple[OutgoingTimeline, int]:
    """Send a message, answer its calls so, the last answer for ever, and return where it ends and after which calls."""
    store: Any = harness.store  # whichever it is
    clock, provider = harness.clock or ManualClock(), Scripted()
    provider.replay = replay or Replay()
    provider.answers = [*answers, *[answers[-1]] * 50]
    line = Line(store, clock, provider, tenant_id=harness.tenant_id)
    await line.seed()
    sent = await line.send()
    await line.drain()
    for _ in range(30):
        await harness.elapse(HOUR)
        if harness.clock is None:
            clock.advance(HOUR)  # for the workers, whose clock is not the store's
        await line.drain()
    (row,) = (await line.timeline(sent)).outgoing
    return row, len(provider.calls)


class AttemptContract:
    """The number of attempts is the worker's to count, and the store's to keep."""

    async def test_a_message_that_is_always_put_off_is_given_up_after_the_eighth_call(
        self, harness: StoreHarness
    ) -> None:
        row, calls = await tried(harness, Deferred(reason="busy"))
        assert (row.status, row.attempts, calls) == (OutgoingStatus.FAILED_FINAL, 8, 8)
        assert [(one.attempt, one.status) for one in row.tries] == [(number, "Deferred") for number in range(1, 9)]
        (case,) = await harness.store.list_support_cases(harness.tenant_id)
        assert case.kind is SupportKind.DEAD_LETTER

    async def test_one_that_may_have_arrived_has_twenty_calls_and_rests_uncertain(self, harness: StoreHarness) -> None:
        """The provider de-duplicates for a week, so that each replay is harmless."""
        row, calls = await tried(
            harness, Unknown(reason="lost"), Deferred(reason="busy"), replay=Replay(dedupe_window=timedelta(days=7))
        )
        assert (row.status, row.attempts, calls) == (OutgoingStatus.UNCERTAIN, 20, 20)
