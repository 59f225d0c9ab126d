"""The examples of `example` about occurrences."""

from datetime import UTC, date, datetime
from typing import Final
from uuid import UUID

import msgspec

from clarion.client import wire_automation
from clarion.domain.automation import AutomationStatus, AutomationType, TriggerType
from clarion.domain.due import DueOutcome, Named

_GUID: Final = UUID("6f1c2c7e-4444-4000-8000-000000000001")
_JOB: Final = UUID("5e6d0d3c-6f5c-5d1e-9c1a-0d6a3b1f2a10")
_DUE_AT: Final = datetime(2026, 3, 24, 8, 0, tzinfo=UTC)

OCCURRENCE: Final = wire_automation.Occurrence(
    key=f"reminder:{_GUID}:invoice:INV%2F2026%3A17:due:2026-03-31:7",
    type=AutomationType.REMINDER,
    trigger=TriggerType.DATE_BASED,
    setting=str(_GUID),
    source_type="invoice",
    source="INV/2026:17",
    notification_type="welcome",
    due_at=_DUE_AT,
    local_date=date(2026, 3, 24),
    local_time="09:00",
    zone="Europe/Vienna",
    status=AutomationStatus.COMPLETED,
    on_hold=False,
    reason=None,
    failure=None,
    retry_count=0,
    job_id=_JOB,
    entity=UUID("6f1c2c7e-1111-4000-8000-000000000001"),
    business_unit=None,
    target_date=date(2026, 3, 31),
    offset_days=7,
    metric=None,
    threshold=None,
    policy=None,
    scope=None,
    planned_at=_DUE_AT,
    run_now_at=None,
    next_retry_at=None,
    lease_until=None,
    canceled_by=None,
    outcome=DueOutcome.HANDED_OVER,
    messaging_job_id=None,
    template_version=3,
    inbox_only=False,
    named=0,
    named_by=Named.SETTING,
    timeline=f"/v1/messages/{_JOB}/timeline",
    trace=None,
    diagnostics=None,
    next_rerun=1,
    correlation_id="7a9c2b9e-4b7d-4a0c-9f37-2f0f4f6f1d11",
    version=4,
)
OCCURRENCE_PAGE: Final = wire_automation.OccurrencePage(
    items=(msgspec.convert(OCCURRENCE, wire_automation.OccurrenceLine, from_attributes=True),), next_cursor=None
)
ACT: Final = wire_automation.ActRequest(reason="the price list was wrong, it is mended now")
RERUN: Final = wire_automation.RerunRequest(number=1, reason="the mails went to the old address")
