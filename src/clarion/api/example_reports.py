"""The examples of `example` about reports and subscriptions."""

from datetime import UTC, datetime
from typing import Final
from uuid import UUID

import msgspec

from clarion.client import wire_reports
from clarion.domain.audience import Addressee
from clarion.domain.report_choice import ReportForm

_GUID: Final = UUID("6f1c2c7e-5555-4000-8000-000000000001")
_RUN: Final = UUID("6f1c2c7e-5555-4000-8000-000000000002")

KINDS: Final = wire_reports.ReportKinds(
    items=(
        wire_reports.ReportKind(
            report="delivery-summary", forms=(ReportForm.CSV, ReportForm.HTML), parameters=("type",)
        ),
    )
)
SUBSCRIPTION_REQUEST: Final = wire_reports.SubscriptionRequest(
    name="What was delivered last week",
    report="delivery-summary",
    rule="FREQ=WEEKLY;BYDAY=MO;BYHOUR=8",
    time_zone="Europe/Vienna",
    notification_type="welcome",
    to=("user:parent-17",),
    recipients=(Addressee(role="bursar"),),
)
SUBSCRIPTION: Final = wire_reports.Subscription(
    guid=_GUID,
    **msgspec.structs.asdict(SUBSCRIPTION_REQUEST),
    version=2,
    changed_by="billing",
    changed_at=datetime(2026, 3, 2, 8, 30, tzinfo=UTC),
    next_at=datetime(2026, 3, 9, 7, 0, tzinfo=UTC),
    warnings=("the notification type 'welcome' is off",),
)
SUBSCRIPTION_PAGE: Final = wire_reports.SubscriptionPage(
    items=(msgspec.convert(SUBSCRIPTION, wire_reports.SubscriptionLine, from_attributes=True),), next_cursor=None
)
SUBSCRIPTION_SWITCH: Final = wire_reports.SubscriptionSwitch(active=False)
SUBSCRIPTION_RUN: Final = wire_reports.SubscriptionRun(
    subscription=_GUID, run=_RUN, occurrence=f"report-subscription:{_GUID}:manual:{_RUN}", created=True
)
