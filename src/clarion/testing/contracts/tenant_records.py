"""One of everything for a tenant, and every question that can be asked of it by a method that takes a tenant.

`tenancy` holds stores to it: what one tenant asks for finds and changes nothing of another's.
"""

from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from clarion.domain.attribute import Attribute
from clarion.domain.attribute import Kind as AttributeKind
from clarion.domain.call import Accepted, Refused, Unknown
from clarion.domain.group import Relation
from clarion.domain.guard import JobEntry
from clarion.domain.identity import Channel
from clarion.domain.notification import NotificationJob, NotificationScheduler, NotificationStatus
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.person import BusinessUnit, LocalForm
from clarion.domain.quota import Amount
from clarion.domain.recipient import FrozenSet
from clarion.domain.seal import Purpose
from clarion.domain.setting import SettingChange
from clarion.domain.support import SupportCase, SupportKind
from clarion.domain.suppression import Cause, Suppression
from clarion.ports.catalog import ApiKey, NewTemplate, Role, Used
from clarion.ports.ensure import Hold
from clarion.ports.track import ProviderEvent
from clarion.testing import factories as make
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.contracts.pump import ACCOUNT, BROADCAST, Pump
from clarion.testing.contracts.tenant_occurrences import fill_occurrences
from clarion.testing.contracts.tenant_sources import fill_sources

GROUP: Final = make.guid(1, "group")
UNIT: Final = BusinessUnit(guid=make.guid(1, "unit"), name="North", locale="fr", tz_id="Europe/Paris")
RELATION: Final = Relation(
    entity_type="child",
    entity_guid=make.guid(1, "child"),
    relation="guardian",
    recipient_id_hash=make.address_version(1).recipient_id_hash,
)
CASE: Final = SupportCase(
    case_id=make.guid(1, "case"),
    kind=SupportKind.HOLD,
    record="NotificationJob",
    record_key="[]",
    details="{}",
    correlation_id="c-1",
)
DIRECT: Final = make.guarded_entry(message_id=make.guid(1, "direct"))
JOB: Final = make.notification_job(1)
LINE: Final = make.user_message(content=b"sealed")
OLD_LINE: Final = make.user_message(2, expires_at=datetime(2026, 1, 2, tzinfo=UTC))
FAILED_JOB: Final = make.notification_job(5, payload=b"sealed")
HASH: Final = make.address_version(1).recipient_id_hash
STOPPED: Final = Suppression(subject=HASH, scope="news", cause=Cause.MANUAL)
HASHED: Final = f"sha256:{'0' * 64}"
BUNDLE: Final = NewTemplate(template_key="welcome", content_hash="h1:00", bundle="{}")
SUBSCRIPTION: Final = make.report_subscription()
BY: Final = {"actor": "sam"}
LATER: Final = datetime(2100, 1, 1, tzinfo=UTC)
"""When a row is due that is to wait."""


class Filled(msgspec.Struct, frozen=True, kw_only=True):
    """The ids that a tenant's rows were given, which are the only thing that differs from its twin's."""

    api_key: str
    failed: int
    uncertain: int
    line: int
    address: int
    profile: int
    versions: dict[int, int]
    job: int
    hold: Hold


async def fill(harness: StoreHarness, tenant_id: str) -> Filled:
    """Give a tenant one of everything."""
    store, pump = harness.store, Pump(harness, tenant_id=tenant_id, broadcast=BROADCAST)
    await store.ensure_tenant(tenant_id, {(purpose, 1): b"wrapped" for purpose in Purpose}, actor="sam")
    key = ApiKey(key_id=f"key-{tenant_id}", tenant_id=tenant_id, secret_hash=HASHED, actor="sam", role=Role.SENDER)
    await store.put_api_key(key, actor="sam")
    await store.count_usage([Used(tenant_id=tenant_id, key_id="", amount=Amount(requests=1))])
    await store.publish_templates(tenant_id, [BUNDLE], actor="sam")
    await store.set_type_enabled(tenant_id, "welcome", enabled=False, actor="sam")
    await store.put_setting(tenant_id, "welcome", UNIT.guid, SettingChange(channels=(Channel.SMS,)), actor="sam")
    await fill_automation(harness, tenant_id)
    await store.ensure_messaging_jobs(tenant_id, [make.messaging_job()])
    pending = [JobEntry(job=job, scheduler=make.scheduler_of(job)) for job in (JOB, FAILED_JOB)]
    await store.ensure_notification_jobs(tenant_id, [DIRECT, *pending])
    (failed,) = [one for one in await harness.rows(tenant_id, NotificationJob) if one.key == FAILED_JOB.key]
    frozen = FrozenSet(job_id=failed.id or 0, job_key="failed", text="[]", recipients=[HASH])
    await store.freeze_recipients(tenant_id, [frozen])
    (row,) = [one for one in await harness.rows(tenant_id, NotificationScheduler) if one.key == failed_key()]
    ended = {"status": NotificationStatus.FAILED, "due_at": None}
    await harness.overwrite(tenant_id, msgspec.structs.replace(row, **ended))
    (row,) = [one for one in await harness.rows(tenant_id, NotificationScheduler) if one.artifact_rk == JOB.row_key]
    claimed = {"status": NotificationStatus.PROCESSING, "due_at": None, "lease_until": LATER}
    await harness.overwrite(tenant_id, msgspec.structs.replace(row, **claimed))
    (job,) = [one for one in await harness.rows(tenant_id, NotificationJob) if one.guid == JOB.guid]
    line, _ = await store.ensure_user_messages(tenant_id, [LINE, OLD_LINE])
    addresses = [await pump.address(n) for n in (1, 2, 3, 4)]
    (profile,) = await store.ensure_person_versions(tenant_id, [make.person_version(1)])
    known = make.person(1, addresses[0], person_version_id=profile.record.id)
    await store.put_people(tenant_id, [known], attributes={HASH: {"grade": "7"}}, actor="sam")
    await store.declare_attribute(tenant_id, Attribute(name="grade", kind=AttributeKind.NUMBER), actor="sam")
    await store.put_business_unit(tenant_id, UNIT)
    await store.set_tenant_form(tenant_id, LocalForm(locale="de"), actor="sam")
    await store.put_group(tenant_id, guid=GROUP, name="all", members=[HASH])
    await store.put_suppressions(tenant_id, [STOPPED], actor="sam")
    await store.put_group(tenant_id, guid=make.guid(2, "group"), name="inner")
    await store.put_group(tenant_id, guid=GROUP, name="all", members=[HASH], children=[make.guid(2, "group")])
    await store.change_unit_members(tenant_id, UNIT.guid, add=[HASH], remove=[])
    await store.change_holders(tenant_id, "teacher", unit=UNIT.guid, add=[HASH], remove=[])
    await store.change_relations(tenant_id, add=[RELATION], remove=[])
    await store.open_support_cases(tenant_id, [CASE])
    items = [item(address) for address in addresses]
    items[3] = msgspec.structs.replace(items[3], due_at=LATER)
    refused, uncertain, sent, waiting = [
        answer.record for answer in await store.ensure_outgoing_messages(tenant_id, items)
    ]
    first, second, third = sorted(await pump.claim(), key=lambda one: one.id)
    await pump.record(Refused(reason="no such address"), first)
    await pump.record(Unknown(reason="lost"), second)
    await pump.record(Accepted(provider_message_id="p-1"), third)
    await store.keep_events(tenant_id, [event()])
    rows = (refused, uncertain, sent, waiting)
    assert [await pump.status(one) for one in rows] == [
        OutgoingStatus.FAILED_FINAL,
        OutgoingStatus.UNCERTAIN,
        OutgoingStatus.SENT_TO_PROVIDER,
        OutgoingStatus.CREATED,
    ]
    return Filled(
        api_key=key.key_id,
        failed=refused.id or 0,
        uncertain=uncertain.id or 0,
        line=line.record.id or 0,
        address=addresses[0].id or 0,
        profile=profile.record.id or 0,
        versions={one.id or 0: (await pump.seen(one.id)).message.version for one in rows},
        job=job.id or 0,
        hold=(row.id or 0, row.version),
    )


async def fill_automation(harness: StoreHarness, tenant_id: str) -> None:
    """Give it an occurrence, and what occurrences are planned by."""
    await harness.store.ensure_automation_schedulers(tenant_id, [make.automation_scheduler()])
    await harness.store.ensure_automation_jobs(tenant_id, [make.automation_job()])
    await harness.store.put_subscription(tenant_id, SUBSCRIPTION, actor="sam")
    await fill_sources(harness, tenant_id)
    await fill_occurrences(harness, tenant_id)


def failed_key() -> tuple[str, ...]:
    """Name the pending row of the job that failed."""
    return make.scheduler_of(FAILED_JOB).key


def event() -> ProviderEvent:
    """Make a receipt of the message that was accepted."""
    return ProviderEvent(
        account=ACCOUNT,
        event_id="event-1",
        status=OutgoingStatus.DELIVERED,
        provider_message_id="p-1",
        happened_at=datetime(2026, 1, 1, tzinfo=UTC),
        raw="{}",
    )


def event_by_message() -> ProviderEvent:
    """Make a receipt that names its message."""
    address = make.address_version(3, id=3)
    named = {"message_id": item(address).message_id, "recipient_key_hash": address.key_hash}
    return msgspec.structs.replace(event(), event_id="event-3", provider_message_id=None, **named)


def guard_key() -> tuple[str, str]:
    """Name the guard of the direct send."""
    assert DIRECT.guard is not None
    return DIRECT.guard.operation, DIRECT.guard.key_hash


def item(address: Any) -> Any:  # noqa: ANN401  an address version and the item that goes to it
    """Make the message of the job to an address."""
    return make.outgoing_item(JOB, address, broadcast=BROADCAST)
