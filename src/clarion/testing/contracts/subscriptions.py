"""Report subscriptions: changed with an entry in the audit log, and claimed until their next run is planned."""

import asyncio
from datetime import timedelta
from typing import Final

import msgspec
import pytest

from clarion.domain.automation import AutomationScheduler, AutomationStatus
from clarion.domain.ensured import Outcome
from clarion.domain.identity import Channel
from clarion.domain.report import ReportSubscription
from clarion.domain.report_choice import PARAMETER_CHARS_MAX, SUBSCRIPTION_BYTES_MAX
from clarion.domain.report_run import manual_row
from clarion.errors import Conflict, InvalidInput
from clarion.ports.reporting import DeliveryCount
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.contracts.pump import LEASE, Pump, near
from clarion.testing.contracts.told_contents import make_told, send
from clarion.testing.factories import SOURCE_AT, guid, notification_job, report_subscription, user_message

LATER: Final = timedelta(hours=6)


class SubscriptionContract:
    """What administrators say of reports."""

    async def put_report(self, harness: StoreHarness, n: int = 1, **fields: object) -> bool:
        """Store a subscription."""
        return await harness.store.put_subscription(harness.tenant_id, report_subscription(n, **fields), actor="sam")

    async def test_a_subscription_is_read_as_it_was_written(self, harness: StoreHarness) -> None:
        """With who wrote it and when; what is so already writes nothing, and another tenant has none."""
        assert await self.put_report(harness)
        assert not await self.put_report(harness)
        record = await harness.store.find_subscription(harness.tenant_id, report_subscription().guid)
        assert record is not None
        assert (record.subscription, record.version, record.changed_by) == (report_subscription(), 1, "sam")
        assert near(record.changed_at, await harness.now())
        assert await self.put_report(harness, active=False)
        changed = await harness.store.find_subscription(harness.tenant_id, report_subscription().guid)
        assert changed is not None
        assert (changed.version, changed.subscription.active) == (2, False)
        assert await harness.store.find_subscription(f"{harness.tenant_id}-2", report_subscription().guid) is None

    async def test_of_two_changes_of_one_version_of_a_subscription_one_is_refused(self, harness: StoreHarness) -> None:
        """The other stands whole; what is so already is no change, whatever was expected."""
        await self.put_report(harness)
        changes = [report_subscription(1, name="Every week"), report_subscription(1, active=False)]

        async def change(to: ReportSubscription) -> bool:
            return await harness.store.put_subscription(harness.tenant_id, to, actor="kim", expected=1)

        answers = await asyncio.gather(*map(change, changes), return_exceptions=True)
        (won,) = [to for to, answer in zip(changes, answers, strict=True) if answer is True]
        assert [type(answer) for answer in answers if answer is not True] == [Conflict]
        found = await harness.store.find_subscription(harness.tenant_id, won.guid)
        assert found is not None
        assert (found.subscription, found.version) == (won, 2)
        assert await change(won) is False
        with pytest.raises(Conflict):
            await change(report_subscription(2))
        assert len(await harness.store.list_audit(harness.tenant_id)) == 2

    async def test_subscriptions_are_listed_page_by_page(self, harness: StoreHarness) -> None:
        """By guid, each once."""
        for n in (3, 1, 2):
            await self.put_report(harness, n)
        first = await harness.store.list_subscriptions(harness.tenant_id, limit=2)
        rest = await harness.store.list_subscriptions(harness.tenant_id, after=first[-1].subscription.guid, limit=2)
        found = [one.subscription.guid for one in (*first, *rest)]
        assert found == sorted(report_subscription(n).guid for n in (1, 2, 3))

    async def test_a_changed_subscription_is_claimed_until_it_is_planned(self, harness: StoreHarness) -> None:
        """By one worker; a lost one's claim ends with its lease, and a planned one is looked after again later."""
        await self.put_report(harness)
        (claimed,) = await harness.store.claim_subscriptions(limit=10, lease=LEASE)
        assert (claimed.tenant_id, claimed.record.subscription) == (harness.tenant_id, report_subscription())
        assert await harness.store.claim_subscriptions(limit=10, lease=LEASE) == []
        await harness.elapse(LEASE + timedelta(seconds=1))
        (again,) = await harness.store.claim_subscriptions(limit=10, lease=LEASE)
        assert not await harness.store.finish_subscription(claimed, look_again=LATER)
        assert await harness.store.finish_subscription(again, look_again=LATER)
        assert await harness.store.claim_subscriptions(limit=10, lease=LEASE) == []
        await harness.elapse(LATER)
        (later,) = await harness.store.claim_subscriptions(limit=10, lease=LEASE)
        assert await harness.store.finish_subscription(later, look_again=None)
        await harness.elapse(LATER * 100)
        assert await harness.store.claim_subscriptions(limit=10, lease=LEASE) == []

    async def test_a_change_during_the_planning_is_planned_as_well(self, harness: StoreHarness) -> None:
        """Whoever planned what was before cannot say that it is done."""
        await self.put_report(harness)
        (claimed,) = await harness.store.claim_subscriptions(limit=10, lease=LEASE)
        await self.put_report(harness, rule="0 7 * * *")
        assert not await harness.store.finish_subscription(claimed, look_again=LATER)
        (again,) = await harness.store.claim_subscriptions(limit=10, lease=LEASE)
        assert again.record.subscription.rule == "0 7 * * *"

    async def test_one_that_cannot_be_read_keeps_no_other_waiting(self, harness: StoreHarness) -> None:
        """Such as one that a newer program wrote, with a longer parameter than this one knows: it alone stays."""
        await self.put_report(harness, 1, parameters={"type": "x" * (PARAMETER_CHARS_MAX + 1)})
        await self.put_report(harness, 2)
        (claimed,) = await harness.store.claim_subscriptions(limit=10, lease=LEASE)
        assert claimed.record.subscription == report_subscription(2)
        assert await harness.store.claim_subscriptions(limit=10, lease=LEASE) == []

    async def test_one_that_is_too_long_is_refused(self, harness: StoreHarness) -> None:
        """Before anything is written: JSON writes some characters as six."""
        parameters = {f"{n:020}": "\x01" * PARAMETER_CHARS_MAX for n in range(28)}
        with pytest.raises(InvalidInput, match=f"{SUBSCRIPTION_BYTES_MAX} bytes is the most"):
            await self.put_report(harness, parameters=parameters)

    async def test_a_run_by_hand_waits_once_for_its_guid(self, harness: StoreHarness) -> None:
        """Asked for again it is found, and whoever asked first stands in the audit log."""
        row = manual_row(report_subscription(), guid(7, "run"), now=await harness.now(), correlation_id="request-7")
        for expected in (Outcome.CREATED, Outcome.FOUND):
            answer = await harness.store.run_subscription(harness.tenant_id, row, actor="sam")
            assert answer.outcome is expected
        (stored,) = await harness.rows(harness.tenant_id, AutomationScheduler)
        assert (stored.scheduler_key, stored.status) == (row.scheduler_key, AutomationStatus.PENDING)
        entries = await harness.store.list_audit(harness.tenant_id, limit=10)
        assert [(one.act, one.actor) for one in entries] == [("run", "sam")]


class DeliveryCountContract:
    """What reports count."""

    async def test_messages_of_a_time_are_counted_by_type_and_channel(self, harness: StoreHarness) -> None:
        """Those of contents and the lines of inboxes with them; the end of the time is not part of it."""
        pump = Pump(harness)
        await pump.message(1)
        await pump.message(2)
        claimed = await pump.claim()
        await harness.store.ensure_user_messages(harness.tenant_id, [user_message(1)])
        _, content = await make_told(harness, 3)
        await send(harness, content, to=3)
        job = notification_job(1)
        of_mail = DeliveryCount(
            notification_type=job.event_type,
            channel=Channel.EMAIL,
            sent=0,
            delivered=0,
            failed=0,
            uncertain=0,
            waiting=3,
            not_sent=0,
        )
        of_inbox = msgspec.structs.replace(of_mail, channel=Channel.INBOX, delivered=1, waiting=0)
        start, end = SOURCE_AT, SOURCE_AT + timedelta(microseconds=1)
        assert len(claimed) == 2
        counted = await harness.store.count_deliveries(harness.tenant_id, start_at=start, end_at=end)
        assert counted == [of_mail, of_inbox]
        place = (of_mail.notification_type, of_mail.channel)
        paged = [
            *await harness.store.count_deliveries(harness.tenant_id, start_at=start, end_at=end, limit=1),
            *await harness.store.count_deliveries(harness.tenant_id, start_at=start, end_at=end, after=place, limit=1),
        ]
        assert paged == counted
        for tenant_id, start_at, end_at in (
            (harness.tenant_id, end, end + LATER),
            (harness.tenant_id, start - LATER, start),
            (f"{harness.tenant_id}-2", start, end),
        ):
            assert await harness.store.count_deliveries(tenant_id, start_at=start_at, end_at=end_at) == []
