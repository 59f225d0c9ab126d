"""Receipts: kept once each, merged by rank, in any order and number to the same end (I-31, I-32, I-33; F-38, F-39)."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Final

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clarion.domain.attempt import AttemptStatus
from clarion.domain.call import Accepted, CallOutcome, Deferred, Misconfigured, NotCalled, Refused, Unknown
from clarion.domain.outgoing import EVIDENCE_ORDER, RANK, OutgoingMessage, OutgoingStatus
from clarion.ports.track import ProviderEvent
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.contracts.pump import ACCOUNT, ACCOUNTS, BROADCAST, ORDER_KEY, Pump
from clarion.testing.factories import TEXT
from clarion.testing.row import WebhookEvent

HAPPENED_AT: Final = datetime(2026, 1, 14, 8, 0, tzinfo=UTC)
_NUMBERS: Final = count(1)


def event(message: OutgoingMessage | None, status: OutgoingStatus, **fields: object) -> ProviderEvent:
    """Make an event about a message, by our key; its row key begins with the recipient's key hash."""
    plain = ProviderEvent(
        account=ACCOUNT,
        event_id=f"e-{next(_NUMBERS)}",
        status=status,
        message_id=message.message_id if message else None,
        recipient_key_hash=message.rk.partition("_")[0] if message else None,
        happened_at=HAPPENED_AT,
        raw=TEXT,
    )
    return msgspec.structs.replace(plain, **fields)


async def track(harness: StoreHarness, pump: Pump, *events: ProviderEvent) -> int:
    """Keep events and apply what can be applied."""
    await harness.store.keep_events(harness.tenant_id, events)
    applied = await harness.store.apply_events(limit=100, actor="track")
    await pump.check()
    return applied


async def make_sent(pump: Pump, job: int = 1, provider_message_id: str | None = None) -> OutgoingMessage:
    """Store a message that a provider has accepted."""
    message = await pump.message(job)
    await pump.record(Accepted(provider_message_id=provider_message_id), await pump.claim_one())
    return message


class ReceiptContract:
    """What providers report."""

    async def test_an_event_is_kept_once_as_it_came(self, harness: StoreHarness) -> None:
        """By account and event id, in one set and over many."""
        known = event(None, OutgoingStatus.DELIVERED, event_id="same", provider_message_id="p-1")
        other = msgspec.structs.replace(known, account="other", status=OutgoingStatus.OPENED)
        assert await harness.store.keep_events(harness.tenant_id, [known, other, known]) == 2
        assert await harness.store.keep_events(harness.tenant_id, [known]) == 0
        changed = msgspec.structs.replace(known, status=OutgoingStatus.BOUNCED)
        assert await harness.store.keep_events(harness.tenant_id, [changed]) == 0
        assert await harness.store.keep_events(harness.tenant_id, []) == 0
        assert await harness.store.keep_events(f"{harness.tenant_id}-2", [known]) == 1
        kept = {row.account: row for row in await harness.rows(harness.tenant_id, WebhookEvent)}
        assert kept[ACCOUNT] == WebhookEvent(
            **msgspec.structs.asdict(known), received_at=kept[ACCOUNT].received_at, applied_at=None
        )
        assert len(kept) == 2

    async def test_an_event_by_our_key_moves_its_row_up(self, harness: StoreHarness) -> None:
        """With the tracker's name on the line, and the event marked as applied."""
        pump = Pump(harness, broadcast=BROADCAST)
        message = await make_sent(pump)
        assert await track(harness, pump, event(message, OutgoingStatus.DELIVERED)) == 1
        seen = await pump.seen(message.id)
        assert (seen.status, seen.lines[-1].actor) == (OutgoingStatus.DELIVERED, "track")
        (kept,) = await harness.rows(harness.tenant_id, WebhookEvent)
        assert kept.applied_at is not None
        assert await harness.store.apply_events(limit=100, actor="track") == 0

    async def test_an_event_by_the_providers_id_finds_its_row(self, harness: StoreHarness) -> None:
        """At that account only: ids of two providers may be the same."""
        pump = Pump(harness, broadcast=BROADCAST)
        message = await make_sent(pump, provider_message_id="p-1")
        by_id = event(None, OutgoingStatus.OPENED, provider_message_id="p-1")
        elsewhere = event(None, OutgoingStatus.BOUNCED, provider_message_id="p-1", account="other")
        assert await track(harness, pump, elsewhere, by_id) == 1
        assert await pump.status(message) is OutgoingStatus.OPENED

    async def test_an_event_of_another_tenant_moves_nothing_of_ours(self, harness: StoreHarness) -> None:
        """Whichever message it names."""
        pump = Pump(harness, broadcast=BROADCAST)
        message = await make_sent(pump, provider_message_id="p-1")
        theirs = f"{harness.tenant_id}-2"
        stranger = event(message, OutgoingStatus.BOUNCED, provider_message_id="p-1")
        await harness.store.keep_events(theirs, [stranger])
        assert await harness.store.apply_events(limit=100, actor="track") == 0
        assert await pump.status(message) is OutgoingStatus.SENT_TO_PROVIDER

    @pytest.mark.parametrize("status", EVIDENCE_ORDER)
    async def test_a_receipt_never_moves_a_row_back(self, harness: StoreHarness, status: OutgoingStatus) -> None:
        """It is kept and counts as applied; the state stays, and no line is written."""
        pump = Pump(harness, broadcast=BROADCAST)
        message = await make_sent(pump)
        await track(harness, pump, event(message, status))
        before = await pump.seen(message.id)
        lower = [event(message, one) for one in EVIDENCE_ORDER[: RANK[status]]]
        assert await track(harness, pump, *lower) == len(lower)
        after = await pump.seen(message.id)
        assert (after.message, after.lines) == (before.message, before.lines)

    async def test_an_event_before_its_row_exists_is_applied_when_it_does(self, harness: StoreHarness) -> None:
        """I-32: kept, never dropped; a row that was not sent yet is not moved by it either."""
        pump = Pump(harness, broadcast=BROADCAST)
        message = await pump.message(2)
        (claimed,) = await pump.claim()
        await pump.record(Accepted(), claimed)
        early = event(message, OutgoingStatus.DELIVERED)
        other = await pump.address(1)
        unborn = msgspec.structs.replace(early, event_id="early", recipient_key_hash=other.key_hash)
        assert await track(harness, pump, unborn) == 0
        late = await pump.message(2, to=1, message_id=message.message_id)
        assert late.message_id == message.message_id
        assert await track(harness, pump) == 0
        assert await pump.status(late) is OutgoingStatus.CREATED
        await pump.record(Accepted(), await pump.claim_one())
        assert await track(harness, pump) == 1
        assert await pump.status(late) is OutgoingStatus.DELIVERED

    async def test_an_event_before_the_providers_id_is_known_is_applied_when_it_is(self, harness: StoreHarness) -> None:
        """F-38: the receipt came before the outcome of its own call was recorded."""
        pump = Pump(harness, broadcast=BROADCAST)
        message = await pump.message()
        claimed = await pump.claim_one()
        assert await track(harness, pump, event(None, OutgoingStatus.DELIVERED, provider_message_id="p-1")) == 0
        await pump.record(Accepted(provider_message_id="p-1"), claimed)
        assert await track(harness, pump) == 1
        assert await pump.status(message) is OutgoingStatus.DELIVERED

    async def test_an_event_for_a_row_that_is_yet_to_be_called_waits_for_its_call(self, harness: StoreHarness) -> None:
        """It was claimed and not called, so nothing can have been received yet."""
        pump = Pump(harness, broadcast=BROADCAST)
        message = await pump.message()
        await pump.record(NotCalled(reason="not ready"), await pump.claim_one())
        assert await track(harness, pump, event(message, OutgoingStatus.DELIVERED)) == 0
        assert await pump.status(message) is OutgoingStatus.RETRY_READY
        await pump.record(Accepted(), await pump.claim_one())
        assert await track(harness, pump) == 1
        assert await pump.status(message) is OutgoingStatus.DELIVERED

    async def test_an_event_for_a_row_that_was_never_sent_and_never_will_be_moves_nothing(
        self, harness: StoreHarness
    ) -> None:
        """I-11: it is put aside, since nothing will ever come of it."""
        pump = Pump(harness, broadcast=BROADCAST)
        message = await pump.message()
        await harness.store.cancel_job(harness.tenant_id, (await pump.job()).guid, actor="sam")
        await harness.store.sweep_canceled(limit=10)
        assert await track(harness, pump, event(message, OutgoingStatus.DELIVERED)) == 1
        assert await pump.status(message) is OutgoingStatus.CANCELED

    async def test_events_that_wait_hold_up_nobody(self, harness: StoreHarness) -> None:
        """F-49: events behind a whole page of events without a row are still applied."""
        pump = Pump(harness, broadcast=BROADCAST)
        message = await make_sent(pump)
        waiting = [event(None, OutgoingStatus.DELIVERED, provider_message_id=f"none-{n}") for n in range(5)]
        await harness.store.keep_events(harness.tenant_id, waiting)
        await harness.elapse(timedelta(seconds=1))
        await harness.store.keep_events(harness.tenant_id, [event(message, OutgoingStatus.DELIVERED)])
        assert await harness.store.apply_events(limit=2, actor="track") == 1
        assert await pump.status(message) is OutgoingStatus.DELIVERED

    async def test_events_about_rows_that_are_yet_to_be_called_hold_up_nobody(self, harness: StoreHarness) -> None:
        """F-49: a whole page of them, whose rows are known and cannot be received yet."""
        pump = Pump(harness, broadcast=BROADCAST)
        message = await make_sent(pump)
        early = [event(await pump.message(job), OutgoingStatus.DELIVERED) for job in range(2, 7)]
        await harness.store.keep_events(harness.tenant_id, early)
        await harness.elapse(timedelta(seconds=1))
        await harness.store.keep_events(harness.tenant_id, [event(message, OutgoingStatus.DELIVERED)])
        assert await harness.store.apply_events(limit=2, actor="track") == 1
        assert await pump.status(message) is OutgoingStatus.DELIVERED

    async def test_no_more_events_are_applied_than_asked(self, harness: StoreHarness) -> None:
        """The rest is applied the next time."""
        pump = Pump(harness, broadcast=BROADCAST)
        messages = await pump.campaign(5)
        await pump.record(Accepted(), *await pump.claim())
        await harness.store.keep_events(harness.tenant_id, [event(one, OutgoingStatus.OPENED) for one in messages])
        applied = []
        for _ in range(4):
            applied.append(await harness.store.apply_events(limit=2, actor="track"))
            await pump.check()
        assert applied == [2, 2, 1, 0]
        assert [await pump.status(one) for one in messages] == [OutgoingStatus.OPENED] * 5

    @pytest.mark.parametrize("rescued", [True, False], ids=["rescued", "unknown"])
    async def test_a_receipt_settles_an_uncertain_send_and_its_attempt(
        self, harness: StoreHarness, rescued: bool
    ) -> None:
        """I-33: it shows that the provider took it; nothing is called for it."""
        pump = Pump(harness, broadcast=BROADCAST)
        message = await pump.message()
        claimed = await pump.claim_one()
        if rescued:
            await pump.rescue()
        else:
            await pump.record(Unknown(reason="lost"), claimed)
        shown = event(message, OutgoingStatus.DELIVERED, provider_message_id="p-1")
        assert await track(harness, pump, shown) == 1
        seen = await pump.seen(message.id)
        assert seen.way[-2:] == [OutgoingStatus.UNCERTAIN, OutgoingStatus.DELIVERED]
        assert [one.status for one in seen.attempts] == [AttemptStatus.ACCEPTED]
        assert await harness.store.find_uncertain(accounts=ACCOUNTS, limit=10) == []
        assert await pump.claim() == []

    async def test_a_receipt_for_a_row_in_flight_moves_it_and_leaves_the_claim_its_token(
        self, harness: StoreHarness
    ) -> None:
        """I-17: the result that comes after it still stores provider id, attempt and latency."""
        pump = Pump(harness, broadcast=BROADCAST)
        message = await pump.message()
        claimed = await pump.claim_one()
        await track(harness, pump, event(message, OutgoingStatus.OPENED))
        assert (await pump.seen(message.id)).entry.claim_token == claimed.claim_token
        late = Accepted(provider_message_id="p-1")
        assert await pump.record(late, claimed, latency_ms=1000, content_hash="k1:00") == [OutgoingStatus.OPENED]
        seen = await pump.seen(message.id)
        assert (seen.status, seen.entry.provider_message_id) == (OutgoingStatus.OPENED, "p-1")
        (attempt,) = seen.attempts
        assert (attempt.attempt, attempt.status, attempt.provider_message_id, attempt.latency_ms) == (
            1,
            AttemptStatus.ACCEPTED,
            "p-1",
            1000,
        )

    @pytest.mark.parametrize(
        "outcome",
        [Deferred(reason="x"), Refused(reason="x"), Misconfigured(reason="x"), Unknown(reason="x")],
        ids=lambda outcome: type(outcome).__name__,
    )
    async def test_a_result_that_finds_its_row_advanced_never_moves_it_back(
        self, harness: StoreHarness, outcome: CallOutcome
    ) -> None:
        """I-17: and nothing that the receipt has proven stays uncertain."""
        pump = Pump(harness, broadcast=BROADCAST)
        message = await pump.message()
        claimed = await pump.claim_one()
        await track(harness, pump, event(message, OutgoingStatus.DELIVERED))
        await pump.record(outcome, claimed)
        seen = await pump.seen(message.id)
        assert seen.status is OutgoingStatus.DELIVERED
        assert AttemptStatus.UNKNOWN not in [one.status for one in seen.attempts]
        assert await pump.rescue() == 0
        assert await pump.claim() == []

    async def test_a_receipt_lets_the_next_of_its_order_key_go(self, harness: StoreHarness) -> None:
        """It closes the row as a record does."""
        pump = Pump(harness)
        message = await pump.message(1, to=1, order_key=ORDER_KEY)
        second = await pump.message(2, to=1, order_key=ORDER_KEY)
        await pump.claim()
        await track(harness, pump, event(message, OutgoingStatus.DELIVERED))
        assert [one.id for one in await pump.claim()] == [second.id]

    async def test_a_receipt_for_a_row_that_failed_or_waits_for_a_retry_is_evidence(
        self, harness: StoreHarness
    ) -> None:
        """Any state with an attempt: it was sent after all, and is not sent again."""
        pump = Pump(harness, broadcast=BROADCAST)
        messages = [await pump.message(1), await pump.message(2)]
        first, second = await pump.claim()
        await pump.record(Refused(reason="no"), first)
        await pump.record(Deferred(reason="later"), second)
        assert await track(harness, pump, *(event(one, OutgoingStatus.DELIVERED) for one in messages)) == 2
        assert [await pump.status(one) for one in messages] == [OutgoingStatus.DELIVERED] * 2
        assert await pump.claim() == []

    async def test_two_trackers_at_once_apply_each_event_once(self, harness: StoreHarness) -> None:
        """Every row has exactly one transition line for its move."""
        pump = Pump(harness, broadcast=BROADCAST)
        messages = await pump.campaign(10)
        await pump.record(Accepted(), *await pump.claim())
        await harness.store.keep_events(harness.tenant_id, [event(one, OutgoingStatus.OPENED) for one in messages])
        applied = await asyncio.gather(*(harness.store.apply_events(limit=10, actor="track") for _ in range(3)))
        assert sum(applied) == 10
        await pump.check()

    # One store for all examples on purpose: each has messages of its own.
    @settings(
        max_examples=12,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.differing_executors, HealthCheck.function_scoped_fixture],
    )
    @given(
        receipts=st.lists(st.sampled_from(EVIDENCE_ORDER), min_size=1, max_size=6),
        orders=st.tuples(st.randoms(use_true_random=False), st.randoms(use_true_random=False)),
    )
    async def test_receipts_in_any_order_and_number_come_to_the_same_state(
        self, harness: StoreHarness, receipts: list[OutgoingStatus], orders: Sequence[object]
    ) -> None:
        """I-31: one row gets them in one order and one by one, another in another order, twice and at once."""
        pump = Pump(harness, broadcast=BROADCAST)
        jobs = [next(_NUMBERS) + 1000 for _ in range(2)]
        one, other = [await make_sent(pump, job) for job in jobs]
        for status in _shuffled(receipts, orders[0]):
            await track(harness, pump, event(one, status))
        twice = [event(other, status) for status in _shuffled(receipts, orders[1])]
        await track(harness, pump, *twice, *twice)
        highest = max(receipts, key=lambda status: RANK[status])
        assert (await pump.status(one), await pump.status(other)) == (highest, highest)


def _shuffled(receipts: Sequence[OutgoingStatus], order: object) -> list[OutgoingStatus]:
    """Give receipts in the order of a draw."""
    shuffled = list(receipts)
    order.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis gives a Random, which we name nowhere
    return shuffled
