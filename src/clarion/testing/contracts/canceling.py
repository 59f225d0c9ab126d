"""Calling off: a gate closes a whole broadcast, a cancel one direct job; both strict, no claim begins after either."""

import asyncio
from datetime import timedelta

import pytest

from clarion.domain.call import Accepted, CallOutcome, Deferred, Unknown
from clarion.domain.claim import FlowQuota, Gate, Settlement
from clarion.domain.ensured import Outcome
from clarion.domain.notification import NotificationScheduler, NotificationStatus, Stage
from clarion.domain.outgoing import FINAL, OutgoingMessage, OutgoingStatus
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.contracts.pump import ACCOUNT, ACCOUNTS, ROUTE, Pump
from clarion.testing.contracts.stages import claim, finished, make_pending, row_of
from clarion.testing.factories import guid, notification_job, outgoing_item

ACTOR = "sam"


async def cancel(harness: StoreHarness, pump: Pump, n: int = 1) -> bool:
    """Cancel the n-th job."""
    return await harness.store.cancel_job(harness.tenant_id, (await pump.job(n)).guid, actor=ACTOR)


async def sweep(harness: StoreHarness, pump: Pump) -> None:
    """Clear away what was called off."""
    await harness.store.sweep_canceled(limit=100)
    await pump.check()


class GateContract:
    """Broadcasts that are paused and canceled."""

    async def test_a_paused_broadcast_yields_nothing_and_goes_on_when_it_is_opened(self, harness: StoreHarness) -> None:
        """A pause is one update; rows in flight are still recorded."""
        pump = Pump(harness)
        messages = await pump.campaign(3)
        broadcast = messages[0].pk
        (claimed,) = await pump.claim(quota=1)
        (head,) = await pump.heads()
        await harness.store.set_gate(harness.tenant_id, broadcast, Gate.PAUSED, actor=ACTOR)
        found = await harness.store.discover_flows(routes=(ROUTE,), lows={})
        assert found.heads == ()
        assert await pump.take([FlowQuota(flow_id=head.flow_id, quota=9, account=ACCOUNT)]) == []
        assert await pump.record(Accepted(), claimed) == [OutgoingStatus.SENT_TO_PROVIDER]
        assert await harness.store.sweep_canceled(limit=10) == 0
        await harness.store.set_gate(harness.tenant_id, broadcast, Gate.OPEN, actor=ACTOR)
        assert len(await pump.claim()) == 2

    async def test_a_gate_is_its_tenants_and_its_broadcasts_alone(self, harness: StoreHarness) -> None:
        """Others go on, rows without a broadcast too."""
        pump = Pump(harness)
        await pump.campaign(2, n=1)
        await pump.campaign(2, n=2)
        await pump.message(5)
        await pump.message(6)
        first = min(head.broadcast for head in await pump.heads() if head.broadcast)
        await harness.store.set_gate(f"{harness.tenant_id}-2", first, Gate.PAUSED, actor=ACTOR)
        assert len(await pump.heads()) == 3
        assert len(await pump.claim(quota=1)) == 3
        await harness.store.set_gate(harness.tenant_id, first, Gate.PAUSED, actor=ACTOR)
        assert first not in [head.broadcast for head in await pump.heads()]
        assert len(await pump.claim()) == 2

    async def test_a_gate_also_holds_rows_that_are_made_after_it(self, harness: StoreHarness) -> None:
        """Also rows of flows that did not exist when the gate was closed."""
        pump = Pump(harness)
        await harness.store.set_gate(harness.tenant_id, "a broadcast", Gate.PAUSED, actor=ACTOR)
        await pump.message(1, broadcast="a broadcast")
        await pump.message(2, broadcast="a broadcast", route="email:other")
        assert await pump.heads(ROUTE, "email:other") == []
        await harness.store.set_gate(harness.tenant_id, "a broadcast", Gate.OPEN, actor=ACTOR)
        assert len(await pump.heads(ROUTE, "email:other")) == 2

    async def test_rows_of_a_canceled_broadcast_are_canceled_in_chunks(self, harness: StoreHarness) -> None:
        """F-11: those that wait; the counters follow at every chunk."""
        pump = Pump(harness)
        messages = await pump.campaign(6)
        (sent, _) = await pump.claim(quota=2)
        await pump.record(Accepted(), sent)
        await harness.store.set_gate(harness.tenant_id, messages[0].pk, Gate.CANCELED, actor=ACTOR)
        assert await pump.heads() == []
        swept = []
        for _ in range(4):
            swept.append(await harness.store.sweep_canceled(limit=3))
            await pump.check()
        assert swept == [3, 1, 0, 0]
        statuses = [await pump.status(message) for message in messages]
        assert statuses == [
            OutgoingStatus.SENT_TO_PROVIDER,
            OutgoingStatus.SENDING,
            *[OutgoingStatus.CANCELED] * 4,
        ]
        assert (await pump.seen(messages[5].id)).entry.reason

    @pytest.mark.parametrize("gate", [Gate.PAUSED, Gate.CANCELED])
    async def test_a_claim_and_a_closing_gate_at_once_come_one_after_the_other(
        self, harness: StoreHarness, gate: Gate
    ) -> None:
        """I-16: whatever the race gave, nothing is claimed once the gate has closed."""
        pump = Pump(harness)
        messages = await pump.campaign(20)
        (head,) = await pump.heads()
        quota = FlowQuota(flow_id=head.flow_id, quota=3, account=ACCOUNT)
        claims = [
            harness.store.claim_outgoing([quota], token=guid(n, "gate-token"), lease=timedelta(60), actor="w")
            for n in range(3)
        ]
        await asyncio.gather(*claims, harness.store.set_gate(harness.tenant_id, messages[0].pk, gate, actor=ACTOR))
        assert await pump.take([quota]) == []


class CancelContract:
    """Direct jobs that are called off."""

    async def test_a_waiting_row_is_never_sent_after_its_cancel(self, harness: StoreHarness) -> None:
        """The line of the move says who canceled it."""
        pump = Pump(harness)
        message = await pump.message()
        assert await cancel(harness, pump)
        assert await pump.claim() == []
        await sweep(harness, pump)
        seen = await pump.seen(message.id)
        assert seen.way == [OutgoingStatus.CREATED, OutgoingStatus.CANCELED]
        assert (seen.lines[0].actor, bool(seen.lines[0].reason)) == (ACTOR, True)
        assert seen.entry.cancel_at is not None

    async def test_a_row_that_waits_for_its_retry_is_canceled_too(self, harness: StoreHarness) -> None:
        """Also while it is not due."""
        pump = Pump(harness)
        message = await pump.message()
        await pump.record(Deferred(reason="later"), await pump.claim_one(), delay=timedelta(hours=1))
        assert await cancel(harness, pump)
        await sweep(harness, pump)
        assert await pump.status(message) is OutgoingStatus.CANCELED

    @pytest.mark.parametrize(
        "outcome, status",
        [(Deferred(reason="later"), OutgoingStatus.CANCELED), (Unknown(reason="lost"), OutgoingStatus.UNCERTAIN)],
        ids=["deferred", "unknown"],
    )
    async def test_a_row_in_flight_is_not_sent_again_after_its_cancel(
        self, harness: StoreHarness, outcome: CallOutcome, status: OutgoingStatus
    ) -> None:
        """The call cannot be taken back; a retry or a replay is ruled out by the claim."""
        pump = Pump(harness)
        message = await pump.message()
        claimed = await pump.claim_one()
        assert await cancel(harness, pump)
        assert await pump.status(message) is OutgoingStatus.SENDING
        await pump.record(outcome, claimed)
        for send in await harness.store.find_uncertain(accounts=ACCOUNTS, limit=10):
            settlement = Settlement(id=send.id, bucket=send.bucket, version=send.version, replay=True, reason="x")
            assert send.is_over
            await harness.store.settle_uncertain([settlement], actor="settle")
        assert await pump.claim() == []
        await sweep(harness, pump)
        seen = await pump.seen(message.id)
        assert (seen.status, seen.entry.settle_at) == (status, None)
        if status is OutgoingStatus.CANCELED:
            assert seen.lines[-1].actor == ACTOR
        assert not await harness.store.retry_outgoing(
            harness.tenant_id, seen.message.id or 0, version=seen.message.version, actor=ACTOR, reason="again"
        )

    @pytest.mark.parametrize("how", ["sweep", "cancel", "claim"])
    async def test_what_waits_for_a_replay_and_is_canceled_stays_uncertain(
        self, harness: StoreHarness, how: str
    ) -> None:
        """Nobody can say that it was not sent, so nothing may say `Canceled`."""
        pump = Pump(harness)
        (message,) = await pump.campaign(1) if how == "sweep" else (await pump.message(),)
        await pump.record(Unknown(reason="lost"), await pump.claim_one())
        (send,) = await harness.store.find_uncertain(accounts=ACCOUNTS, limit=10)
        if how == "claim":
            await cancel(harness, pump)
        settlement = Settlement(id=send.id, bucket=send.bucket, version=send.version, replay=True, reason="x")
        await harness.store.settle_uncertain([settlement], actor="settle")
        if how == "sweep":
            await harness.store.set_gate(harness.tenant_id, message.pk, Gate.CANCELED, actor=ACTOR)
            await sweep(harness, pump)
        elif how == "cancel":
            await cancel(harness, pump)
        assert await pump.claim() == []
        seen = await pump.seen(message.id)
        assert (seen.status, seen.entry.due_at, seen.entry.settle_at) == (OutgoingStatus.UNCERTAIN, None, None)
        assert seen.lines[-1].reason == "canceled, and an earlier call may have arrived"
        await pump.check()

    async def test_a_row_in_flight_that_was_accepted_is_sent_though_it_was_called_off(
        self, harness: StoreHarness
    ) -> None:
        """The provider has it, so the row must say that it was sent."""
        pump = Pump(harness)
        message = await pump.message()
        claimed = await pump.claim_one()
        await cancel(harness, pump)
        assert await pump.record(Accepted(), claimed) == [OutgoingStatus.SENT_TO_PROVIDER]
        await sweep(harness, pump)
        assert await pump.status(message) is OutgoingStatus.SENT_TO_PROVIDER

    async def test_an_uncertain_row_of_a_canceled_job_is_still_settled_by_evidence(self, harness: StoreHarness) -> None:
        """It stays uncertain until then."""
        pump = Pump(harness)
        message = await pump.message()
        claimed = await pump.claim_one()
        await pump.rescue()
        assert await cancel(harness, pump)
        await sweep(harness, pump)
        assert await pump.status(message) is OutgoingStatus.UNCERTAIN
        await pump.record(Accepted(), claimed)
        assert await pump.status(message) is OutgoingStatus.SENT_TO_PROVIDER

    @pytest.mark.parametrize("status", sorted(FINAL))
    async def test_a_row_that_is_final_stays_as_it_is(self, harness: StoreHarness, status: OutgoingStatus) -> None:
        """There is nothing left to cancel, and the answer says so."""
        pump = Pump(harness)
        message = await pump.message()
        (row,) = await harness.rows(harness.tenant_id, OutgoingMessage)
        await _put(harness, row, status)
        assert not await cancel(harness, pump)
        await harness.store.sweep_canceled(limit=10)
        (after,) = await harness.rows(harness.tenant_id, OutgoingMessage)
        assert (after.status, after.id) == (status, message.id)

    async def test_a_second_cancel_finds_nothing_left(self, harness: StoreHarness) -> None:
        """Also for rows in flight, for a job that does not exist and for another tenant's job."""
        pump = Pump(harness)
        await pump.message()
        await pump.claim_one()
        await pump.message(1, to=2)
        job = await pump.job(1)
        theirs = f"{harness.tenant_id}-2"
        assert not await harness.store.cancel_job(theirs, job.guid, actor=ACTOR)
        assert [await cancel(harness, pump), await cancel(harness, pump)] == [True, False]
        assert not await harness.store.cancel_job(harness.tenant_id, guid(99), actor=ACTOR)

    async def test_a_cancel_is_its_own_jobs_alone(self, harness: StoreHarness) -> None:
        """Other jobs to the same person go on."""
        pump = Pump(harness)
        await pump.message(1, to=1)
        other = await pump.message(2, to=1)
        await cancel(harness, pump, 1)
        assert [one.id for one in await pump.claim()] == [other.id]
        await sweep(harness, pump)

    @pytest.mark.parametrize("claimed", [False, True], ids=["ready", "processing"])
    async def test_a_pending_job_is_canceled_in_every_stage_and_its_worker_moves_nothing(
        self, harness: StoreHarness, claimed: bool
    ) -> None:
        """F-11: it stays canceled, whatever result its worker brings later."""
        scheduler_id = await make_pending(harness)
        claims = await claim(harness) if claimed else []
        assert await harness.store.cancel_job(harness.tenant_id, notification_job(1).guid, actor=ACTOR)
        row = await row_of(harness, scheduler_id)
        assert (row.status, row.due_at, row.lease_until) == (NotificationStatus.CANCELED, None, None)
        assert row.version > 1
        assert await harness.store.finish_stage([finished(one, NotificationStatus.DONE) for one in claims]) == set()
        assert await claim(harness) == []
        assert not await harness.store.cancel_job(harness.tenant_id, notification_job(1).guid, actor=ACTOR)
        assert await row_of(harness, scheduler_id) == row

    @pytest.mark.parametrize("status", [NotificationStatus.DONE, NotificationStatus.SKIPPED])
    async def test_a_finished_job_without_rows_has_nothing_to_cancel(
        self, harness: StoreHarness, status: NotificationStatus
    ) -> None:
        """Its scheduler row stays as it is."""
        scheduler_id = await make_pending(harness)
        (claimed,) = await claim(harness)
        await harness.store.finish_stage([finished(claimed, status)])
        before = await row_of(harness, scheduler_id)
        assert not await harness.store.cancel_job(harness.tenant_id, notification_job(1).guid, actor=ACTOR)
        assert await row_of(harness, scheduler_id) == before

    async def test_no_row_is_made_after_the_cancel_of_a_job_that_is_being_generated(
        self, harness: StoreHarness
    ) -> None:
        """The rows made before it are canceled, and its generator is told that it was superseded."""
        pump = Pump(harness)
        scheduler_id = await make_pending(harness)
        (one,) = await claim(harness)
        await harness.store.finish_stage([finished(one, NotificationStatus.READY)])
        (one,) = await claim(harness, Stage.GENERATE)
        hold = (scheduler_id, one.scheduler.version)
        items = [outgoing_item(one.job, await pump.address(n), hold=hold) for n in (1, 2)]
        (made,) = await harness.store.ensure_outgoing_messages(harness.tenant_id, items[:1])
        assert await harness.store.cancel_job(harness.tenant_id, one.job.guid, actor=ACTOR)
        answers = await harness.store.ensure_outgoing_messages(harness.tenant_id, items)
        assert [answer.outcome for answer in answers] == [Outcome.FOUND, Outcome.SUPERSEDED]
        assert await pump.claim() == []
        await sweep(harness, pump)
        assert await pump.status(made.record) is OutgoingStatus.CANCELED
        assert [row.status for row in await harness.rows(harness.tenant_id, NotificationScheduler)] == [
            NotificationStatus.CANCELED
        ]

    async def test_claims_and_a_cancel_at_once_come_one_after_the_other(self, harness: StoreHarness) -> None:
        """Whatever the race gave, no claim begins after the cancel."""
        pump = Pump(harness)
        job = await pump.job(1)
        for to in range(1, 11):
            await pump.message(1, to=to)
        (head,) = await pump.heads()
        quota = FlowQuota(flow_id=head.flow_id, quota=2, account=ACCOUNT)
        claims = [
            harness.store.claim_outgoing([quota], token=guid(n, "cancel-token"), lease=timedelta(60), actor="w")
            for n in range(3)
        ]
        await asyncio.gather(*claims, harness.store.cancel_job(harness.tenant_id, job.guid, actor=ACTOR))
        assert await pump.take([quota]) == []
        await sweep(harness, pump)
        rows = await harness.rows(harness.tenant_id, OutgoingMessage)
        assert {row.status for row in rows} <= {OutgoingStatus.SENDING, OutgoingStatus.CANCELED}


async def _put(harness: StoreHarness, row: OutgoingMessage, status: OutgoingStatus) -> None:
    """Put a row into a final state by the way around the store."""
    moved = {name: getattr(row, name) for name in row.__struct_fields__} | {"status": status, "version": 2}
    await harness.overwrite(harness.tenant_id, OutgoingMessage(**moved))
