"""The examples of `example` about reminder settings."""

from datetime import UTC, datetime
from typing import Final
from uuid import UUID

import msgspec

from clarion.client import wire_reminders
from clarion.domain.audience import Addressee
from clarion.domain.reminder import Condition, DateRule

_GUID: Final = UUID("6f1c2c7e-4444-4000-8000-000000000001")

REMINDER_REQUEST: Final = wire_reminders.ReminderRequest(
    name="Invoice is due in a week",
    source_type="invoice",
    conditions=(Condition(field="state", values=("open", "reminded")),),
    rule=DateRule(field="due", offsets=(7, 0)),
    notification_type="welcome",
    recipients=(Addressee(relation="payer"),),
)
REMINDER: Final = wire_reminders.Reminder(
    guid=_GUID,
    **msgspec.structs.asdict(REMINDER_REQUEST),
    version=3,
    planned=True,
    changed_by="billing",
    changed_at=datetime(2026, 3, 2, 8, 30, tzinfo=UTC),
    warnings=("nobody holds the role 'bursr' yet: did you mean bursar?",),
)
REMINDER_PAGE: Final = wire_reminders.ReminderPage(
    items=(msgspec.convert(REMINDER, wire_reminders.ReminderLine, from_attributes=True),), next_cursor=None
)
REMINDER_SWITCH: Final = wire_reminders.ReminderSwitch(active=False)
