"""The shapes of the HTTP API about occurrences: what waits to fall due, what came of it, and what people do about it.

Beside `client.wire`, whose rules hold here too. Plain values: nothing here reads or writes anything.
"""

from datetime import date, datetime
from enum import StrEnum
from typing import Annotated
from uuid import UUID

import msgspec

from clarion.client.wire import At, PageQuery, Reason
from clarion.domain.automation import AutomationStatus, AutomationType, CanceledBy, TriggerType
from clarion.domain.due import DueOutcome, Named
from clarion.domain.occurrence_trace import TraceDecision
from clarion.domain.planning import EndReason
from clarion.domain.rerun import RERUNS_MAX
from clarion.ports.automation import Standing


class Act(StrEnum):
    """What people do with one occurrence."""

    HOLD = "hold"
    RELEASE = "release"
    RUN = "run"
    DEACTIVATE = "deactivate"


Key = Annotated[
    str,
    msgspec.Meta(
        description="the name of the occurrence; in a path its percent signs are written as %25",
        examples=["reminder:5e6d0d3c-6f5c-4d1e-9c1a-0d6a3b1f2a10:invoice:INV-17:due:2026-03-31:7"],
    ),
]


class AutomationQuery(PageQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which page of which occurrences."""

    standing: Annotated[
        Standing,
        msgspec.Meta(
            description="`waiting`: not due yet; `due`: not taken yet; `held`: until somebody releases them; `failed`; "
            "`processing`; `ended`: handed over, deactivated or canceled"
        ),
    ] = Standing.WAITING
    type: Annotated[AutomationType, msgspec.Meta(description="only these")] | None = None
    until_at: Annotated[datetime, msgspec.Meta(tz=True, description="only those that are due by then")] | None = None


class OccurrenceLine(msgspec.Struct, frozen=True, kw_only=True):
    """One occurrence of a reminder or a report, and how it stands."""

    key: Key
    type: AutomationType
    trigger: TriggerType
    setting: Annotated[str, msgspec.Meta(description="the guid of the reminder setting or of the report subscription")]
    source_type: str
    source: Annotated[str, msgspec.Meta(description="by the id that its application knows it by")]
    notification_type: str
    due_at: Annotated[datetime, msgspec.Meta(tz=True, description="or when it is tried again, or was made due by hand")]
    planned_at: Annotated[datetime, msgspec.Meta(tz=True, description="when it is due by its plan")]
    local_date: Annotated[date, msgspec.Meta(description="in `zone`, from which `planned_at` was reckoned")] | None
    local_time: str | None
    zone: str | None
    status: AutomationStatus
    on_hold: bool
    reason: Annotated[EndReason, msgspec.Meta(description="why it ended without anybody being told")] | None
    failure: Annotated[str, msgspec.Meta(description="why the last try failed, or why it is on hold")] | None
    retry_count: int
    job_id: Annotated[UUID, msgspec.Meta(description="the notification that it led to")] | None


class Diagnostics(msgspec.Struct, frozen=True, kw_only=True):
    """What was looked at when an occurrence failed, was put on hold or had to be tried again."""

    claim: Annotated[int, msgspec.Meta(description="the version that it was claimed as")]
    at: At
    decision: TraceDecision
    setting_version: Annotated[int, msgspec.Meta(description="null where it did not come to that")] | None
    source_found: Annotated[bool, msgspec.Meta(description="whether there were facts about its source")] | None
    source_version: Annotated[int, msgspec.Meta(description="0 where a plugin provides it")] | None
    code: Annotated[str, msgspec.Meta(description="of the error, where one was raised")] | None
    error: str | None


class Occurrence(OccurrenceLine, frozen=True, kw_only=True):
    """One occurrence with all that is known of it."""

    entity: Annotated[UUID, msgspec.Meta(description="whose history tells of it")]
    business_unit: UUID | None
    target_date: date | None
    offset_days: int | None
    metric: str | None
    threshold: Annotated[str, msgspec.Meta(description="as its key has it; null for any value")] | None
    policy: str | None
    scope: str | None
    run_now_at: Annotated[datetime, msgspec.Meta(tz=True, description="when a person made it due")] | None
    next_retry_at: At | None
    lease_until: Annotated[datetime, msgspec.Meta(tz=True, description="until when a worker has it")] | None
    canceled_by: CanceledBy | None
    outcome: Annotated[DueOutcome, msgspec.Meta(description="what it came to; HandedOver is not arrived")] | None
    messaging_job_id: Annotated[UUID, msgspec.Meta(description="the report that it led to")] | None
    template_version: int | None
    inbox_only: bool
    named: Annotated[int, msgspec.Meta(description="recipients that were named one by one")]
    named_by: Annotated[Named, msgspec.Meta(description="who said for whom it is")] | None
    timeline: Annotated[str, msgspec.Meta(description="where the notification's whole story is")] | None
    trace: Annotated[str, msgspec.Meta(description="the blob that has its diagnostics")] | None
    diagnostics: Annotated[Diagnostics, msgspec.Meta(description="what `trace` says; with the grant reveal")] | None
    next_rerun: (
        Annotated[int, msgspec.Meta(description="the number of its next re-run; null while it is not completed")] | None
    )
    correlation_id: str
    version: int


class OccurrencePage(msgspec.Struct, frozen=True, kw_only=True):
    """Occurrences, by when they are due."""

    items: tuple[OccurrenceLine, ...]
    next_cursor: str | None


class RerunRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why a completed occurrence is run again, as which re-run: asked for twice, one number is one re-run."""

    number: Annotated[int, msgspec.Meta(ge=1, le=RERUNS_MAX, description="`next_rerun` of the occurrence")]
    reason: Reason


class ActRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why somebody does it."""

    reason: Reason
