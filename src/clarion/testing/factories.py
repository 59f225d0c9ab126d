"""Valid records for tests, made without a clock, chance or a store: the same arguments always give the same record.

Each function takes a number, which gives the record a key of its own, and any field of the record by name. Keys and
hashes are made by the functions of the domain, for the tenant `TENANT` and its `IDENTITY_KEY`; a record may still be
ensured for any tenant, since no store looks into a hash.
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

import msgspec

from clarion.domain import derived_id, key
from clarion.domain.address import AddressVersion
from clarion.domain.audience import Addressee
from clarion.domain.automation import (
    INPUT_FIELDS,
    AutomationJob,
    AutomationScheduler,
    AutomationType,
    TriggerType,
)
from clarion.domain.entity_event import EntityEvent
from clarion.domain.fingerprint import Fingerprint
from clarion.domain.guard import IdempotencyGuard, JobEntry
from clarion.domain.identity import Channel, Identity, Lane
from clarion.domain.inbox import UserMessage
from clarion.domain.messaging import MessagingJob, MessagingKind
from clarion.domain.notification import ArtifactType, NotificationJob, NotificationScheduler
from clarion.domain.outgoing import OutgoingItem
from clarion.domain.person import Contact, Person, PersonVersion
from clarion.domain.reminder import Condition, DateRule, ReminderSetting
from clarion.domain.report import ReportSubscription
from clarion.domain.report_choice import MissedRuns, ReportDelivery, ReportForm
from clarion.domain.source import SourceRecord
from clarion.ports.ensure import EnsureStore

TENANT = "acme"
IDENTITY_KEY = bytes(range(32))
INDEX_KEY = bytes(range(32, 64))

SOURCE_AT = datetime(2025, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
"""When the sources happened: the last instant of a month and not the present one, so that a wrong bucket shows."""

BUCKET = key.month_bucket(SOURCE_AT)
OPERATION = "send"
EVENT_TYPE = "order-shipped"
TEXT = "Ärger \"mit\" \\ 'Zeichen' % $1 ? :x \n\t\u2028 ☃ 😀"
"""Text that a driver, a JSON parameter or a query built from strings would spoil."""

BYTES = bytes(range(256))


def guid(n: int, kind: str = "guid") -> UUID:
    """Make a guid out of a number; different kinds of thing do not share one."""
    return derived_id.row_guid(tenant_id=TENANT, row_key=f"{kind}:{n}")


def automation_scheduler(n: int = 1, /, **fields: object) -> AutomationScheduler:
    """Make a reminder's due occurrence; its InputHash covers the fields as given."""
    setting, source, trigger_key = str(guid(1, "setting")), str(guid(n, "order")), "payment-due"
    target_date, offset_days = date(2026, 2, 1), -3
    row = AutomationScheduler(
        scheduler_key=key.date_reminder_key(
            setting=setting,
            source_type="order",
            source=source,
            trigger_key=trigger_key,
            target_date=target_date,
            offset_days=offset_days,
        ),
        automation_type=AutomationType.REMINDER,
        trigger_type=TriggerType.DATE_BASED,
        setting=setting,
        source_type="order",
        source=source,
        trigger_key=trigger_key,
        target_date=target_date,
        offset_days=offset_days,
        primary_entity=source,
        notification_type="payment-reminder",
        input_hash=Fingerprint.of(None),
        scheduled_at=datetime(2026, 1, 29, 8, 0, tzinfo=UTC),
        local_date=date(2026, 1, 29),
        local_time="09:00",
        tz_id="Europe/Berlin",
        tzdata_version="2025b",
        key_version=key.KEY_VERSION,
        correlation_id=f"request-{n}",
    )
    row = msgspec.structs.replace(row, **fields)
    return row if "input_hash" in fields else msgspec.structs.replace(row, input_hash=input_hash(row))


def input_hash(row: AutomationScheduler) -> Fingerprint:
    """Hash what an occurrence is about."""
    return Fingerprint.of({name: getattr(row, name) for name in INPUT_FIELDS})


def automation_job(n: int = 1, /, **fields: object) -> AutomationJob:
    """Make the trace of the n-th occurrence."""
    scheduler = automation_scheduler(n)
    row = AutomationJob(
        partition_key=key.automation_job_pk(entity_guid=UUID(scheduler.primary_entity)),
        row_key=key.automation_job_rk(scheduler_key=scheduler.scheduler_key),
        automation_type=scheduler.automation_type,
        notification_type=scheduler.notification_type,
        input_hash=scheduler.input_hash,
        key_version=key.KEY_VERSION,
        correlation_id=scheduler.correlation_id,
    )
    return msgspec.structs.replace(row, **fields)


def entity_event(n: int = 1, /, **fields: object) -> EntityEvent:
    """Make an event that an application tells."""
    event_guid, entity_guid = guid(n, "event"), guid(n, "order")
    row = EntityEvent(
        partition_key=key.entity_event_pk(entity_type="order", entity_guid=entity_guid),
        row_key=key.entity_event_rk(occurred_at=SOURCE_AT, event_guid=event_guid),
        event_guid=event_guid,
        event_type="order.shipped",
        entity_type="order",
        entity_guid=entity_guid,
        occurred_at=SOURCE_AT,
        data=b"sealed",
        data_hash=f"k1:{n:064x}",
        correlation_id=f"request-{n}",
    )
    return msgspec.structs.replace(row, **fields)


def source_record(n: int = 1, /, **fields: object) -> SourceRecord:
    """Make a source as an application puts it."""
    row = SourceRecord(
        source_type="invoice",
        source=f"invoice-{n}",
        entity_guid=guid(n, "invoice"),
        content=BYTES,
        content_hash=f"k1:{n:064x}",
        days=(("due", date(2026, 2, 1) + timedelta(days=n)),),
    )
    return msgspec.structs.replace(row, **fields)


def reminder_setting(n: int = 1, /, **fields: object) -> ReminderSetting:
    """Make a setting that reminds of invoices before they are due."""
    row = ReminderSetting(
        guid=guid(n, "setting"),
        name=f"Invoice due {n}",
        source_type="invoice",
        conditions=(Condition(field="state", values=("open", None, 2.5, True)),),
        rule=DateRule(field="due", offsets=(30, 0, -7)),
        notification_type="payment-reminder",
        recipients=(Addressee(role="Buchhaltung"),),
    )
    return msgspec.structs.replace(row, **fields)


def notification_job(n: int = 1, /, **fields: object) -> NotificationJob:
    """Make the job of an event, which has no guard: its row key derives from the event."""
    row_key = key.event_job_rk(event_type="shipped", event_guid=guid(n, "event"), notification_event_type=EVENT_TYPE)
    row = NotificationJob(
        partition_key=key.event_job_pk(entity_guid=guid(n, "order")),
        row_key=row_key,
        guid=derived_id.row_guid(tenant_id=TENANT, row_key=row_key),
        event_type=EVENT_TYPE,
        operation="event",
        payload_hash=payload_hash({"order": n}),
        source_at=SOURCE_AT,
        bucket=BUCKET,
        key_version=key.KEY_VERSION,
        correlation_id=f"request-{n}",
    )
    return msgspec.structs.replace(row, **fields)


def notification_scheduler(n: int = 1, /, **fields: object) -> NotificationScheduler:
    """Make the pending row of the n-th event's job."""
    return msgspec.structs.replace(scheduler_of(notification_job(n)), **fields)


def scheduler_of(job: NotificationJob) -> NotificationScheduler:
    """Make the pending row of a job."""
    artifact_type, artifact_pk, artifact_rk = job.artifact
    return NotificationScheduler(
        artifact_type=artifact_type,
        artifact_pk=artifact_pk,
        artifact_rk=artifact_rk,
        event_type=job.event_type,
        lane=Lane.NORMAL,
        correlation_id=job.correlation_id,
        traceparent=job.traceparent,
    )


def scheduler_of_content(job: MessagingJob) -> NotificationScheduler:
    """Make the pending row of a messaging job, whose keys are both its guid."""
    return notification_scheduler(
        artifact_type=ArtifactType.MESSAGING_JOB, artifact_pk=str(job.guid), artifact_rk=str(job.guid)
    )


async def ensure_artifacts(store: EnsureStore, tenant_id: str, rows: Sequence[NotificationScheduler]) -> None:
    """Ensure the jobs of scheduler rows: they must be there before the rows are."""
    first = {(row.artifact_type, row.artifact_rk): row for row in reversed(rows)}
    jobs = [row for (kind, _), row in first.items() if kind is ArtifactType.NOTIFICATION_JOB]
    guids = [rk for kind, rk in first if kind is ArtifactType.MESSAGING_JOB]
    await store.ensure_notification_jobs(tenant_id, [JobEntry(job=_job_of(row)) for row in jobs])
    await store.ensure_messaging_jobs(tenant_id, [messaging_job(guid=UUID(text)) for text in guids])


def _job_of(row: NotificationScheduler) -> NotificationJob:
    """Make the job that a scheduler row is pending for."""
    return notification_job(
        partition_key=row.artifact_pk,
        row_key=row.artifact_rk,
        guid=derived_id.row_guid(tenant_id=TENANT, row_key=row.artifact_rk),
    )


def payload_hash(payload: object) -> Fingerprint:
    """Hash what a caller sends, under the tenant's key."""
    return Fingerprint.keyed(payload, key=IDENTITY_KEY)


def guarded_entry(
    idempotency_key: str = "key-1", /, *, payload: object = "hello", created_at: datetime = SOURCE_AT, **fields: object
) -> JobEntry:
    """Make what a direct send with an idempotency key commits; `fields` are the job's."""
    job_guid = derived_id.job_guid(tenant_id=TENANT, operation=OPERATION, idempotency_key=idempotency_key)
    row = NotificationJob(
        partition_key=key.manual_job_pk(
            entity_guid=None, recipients=[Identity.user("7")], recipient_id_hash=None, job_guid=job_guid
        ),
        row_key=key.manual_job_rk(created_at=created_at, job_guid=job_guid),
        guid=job_guid,
        event_type=EVENT_TYPE,
        operation=OPERATION,
        payload_hash=payload_hash(payload),
        source_at=created_at,
        bucket=key.month_bucket(created_at),
        key_version=key.KEY_VERSION,
        correlation_id=f"request-{idempotency_key}",
    )
    job = msgspec.structs.replace(row, **fields)
    return JobEntry(job=job, scheduler=scheduler_of(job), guard=guard_of(job, idempotency_key))


def guard_of(job: NotificationJob, idempotency_key: str) -> IdempotencyGuard:
    """Make the guard under which a job was asked for."""
    return IdempotencyGuard(
        operation=job.operation,
        key_hash=derived_id.guard_key_hash(
            identity_key=IDENTITY_KEY, tenant_id=TENANT, operation=job.operation, idempotency_key=idempotency_key
        ),
        payload_hash=job.payload_hash,
        job_partition_key=job.partition_key,
        job_row_key=job.row_key,
        source_at=job.source_at,
    )


def messaging_job(n: int = 1, /, **fields: object) -> MessagingJob:
    """Make a campaign's job."""
    row = MessagingJob(
        guid=derived_id.sent_campaign_guid(tenant_id=TENANT, draft_guid=guid(n, "draft")),
        kind=MessagingKind.CAMPAIGN,
        source=str(guid(n, "draft")),
        run_key="first",
        content_hash=Fingerprint.of({"subject": f"Spring {n}"}),
        source_at=SOURCE_AT,
        bucket=BUCKET,
        key_version=key.KEY_VERSION,
        correlation_id=f"request-{n}",
    )
    return msgspec.structs.replace(row, **fields)


def address_version(n: int = 1, edition: int = 1, /, **fields: object) -> AddressVersion:
    """Make the n-th person's mail address, or another one of theirs."""
    identity, destination = Identity.user(str(n)), f"person-{n}@example.org"
    destination = destination if edition == 1 else f"{edition}-{destination}"
    row = AddressVersion(
        recipient_id_hash=derived_id.recipient_id_hash(identity_key=IDENTITY_KEY, tenant_id=TENANT, identity=identity),
        channel=Channel.EMAIL,
        key_hash=derived_id.recipient_key_hash(
            identity_key=IDENTITY_KEY,
            tenant_id=TENANT,
            identity=identity,
            channel=Channel.EMAIL,
            destination=destination,
        ),
        destination_index=derived_id.destination_index(
            index_key=INDEX_KEY, tenant_id=TENANT, channel=Channel.EMAIL, destination=destination
        ),
        ciphertext=b"sealed " + destination.encode(),
        correlation_id=f"request-{n}",
    )
    return msgspec.structs.replace(row, **fields)


def person_version(n: int = 1, /, **fields: object) -> PersonVersion:
    """Make the n-th person's profile."""
    identity = Identity.user(str(n))
    row = PersonVersion(
        recipient_id_hash=derived_id.recipient_id_hash(identity_key=IDENTITY_KEY, tenant_id=TENANT, identity=identity),
        profile_hash=f"k1:{n}",
        profile=b"sealed profile of " + identity.id.encode(),
        correlation_id=f"request-{n}",
    )
    return msgspec.structs.replace(row, **fields)


def contact(address: AddressVersion, /, **fields: object) -> Contact:
    """Make the contact at a stored address."""
    row = Contact(channel=address.channel, address_id=address.id or 0, destination_index=address.destination_index)
    return msgspec.structs.replace(row, **fields)


def person(n: int = 1, /, *addresses: AddressVersion, **fields: object) -> Person:
    """Make the n-th person, with these stored addresses of theirs."""
    identity = Identity.user(str(n))
    row = Person(
        recipient_id_hash=derived_id.recipient_id_hash(identity_key=IDENTITY_KEY, tenant_id=TENANT, identity=identity),
        domain=identity.domain,
        person_id=identity.id,
        locale="de-AT",
        tz_id="Europe/Vienna",
        contacts=tuple(contact(address) for address in addresses),
    )
    return msgspec.structs.replace(row, **fields)


def user_message(n: int = 1, /, **fields: object) -> UserMessage:
    """Make the line of the first event's job in the n-th person's inbox."""
    job, recipient = notification_job(1), Identity.user(str(n))
    id_hash = derived_id.recipient_id_hash(identity_key=IDENTITY_KEY, tenant_id=TENANT, identity=recipient)
    row = UserMessage(
        bucket=job.bucket,
        partition_key=key.user_message_pk(recipient=recipient),
        row_key=key.user_message_rk(source_at=job.source_at, job_rk=job.row_key),
        message_id=derived_id.message_id(tenant_id=TENANT, pk=job.row_key, recipient_id_hash=id_hash),
        recipient_id_hash=id_hash,
        job_row_key=job.row_key,
        event_type=job.event_type,
        correlation_id=job.correlation_id,
    )
    return msgspec.structs.replace(row, **fields)


def outgoing_item(parent: NotificationJob | MessagingJob, address: AddressVersion, /, **fields: object) -> OutgoingItem:
    """Make the item of a parent for a stored address; a campaign's rows are bulk and have the campaign as broadcast."""
    if address.id is None:
        raise ValueError("ensure the address first: an item refers to it by its id")
    campaign = isinstance(parent, MessagingJob)
    pk = str(parent.guid) if isinstance(parent, MessagingJob) else parent.row_key
    item = OutgoingItem(
        notification_job=None if campaign else pk,
        messaging_job=parent.guid if campaign else None,
        lane=Lane.BULK if campaign else Lane.NORMAL,
        broadcast=pk if campaign else "",
        route=f"{address.channel}:default",
        address_id=address.id,
        recipient_id_hash=address.recipient_id_hash,
        channel=address.channel,
        message_id=derived_id.message_id(tenant_id=TENANT, pk=pk, recipient_id_hash=address.recipient_id_hash),
    )
    return msgspec.structs.replace(item, **fields)


def outgoing_items(
    parent: NotificationJob | MessagingJob, addresses: Sequence[AddressVersion], /, **fields: object
) -> list[OutgoingItem]:
    """Make the items of a parent, one for each stored address."""
    return [outgoing_item(parent, address, **fields) for address in addresses]


def report_subscription(n: int = 1, /, **fields: object) -> ReportSubscription:
    """Make a subscription that says something in every field."""
    row = ReportSubscription(
        guid=guid(n, "subscription"),
        name=f"Wöchentlich {n}",
        report="delivery-summary",
        parameters={"type": "welcome"},
        rule="FREQ=WEEKLY;BYDAY=MO;BYHOUR=8",
        tz_id="Europe/Vienna",
        starts_at=SOURCE_AT,
        ends_at=SOURCE_AT + timedelta(days=1000),
        missed=MissedRuns.SKIP,
        form=ReportForm.CSV,
        delivery=ReportDelivery.LINK,
        notification_type="weekly-report",
        to=(Identity.user("1"), Identity.group(guid(1, "group"))),
        recipients=(Addressee(role="teacher"), Addressee(unit=True)),
        business_unit=guid(1, "unit"),
    )
    return msgspec.structs.replace(row, **fields)
