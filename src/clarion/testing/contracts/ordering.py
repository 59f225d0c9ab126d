"""Order: rows of one recipient, channel and lane that are due together go out one after the other.

That is the promise (docs/explanation/claiming.md) and no more: a row whose time has not come, one behind a closed gate
and one that waits for its replay hold up nobody.
"""

from datetime import timedelta
from typing import Final

import pytest

from clarion.domain.call import Accepted, CallOutcome, Deferred, NotCalled, Refused, Unknown
from clarion.domain.claim import FlowQuota, Gate, Settlement, StageResult
from clarion.domain.guard import JobEntry
from clarion.domain.identity import Lane
from clarion.domain.notification import NotificationJob, NotificationStatus, Stage
from clarion.domain.outgoing import OutgoingMessage, OutgoingStatus
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.contracts.pump import ACCOUNTS, LEASE, ORDER_KEY, ROUTE, Pump
from clarion.testing.factories import SOURCE_AT, guarded_entry, guid, notification_job, outgoing_item, scheduler_of

CLOSING: Final[tuple[CallOutcome, ...]] = (Accepted(), Refused(reason="no"), Unknown(reason="lost"))
NEVER: Final = timedelta(days=1)
POLL: Final = timedelta(seconds=1)


async def make_two(pump: Pump, **fields: object) -> tuple[OutgoingMessage, OutgoingMessage]:
    """Store two messages to one person, the second made later."""
    first = await pump.message(1, to=1, order_key=ORDER_KEY, **fields)
    return first, await pump.message(2, to=1, order_key=ORDER_KEY, **fields)


async def accept(harness: StoreHarness, *, newest_first: bool) -> list[NotificationJob]:
    """Accept six direct sends in one set; their keys sort the newest first, so one of the two ways is against them."""
    times = [SOURCE_AT + timedelta(seconds=n) for n in range(6)]
    ordered = sorted(times, reverse=newest_first)
    entries = [guarded_entry(f"key-{n}", created_at=at, template_key="welcome") for n, at in enumerate(ordered)]
    assert (sorted(one.job.row_key for one in entries) == [one.job.row_key for one in entries]) is newest_first
    answers = await harness.store.ensure_notification_jobs(harness.tenant_id, entries)
    return [answer.record for answer in answers]


async def until_next(harness: StoreHarness) -> timedelta:
    """Give how long it is until a row falls due, while none is due."""
    found = await harness.store.discover_flows(routes=(ROUTE,), lows={})
    assert found.heads == ()
    assert found.next_due_in is not None
    return found.next_due_in


async def ids(pump: Pump) -> list[int]:
    """Claim what may go out; give the ids."""
    return [one.id for one in await pump.claim()]


class OrderContract:
    """One recipient's messages."""

    @pytest.mark.parametrize("newest_first", [False, True])
    async def test_jobs_of_one_set_are_claimed_in_the_order_in_which_they_were_accepted(
        self, harness: StoreHarness, newest_first: bool
    ) -> None:
        """In both stages: keys decide a race, and never who goes first."""
        accepted = [job.row_key for job in await accept(harness, newest_first=newest_first)]
        for stage in Stage:
            claims = await harness.store.claim_stage(stage, lanes=tuple(Lane), limit=10, lease=LEASE)
            assert [claim.job.row_key for claim in claims] == accepted
            results = [
                StageResult(
                    scheduler_id=claim.scheduler.id or 0,
                    version=claim.scheduler.version,
                    to=NotificationStatus.READY,
                    stage=Stage.GENERATE,
                )
                for claim in claims
            ]
            assert len(await harness.store.finish_stage(results)) == len(accepted)

    @pytest.mark.parametrize("newest_first", [False, True])
    async def test_scheduler_rows_of_one_set_are_claimed_in_the_order_asked(
        self, harness: StoreHarness, newest_first: bool
    ) -> None:
        """The same for rows that are made after their jobs; one that was there already stays where it is."""
        jobs = [notification_job(n) for n in (range(6, 0, -1) if newest_first else range(1, 7))]
        await harness.store.ensure_notification_jobs(harness.tenant_id, [JobEntry(job=job) for job in jobs])
        pending = [scheduler_of(job) for job in jobs]
        await harness.store.ensure_notification_schedulers(harness.tenant_id, pending[3:4])
        await harness.store.ensure_notification_schedulers(harness.tenant_id, [*pending, *pending])
        claims = await harness.store.claim_stage(Stage.SCHEDULE, lanes=tuple(Lane), limit=10, lease=LEASE)
        asked = [job.row_key for job in jobs]
        assert [claim.job.row_key for claim in claims] == [asked[3], *asked[:3], *asked[4:]]

    @pytest.mark.parametrize("newest_first", [False, True])
    async def test_rows_of_one_set_leave_in_the_order_asked(self, harness: StoreHarness, newest_first: bool) -> None:
        """One after the other, whatever their keys are."""
        pump, address = Pump(harness), await Pump(harness).address(1)
        jobs = await accept(harness, newest_first=newest_first)
        items = [outgoing_item(job, address, order_key=ORDER_KEY) for job in jobs]
        answers = await harness.store.ensure_outgoing_messages(harness.tenant_id, [*items, *items])
        left: list[int] = []
        for _ in jobs:
            claimed = await pump.claim_one()
            left.append(claimed.id)
            await pump.record(Accepted(), claimed)
        assert left == [answer.record.id for answer in answers[: len(jobs)]] == sorted(left)

    async def test_of_two_that_are_due_together_the_earlier_goes_alone(self, harness: StoreHarness) -> None:
        """Though one claim picks both, and though the later one was due first."""
        pump = Pump(harness)
        now = await harness.now()
        first = await pump.message(1, to=1, order_key=ORDER_KEY, due_at=now - timedelta(seconds=1))
        second = await pump.message(2, to=1, order_key=ORDER_KEY, due_at=now - timedelta(seconds=9))
        assert await ids(pump) == [first.id]
        assert await ids(pump) == []
        seen = await pump.seen(second.id)
        assert (seen.status, seen.lines, seen.entry.attempts) == (OutgoingStatus.CREATED, [], 0)
        assert seen.message.version == 1

    async def test_a_held_back_row_looks_again_within_a_poll(self, harness: StoreHarness) -> None:
        """In case that whoever closes the row ahead does not see it: nobody waits longer for a lost wake-up."""
        pump = Pump(harness)
        await pump.message(1, to=1, order_key=ORDER_KEY)
        await pump.claim_one()
        await pump.message(2, to=1, order_key=ORDER_KEY)
        assert await ids(pump) == []
        assert timedelta() < await until_next(harness) <= POLL
        await harness.elapse(POLL)
        assert await ids(pump) == []
        assert timedelta() < await until_next(harness) <= POLL, "as long as it is held back"

    async def test_rows_behind_the_first_of_their_line_look_again_a_minute_later(self, harness: StoreHarness) -> None:
        """They are woken one by one, and until then no claim has to look at them."""
        pump = Pump(harness)
        await make_two(pump)
        await pump.message(3, to=1, order_key=ORDER_KEY)
        assert len(await ids(pump)) == 1
        assert timedelta(seconds=40) < await until_next(harness) <= timedelta(seconds=60)

    @pytest.mark.parametrize("outcome", CLOSING, ids=lambda outcome: type(outcome).__name__)
    async def test_whatever_closes_the_first_makes_the_next_due_at_once(
        self, harness: StoreHarness, outcome: CallOutcome
    ) -> None:
        """And only the next: a third one waits for the second."""
        pump = Pump(harness)
        _, second = await make_two(pump)
        third = await pump.message(3, to=1, order_key=ORDER_KEY)
        (claimed,) = await pump.claim()
        await pump.record(outcome, claimed)
        (again,) = await pump.claim()
        assert again.id == second.id
        assert await ids(pump) == []
        await pump.record(outcome, again)
        assert await ids(pump) == [third.id]

    async def test_an_expired_lease_lets_the_next_go(self, harness: StoreHarness) -> None:
        """The first is uncertain then, perhaps for long, so the next does not wait for it."""
        pump = Pump(harness)
        _, second = await make_two(pump)
        await pump.claim()
        await pump.rescue()
        assert await ids(pump) == [second.id]

    @pytest.mark.parametrize("how", ["canceled", "expired"])
    async def test_a_first_row_that_is_never_sent_lets_the_next_go(self, harness: StoreHarness, how: str) -> None:
        """Ruled out by the claim that picked both, or before it."""
        pump = Pump(harness)
        expires_at = await harness.now() + timedelta(seconds=10) if how == "expired" else None
        first = await pump.message(1, to=1, order_key=ORDER_KEY, expires_at=expires_at)
        second = await pump.message(2, to=1, order_key=ORDER_KEY)
        if how == "canceled":
            assert await harness.store.cancel_job(harness.tenant_id, (await pump.job(1)).guid, actor="sam")
        await harness.elapse(timedelta(seconds=11))
        assert [*await ids(pump), *await ids(pump)] == [second.id]
        assert await pump.status(first) in (OutgoingStatus.CANCELED, OutgoingStatus.EXPIRED)

    async def test_a_receipt_that_closes_the_first_lets_the_next_go(self, harness: StoreHarness) -> None:
        """A cancel of a row that blocks does too."""
        pump = Pump(harness)
        first, second = await make_two(pump)
        (claimed,) = await pump.claim()
        assert await ids(pump) == []
        await pump.record(Deferred(reason="later"), claimed, delay=timedelta(seconds=30))
        assert await ids(pump) == []
        assert await harness.store.cancel_job(harness.tenant_id, (await pump.job(1)).guid, actor="sam")
        await harness.store.sweep_canceled(limit=10)
        assert await pump.status(first) is OutgoingStatus.CANCELED
        assert await ids(pump) == [second.id]

    async def test_a_first_row_near_its_retry_is_waited_for(self, harness: StoreHarness) -> None:
        """At most 60 seconds; then it goes first."""
        pump = Pump(harness)
        first = await pump.message(1, to=1, order_key=ORDER_KEY)
        await pump.record(Deferred(reason="later"), await pump.claim_one(), delay=timedelta(seconds=50))
        await pump.message(2, to=1, order_key=ORDER_KEY)
        assert await ids(pump) == []
        await harness.elapse(LEASE + timedelta(seconds=1))
        assert await ids(pump) == [first.id]

    async def test_a_first_row_that_is_put_off_for_long_lets_the_next_go_at_once(self, harness: StoreHarness) -> None:
        """Though it is not closed, and though the next is in line already."""
        pump = Pump(harness)
        _, second = await make_two(pump)
        (claimed,) = await pump.claim()
        await pump.record(Deferred(reason="later"), claimed, delay=timedelta(seconds=61))
        assert await ids(pump) == [second.id]

    async def test_a_row_in_line_is_not_overtaken_by_one_that_came_later(self, harness: StoreHarness) -> None:
        """Even if the row ahead holds it back no more and nobody has woken it: a pause wakes nobody."""
        pump = Pump(harness)
        await pump.message(1, to=1, order_key=ORDER_KEY, route="email:other", broadcast="paused")
        second = await pump.message(2, to=1, order_key=ORDER_KEY)
        assert await ids(pump) == []
        await harness.store.set_gate(harness.tenant_id, "paused", Gate.PAUSED, actor="sam")
        await pump.message(3, to=1, order_key=ORDER_KEY)
        assert await ids(pump) == []
        await harness.elapse(POLL)
        assert await ids(pump) == [second.id]

    async def test_a_row_of_a_broadcast_that_is_paused_again_takes_no_wake_up_from_others(
        self, harness: StoreHarness
    ) -> None:
        """The wake-up that it would not use is all that the row behind it has: that one looks again much later."""
        pump = Pump(harness)
        store, tenant_id = harness.store, harness.tenant_id
        await pump.message(1, to=1, order_key=ORDER_KEY)
        before = await pump.claim_one()
        await pump.message(2, to=1, order_key=ORDER_KEY, broadcast="spring")
        assert await ids(pump) == []
        await store.set_gate(tenant_id, "spring", Gate.PAUSED, actor="sam")
        await pump.record(Accepted(), before)
        await pump.message(3, to=1, order_key=ORDER_KEY)
        last = await pump.message(4, to=1, order_key=ORDER_KEY)
        (claimed,) = await pump.claim()
        await store.set_gate(tenant_id, "spring", Gate.OPEN, actor="sam")
        await pump.record(Accepted(), claimed)
        await store.set_gate(tenant_id, "spring", Gate.PAUSED, actor="sam")
        if not (left := await ids(pump)):
            await harness.elapse(POLL)
            left = await ids(pump)
        assert left == [last.id]

    async def test_a_first_row_far_from_its_retry_is_not_waited_for(self, harness: StoreHarness) -> None:
        """It would hold up everything behind it."""
        pump = Pump(harness)
        await pump.message(1, to=1, order_key=ORDER_KEY)
        await pump.record(Deferred(reason="later"), await pump.claim_one(), delay=timedelta(seconds=300))
        second = await pump.message(2, to=1, order_key=ORDER_KEY)
        assert await ids(pump) == [second.id]

    async def test_a_row_whose_time_has_not_come_blocks_nobody_and_is_not_hurried(self, harness: StoreHarness) -> None:
        """Not-before stands, whatever closes before it."""
        pump = Pump(harness)
        later = await pump.message(1, to=1, order_key=ORDER_KEY, due_at=await harness.now() + NEVER)
        before = (await pump.seen(later.id)).entry.due_at
        second = await pump.message(2, to=1, order_key=ORDER_KEY)
        third = await pump.message(3, to=1, order_key=ORDER_KEY, due_at=await harness.now() + NEVER)
        (claimed,) = await pump.claim()
        assert claimed.id == second.id
        await pump.record(Accepted(), claimed)
        assert await ids(pump) == []
        assert (await pump.seen(later.id)).entry.due_at == before
        assert await pump.status(third) is OutgoingStatus.CREATED

    async def test_a_retry_is_not_hurried_by_a_row_that_closes_before_it(self, harness: StoreHarness) -> None:
        """The provider asked for the wait."""
        pump = Pump(harness)
        first = await pump.message(1, to=1, order_key=ORDER_KEY)
        await pump.record(Deferred(reason="later"), await pump.claim_one(), delay=timedelta(seconds=300))
        await pump.message(2, to=1, order_key=ORDER_KEY)
        await pump.record(Accepted(), await pump.claim_one())
        assert await ids(pump) == []
        await harness.elapse(timedelta(seconds=301))
        assert await ids(pump) == [first.id]

    async def test_a_row_in_flight_is_waited_for_even_by_an_earlier_one(self, harness: StoreHarness) -> None:
        """Only one of them is on its way at any time."""
        pump = Pump(harness)
        first = await pump.message(1, to=1, order_key=ORDER_KEY, due_at=await harness.now() + timedelta(seconds=30))
        await pump.message(2, to=1, order_key=ORDER_KEY)
        (claimed,) = await pump.claim()
        await harness.elapse(timedelta(seconds=31))
        assert await ids(pump) == []
        await pump.record(Accepted(), claimed)
        assert await ids(pump) == [first.id]

    async def test_a_row_that_was_not_called_goes_again_before_the_next(self, harness: StoreHarness) -> None:
        """It returns to wait, so nothing was closed."""
        pump = Pump(harness)
        first, _ = await make_two(pump)
        await pump.record(NotCalled(reason="not ready"), *await pump.claim())
        assert await ids(pump) == [first.id]

    @pytest.mark.parametrize("delay", [timedelta(), NEVER], ids=["due", "later"])
    async def test_a_row_that_waits_for_its_replay_blocks_nobody(self, harness: StoreHarness, delay: timedelta) -> None:
        """It is pinned to an account that may be down for long, so the others go out through the one that works."""
        pump = Pump(harness)
        first, second = await make_two(pump)
        (flow,) = await pump.heads()
        (claimed,) = await pump.claim()
        await pump.record(Unknown(reason="lost"), claimed)
        (send,) = await harness.store.find_uncertain(accounts=ACCOUNTS, limit=10)
        settlement = Settlement(
            id=send.id, bucket=send.bucket, version=send.version, replay=True, reason="again", delay=delay
        )
        assert await harness.store.settle_uncertain([settlement], actor="settle") == {first.id}
        taken = await pump.take([FlowQuota(flow_id=flow.flow_id, quota=9, account="another")])
        assert [one.id for one in taken] == [second.id]

    async def test_a_row_behind_a_closed_gate_blocks_nobody(self, harness: StoreHarness) -> None:
        """A paused broadcast holds up its own rows only."""
        pump = Pump(harness)
        await pump.message(1, to=1, order_key=ORDER_KEY, broadcast="paused")
        second = await pump.message(2, to=1, order_key=ORDER_KEY)
        await harness.store.set_gate(harness.tenant_id, "paused", Gate.PAUSED, actor="sam")
        assert await ids(pump) == [second.id]

    async def test_an_earlier_row_on_another_route_or_of_another_broadcast_is_waited_for(
        self, harness: StoreHarness
    ) -> None:
        """Order is the recipient's, not the flow's."""
        pump = Pump(harness)
        first = await pump.message(1, to=1, order_key=ORDER_KEY, route="email:other", broadcast="a broadcast")
        second = await pump.message(2, to=1, order_key=ORDER_KEY)
        assert await ids(pump) == []
        (claimed,) = await pump.claim(routes=("email:other",))
        assert claimed.id == first.id
        await pump.record(Accepted(), claimed)
        assert await ids(pump) == [second.id]

    async def test_other_recipients_and_lanes_and_rows_without_a_key_do_not_wait(self, harness: StoreHarness) -> None:
        """A one-time code never waits for a campaign to the same person: each lane has its own key, bulk has none."""
        pump = Pump(harness)
        messages = [
            await pump.message(1, to=1, order_key=ORDER_KEY),
            await pump.message(2, to=2, order_key=guid(2).hex),
            await pump.message(3, to=1, order_key=guid(3).hex, lane=Lane.CRITICAL),
            await pump.message(4, to=1, order_key=None, lane=Lane.BULK),
            await pump.message(5, to=1, order_key=None, lane=Lane.BULK),
        ]
        assert sorted(await ids(pump)) == sorted(message.id or 0 for message in messages)
