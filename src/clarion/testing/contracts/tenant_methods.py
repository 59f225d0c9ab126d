"""Every method of a store that takes a tenant, asked about what `tenant_records` gives one."""

from collections.abc import Awaitable, Callable, Sized
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import msgspec

from clarion.domain.attribute import Attribute
from clarion.domain.attribute import Kind as AttributeKind
from clarion.domain.audience import Audience
from clarion.domain.claim import Gate
from clarion.domain.group import MemberChange
from clarion.domain.guard import JobEntry
from clarion.domain.inbox import Counts, Marking
from clarion.domain.person import LocalForm, UnitChange
from clarion.domain.quota import Limits, Usage
from clarion.domain.recipient import FrozenSet, RecipientJob
from clarion.domain.report_run import manual_row
from clarion.domain.seal import Purpose
from clarion.domain.setting import EffectiveSetting, SettingChange, TypeSetting
from clarion.domain.support import SupportStatus
from clarion.domain.suppression import Cause, Change
from clarion.ports.catalog import NewTemplate
from clarion.ports.source import SubscriptionRecord
from clarion.ports.store import Store
from clarion.testing import factories as make
from clarion.testing.contracts import tenant_occurrences, tenant_sources
from clarion.testing.contracts.pump import BROADCAST
from clarion.testing.contracts.tenant_records import (
    BY,
    CASE,
    DIRECT,
    FAILED_JOB,
    GROUP,
    HASH,
    JOB,
    LATER,
    LINE,
    OLD_LINE,
    RELATION,
    STOPPED,
    SUBSCRIPTION,
    UNIT,
    Filled,
    event,
    guard_key,
    item,
)

Ask = Callable[[Store, str, Filled], Awaitable[Any]]

READS: Final[dict[str, Ask]] = {
    "find_guard": lambda store, tenant, _: store.find_guard(tenant, guard_key()),
    "find_job_of_message": lambda store, tenant, _: store.find_job_of_message(tenant, make.guid(1, "direct")),
    "find_job_of_message of an outgoing row": lambda store, tenant, _: store.find_job_of_message(
        tenant, item(make.address_version(1, id=1)).message_id
    ),
    "find_job_of_message of an inbox row": lambda store, tenant, _: store.find_job_of_message(
        tenant, make.user_message().message_id
    ),
    "find_job": lambda store, tenant, _: store.find_job(tenant, JOB.guid),
    "find_job_timeline of some messages": lambda store, tenant, _: store.find_job_timeline(
        tenant, JOB.guid, messages=[make.user_message().message_id]
    ),
    "find_job_timeline": lambda store, tenant, _: store.find_job_timeline(tenant, JOB.guid),
    "find_job_timeline of a direct send": lambda store, tenant, _: store.find_job_timeline(tenant, DIRECT.job.guid),
    "find_person_versions": lambda store, tenant, of: store.find_person_versions(tenant, [of.profile]),
    "find_local_forms": lambda store, tenant, _: store.find_local_forms(tenant, [UNIT.guid]),
    "list_business_units": lambda store, tenant, _: store.list_business_units(tenant),
    "find_business_unit": lambda store, tenant, _: store.find_business_unit(tenant, UNIT.guid),
    "list_unit_members": lambda store, tenant, _: store.list_unit_members(tenant, UNIT.guid),
    "find_group": lambda store, tenant, _: store.find_group(tenant, GROUP),
    "list_groups": lambda store, tenant, _: store.list_groups(tenant),
    "list_groups behind the first": lambda store, tenant, _: store.list_groups(tenant, after=UUID(int=0)),
    "list_members": lambda store, tenant, _: store.list_members(tenant, GROUP),
    "list_business_units behind the first": lambda store, tenant, _: store.list_business_units(
        tenant, after=("", UUID(int=0))
    ),
    "list_holders": lambda store, tenant, _: store.list_holders(tenant, "teacher", unit=UNIT.guid),
    "list_roles": lambda store, tenant, _: store.list_roles(tenant),
    "list_relations": lambda store, tenant, _: store.list_relations(tenant, RELATION.entity),
    "list_relations_of": lambda store, tenant, _: store.list_relations_of(tenant, HASH),
    "find_members": lambda store, tenant, _: store.find_members(tenant, {GROUP}),
    "find_audience": lambda store, tenant, _: store.find_audience(tenant, Audience(groups=(GROUP,)), limit=10),
    "find_people": lambda store, tenant, _: store.find_people(tenant, {HASH}),
    "list_people": lambda store, tenant, _: store.list_people(tenant, limit=10),
    "list_attributes": lambda store, tenant, _: store.list_attributes(tenant),
    "find_audiences": lambda store, tenant, _: _audiences(store, tenant),
    "find_recipients": lambda store, tenant, _: store.find_recipients(tenant, {HASH}),
    "find_suppressions": lambda store, tenant, _: store.find_suppressions(tenant, {HASH}),
    "list_suppressions": lambda store, tenant, _: store.list_suppressions(tenant),
    "list_suppressions of a subject": lambda store, tenant, _: store.list_suppressions(tenant, subjects=[HASH]),
    "find_suppressed_addresses": lambda store, tenant, _: store.find_suppressed_addresses(
        tenant, {make.address_version(1).destination_index}
    ),
    "list_suppressions of a cause": lambda store, tenant, _: store.list_suppressions(tenant, cause=Cause.MANUAL),
    "find_support_case": lambda store, tenant, _: store.find_support_case(tenant, CASE.case_id),
    "find_tenant_keys": lambda store, tenant, _: store.find_tenant_keys(tenant),
    "list_inbox": lambda store, tenant, _: store.list_inbox(tenant, LINE.recipient_id_hash),
    "count_inbox": lambda store, tenant, _: store.count_inbox(tenant, LINE.recipient_id_hash),
    "find_contents": lambda store, tenant, of: store.find_contents(tenant, [(LINE.bucket, of.line)]),
    "copy_tenant": lambda store, tenant, _: _copied(store, tenant),
    "list_api_keys": lambda store, tenant, _: store.list_api_keys(tenant),
    "list_audit": lambda store, tenant, _: store.list_audit(tenant),
    "list_newest_audit": lambda store, tenant, _: store.list_newest_audit(tenant),
    "list_jobs": lambda store, tenant, _: store.list_jobs(tenant, JOB.partition_key),
    "list_latest_jobs": lambda store, tenant, _: store.list_latest_jobs(tenant),
    "list_jobs_of_recipient": lambda store, tenant, _: store.list_jobs_of_recipient(
        tenant, HASH, partition_key="user:nobody"
    ),
    "list_jobs_of_recipient of a place": lambda store, tenant, _: store.list_jobs_of_recipient(
        tenant, "0" * 32, partition_key=JOB.partition_key
    ),
    "find_sets": lambda store, tenant, _: store.find_sets(tenant, [FAILED_JOB.guid]),
    "count_messages": lambda store, tenant, _: store.count_messages(tenant, [LINE.message_id]),
    "find_standings": lambda store, tenant, _: store.find_standings(tenant, [JOB.guid]),
    "find_payloads": lambda store, tenant, _: store.find_payloads(tenant, [FAILED_JOB.guid]),
    "find_addresses": lambda store, tenant, of: store.find_addresses(tenant, [of.address]),
    "list_support_cases": lambda store, tenant, _: store.list_support_cases(tenant),
    "list_support_cases that are open": lambda store, tenant, _: store.list_support_cases(
        tenant, status=SupportStatus.OPEN
    ),
    "list_template_versions": lambda store, tenant, _: store.list_template_versions(tenant, "welcome", limit=5),
    "list_templates": lambda store, tenant, _: store.list_templates(tenant),
    "list_usage": lambda store, tenant, _: _used(store, tenant),
    "list_uncertain": lambda store, tenant, _: store.list_uncertain(tenant),
    "find_templates": lambda store, tenant, _: store.find_templates([(tenant, "welcome", None)]),
    "find_templates of a version": lambda store, tenant, _: store.find_templates([(tenant, "welcome", 1)]),
    "find_latest_versions": lambda store, tenant, _: _latest_versions(store, tenant),
    "find_setting": lambda store, tenant, _: _said(store, tenant, None),
    "find_setting of a unit": lambda store, tenant, _: _said(store, tenant, UNIT.guid),
    "list_settings": lambda store, tenant, _: _all_said(store, tenant),
    "find_settings": lambda store, tenant, _: _effective(store, tenant),
    **tenant_sources.READS,
    **tenant_occurrences.READS,
    "find_subscription": lambda store, tenant, _: _subscribed(store, tenant),
    "list_subscriptions": lambda store, tenant, _: _all_subscribed(store, tenant),
    "count_deliveries": lambda store, tenant, _: store.count_deliveries(tenant, start_at=make.SOURCE_AT, end_at=LATER),
    "count_broadcast": lambda store, tenant, _: _totals(store, tenant),
}


async def _subscribed(store: Store, tenant_id: str) -> SubscriptionRecord | None:
    """Leave the time out, at which the twin was set later."""
    found = await store.find_subscription(tenant_id, SUBSCRIPTION.guid)
    return None if found is None else msgspec.structs.replace(found, changed_at=LATER)


async def _all_subscribed(store: Store, tenant_id: str) -> list[SubscriptionRecord]:
    found = await store.list_subscriptions(tenant_id, limit=9)
    return [msgspec.structs.replace(one, changed_at=LATER) for one in found]


async def _totals(store: Store, tenant_id: str) -> object:
    return (await store.count_broadcast(tenant_id, BROADCAST)).by_status


async def _audiences(store: Store, tenant_id: str) -> object:
    """Leave those out in which nobody is."""
    found = await store.find_audiences(tenant_id, [Audience(groups=(GROUP,))], limit=10)
    return [hashes for hashes in found if hashes]


async def _copied(store: Store, tenant_id: str) -> dict[str, int]:
    """Count the rows of a copy, and leave out tables that have none."""
    tables = await store.copy_tenant(tenant_id, until=datetime(9000, 1, 1, tzinfo=UTC), rows_max=10_000)
    return {name: len(table.rows) for name, table in tables.items() if table.rows}


async def _freezes(store: Store, tenant_id: str, job_id: int) -> bool:
    """Freeze a set, and tell whether the job has one."""
    frozen = FrozenSet(job_id=job_id, job_key="key", text="[]", recipients=[HASH])
    return bool(await store.freeze_recipients(tenant_id, [frozen]))


async def _latest_versions(store: Store, tenant_id: str) -> object:
    """Leave the time out, which is nobody's."""
    return (await store.find_latest_versions([(tenant_id, "welcome")])).versions


async def _said(store: Store, tenant_id: str, unit: UUID | None) -> TypeSetting | None:
    """Leave the time out, at which the twin was set later."""
    found = await store.find_setting(tenant_id, "welcome", unit)
    return None if found is None else msgspec.structs.replace(found, changed_at=LATER)


async def _all_said(store: Store, tenant_id: str) -> list[TypeSetting]:
    return [msgspec.structs.replace(one, changed_at=LATER) for one in await store.list_settings(tenant_id, limit=9)]


async def _effective(store: Store, tenant_id: str) -> list[EffectiveSetting]:
    """Leave out what nobody has set."""
    found = await store.find_settings([(tenant_id, "welcome", unit) for unit in (None, UNIT.guid)])
    return [one for one in found.values() if one != EffectiveSetting()]


async def _lifts(store: Store, tenant_id: str) -> bool:
    """Tell whether anything was lifted."""
    return bool(await store.lift_suppressions(tenant_id, [STOPPED.key], **BY))


async def _did(asked: Awaitable[Sized | int]) -> bool:
    """Tell whether an act found anything to do."""
    found = await asked
    return found > 0 if isinstance(found, int) else len(found) > 0


async def _marked(asked: Awaitable[Counts]) -> bool:
    """Tell whether there is a line in an inbox that was marked."""
    return (await asked).lines > 0


WRITES: Final[dict[str, Ask]] = {
    "freeze_recipients": lambda store, tenant, of: _freezes(store, tenant, of.job),
    "note_recipients": lambda store, tenant, of: store.note_recipients(
        tenant, of.hold, [RecipientJob(recipient_id_hash=HASH, job_key="key", job_id=of.job)]
    ),
    "cancel_job": lambda store, tenant, _: store.cancel_job(tenant, JOB.guid, **BY),
    "retry_job": lambda store, tenant, _: store.retry_job(tenant, FAILED_JOB.guid, reason="again", **BY),
    "retry_outgoing of what failed": lambda store, tenant, of: store.retry_outgoing(
        tenant, of.failed, version=of.versions[of.failed], reason="again", **BY
    ),
    "retry_outgoing of what is uncertain": lambda store, tenant, of: store.retry_outgoing(
        tenant, of.uncertain, version=of.versions[of.uncertain], reason="again", **BY
    ),
    "resolve_support_case": lambda store, tenant, _: store.resolve_support_case(
        tenant, CASE.case_id, resolution="mended", **BY
    ),
    "quarantine_template": lambda store, tenant, _: store.quarantine_template(tenant, "welcome", "h1:00"),
    "mark_lines": lambda store, tenant, _: _did(
        store.mark_lines(tenant, LINE.recipient_id_hash, [LINE.message_id], Marking.ARCHIVE)
    ),
    "mark_inbox": lambda store, tenant, _: _marked(store.mark_inbox(tenant, LINE.recipient_id_hash, Marking.READ)),
    "sweep_inbox": lambda store, tenant, _: _did(store.sweep_inbox(tenant, OLD_LINE.recipient_id_hash, limit=10)),
    "revoke_api_key": lambda store, tenant, of: store.revoke_api_key(tenant, of.api_key, **BY),
    "set_gate": lambda store, tenant, _: store.set_gate(tenant, BROADCAST, Gate.OPEN, **BY),
    "put_setting": lambda store, tenant, _: store.put_setting(
        tenant, "welcome", UNIT.guid, SettingChange(channels=None), **BY
    ),
    "remove_people": lambda store, tenant, _: _did(store.remove_people(tenant, [HASH], **BY)),
    "lift_suppressions": lambda store, tenant, _: _lifts(store, tenant),
    "set_type_enabled": lambda store, tenant, _: store.set_type_enabled(tenant, "welcome", enabled=True, **BY),
    "set_tenant_form": lambda store, tenant, _: store.set_tenant_form(tenant, LocalForm(locale="fr"), **BY),
    "change_business_unit": lambda store, tenant, _: _done(
        store.change_business_unit(tenant, UNIT.guid, UnitChange(name="some"), actor="sam")
    ),
    "change_group": lambda store, tenant, _: _done(store.change_group(tenant, GROUP, name="some", actor="sam")),
    "change_group inside": lambda store, tenant, _: _done(store.change_group(tenant, GROUP, children=[], actor="sam")),
    "remove_group": lambda store, tenant, _: store.remove_group(tenant, GROUP, **BY),
    "change_members": lambda store, tenant, _: _gone(store.change_members(tenant, GROUP, add=[], remove=[HASH], **BY)),
    "change_unit_members": lambda store, tenant, _: _gone(
        store.change_unit_members(tenant, UNIT.guid, add=[], remove=[HASH], **BY)
    ),
    "change_holders": lambda store, tenant, _: _gone(
        store.change_holders(tenant, "teacher", unit=UNIT.guid, add=[], remove=[HASH], **BY)
    ),
    "change_relations": lambda store, tenant, _: _gone(store.change_relations(tenant, add=[], remove=[RELATION], **BY)),
    **tenant_sources.WRITES,
    **tenant_occurrences.WRITES,
}
"""Acts that change what is there, and answer whether they did; a stranger has nothing there."""


async def _done(answer: Awaitable[object]) -> bool:
    """Tell whether anything was changed: of what is not there, nothing was."""
    return bool(await answer)


async def _gone(answer: Awaitable[MemberChange | None]) -> bool:
    """Tell whether anybody was taken out."""
    change = await answer
    return change is not None and change.removed == 1


MAKES: Final[dict[str, Ask]] = {
    "ensure_tenant": lambda store, tenant, _: store.ensure_tenant(tenant, {(Purpose.DATA, 1): b"other"}, actor="kim"),
    "set_gate": lambda store, tenant, _: store.set_gate(tenant, BROADCAST, Gate.PAUSED, **BY),
    "set_quota": lambda store, tenant, _: store.set_quota(tenant, "", Limits(requests=1), **BY),
    "put_subscription": lambda store, tenant, _: store.put_subscription(
        tenant, msgspec.structs.replace(SUBSCRIPTION, active=False), actor="sam"
    ),
    "run_subscription": lambda store, tenant, _: store.run_subscription(
        tenant, manual_row(SUBSCRIPTION, make.guid(1, "run"), now=LATER, correlation_id="request"), **BY
    ),
    "open_support_cases": lambda store, tenant, _: store.open_support_cases(tenant, [CASE]),
    "publish_templates": lambda store, tenant, _: store.publish_templates(
        tenant, [NewTemplate(template_key="welcome", content_hash="h1:01", bundle="[]")], **BY
    ),
    "put_group": lambda store, tenant, _: store.put_group(tenant, guid=GROUP, name="none", members=["0" * 32]),
    "put_business_unit": lambda store, tenant, _: store.put_business_unit(
        tenant, msgspec.structs.replace(UNIT, name="South")
    ),
    "put_suppressions": lambda store, tenant, _: store.put_suppressions(tenant, [STOPPED], **BY),
    "set_preferences": lambda store, tenant, _: store.set_preferences(
        tenant, HASH, [Change(category="news", on=True), Change(category="offers", on=False)], actor="sam"
    ),
    "put_people": lambda store, tenant, _: store.put_people(
        tenant, [make.person(1, locale="fr")], attributes={HASH: {"grade": "8"}}
    ),
    "declare_attribute": lambda store, tenant, _: store.declare_attribute(
        tenant, Attribute(name="grade", kind=AttributeKind.TEXT), **BY
    ),
    "keep_events": lambda store, tenant, _: store.keep_events(
        tenant, [msgspec.structs.replace(event(), raw="[]"), msgspec.structs.replace(event(), event_id="event-2")]
    ),
    "ensure_automation_schedulers": lambda store, tenant, _: store.ensure_automation_schedulers(
        tenant, [make.automation_scheduler(local_time="10:00")]
    ),
    "ensure_automation_jobs": lambda store, tenant, _: store.ensure_automation_jobs(tenant, [make.automation_job()]),
    "ensure_notification_jobs": lambda store, tenant, _: store.ensure_notification_jobs(
        tenant, [DIRECT, JobEntry(job=JOB, scheduler=make.scheduler_of(JOB))]
    ),
    "ensure_messaging_jobs": lambda store, tenant, _: store.ensure_messaging_jobs(tenant, [make.messaging_job()]),
    "ensure_address_versions": lambda store, tenant, _: store.ensure_address_versions(tenant, [make.address_version()]),
    "ensure_person_versions": lambda store, tenant, _: store.ensure_person_versions(tenant, [make.person_version()]),
    "ensure_user_messages": lambda store, tenant, _: store.ensure_user_messages(tenant, [make.user_message()]),
    **tenant_sources.MAKES,
    **tenant_occurrences.MAKES,
}
"""Acts that make something where there is nothing."""

REFUSED: Final[dict[str, Ask]] = {
    "ensure_notification_schedulers": lambda store, tenant, _: store.ensure_notification_schedulers(
        tenant, [make.scheduler_of(JOB)]
    ),
    "ensure_outgoing_messages": lambda store, tenant, of: store.ensure_outgoing_messages(
        tenant, [item(make.address_version(1, id=of.address))]
    ),
    "ensure_outgoing_messages of a campaign": lambda store, tenant, of: store.ensure_outgoing_messages(
        tenant, [make.outgoing_item(make.messaging_job(), make.address_version(1, id=of.address))]
    ),
}
"""Acts that are refused where what they stand on is another tenant's."""


async def _used(store: Store, tenant: str) -> list[Usage]:
    """List what was used, without when it was read."""
    found = await store.list_usage(tenant)
    return [msgspec.structs.replace(one, now=LATER) for one in found]
