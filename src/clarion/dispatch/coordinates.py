"""Where a record belongs: the keys of occurrences, jobs and contents, derived from what the caller gave.

One match for each closed union of `request`; the formulas themselves are in `domain.key` and `domain.derived_id`. Pure.
"""

from typing import assert_never
from uuid import UUID

import msgspec

from clarion.dispatch.request import (
    CampaignContent,
    ContentRequest,
    DateTrigger,
    Direct,
    FromAutomation,
    FromCampaign,
    FromEvent,
    JobRequest,
    Occurrence,
    Reminder,
    ReportContent,
    ReportRun,
    ThresholdTrigger,
    WaveContent,
)
from clarion.domain import derived_id, key
from clarion.domain.identity import IdentityDomain
from clarion.domain.messaging import MessagingKind
from clarion.domain.seal import TenantKeys
from clarion.errors import InvalidInput


class JobPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A job's coordinates and public id, and that of its message where it has one recipient to answer to."""

    partition_key: str
    row_key: str
    guid: UUID
    message_id: UUID | None = None


class ContentPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A messaging job's guid, and what it says of its origin."""

    guid: UUID
    kind: MessagingKind
    source: str
    run_key: str


def scheduler_key(occurrence: Occurrence) -> str:
    """Name an occurrence; a deliberate re-run of a completed one has a key of its own."""
    first = _first_run_key(occurrence.what)
    return first if occurrence.rerun is None else key.retry_key(scheduler_key=first, n=occurrence.rerun)


def primary_entity(occurrence: Occurrence) -> UUID:
    """Tell where an occurrence's history opens."""
    match occurrence.what:
        case Reminder(primary_entity=entity):
            return entity
        case ReportRun(subscription=subscription):
            return subscription
        case _:
            assert_never(occurrence.what)


def job_place(request: JobRequest, keys: TenantKeys) -> JobPlace:
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
    return JobPlace(partition_key=pk, row_key=rk, guid=derived_id.row_guid(tenant_id=keys.tenant_id, row_key=rk))


def content_place(request: ContentRequest, tenant_id: str) -> ContentPlace:
    """Place a messaging job by what its content is of."""
    match request.of:
        case CampaignContent(draft=draft):
            guid = derived_id.sent_campaign_guid(tenant_id=tenant_id, draft_guid=draft)
            return ContentPlace(guid=guid, kind=MessagingKind.CAMPAIGN, source=str(draft), run_key=str(guid))
        case WaveContent(campaign=campaign, n=n):
            guid = derived_id.wave_guid(tenant_id=tenant_id, campaign_guid=campaign, n=n)
            return ContentPlace(guid=guid, kind=MessagingKind.WAVE, source=str(campaign), run_key=str(n))
        case ReportContent(occurrence=occurrence):
            run_key = scheduler_key(occurrence)
            guid = derived_id.report_job_guid(tenant_id=tenant_id, scheduler_key=run_key)
            source = str(primary_entity(occurrence))
            return ContentPlace(guid=guid, kind=MessagingKind.REPORT, source=source, run_key=run_key)
        case _:
            assert_never(request.of)


def _first_run_key(what: Reminder | ReportRun) -> str:
    match what:
        case Reminder(trigger=DateTrigger() as trigger):
            return key.date_reminder_key(
                setting=what.setting,
                source_type=what.source_type,
                source=what.source,
                trigger_key=what.trigger_key,
                target_date=trigger.target_date,
                offset_days=trigger.offset_days,
            )
        case Reminder(trigger=ThresholdTrigger() as trigger):
            return key.threshold_reminder_key(
                setting=what.setting,
                source_type=what.source_type,
                source=what.source,
                trigger_key=what.trigger_key,
                metric=trigger.metric,
                value=trigger.value,
                firing_policy=trigger.firing_policy,
                scope=trigger.scope,
                local_date=trigger.local_date,
                edge_no=trigger.edge_no,
            )
        case ReportRun(period_start_at=period_start_at, manual_run=None) if period_start_at is not None:
            return key.report_scheduled_key(subscription_guid=what.subscription, period_start_at=period_start_at)
        case ReportRun(period_start_at=None, manual_run=manual_run) if manual_run is not None:
            return key.report_manual_key(subscription_guid=what.subscription, manual_run_guid=manual_run)
        case _:
            raise InvalidInput(
                "a run of a report is either of a period or by hand",
                field="what",
                hint="give period_start_at or manual_run, and not both",
            )


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


def _direct_place(request: JobRequest, direct: Direct, keys: TenantKeys) -> JobPlace:
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
    return JobPlace(partition_key=pk, row_key=row_key, guid=guid, message_id=message_id)


def _entity_guid(request: JobRequest) -> UUID:
    if request.entity is None:
        raise InvalidInput("what an event leads to is about an entity", field="entity", hint="name the event's entity")
    return request.entity[1]
