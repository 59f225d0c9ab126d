"""Seeing ahead: what will fire, when in local time, for whom and why. Nothing is planned or sent by it."""

from datetime import UTC, date, datetime
from typing import Final
from uuid import UUID

from litestar import get

from clarion.api.context import InjectedContext
from clarion.api.contract import Contract
from clarion.api.reading import AnyRequest, read_page
from clarion.catalog.access import Grant
from clarion.client import wire_upcoming
from clarion.domain.automation import AutomationType, TriggerType
from clarion.domain.due import Named

_SETTING: Final = UUID("6f1c2c7e-4444-4000-8000-000000000001")

UPCOMING: Final = wire_upcoming.UpcomingPage(
    items=(
        wire_upcoming.UpcomingLine(
            key=f"reminder:{_SETTING}:invoice:INV-17:due:2026-03-31:7",
            type=AutomationType.REMINDER,
            trigger=TriggerType.DATE_BASED,
            due_at=datetime(2026, 3, 24, 8, 0, tzinfo=UTC),
            local_date=date(2026, 3, 24),
            local_time="09:00",
            zone="Europe/Vienna",
            is_due=False,
            notification_type="welcome",
            setting=_SETTING,
            setting_name="Invoice is due in a week",
            source_type="invoice",
            source="INV-17",
            business_unit=None,
            why="7 days before due 2026-03-31",
            for_whom=wire_upcoming.ForWhom(named_by=Named.SETTING, names=("relation:payer",), count=2),
        ),
    ),
    next_cursor=None,
)


@get(
    "/v1/automation/upcoming",
    opt=Contract(tag="automation", grant=Grant.VIEW, query=wire_upcoming.UpcomingQuery, answer=UPCOMING).opt,
)
async def list_upcoming(request: AnyRequest, context: InjectedContext) -> wire_upcoming.UpcomingPage:
    """List what reminders and reports will fire in the next days: when in local time, for whom by now, and why.

    Recipients are found again when it is due. What is on hold or has failed does not fire, and is not in the list.
    """
    return await context.operations.upcoming.list(*read_page(request, wire_upcoming.UpcomingQuery))
