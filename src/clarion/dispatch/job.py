"""The rows of a notification job: the job, its scheduler row and its guard, with the keys that its origin decides.

The recipients are left empty here: `generate` decides about them. Pure; nonces are arguments.
"""

from datetime import UTC, datetime, timedelta
from typing import Any, Final, assert_never
from uuid import UUID

import msgspec

from clarion.dispatch.occurrence import scheduler_key
from clarion.dispatch.request import (
    PER_SEND,
    Direct,
    FromAutomation,
    FromCampaign,
    FromEvent,
    JobRequest,
    Occurrence,
    Payload,
)
from clarion.domain import derived_id, key
from clarion.domain.comparison import differing_names
from clarion.domain.fingerprint import Fingerprint
from clarion.domain.guard import IdempotencyGuard, JobEntry
from clarion.domain.hint import Hints
from clarion.domain.identity import IdentityDomain
from clarion.domain.instant import require_storable
from clarion.domain.notification import (
    PAYLOAD_BYTES_MAX,
    PRODUCED_BYTES_MAX,
    NotificationJob,
    NotificationScheduler,
)
from clarion.domain.occurrence import Reminder, ReportRun
from clarion.domain.seal import TenantKeys
from clarion.errors import InvalidInput
from clarion.sealing.place import payload_place

EPOCH_AT: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND: Final = timedelta(microseconds=1)

Place = tuple[str, str, UUID, UUID | None]
"""A job's partition key, row key and guid, and the id of its message where it has one recipient to answer to."""


def job_entry(keys: TenantKeys, request: JobRequest, *, nonce: bytes) -> JobEntry:
    """Make a job with its scheduler row and, under an idempotency key, its guard."""
    partition_key, row_key, guid, message_id = _place(request, keys)
    due_at = _due_at(request)
    payload = _payload_bytes(
        Payload(
            to=request.to,
            addressees=request.addressees,
            data=request.data,
            entity=entity_of(request),
            due_at=due_at,
            blob_hash=request.blob_hash,
            **_per_send(request),
        ),
        size_max=PAYLOAD_BYTES_MAX if isinstance(request.origin, Direct) else PRODUCED_BYTES_MAX,
    )
    job = NotificationJob(
        partition_key=partition_key,
        row_key=row_key,
        guid=guid,
        message_id=message_id,
        event_type=request.event_type,
        operation=_operation(request),
        source_type=request.entity[0] if request.entity else None,
        source=str(request.entity[1]) if request.entity else None,
        automation_key=row_key if isinstance(request.origin, FromAutomation) else None,
        template_key=request.template_key,
        asked_template_version=request.template_version,
        template_version=request.template_version or request.resolved_template_version,
        payload_hash=_fingerprint(request, keys),
        payload=payload_place(guid).seal(keys, payload, nonce=nonce),
        one_time_code=request.resolved_one_time_code,
        business_unit=request.business_unit,
        messaging_job=None if request.messaging_job is None else str(request.messaging_job),
        source_at=request.source_at,
        bucket=key.month_bucket(request.source_at),
        key_version=key.KEY_VERSION,
        actor=request.actor,
        correlation_id=request.trace.correlation_id,
        traceparent=request.trace.traceparent,
    )
    artifact_type, artifact_pk, artifact_rk = job.artifact
    scheduler = NotificationScheduler(
        artifact_type=artifact_type,
        artifact_pk=artifact_pk,
        artifact_rk=artifact_rk,
        event_type=job.event_type,
        lane=request.lane or request.resolved_lane,
        due_at=due_at,
        correlation_id=job.correlation_id,
        traceparent=job.traceparent,
    )
    return JobEntry(
        job=job,
        scheduler=scheduler if request.scheduled else None,
        guard=_guard(keys, request.origin, job) if isinstance(request.origin, Direct) else None,
    )


def _due_at(request: JobRequest) -> datetime | None:
    """Say when a job is due; None is now, and so is a time that has passed, even one that no engine could store."""
    if request.not_before_at is None or request.not_before_at <= request.source_at:
        return None
    require_storable(request.not_before_at, field="not_before_at")
    return request.not_before_at


def _fingerprint(request: JobRequest, keys: TenantKeys) -> Fingerprint:
    """Hash what two requests under one key may not differ in: only what somebody asked for.

    A producer of ours reads its data anew when it retries, and the source may have changed since: the first reading
    stands, and that is no conflict.
    """
    given = {
        "event_type": request.event_type,
        "entity": request.entity,
        "template_key": request.template_key,
        "template_version": request.template_version,
        **(_asked(request) if isinstance(request.origin, Direct) else {}),
    }
    return Fingerprint.keyed(given, key=keys.identity_key)


def differing_payload(request: JobRequest, stored: bytes) -> list[str]:
    """Name what a request has otherwise than a stored payload: recipients, fields of its data, what holds per send.

    Lane and time are not compared, because the payload does not say what was asked for.
    """
    found = msgspec.json.decode(stored, type=Payload)
    differing = ["recipients"] if request.to != found.to else []
    differing += differing_names(request.data, found.data, path="data")
    differing += differing_names(entity_of(request), found.entity, path="entity") if found.entity else []
    for name in PER_SEND:
        mine, theirs = getattr(request, name), getattr(found, name)
        if isinstance(mine, Hints) and isinstance(theirs, Hints):
            differing += differing_names(msgspec.to_builtins(mine), msgspec.to_builtins(theirs), path=name)
        elif mine != theirs:
            differing.append(name)
    return differing


def entity_of(request: JobRequest) -> dict[str, object]:
    """Give what a request is about as templates read it; nothing where it is about nothing."""
    if request.entity is None:
        return {}
    for name in sorted({"type", "guid"} & request.entity_data.keys()):
        raise InvalidInput(
            "the entity has it already", field=f"entity.data.{name}", hint="leave it out, or give it another name"
        )
    kind, guid = request.entity
    return {"type": kind, "guid": str(guid), **request.entity_data}


def guard_key_hash(keys: TenantKeys, operation: str, idempotency_key: str) -> str:
    """Hash a caller's key as its guard is kept."""
    return derived_id.guard_key_hash(
        identity_key=keys.identity_key,
        tenant_id=keys.tenant_id,
        operation=operation,
        idempotency_key=idempotency_key,
    )


def _guard(keys: TenantKeys, direct: Direct, job: NotificationJob) -> IdempotencyGuard | None:
    """Make the guard of a send under a caller's key; one under a minted guid has none."""
    if direct.idempotency_key is None:
        return None
    return IdempotencyGuard(
        operation=direct.operation,
        key_hash=guard_key_hash(keys, direct.operation, direct.idempotency_key),
        payload_hash=job.payload_hash,
        job_partition_key=job.partition_key,
        job_row_key=job.row_key,
        source_at=job.source_at,
    )


def _asked(request: JobRequest) -> dict[str, object]:
    """Give what a caller of ours asked for; what it did not give is null and so no part of the canonical form."""
    not_before_at = request.not_before_at
    return {
        "to": msgspec.to_builtins(request.to),
        "data": msgspec.to_builtins(request.data),
        "entity_data": msgspec.to_builtins(request.entity_data) or None,
        "lane": request.lane,
        # Microseconds, in text: every instant that a caller can write has them, whichever its zone.
        "not_before_at": not_before_at and str((not_before_at - EPOCH_AT) // MICROSECOND),
        # What was not given is left out, so that a send without any of these has the hash that it always had.
        **{name: msgspec.to_builtins(value) for name, value in _per_send(request).items() if value},
    }


def _per_send(request: JobRequest) -> dict[str, Any]:  # Any: fields of several types
    return {name: getattr(request, name) for name in PER_SEND}


def _operation(request: JobRequest) -> str:
    match request.origin:
        case Direct(operation=operation):
            return operation
        case FromAutomation():
            return "automation"
        case FromCampaign():
            return "campaign"
        case FromEvent():
            return "event"
        case _:
            assert_never(request.origin)


def _payload_bytes(content: Payload, *, size_max: int) -> bytes:
    """Write a payload as JSON, within its limit."""
    try:
        payload = msgspec.json.encode(content)
    except (OverflowError, TypeError, ValueError):
        raise InvalidInput(
            "it holds what JSON does not have", field="data", hint="use text, numbers, lists and objects only"
        ) from None
    if len(payload) > size_max:
        raise InvalidInput(
            f"recipients and data take {len(payload)} bytes", field="data", hint=f"send at most {size_max}"
        )
    return payload


def _place(request: JobRequest, keys: TenantKeys) -> Place:
    """Place a notification job by its origin."""
    match request.origin:
        case Direct() as direct:
            return _direct_place(request, direct, keys)
        case FromAutomation(occurrence=occurrence):
            pk, rk = _automation_job(occurrence)
        case FromCampaign(business_unit=unit, campaign=campaign):
            pk, rk = key.campaign_job_pk(business_unit_guid=unit), key.campaign_job_rk(campaign_guid=campaign)
        case FromEvent(event_type=event_type, event_guid=event_guid):
            pk = key.event_job_pk(entity_guid=_entity_guid(request))
            rk = key.event_job_rk(
                event_type=event_type, event_guid=event_guid, notification_event_type=request.event_type
            )
        case _:
            assert_never(request.origin)
    return pk, rk, derived_id.row_guid(tenant_id=keys.tenant_id, row_key=rk), None


def _automation_job(occurrence: Occurrence) -> tuple[str, str]:
    """Open a reminder's history at its entity, a report's at its subscription; the row key is the occurrence's own."""
    row_key = scheduler_key(occurrence)
    match occurrence.what:
        case Reminder(primary_entity=entity):
            return key.reminder_job_pk(entity_guid=entity), key.reminder_job_rk(scheduler_key=row_key)
        case ReportRun(subscription=subscription):
            return key.report_job_pk(subscription_guid=subscription), key.report_job_rk(scheduler_key=row_key)
        case _:
            assert_never(occurrence.what)


def _direct_place(request: JobRequest, direct: Direct, keys: TenantKeys) -> Place:
    """Place a direct send: its guid derives from the caller's key, or was minted once at the door."""
    if (direct.idempotency_key is None) == (direct.minted_guid is None):
        raise InvalidInput(
            "a direct send has either an idempotency key or a minted guid",
            field="origin",
            hint="pass the caller's key, or mint a guid where there is none",
        )
    guid = direct.minted_guid or derived_id.job_guid(
        tenant_id=keys.tenant_id, operation=direct.operation, idempotency_key=direct.idempotency_key or ""
    )
    row_key = key.manual_job_rk(created_at=request.source_at, job_guid=guid)
    recipients = [target.identity for target in request.to]
    hashed = message_id = None
    if len(recipients) == 1:
        hashed = keys.hash_of(recipients[0])
        if recipients[0].domain is not IdentityDomain.GROUP:
            message_id = derived_id.message_id(
                tenant_id=keys.tenant_id, pk=key.outgoing_pk(job_rk=row_key), recipient_id_hash=hashed
            )
    pk = key.manual_job_pk(
        entity_guid=request.entity[1] if request.entity else None,
        recipients=recipients,
        recipient_id_hash=hashed,
        job_guid=guid,
    )
    return pk, row_key, guid, message_id


def _entity_guid(request: JobRequest) -> UUID:
    if request.entity is None:
        raise InvalidInput("what an event leads to is about an entity", field="entity", hint="name the event's entity")
    return request.entity[1]
