"""Records from what callers gave: keys derived, private parts sealed, fingerprints taken. Pure; nonces are arguments.

What is resolved later (template version, recipients) is left empty here and filled by the stage that resolves it.
"""

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Final, assert_never

import msgspec

from clarion.dispatch import coordinates
from clarion.dispatch.request import (
    ContentRequest,
    Destination,
    Direct,
    FromAutomation,
    FromCampaign,
    FromEvent,
    InboxEntry,
    JobRequest,
    Payload,
    PendingRequest,
    Send,
)
from clarion.domain import derived_id, destination, key
from clarion.domain.address import AddressVersion
from clarion.domain.fingerprint import Fingerprint
from clarion.domain.guard import IdempotencyGuard, JobEntry
from clarion.domain.inbox import UserMessage
from clarion.domain.messaging import MessagingJob
from clarion.domain.notification import ArtifactType, NotificationJob, NotificationScheduler
from clarion.domain.outgoing import OutgoingItem
from clarion.domain.seal import TenantKeys
from clarion.errors import InvalidInput
from clarion.sealing.place import destination_place, inbox_place, payload_place

EPOCH_AT: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND: Final = timedelta(microseconds=1)

PAYLOAD_BYTES_MAX: Final = 64 * 1024
"""Merge data of a direct send; anything larger is content, which goes into a blob."""


def job_entry(keys: TenantKeys, request: JobRequest, *, nonce: bytes) -> JobEntry:
    """Make a job with its scheduler row and, under an idempotency key, its guard."""
    place = coordinates.job_place(request, keys)
    payload = _payload_bytes(Payload(to=request.to, data=request.data, due_at=request.due_at))
    direct = isinstance(request.origin, Direct)
    # Only what somebody asked for is compared. A producer of ours reads its data anew when it retries, and the source
    # may have changed since: the first reading stands, and that is no conflict.
    fingerprint = Fingerprint.keyed(
        {
            "event_type": request.event_type,
            "entity": request.entity,
            "template_key": request.template_key,
            "template_version": request.template_version,
            **(_asked(request) if direct else {}),
        },
        key=keys.identity_key,
    )
    job = NotificationJob(
        partition_key=place.partition_key,
        row_key=place.row_key,
        guid=place.guid,
        message_id=place.message_id,
        event_type=request.event_type,
        operation=_operation(request),
        source_type=request.entity[0] if request.entity else None,
        source=str(request.entity[1]) if request.entity else None,
        automation_key=place.row_key if isinstance(request.origin, FromAutomation) else None,
        template_key=request.template_key,
        asked_template_version=request.template_version,
        template_version=request.template_version or request.resolved_template_version,
        payload_hash=fingerprint,
        payload=payload_place(place.guid).seal(keys, payload, nonce=nonce),
        source_at=request.source_at,
        bucket=key.month_bucket(request.source_at),
        key_version=key.KEY_VERSION,
        actor=request.actor,
        correlation_id=request.trace.correlation_id,
        traceparent=request.trace.traceparent,
    )
    scheduler = PendingRequest(
        artifact_type=ArtifactType.NOTIFICATION_JOB,
        artifact_pk=job.partition_key,
        artifact_rk=job.row_key,
        event_type=job.event_type,
        lane=request.lane,
        due_at=request.due_at,
        trace=request.trace,
    )
    return JobEntry(
        job=job,
        scheduler=pending(scheduler) if request.scheduled else None,
        guard=_guard(keys, request.origin, job) if isinstance(request.origin, Direct) else None,
    )


def pending(request: PendingRequest) -> NotificationScheduler:
    """Make the row that says that an artifact is to be worked on."""
    return NotificationScheduler(
        artifact_type=request.artifact_type,
        artifact_pk=request.artifact_pk,
        artifact_rk=request.artifact_rk,
        event_type=request.event_type,
        lane=request.lane,
        due_at=request.due_at,
        correlation_id=request.trace.correlation_id,
        traceparent=request.trace.traceparent,
    )


def messaging_job(tenant_id: str, request: ContentRequest) -> MessagingJob:
    """Make the job whose content lies in a blob."""
    place = coordinates.content_place(request, tenant_id)
    return MessagingJob(
        guid=place.guid,
        kind=place.kind,
        source=place.source,
        run_key=place.run_key,
        template_key=request.template_key,
        asked_template_version=request.template_version,
        content_hash=content_fingerprint(request.content),
        source_at=request.source_at,
        bucket=key.month_bucket(request.source_at),
        key_version=key.KEY_VERSION,
        correlation_id=request.trace.correlation_id,
        traceparent=request.trace.traceparent,
    )


def content_fingerprint(content: bytes) -> Fingerprint:
    """Fingerprint a blob's content; it is too large to be guessed from its hash."""
    return Fingerprint.of(hashlib.sha256(content).hexdigest())


def address_version(keys: TenantKeys, given: Destination, *, nonce: bytes) -> AddressVersion:
    """Make the one row in which a destination is stored, with all that is ever computed from it."""
    address = destination.normalise(given.channel, given.destination)
    identity_hash = keys.hash_of(given.identity)
    place = destination_place(recipient_id_hash=identity_hash, channel=given.channel, serial=given.serial)
    return AddressVersion(
        recipient_id_hash=identity_hash,
        channel=given.channel,
        serial=given.serial,
        key_hash=derived_id.recipient_key_hash(
            identity_key=keys.identity_key,
            tenant_id=keys.tenant_id,
            identity=given.identity,
            channel=given.channel,
            destination=address,
        ),
        destination_index=derived_id.destination_index(
            index_key=keys.index_key, tenant_id=keys.tenant_id, channel=given.channel, destination=address
        ),
        ciphertext=place.seal(keys, address.encode(), nonce=nonce),
        correlation_id=given.trace.correlation_id,
    )


def user_message(keys: TenantKeys, entry: InboxEntry, *, nonce: bytes) -> UserMessage:
    """Make one recipient's inbox row; bucket and time are the stored job's, the message id that of its other rows."""
    job = entry.job
    key.require_key_version(job.key_version)
    partition_key = key.user_message_pk(recipient=entry.recipient)
    row_key = key.user_message_rk(source_at=job.source_at, job_rk=job.row_key)
    identity_hash = keys.hash_of(entry.recipient)
    return UserMessage(
        bucket=job.bucket,
        partition_key=partition_key,
        row_key=row_key,
        message_id=derived_id.message_id(
            tenant_id=keys.tenant_id,
            pk=key.outgoing_pk(job_rk=job.row_key, messaging_job_guid=entry.messaging_job),
            recipient_id_hash=identity_hash,
        ),
        recipient_id_hash=identity_hash,
        job_row_key=job.row_key,
        event_type=job.event_type,
        content=entry.content
        and inbox_place(partition_key=partition_key, row_key=row_key).seal(keys, entry.content, nonce=nonce),
        correlation_id=job.correlation_id,
        traceparent=job.traceparent,
    )


def outgoing_item(tenant_id: str, send: Send) -> OutgoingItem:
    """Make one message of a parent."""
    key.require_key_version(send.key_version)
    pk = key.outgoing_pk(job_rk=send.notification_job, messaging_job_guid=send.messaging_job)
    return OutgoingItem(
        notification_job=send.notification_job,
        messaging_job=send.messaging_job,
        hold=send.hold,
        lane=send.lane,
        source=send.source,
        route=send.route,
        address_id=send.address_id,
        recipient_id_hash=send.recipient_id_hash,
        channel=send.channel,
        message_id=derived_id.message_id(tenant_id=tenant_id, pk=pk, recipient_id_hash=send.recipient_id_hash),
        attempt_no=send.attempt_no,
        order_key=derived_id.order_key(
            tenant_id=tenant_id, recipient_id_hash=send.recipient_id_hash, channel=send.channel, lane=send.lane
        ),
        due_at=send.due_at,
        expires_at=send.expires_at,
        doubt_policy=send.doubt_policy,
    )


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
    due_at = request.asked_due_at
    return {
        "to": msgspec.to_builtins(request.to),
        "data": msgspec.to_builtins(request.data),
        "lane": request.asked_lane,
        # Microseconds, in text: every instant that a caller can write has them, whichever its zone.
        "not_before_at": due_at and str((due_at - EPOCH_AT) // MICROSECOND),
    }


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


def _payload_bytes(content: Payload) -> bytes:
    """Write a payload as JSON, within its limit."""
    try:
        payload = msgspec.json.encode(content)
    except (TypeError, ValueError) as error:
        raise InvalidInput(str(error), field="data", hint="use text, numbers, lists and objects only") from None
    if len(payload) > PAYLOAD_BYTES_MAX:
        raise InvalidInput(
            f"recipients and data take {len(payload)} bytes", field="data", hint=f"send at most {PAYLOAD_BYTES_MAX}"
        )
    return payload
