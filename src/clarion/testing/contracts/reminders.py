"""What events lead to, reminder settings and the planning that they ask for, and the rounds of reconciliation."""

import asyncio
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec
import pytest

from clarion.domain.entity_event import EventMapping
from clarion.domain.key import FiringPolicy
from clarion.domain.local_time import TZDATA_VERSION
from clarion.domain.person import BusinessUnit, LocalForm
from clarion.domain.reminder import (
    SETTING_BYTES_MAX,
    Condition,
    ReminderSetting,
    SettingRecord,
    ThresholdRule,
)
from clarion.errors import Conflict, InvalidInput
from clarion.ports.source import RepairClaim, SettingClaim, SourceScan
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.contracts.pump import near
from clarion.testing.factories import guid, reminder_setting, source_record

LEASE: Final = timedelta(minutes=1)
EVERY: Final = timedelta(hours=6)


class MappingContract:
    """The table of what event types lead to."""

    async def test_a_mapping_says_what_an_event_type_leads_to_or_that_it_is_nothing(
        self, harness: StoreHarness
    ) -> None:
        """Until it is changed or taken away; each time audited, and what is so already is no change."""
        store, tenant_id = harness.store, harness.tenant_id
        shipped = EventMapping(event_type="order.shipped", notification_type="order-shipped")
        none = EventMapping(event_type="order.paid", notification_type=None)
        assert await store.put_mapping(tenant_id, shipped, actor="sam")
        assert await store.put_mapping(tenant_id, none, actor="sam")
        assert not await store.put_mapping(tenant_id, none, actor="kim")
        found = await store.find_mappings(tenant_id, ["order.paid", "order.shipped", "order.lost"])
        assert {name: one.notification_type for name, one in found.items()} == {
            "order.paid": None,
            "order.shipped": "order-shipped",
        }
        assert found["order.paid"].changed_by == "sam"
        assert found["order.paid"].changed_at is not None
        assert near(found["order.paid"].changed_at, await harness.now())
        assert await store.put_mapping(
            tenant_id, msgspec.structs.replace(none, notification_type="thanks"), actor="kim"
        )
        first = await store.list_mappings(tenant_id, limit=1)
        rest = await store.list_mappings(tenant_id, after=first[0].event_type, limit=9)
        assert [(one.event_type, one.notification_type) for one in (*first, *rest)] == [
            ("order.paid", "thanks"),
            ("order.shipped", "order-shipped"),
        ]
        assert await store.remove_mapping(tenant_id, "order.paid", actor="sam")
        assert not await store.remove_mapping(tenant_id, "order.paid", actor="sam")
        assert await store.find_mappings(tenant_id, ["order.paid"]) == {}
        assert [one.act for one in await store.list_audit(tenant_id)] == ["map", "map", "map", "unmap"]


async def put(harness: StoreHarness, setting: ReminderSetting) -> bool:
    """Put a setting as an administrator does."""
    return await harness.store.put_reminder(harness.tenant_id, setting, actor="sam")


async def stored(harness: StoreHarness, setting: UUID) -> SettingRecord:
    """Find a setting that is there."""
    found = await harness.store.find_reminder(harness.tenant_id, setting)
    assert found is not None
    return found


async def claim(harness: StoreHarness, *, limit: int = 10) -> list[SettingClaim]:
    """Claim settings to be planned."""
    return await harness.store.claim_settings(limit=limit, lease=LEASE)


class ReminderContract:
    """Reminder settings, and what is to be planned because of them."""

    async def test_a_reminder_setting_is_found_as_it_was_put(self, harness: StoreHarness) -> None:
        """Whatever it says; put again as it is, it is no change, and two who put it at once make one."""
        threshold = ThresholdRule(metric="seats", value=0.9, scope="north", policy=FiringPolicy.FALSE_TO_TRUE)
        full = reminder_setting(
            2, rule=threshold, business_unit=guid(1, "unit"), inbox_only=True, long_runner=True, recipients=None
        )
        for setting in (reminder_setting(1), full):
            assert sorted(await asyncio.gather(put(harness, setting), put(harness, setting))) == [False, True]
            found = await stored(harness, setting.guid)
            assert near(found.changed_at, await harness.now())
            assert found == SettingRecord(setting=setting, changed_by="sam", changed_at=found.changed_at)
        (entry, _) = await harness.store.list_audit(harness.tenant_id)
        assert (entry.actor, entry.act, entry.subject) == ("sam", "put", f"reminder {guid(1, 'setting')}")
        assert await harness.store.find_reminder(harness.tenant_id, guid(3, "setting")) is None

    async def test_of_two_changes_made_of_one_version_at_once_one_is_refused(self, harness: StoreHarness) -> None:
        """The other stands whole; what is so already is no change, whatever was expected."""
        setting = reminder_setting(1)
        await put(harness, setting)
        changes = [msgspec.structs.replace(setting, name="Ends soon"), msgspec.structs.replace(setting, active=False)]

        async def change(to: ReminderSetting) -> bool:
            return await harness.store.put_reminder(harness.tenant_id, to, actor="kim", expected=1)

        answers = await asyncio.gather(*map(change, changes), return_exceptions=True)
        (won,) = [to for to, answer in zip(changes, answers, strict=True) if answer is True]
        assert [type(answer) for answer in answers if answer is not True] == [Conflict]
        found = await stored(harness, setting.guid)
        assert (found.setting, found.version) == (won, 2)
        assert await change(won) is False
        missing = harness.store.put_reminder(harness.tenant_id, reminder_setting(2), actor="kim", expected=1)
        with pytest.raises(Conflict):
            await missing
        assert len(await harness.store.list_audit(harness.tenant_id)) == 2

    async def test_settings_are_listed_and_found_by_the_type_of_source(self, harness: StoreHarness) -> None:
        """The inactive too."""
        settings = [reminder_setting(1), reminder_setting(2, active=False), reminder_setting(3, source_type="contract")]
        for setting in settings:
            await put(harness, setting)
        guids = sorted(one.guid for one in settings)
        first = await harness.store.list_reminders(harness.tenant_id, limit=2)
        rest = await harness.store.list_reminders(harness.tenant_id, after=first[-1].setting.guid, limit=2)
        assert [one.setting.guid for one in (*first, *rest)] == guids
        found = await harness.store.find_reminders(harness.tenant_id, "invoice")
        assert [one.setting.guid for one in found] == sorted(one.guid for one in settings[:2])

    async def test_what_no_setting_can_be_is_refused(self, harness: StoreHarness) -> None:
        """One that is too long, and another type of source, whose occurrences nobody would take back."""
        long = Condition(field="state", values=("x" * SETTING_BYTES_MAX,))
        with pytest.raises(InvalidInput, match="bytes long"):
            await put(harness, reminder_setting(conditions=(long,)))
        await put(harness, reminder_setting())
        with pytest.raises(InvalidInput, match="about sources of type 'invoice'"):
            await put(harness, reminder_setting(source_type="contract"))
        assert len(await harness.store.list_audit(harness.tenant_id)) == 1

    async def test_a_setting_is_planned_page_by_page_until_its_end(self, harness: StoreHarness) -> None:
        """One claim at a time; each goes on where the one before came to, and after the last it is planned."""
        await put(harness, reminder_setting())
        (first,) = await claim(harness)
        assert first.record == await stored(harness, guid(1, "setting"))
        assert (first.tenant_id, first.cursor) == (harness.tenant_id, "")
        assert await claim(harness) == []
        assert await harness.store.finish_setting(first, cursor="page 2")
        assert not await harness.store.finish_setting(first, cursor=None)
        (second,) = await claim(harness)
        assert (second.cursor, second.record.planned_version) == ("page 2", 0)
        assert await harness.store.finish_setting(second, cursor=None)
        record = await stored(harness, guid(1, "setting"))
        assert (record.version, record.planned_version) == (1, 1)
        assert await claim(harness) == []

    async def test_a_setting_that_changes_while_it_is_planned_begins_anew(self, harness: StoreHarness) -> None:
        """The claim of before ends nothing, though its page may have been the last."""
        await put(harness, reminder_setting())
        (old,) = await claim(harness)
        assert await put(harness, reminder_setting(send_time="10:00"))
        assert not await harness.store.finish_setting(old, cursor=None)
        (new,) = await claim(harness)
        assert (new.record.version, new.record.setting.send_time, new.cursor) == (2, "10:00", "")
        assert not await harness.store.finish_setting(old, cursor="page 2")
        assert await harness.store.finish_setting(new, cursor=None)
        assert (await stored(harness, guid(1, "setting"))).planned_version == 2

    async def test_a_lost_workers_setting_is_claimed_again(self, harness: StoreHarness) -> None:
        """From where it was; who has waited longest is first, and the lost one's end is none."""
        await put(harness, reminder_setting(1))
        await harness.elapse(timedelta(seconds=1))
        await put(harness, reminder_setting(2))
        (lost,) = await claim(harness, limit=1)
        assert lost.record.setting.guid == guid(1, "setting")
        await harness.elapse(LEASE + timedelta(seconds=1))
        other, again = await claim(harness)
        assert [one.record.setting.guid for one in (other, again)] == [guid(2, "setting"), guid(1, "setting")]
        assert not await harness.store.finish_setting(lost, cursor=None)
        assert await harness.store.finish_setting(again, cursor=None)

    async def test_settings_are_planned_anew_where_local_times_mean_other_instants(self, harness: StoreHarness) -> None:
        """When a business unit or the tenant moves to another zone; who is planning meanwhile begins anew."""
        store, tenant_id = harness.store, harness.tenant_id
        unit = BusinessUnit(guid=guid(1, "unit"), name="North", tz_id="Europe/Vienna")
        await store.ensure_tenant(tenant_id, {})
        await put(harness, reminder_setting())
        (planning,) = await claim(harness)
        await store.put_business_unit(tenant_id, unit, actor="sam")
        assert not await store.finish_setting(planning, cursor=None)
        for move in (
            store.put_business_unit(tenant_id, msgspec.structs.replace(unit, tz_id="Asia/Tokyo"), actor="sam"),
            store.set_tenant_form(tenant_id, LocalForm(tz_id="Asia/Tokyo"), actor="sam"),
        ):
            (again,) = await claim(harness)
            assert (again.cursor, await store.finish_setting(again, cursor=None)) == ("", True)
            await move
        (last,) = await claim(harness)
        assert await store.finish_setting(last, cursor=None)
        renamed = BusinessUnit(guid=unit.guid, name="South", tz_id="Asia/Tokyo")
        await store.put_business_unit(tenant_id, renamed, actor="sam")
        await store.set_tenant_form(tenant_id, LocalForm(locale="de", tz_id="Asia/Tokyo"), actor="sam")
        assert await claim(harness) == []
        assert (await stored(harness, guid(1, "setting"))).version == 1

    async def test_settings_of_another_edition_of_the_zones_are_planned_anew(self, harness: StoreHarness) -> None:
        """An earlier or a later one, so many at a time; those that are to be planned anyway are left as they are."""
        for n in (1, 2, 3):
            await put(harness, reminder_setting(n))
        assert await harness.store.replan_other_editions("2999z", limit=10) == 0
        for one in (await claim(harness))[:2]:
            await harness.store.finish_setting(one, cursor=None)
        assert await harness.store.replan_other_editions(TZDATA_VERSION, limit=10) == 0
        assert await harness.store.replan_other_editions("2999z", limit=1) == 1
        assert await harness.store.replan_other_editions("1970a", limit=10) == 1
        assert await harness.store.replan_other_editions("1970a", limit=10) == 0
        assert len(await claim(harness)) == 2


async def claim_repairs(harness: StoreHarness, *types: str, limit: int = 10) -> list[RepairClaim]:
    """Claim reconciliations of these types, or of all."""
    return await harness.store.claim_repairs(types or None, every=EVERY, limit=limit, lease=LEASE)


async def end_round(harness: StoreHarness, claim: RepairClaim, watermark_at: datetime | None = None) -> bool:
    """Come to the end of a round."""
    return await harness.store.finish_repair(claim, cursor=None, watermark_at=watermark_at or claim.round_at)


class RepairContract:
    """Rounds of reconciliation."""

    async def test_a_round_is_due_every_so_often_for_each_tenant_and_type_with_settings(
        self, harness: StoreHarness
    ) -> None:
        """From the beginning of the one before on; of named types, of all, or of all besides some."""
        mine, theirs = harness.tenant_id, f"{harness.tenant_id}-2"
        await put(harness, reminder_setting(1))
        await put(harness, reminder_setting(2, send_time="10:00"))
        await put(harness, reminder_setting(3, source_type="contract"))
        await harness.store.put_reminder(theirs, reminder_setting(1), actor="sam")
        assert await claim_repairs(harness, "boat") == []
        invoices = await claim_repairs(harness, "invoice")
        assert [(one.tenant_id, one.source_type) for one in invoices] == [(mine, "invoice"), (theirs, "invoice")]
        besides = await harness.store.claim_repairs(None, besides=["contract"], every=EVERY, limit=10, lease=LEASE)
        assert besides == []
        (contracts,) = await claim_repairs(harness)
        assert (contracts.source_type, contracts.cursor) == ("contract", None)
        for one in (*invoices, contracts):
            assert near(one.round_at, await harness.now())
            assert await end_round(harness, one)
            assert not await end_round(harness, one)
        await harness.elapse(EVERY - timedelta(minutes=1))
        assert await claim_repairs(harness) == []
        await harness.elapse(timedelta(minutes=2))
        assert len(await claim_repairs(harness, limit=2)) == 2
        assert len(await claim_repairs(harness, limit=2)) == 1

    async def test_the_watermark_moves_at_the_end_of_a_round_and_never_behind_its_beginning(
        self, harness: StoreHarness
    ) -> None:
        """A round goes on with its cursor, whoever takes it; a watermark goes neither back nor too far."""
        await put(harness, reminder_setting())
        (first,) = await claim_repairs(harness)
        await harness.elapse(timedelta(seconds=30))
        assert await harness.store.finish_repair(first, cursor="page 2", watermark_at=await harness.now())
        (second,) = await claim_repairs(harness)
        assert second.cursor == "page 2"
        assert second.round_at - second.watermark_at == first.round_at - first.watermark_at
        await harness.elapse(LEASE + timedelta(seconds=1))
        (again,) = await claim_repairs(harness)
        assert again.cursor == "page 2"
        assert not await end_round(harness, second)
        assert await end_round(harness, again, await harness.now() + timedelta(days=1))
        await harness.elapse(EVERY)
        (after,) = await claim_repairs(harness)
        assert near(after.watermark_at, await harness.now() - EVERY - LEASE - timedelta(seconds=31))
        assert near(after.round_at, await harness.now())
        assert await end_round(harness, after, after.watermark_at - timedelta(days=1))
        await harness.elapse(EVERY)
        (last,) = await claim_repairs(harness)
        assert near(last.watermark_at, await harness.now() - 2 * EVERY - LEASE - timedelta(seconds=31))

    async def test_what_changes_during_a_round_is_found_by_the_next(self, harness: StoreHarness) -> None:
        """From its watermark on, with no overlap at all."""
        await put(harness, reminder_setting())
        (claim,) = await claim_repairs(harness)
        await harness.store.put_sources(harness.tenant_id, [source_record(1)], actor="app", correlation_id="c")
        assert await end_round(harness, claim)
        await harness.elapse(EVERY + timedelta(seconds=1))
        (after,) = await claim_repairs(harness)
        scan = SourceScan(source_type="invoice", changed_since=after.watermark_at, limit=10)
        page = await harness.store.scan_sources(harness.tenant_id, scan)
        assert [one.source for one in page.records] == ["invoice-1"]
