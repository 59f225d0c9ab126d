"""What receipts say of their recipients becomes suppressions: exactly once, before the next claim (I-34).

Whatever the order in which they come and however often, the same is suppressed in the end. What a receipt does to its
message is in `receipts`.
"""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clarion.domain.call import Accepted
from clarion.domain.outgoing import EVIDENCE_ORDER, OutgoingMessage, OutgoingStatus
from clarion.domain.suppression import Cause, Signal, Suppression
from clarion.ports.track import ProviderEvent
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.contracts.pump import Pump
from clarion.testing.contracts.receipts import HAPPENED_AT, event, make_sent, track
from clarion.testing.factories import address_version

HARD: Final[dict[str, Any]] = {"status": OutgoingStatus.BOUNCED}
TOLD: Final = st.lists(
    st.sampled_from(
        [
            (status, signal)
            for status in (OutgoingStatus.DELIVERED, OutgoingStatus.BOUNCED, OutgoingStatus.COMPLAINED)
            for signal in (None, Signal.SOFT_BOUNCE)
        ]
        + [(OutgoingStatus.SENT_TO_PROVIDER, signal) for signal in (Signal.STOP, Signal.START, Signal.STOP)]
    ),
    min_size=1,
    max_size=5,
)


def answer(message: OutgoingMessage, signal: Signal, *, at: int = 0) -> ProviderEvent:
    """Make what a recipient answered, so many seconds after the first."""
    happened_at = HAPPENED_AT + timedelta(seconds=at)
    return event(message, OutgoingStatus.SENT_TO_PROVIDER, signal=signal, happened_at=happened_at)


class RefusalContract:
    """Who cannot be reached, complains or answers."""

    async def suppressed(self, harness: StoreHarness, tenant_id: str | None = None) -> list[tuple[str, str, Cause]]:
        """List what is suppressed."""
        found = await harness.store.list_suppressions(tenant_id or harness.tenant_id, limit=100)
        return [(one.subject, one.scope, one.cause) for one in found]

    @pytest.mark.parametrize(
        "status, signal, cause",
        [
            (OutgoingStatus.BOUNCED, None, Cause.BOUNCE),
            (OutgoingStatus.BOUNCED, Signal.SOFT_BOUNCE, None),
            (OutgoingStatus.COMPLAINED, None, Cause.COMPLAINT),
            (OutgoingStatus.SENT_TO_PROVIDER, Signal.STOP, Cause.STOP),
            (OutgoingStatus.SENT_TO_PROVIDER, Signal.START, None),
            *((status, None, None) for status in EVIDENCE_ORDER[:4]),
        ],
    )
    async def test_what_an_event_suppresses_is_its_destination_under_everything(
        self, harness: StoreHarness, status: OutgoingStatus, signal: Signal | None, cause: Cause | None
    ) -> None:
        """Of its own tenant, with the event's name; before the next claim, also for what is required."""
        pump = Pump(harness)
        sent, waiting = await make_sent(pump), await pump.message(2, to=1)
        told = event(sent, status, signal=signal)
        assert await track(harness, pump, told) == 1
        expected = [] if cause is None else [(address_version(1).destination_index, "*", cause)]
        assert await self.suppressed(harness) == expected
        assert await self.suppressed(harness, f"{harness.tenant_id}-2") == []
        for one in await harness.store.list_suppressions(harness.tenant_id):
            assert (one.note, one.created_by) == (f"receipt {told.event_id} of {told.account}", "track")
        assert [one.id for one in await pump.claim()] == ([] if cause else [waiting.id])
        assert await pump.status(sent) is status

    async def test_late_and_repeated_events_change_nothing_else(self, harness: StoreHarness) -> None:
        """One row however many say it, and the first one's name stays on it."""
        pump = Pump(harness)
        first, second = await make_sent(pump, 1), await make_sent(pump, 2)
        same = await pump.message(3, to=1)
        bounced = event(first, **HARD)
        await track(harness, pump, bounced, event(first, **HARD), event(second, **HARD))
        before = await harness.store.list_suppressions(harness.tenant_id)
        assert len(before) == 2
        assert await track(harness, pump, event(first, **HARD), bounced, event(first, OutgoingStatus.DELIVERED)) == 2
        assert await harness.store.list_suppressions(harness.tenant_id) == before
        assert await pump.claim() == []
        assert await pump.status(same) is OutgoingStatus.SUPPRESSED

    async def test_start_lifts_what_stop_made_and_nothing_else(self, harness: StoreHarness) -> None:
        """Not a bounce, whichever came first, nor what somebody suppressed by hand."""
        pump = Pump(harness)
        stopped, bounced, by_hand = [await make_sent(pump, n) for n in (1, 2, 3)]
        for n, (message, others) in enumerate(((stopped, ()), (bounced, (event(bounced, **HARD),)), (by_hand, ())), 1):
            await track(harness, pump, answer(message, Signal.STOP), *others)
            if n == 3:
                subject = address_version(n).destination_index
                row = Suppression(subject=subject, scope="*", cause=Cause.MANUAL)
                await harness.store.put_suppressions(harness.tenant_id, [row], actor="sam")
        started = [answer(message, Signal.START, at=1) for message in (stopped, bounced, by_hand)]
        assert await track(harness, pump, *started) == 3
        assert sorted(await self.suppressed(harness)) == sorted(
            [
                (address_version(2).destination_index, "*", Cause.BOUNCE),
                (address_version(3).destination_index, "*", Cause.MANUAL),
            ]
        )

    @pytest.mark.parametrize(
        "said, is_stopped",
        [
            ([(Signal.STOP, 0), (Signal.START, 1)], False),
            ([(Signal.START, 1), (Signal.STOP, 0)], False),
            ([(Signal.START, 0), (Signal.STOP, 1)], True),
            ([(Signal.STOP, 1), (Signal.START, 0)], True),
            ([(Signal.STOP, 0), (Signal.START, 1), (Signal.STOP, 2)], True),
            ([(Signal.START, 1), (Signal.STOP, 2), (Signal.STOP, 0)], True),
            ([(Signal.STOP, 1), (Signal.START, 1)], True),
            # A provider's clock that runs ahead: what is dated later than it came was said when it came.
            ([(Signal.START, 10**9), (Signal.STOP, 10**9)], True),
        ],
    )
    @pytest.mark.parametrize("together", [True, False])
    async def test_the_last_word_counts_in_whatever_order_it_comes(
        self, harness: StoreHarness, said: Sequence[tuple[Signal, int]], is_stopped: bool, together: bool
    ) -> None:
        """By when it was said, also of several messages to one destination."""
        pump = Pump(harness)
        messages = [await make_sent(pump, n) for n in (1,)]
        second = await pump.message(2, to=1)
        await pump.record(Accepted(), await pump.claim_one())
        messages.append(second)
        events = [answer(messages[n % 2], signal, at=at) for n, (signal, at) in enumerate(said)]
        for batch in [events] if together else [[one] for one in events]:
            await track(harness, pump, *batch)
        assert bool(await self.suppressed(harness)) is is_stopped

    async def test_what_was_lifted_by_hand_stays_so_until_something_new_is_said(self, harness: StoreHarness) -> None:
        """A STOP that is older than one that was applied says nothing new."""
        pump = Pump(harness)
        message = await make_sent(pump)
        await track(harness, pump, answer(message, Signal.STOP, at=5))
        key = (address_version(1).destination_index, "*")
        await harness.store.lift_suppressions(harness.tenant_id, [key], actor="sam", reason="they asked")
        await track(harness, pump, answer(message, Signal.STOP, at=3), event(message, OutgoingStatus.OPENED))
        assert await self.suppressed(harness) == []
        await track(harness, pump, answer(message, Signal.STOP, at=7))
        assert len(await self.suppressed(harness)) == 1

    async def test_trackers_at_once_suppress_each_destination_once(self, harness: StoreHarness) -> None:
        """And miss none."""
        pump = Pump(harness)
        sent = [await make_sent(pump, n) for n in (1, 2, 3, 4)]
        told = [event(message, **HARD) for message in sent for _ in range(3)]
        told += [answer(message, Signal.STOP) for message in sent]
        await harness.store.keep_events(harness.tenant_id, told)
        while sum(await asyncio.gather(*(harness.store.apply_events(limit=5, actor="track") for _ in range(3)))):
            pass
        assert sorted(await self.suppressed(harness)) == sorted(
            (address_version(n).destination_index, "*", Cause.BOUNCE) for n in (1, 2, 3, 4)
        )

    async def test_an_event_before_its_row_suppresses_when_its_row_is_known(self, harness: StoreHarness) -> None:
        """I-32: by the provider's id, which is heard later."""
        pump = Pump(harness)
        await pump.message()
        claimed = await pump.claim_one()
        by_id = event(None, OutgoingStatus.COMPLAINED, provider_message_id="p-1")
        assert await track(harness, pump, by_id) == 0
        assert await self.suppressed(harness) == []
        await pump.record(Accepted(provider_message_id="p-1"), claimed)
        assert await track(harness, pump) == 1
        assert [cause for _, _, cause in await self.suppressed(harness)] == [Cause.COMPLAINT]

    @settings(
        max_examples=20,
        deadline=None,
        # Several stores inherit this test, and the examples of one share its store: each has people of its own.
        suppress_health_check=[HealthCheck.differing_executors, HealthCheck.function_scoped_fixture],
    )
    @given(events_told=TOLD, data=st.data())
    async def test_any_order_and_number_of_events_suppresses_the_same(
        self, harness: StoreHarness, events_told: Sequence[tuple[OutgoingStatus, Signal | None]], data: st.DataObject
    ) -> None:
        """I-31: the same is told of two people, to one of them shuffled, repeated and in pieces."""
        pump = Pump(harness)
        number = next(_PEOPLE)
        ends: list[list[tuple[str, Cause]]] = []
        shuffled = data.draw(st.permutations(list(enumerate(events_told)) * 2))
        for person, told in ((number, list(enumerate(events_told))), (number + 1, shuffled)):
            message = await make_sent(pump, person)
            events = [
                event(
                    message,
                    status,
                    signal=signal,
                    event_id=f"told-{person}-{place}",
                    happened_at=HAPPENED_AT + timedelta(seconds=place),
                )
                for place, (status, signal) in told
            ]
            for start in range(0, len(events), 2):
                await track(harness, pump, *events[start : start + 2])
            found = await harness.store.list_suppressions(
                harness.tenant_id, subjects=[address_version(person).destination_index]
            )
            ends.append([(one.scope, one.cause) for one in found])
        assert ends[0] == ends[1]


_PEOPLE: Final = iter(range(100, 10_000, 2))
"""Of whom each example has two of its own."""
