"""What people ask: a job's timeline, an entity's history, uncertain sends, cases, and tenants."""

from datetime import timedelta
from typing import Final

import pytest

from clarion.domain.attempt import AttemptStatus
from clarion.domain.call import Accepted, Deferred
from clarion.domain.guard import JobEntry
from clarion.domain.identity import Channel
from clarion.domain.inbox import UserMessage
from clarion.domain.notification import NotificationJob, NotificationScheduler, NotificationStatus, Stage
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.seal import Purpose
from clarion.domain.support import SupportStatus
from clarion.domain.timeline import TransitionLine, timeline_lines
from clarion.ports.insights import PAGE_MAX, JobLine
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.contracts.pump import ACCOUNTS, Pump, near
from clarion.testing.contracts.receipts import event, track
from clarion.testing.contracts.stages import claim, finished, make_pending
from clarion.testing.contracts.support_cases import support_case
from clarion.testing.contracts.uncertain import make_uncertain, settlement
from clarion.testing.factories import (
    guarded_entry,
    guid,
    messaging_job,
    notification_job,
    user_message,
)

MINUTE: Final = timedelta(minutes=1)


class TimelineContract:
    """Everything about one job."""

    async def test_a_timeline_holds_the_job_its_scheduler_row_and_its_inbox_rows(self, harness: StoreHarness) -> None:
        """As they are stored, each with the time of its making by the store's clock."""
        await make_pending(harness)
        (claimed,) = await claim(harness)
        await harness.store.finish_stage([finished(claimed, NotificationStatus.DONE, reason="2 recipients")])
        lines = [user_message(n) for n in (1, 2)]
        await harness.store.ensure_user_messages(harness.tenant_id, lines)
        await harness.store.ensure_user_messages(harness.tenant_id, [user_message(3, job_row_key="another")])
        (job,) = await harness.rows(harness.tenant_id, NotificationJob)
        timeline = await harness.store.find_job_timeline(harness.tenant_id, job.guid)
        assert timeline is not None
        assert (timeline.job, timeline.outgoing) == (job, ())
        assert [timeline.scheduler] == await harness.rows(harness.tenant_id, NotificationScheduler)
        inbox = [row for row in await harness.rows(harness.tenant_id, UserMessage) if row.job_row_key == job.row_key]
        assert sorted((row for _, row in timeline.inbox), key=lambda row: row.id or 0) == inbox
        now = await harness.now()
        made = (timeline.created_at, timeline.scheduler_at, *(at for at, _ in timeline.inbox))
        assert all(near(at, now) for at in (*made, timeline.scheduled_at, timeline.moved_at))

    async def test_a_timeline_tells_when_its_stages_ended(self, harness: StoreHarness) -> None:
        """When the first passed the job on, and when its pending row last moved: by a claim, its end, a rescue."""
        await make_pending(harness)
        (job,) = await harness.rows(harness.tenant_id, NotificationJob)

        async def ages() -> list[int | None]:
            """Tell for how many minutes the row has been scheduled, and where it is."""
            timeline = await harness.store.find_job_timeline(harness.tenant_id, job.guid)
            assert timeline is not None
            now = await harness.now()
            return [None if at is None else (now - at) // MINUTE for at in (timeline.scheduled_at, timeline.moved_at)]

        assert await ages() == [None, None]
        (claimed,) = await claim(harness)
        await harness.elapse(MINUTE * 2)
        assert await ages() == [None, 2]
        await harness.store.rescue_stages(limit=10, rescues_max=3)
        assert await ages() == [None, 0]
        (claimed,) = await claim(harness)
        await harness.store.finish_stage([finished(claimed, NotificationStatus.READY, Stage.GENERATE)])
        await harness.elapse(MINUTE * 3)
        assert await ages() == [3, 3]
        (claimed,) = await claim(harness, Stage.GENERATE)
        await harness.elapse(MINUTE / 2)
        assert await ages() == [3, 0]
        await harness.store.finish_stage([finished(claimed, NotificationStatus.READY, Stage.GENERATE)])
        await harness.elapse(MINUTE * 4)
        assert await harness.store.cancel_job(harness.tenant_id, job.guid, actor="sam")
        assert await ages() == [7, 0]

    async def test_a_timeline_tells_who_called_a_row_off_that_was_on_its_way(self, harness: StoreHarness) -> None:
        """It may be sent all the same, and then nothing else would tell of the cancel."""
        pump = Pump(harness)
        await pump.message()
        claimed = await pump.claim_one()
        job = await pump.job()
        assert await harness.store.cancel_job(harness.tenant_id, job.guid, actor="sam")
        await pump.record(Accepted(), claimed)
        timeline = await harness.store.find_job_timeline(harness.tenant_id, job.guid)
        assert timeline is not None
        (row,) = timeline.outgoing
        assert (row.status, row.cancel_actor) == (OutgoingStatus.SENT_TO_PROVIDER, "sam")
        assert near(row.cancel_at, await harness.now())
        assert [line.what for line in timeline_lines(timeline)][-3:] == ["called off", "called", "sent"]

    async def test_a_timeline_tells_all_that_happened_to_each_row(self, harness: StoreHarness) -> None:
        """Moves, calls and receipts, in their order; the row as it stands."""
        pump = Pump(harness)
        message = await pump.message()
        await pump.record(Deferred(reason="busy"), await pump.claim_one(account="mail-1"))
        sent = await pump.claim_one(account="mail-2")
        await pump.record(Accepted(provider_message_id="p-1"), sent, latency_ms=70)
        await track(harness, pump, event(message, OutgoingStatus.DELIVERED, event_id="first"))
        await harness.elapse(timedelta(seconds=1))
        waiting = event(None, OutgoingStatus.OPENED, event_id="second", provider_message_id="p-1", account="mail-2")
        await harness.store.keep_events(harness.tenant_id, [waiting])
        timeline = await harness.store.find_job_timeline(harness.tenant_id, (await pump.job()).guid)
        assert timeline is not None
        assert timeline.scheduler is None
        assert timeline.scheduler_at is None
        (row,) = timeline.outgoing
        seen = await pump.seen(message.id)
        assert (row.id, row.bucket, row.pk, row.rk, row.message_id, row.channel) == (
            message.id,
            message.bucket,
            message.pk,
            message.rk,
            message.message_id,
            Channel.EMAIL,
        )
        assert (row.status, row.version, row.attempts, row.account, row.provider_message_id, row.due_at) == (
            OutgoingStatus.DELIVERED,
            seen.message.version,
            2,
            "mail-2",
            "p-1",
            None,
        )
        assert row.reason == seen.entry.reason
        assert row.transitions == tuple(
            TransitionLine(
                version=line.version,
                from_status=line.from_status,
                to_status=line.to_status,
                at=line.at,
                actor=line.actor,
                reason=line.reason,
            )
            for line in seen.lines
        )
        assert [(one.attempt, one.account, one.status, one.reason, one.latency_ms) for one in row.tries] == [
            (1, "mail-1", AttemptStatus.DEFERRED, "busy", None),
            (2, "mail-2", AttemptStatus.ACCEPTED, None, 70),
        ]
        assert [(one.event_id, one.status, one.applied_at is None) for one in row.events] == [
            ("first", OutgoingStatus.DELIVERED, False),
            ("second", OutgoingStatus.OPENED, True),
        ]
        assert near(row.created_at, await harness.now())
        assert len(timeline_lines(timeline)) == 2 + 1 + 5 + 2 + 2

    async def test_a_timeline_holds_the_rows_of_its_own_job_in_the_order_of_their_making(
        self, harness: StoreHarness
    ) -> None:
        """Rows of other jobs are not in it."""
        pump = Pump(harness)
        messages = [await pump.message(1, to=to) for to in (3, 1, 2)]
        await pump.message(2, to=1)
        timeline = await harness.store.find_job_timeline(harness.tenant_id, (await pump.job(1)).guid)
        assert timeline is not None
        assert [row.id for row in timeline.outgoing] == [message.id for message in messages]
        assert not any(row.transitions or row.tries or row.events for row in timeline.outgoing)

    async def test_a_job_that_does_not_exist_or_is_another_tenants_has_no_timeline(self, harness: StoreHarness) -> None:
        """X-01: the two cannot be told apart."""
        job = await Pump(harness).job()
        assert await harness.store.find_job_timeline(harness.tenant_id, guid(99)) is None
        assert await harness.store.find_job_timeline(f"{harness.tenant_id}-2", job.guid) is None

    async def test_a_message_leads_to_its_job(self, harness: StoreHarness) -> None:
        """By an outgoing row or by an inbox row."""
        pump = Pump(harness)
        job = await pump.job(1)
        inbox = user_message(5)
        await harness.store.ensure_user_messages(harness.tenant_id, [inbox])
        sent = await pump.message(2)
        find = harness.store.find_job_of_message
        assert await find(harness.tenant_id, inbox.message_id) == job.guid
        assert await find(harness.tenant_id, sent.message_id) == (await pump.job(2)).guid
        assert await find(harness.tenant_id, guid(99)) is None
        assert await find(f"{harness.tenant_id}-2", sent.message_id) is None

    async def test_a_message_leads_to_its_job_before_it_has_any_row(self, harness: StoreHarness) -> None:
        """By the message id in the answer to the send; only its own tenant finds it."""
        entry = guarded_entry(message_id=guid(1, "message"))
        await harness.store.ensure_notification_jobs(harness.tenant_id, [entry, guarded_entry("another")])
        find = harness.store.find_job_of_message
        assert await find(harness.tenant_id, guid(1, "message")) == entry.job.guid
        assert await find(f"{harness.tenant_id}-2", guid(1, "message")) is None

    async def test_a_campaigns_message_leads_to_its_anchor_in_the_history(self, harness: StoreHarness) -> None:
        """The anchor has the campaign's guid as its row key; a campaign without one leads nowhere."""
        pump = Pump(harness)
        (sent,) = await pump.campaign(1, n=1)
        (lost,) = await pump.campaign(1, n=2)
        anchor = notification_job(7, row_key=str(messaging_job(1).guid))
        await harness.store.ensure_notification_jobs(harness.tenant_id, [JobEntry(job=anchor)])
        assert await harness.store.find_job_of_message(harness.tenant_id, sent.message_id) == anchor.guid
        assert await harness.store.find_job_of_message(harness.tenant_id, lost.message_id) is None

    async def test_a_timeline_has_only_the_messages_that_are_named(self, harness: StoreHarness) -> None:
        """Of a set that is too large for one answer; what is another job's is not there, whoever names it."""
        pump, find = Pump(harness), harness.store.find_job_timeline
        _, _, third = [await pump.message(1, to=to) for to in (1, 2, 3)]
        other, job = await pump.message(2, to=1), await pump.job(1)
        lines = [user_message(n) for n in (7, 8)]
        await harness.store.ensure_user_messages(harness.tenant_id, lines)
        for named, outgoing, inbox in (
            ([third.message_id, other.message_id], [third.message_id], []),
            ([third.message_id, lines[1].message_id], [third.message_id], [lines[1].message_id]),
            ([], [], []),
        ):
            found = await find(harness.tenant_id, job.guid, messages=named)
            assert found is not None
            assert [row.message_id for row in found.outgoing] == outgoing
            assert [row.message_id for _, row in found.inbox] == inbox
            assert found.job == job

    async def test_a_job_is_found_by_its_guid_in_its_own_tenant(self, harness: StoreHarness) -> None:
        """X-01: another tenant finds nothing."""
        job = await Pump(harness).job(1)
        assert await harness.store.find_job(harness.tenant_id, job.guid) == job
        assert await harness.store.find_job(harness.tenant_id, guid(99)) is None
        assert await harness.store.find_job(f"{harness.tenant_id}-2", job.guid) is None


class HistoryContract:
    """Lists, page by page."""

    async def test_an_entitys_history_lists_its_jobs_newest_first(self, harness: StoreHarness) -> None:
        """By row key, which begins with the reversed time of a direct job."""
        first = guarded_entry("key-0").job
        entries = [
            guarded_entry(f"key-{n}", created_at=first.source_at + timedelta(seconds=n), partition_key="entity")
            for n in range(4)
        ]
        await harness.store.ensure_notification_jobs(harness.tenant_id, entries)
        await harness.store.ensure_notification_jobs(harness.tenant_id, [guarded_entry("other", partition_key="else")])
        lines = await harness.store.list_jobs(harness.tenant_id, "entity")
        assert [line.guid for line in lines] == [entry.job.guid for entry in entries[::-1]]
        assert lines[0] == JobLine(
            guid=entries[3].job.guid,
            row_key=entries[3].job.row_key,
            event_type=entries[3].job.event_type,
            source_at=entries[3].job.source_at,
            created_at=lines[0].created_at,
        )
        assert near(lines[0].created_at, await harness.now())
        assert await harness.store.list_jobs(f"{harness.tenant_id}-2", "entity") == []

    @pytest.mark.parametrize("limit", [1, 2, 3, 5])
    async def test_pages_of_a_history_make_the_whole(self, harness: StoreHarness, limit: int) -> None:
        """None twice, none left out, whatever letters the keys are made of."""
        keys = ["a", "A", "_", "~", "0", "ä", "b:c"]
        jobs = [
            notification_job(n, row_key=row_key, guid=guid(n, "job"), partition_key="entity")
            for n, row_key in enumerate(keys)
        ]
        await harness.store.ensure_notification_jobs(harness.tenant_id, [JobEntry(job=job) for job in jobs])
        listed: list[str] = []
        for _ in range(len(keys) + 1):
            after = listed[-1] if listed else ""
            page = await harness.store.list_jobs(harness.tenant_id, "entity", after=after, limit=limit)
            assert len(page) <= limit
            listed += [line.row_key for line in page]
        assert listed == sorted(keys, key=str.encode)

    async def test_uncertain_sends_are_listed_with_their_reason_and_since_when(self, harness: StoreHarness) -> None:
        """A tenant's own, by id; those at rest too, for a person may still decide otherwise."""
        pump = Pump(harness)
        messages = [await make_uncertain(pump, "mail-1", job=n) for n in (1, 2, 3)]
        send = next(
            send
            for send in await harness.store.find_uncertain(accounts=ACCOUNTS, limit=10)
            if send.id == messages[0].id
        )
        await harness.elapse(MINUTE)
        await harness.store.settle_uncertain([settlement(send, replay=False, reason="at rest")], actor="settle")
        listed = await harness.store.list_uncertain(harness.tenant_id)
        assert [(one.id, one.message_id, one.channel, one.account, one.reason) for one in listed] == [
            (message.id, message.message_id, Channel.EMAIL, "mail-1", reason)
            for message, reason in zip(messages, ("at rest", "lost", "lost"), strict=True)
        ]
        for message, line in zip(messages, listed, strict=True):
            seen = await pump.seen(message.id)
            since = [one.at for one in seen.lines if one.from_status is OutgoingStatus.SENDING]
            assert (line.version, [line.since_at]) == (seen.message.version, since)
        page = await harness.store.list_uncertain(harness.tenant_id, after=messages[0].id or 0, limit=1)
        assert [one.id for one in page] == [messages[1].id]
        assert await harness.store.list_uncertain(f"{harness.tenant_id}-2") == []

    async def test_one_case_is_found_by_its_id(self, harness: StoreHarness) -> None:
        """For its own tenant."""
        await harness.store.open_support_cases(harness.tenant_id, [support_case(1), support_case(2)])
        listed = await harness.store.list_support_cases(harness.tenant_id, status=SupportStatus.OPEN)
        for case in listed:
            assert await harness.store.find_support_case(harness.tenant_id, case.case_id) == case
            assert await harness.store.find_support_case(f"{harness.tenant_id}-2", case.case_id) is None
        assert len(listed) == 2

    async def test_no_page_is_longer_than_a_person_reads(self, harness: StoreHarness) -> None:
        """However much is asked for."""
        cases = [support_case(n) for n in range(PAGE_MAX + 1)]
        jobs = [notification_job(n, partition_key="entity") for n in range(PAGE_MAX + 1)]
        await harness.store.open_support_cases(harness.tenant_id, cases)
        await harness.store.ensure_notification_jobs(harness.tenant_id, [JobEntry(job=job) for job in jobs])
        assert len(await harness.store.list_support_cases(harness.tenant_id, limit=10**6)) == PAGE_MAX
        assert len(await harness.store.list_jobs(harness.tenant_id, "entity", limit=10**6)) == PAGE_MAX
        assert len(await harness.store.list_jobs(harness.tenant_id, "entity")) == 50

    async def test_tenants_are_listed_in_the_order_of_their_ids(self, harness: StoreHarness) -> None:
        """Page by page; a tenant that was never made is not listed."""
        names = sorted(f"{harness.tenant_id}-{n}" for n in range(3))
        for name in names[::-1]:
            await harness.store.ensure_tenant(name, {(Purpose.DATA, 1): b"wrapped"})
        after = f"{harness.tenant_id}-"
        assert list(await harness.store.list_tenants(after=after, limit=3)) == names
        assert list(await harness.store.list_tenants(after=names[0], limit=1)) == names[1:2]
        assert f"{harness.tenant_id}-9" not in await harness.store.list_tenants(after=after, limit=10**6)
