"""The shapes of the HTTP API about reminder settings: for which sources, when, and whom a reminder tells.

Beside `client.wire`, whose rules hold here too. Plain values: nothing here reads or writes anything.
"""

from typing import Annotated
from uuid import UUID

import msgspec

from clarion.client.wire import PLAIN, PLAIN_NAME, At
from clarion.domain.audience import ADDRESSEES_MAX, Addressee
from clarion.domain.reminder import CONDITIONS_MAX, Condition, Rule, SendTime
from clarion.domain.source import SourceType

Conditions = Annotated[
    tuple[Condition, ...],
    msgspec.Meta(
        max_length=CONDITIONS_MAX,
        description="all of which a source meets: its field has one of the values, or with `is_not` none of them; null "
        "is a field that it does not have",
    ),
]
When = Annotated[
    Rule,
    msgspec.Meta(
        description="on a date of the source, or so many days before it (behind it, where negative); or once a metric "
        "of it meets a value"
    ),
]
Recipients = Annotated[
    tuple[Addressee, ...],
    msgspec.Meta(
        max_length=ADDRESSEES_MAX,
        description="whom it tells, at least one; null: whom the settings of the notification type name",
    ),
]


class ReminderRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A reminder setting as it shall be."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=PLAIN_NAME)]
    source_type: SourceType
    conditions: Conditions = ()
    rule: When
    send_time: Annotated[
        SendTime, msgspec.Meta(description="in the zone of the source's business unit or, without one, of the tenant")
    ] = "09:00"
    notification_type: Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=PLAIN)]
    recipients: Recipients | None = None
    business_unit: Annotated[UUID, msgspec.Meta(description="only for sources of this business unit")] | None = None
    inbox_only: Annotated[bool, msgspec.Meta(description="a line in the inbox, and nothing else")] = False
    long_runner: Annotated[
        bool,
        msgspec.Meta(
            description="a provider that declares that it may be away for days is asked again every day, instead of "
            "waiting for a person after the third failure"
        ),
    ] = False
    active: bool = True


class ReminderSwitch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether a reminder setting plans anything."""

    active: bool


class ReminderLine(msgspec.Struct, frozen=True, kw_only=True):
    """A reminder setting, and who changed it last."""

    guid: UUID
    name: str
    source_type: str
    conditions: Conditions
    rule: When
    send_time: str
    notification_type: str
    recipients: Recipients | None
    business_unit: UUID | None
    inbox_only: bool
    long_runner: bool
    active: bool
    version: Annotated[int, msgspec.Meta(description="one more for each change")]
    planned: Annotated[
        bool, msgspec.Meta(description="what waits is planned by this version; false while that is under way")
    ]
    changed_by: str
    changed_at: At


class Reminder(ReminderLine, frozen=True, kw_only=True):
    """A reminder setting with what keeps it from telling anybody."""

    warnings: Annotated[
        tuple[str, ...],
        msgspec.Meta(description="what keeps it from telling anybody as things stand, such as a role that nobody has"),
    ] = ()


class ReminderPage(msgspec.Struct, frozen=True, kw_only=True):
    """Reminder settings, in the order of their guids."""

    items: tuple[ReminderLine, ...]
    next_cursor: str | None
