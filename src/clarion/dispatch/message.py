"""The rows of messages: contents, versions of addresses and profiles, inbox lines and outgoing messages.

Pure; nonces are arguments.
"""

from datetime import datetime
from typing import assert_never
from uuid import UUID

import msgspec

from clarion.dispatch.occurrence import scheduler_key
from clarion.dispatch.request import (
    CampaignContent,
    ContentRequest,
    Destination,
    InboxEntry,
    Profile,
    ReportContent,
    WaveContent,
)
from clarion.domain import derived_id, destination, key
from clarion.domain.address import AddressVersion
from clarion.domain.hashing import keyed_digest
from clarion.domain.identity import Channel, Lane
from clarion.domain.inbox import UserMessage
from clarion.domain.messaging import MessagingJob, MessagingKind
from clarion.domain.notification import NotificationJob
from clarion.domain.occurrence import primary_entity
from clarion.domain.outgoing import OutgoingItem, UncertainPolicy
from clarion.domain.person import PROFILE_BYTES_MAX, PersonVersion
from clarion.domain.seal import TenantKeys
from clarion.errors import InvalidInput
from clarion.sealing.contents import content_fingerprint
from clarion.sealing.place import destination_place, inbox_place, profile_place


def messaging_job(tenant_id: str, request: ContentRequest) -> MessagingJob:
    """Make the job whose content lies in a blob."""
    guid, kind, source, run_key = _content_place(request, tenant_id)
    return MessagingJob(
        guid=guid,
        kind=kind,
        source=source,
        run_key=run_key,
        template_key=request.template_key,
        asked_template_version=request.template_version,
        template_version=request.template_version or request.resolved_template_version,
        content_hash=content_fingerprint(request.content),
        source_at=request.source_at,
        bucket=key.month_bucket(request.source_at),
        key_version=key.KEY_VERSION,
        correlation_id=request.trace.correlation_id,
        traceparent=request.trace.traceparent,
    )


def address_version(keys: TenantKeys, given: Destination, *, nonce: bytes) -> AddressVersion:
    """Make the one row in which a destination is stored, with all that is ever computed from it."""
    address = destination.normalise(given.channel, given.destination)
    identity_hash = keys.hash_of(given.identity)
    key_hash = derived_id.recipient_key_hash(
        identity_key=keys.identity_key,
        tenant_id=keys.tenant_id,
        identity=given.identity,
        channel=given.channel,
        destination=address,
    )
    place = destination_place(recipient_id_hash=identity_hash, channel=given.channel, key_hash=key_hash)
    return AddressVersion(
        recipient_id_hash=identity_hash,
        channel=given.channel,
        key_hash=key_hash,
        destination_index=derived_id.destination_index(
            index_key=keys.index_key, tenant_id=keys.tenant_id, channel=given.channel, destination=address
        ),
        ciphertext=place.seal(keys, address.encode(), nonce=nonce),
        correlation_id=given.trace.correlation_id,
    )


def person_version(keys: TenantKeys, given: Profile, *, nonce: bytes) -> PersonVersion:
    """Make the one row in which a profile is stored; the hash is keyed, because a name is soon guessed."""
    identity_hash = keys.hash_of(given.identity)
    profile_hash = keyed_digest(keys.identity_key, given.content)
    profile = msgspec.json.encode(given.content)
    if len(profile) > PROFILE_BYTES_MAX:
        raise InvalidInput(
            f"a profile takes {len(profile)} bytes", field="profile", hint=f"keep at most {PROFILE_BYTES_MAX} of it"
        )
    place = profile_place(recipient_id_hash=identity_hash, profile_hash=profile_hash)
    return PersonVersion(
        recipient_id_hash=identity_hash,
        profile_hash=profile_hash,
        profile=place.seal(keys, profile, nonce=nonce),
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
            pk=job.outgoing_pk,
            recipient_id_hash=identity_hash,
        ),
        recipient_id_hash=identity_hash,
        job_row_key=job.row_key,
        event_type=job.event_type,
        category=entry.category,
        expires_at=entry.expires_at,
        content=entry.content
        and inbox_place(partition_key=partition_key, row_key=row_key).seal(keys, entry.content, nonce=nonce),
        correlation_id=job.correlation_id,
        traceparent=job.traceparent,
    )


def outgoing_item(
    tenant_id: str,
    parent: NotificationJob | MessagingJob,
    *,
    recipient_id_hash: str,
    channel: Channel,
    address_id: int,
    lane: Lane,
    hold: tuple[int, int] | None = None,
    expires_at: datetime | None = None,
    uncertain_policy: UncertainPolicy = UncertainPolicy.PREFER_LOSS,
    attempts_max: int | None = None,
    person_version_id: int | None = None,
    locale: str | None = None,
    tz_id: str | None = None,
    category: str | None = None,
) -> OutgoingItem:
    """Make one message of a stored parent to an address version, under the claim `hold`; its route is its channel.

    Of a job whose content is that of a messaging job, that is the parent.
    """
    key.require_key_version(parent.key_version)
    messaging_job = parent.guid if isinstance(parent, MessagingJob) else parent.content_of
    notification_job = parent.row_key if isinstance(parent, NotificationJob) and messaging_job is None else None
    pk = key.outgoing_pk(job_rk=notification_job, messaging_job_guid=messaging_job)
    return OutgoingItem(
        notification_job=notification_job,
        messaging_job=messaging_job,
        hold=hold,
        lane=lane,
        route=channel,
        address_id=address_id,
        recipient_id_hash=recipient_id_hash,
        channel=channel,
        message_id=derived_id.message_id(tenant_id=tenant_id, pk=pk, recipient_id_hash=recipient_id_hash),
        order_key=derived_id.order_key(
            tenant_id=tenant_id, recipient_id_hash=recipient_id_hash, channel=channel, lane=lane
        ),
        expires_at=expires_at,
        uncertain_policy=uncertain_policy,
        attempts_max=attempts_max,
        person_version_id=person_version_id,
        locale=locale,
        tz_id=tz_id,
        category=category,
    )


def _content_place(request: ContentRequest, tenant_id: str) -> tuple[UUID, MessagingKind, str, str]:
    """Return guid, kind, source and run key of a messaging job, by what its content is of."""
    match request.of:
        case CampaignContent(draft=draft):
            guid = derived_id.sent_campaign_guid(tenant_id=tenant_id, draft_guid=draft)
            return guid, MessagingKind.CAMPAIGN, str(draft), str(guid)
        case WaveContent(campaign=campaign, n=n):
            guid = derived_id.wave_guid(tenant_id=tenant_id, campaign_guid=campaign, n=n)
            return guid, MessagingKind.WAVE, str(campaign), str(n)
        case ReportContent(occurrence=occurrence):
            run_key = scheduler_key(occurrence)
            guid = derived_id.report_job_guid(tenant_id=tenant_id, scheduler_key=run_key)
            return guid, MessagingKind.REPORT, str(primary_entity(occurrence.what)), run_key
        case _:
            assert_never(request.of)
