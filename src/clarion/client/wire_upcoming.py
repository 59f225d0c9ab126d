"""The shapes of the HTTP API about what will fire: seeing ahead, by what waits and by what follows it.

Beside `client.wire`, whose rules hold here too. Plain values: nothing here reads or writes anything.
"""

from datetime import date, datetime
from typing import Annotated, Final
from uuid import UUID

import msgspec

from clarion.client.wire import PageQuery
from clarion.domain.automation import AutomationType, TriggerType
from clarion.domain.due import Named

DAYS: Final = 30
DAYS_MAX: Final = 366
"""A year ahead, so that every yearly reminder is in it."""

FOLLOWING_MAX: Final = 10
"""Of the times that follow one line: a daily report has more in a month than anybody reads."""

COUNTED_MAX: Final = 100
"""Recipients of one line are counted up to here: more are told as so many or more."""

Days = Annotated[int, msgspec.Meta(ge=1, le=DAYS_MAX, description="how many days to look ahead")]


class UpcomingQuery(PageQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far to look ahead, and which page of it."""

    days: Days = DAYS


class ForWhom(msgspec.Struct, frozen=True, kw_only=True):
    """For whom it would be as things stand now; they are found again when it is due."""

    named_by: Annotated[Named, msgspec.Meta(description="who says for whom it is")]
    names: Annotated[
        tuple[str, ...],
        msgspec.Meta(description="whom the settings name, such as role:teacher", examples=[["role:teacher"]]),
    ] = ()
    count: (
        Annotated[
            int,
            msgspec.Meta(description="how many people that is now; null where a provider says it when it is due"),
        ]
        | None
    ) = None
    or_more: Annotated[bool, msgspec.Meta(description="whether there are more than were counted")] = False


class UpcomingLine(msgspec.Struct, frozen=True, kw_only=True):
    """One occurrence that waits, and what follows it within the time that is looked at."""

    key: str
    type: AutomationType
    trigger: TriggerType
    due_at: Annotated[datetime, msgspec.Meta(tz=True)]
    local_date: Annotated[date, msgspec.Meta(description="in `zone`; null where no local time is meant")] | None
    local_time: str | None
    zone: str | None
    is_due: Annotated[bool, msgspec.Meta(description="whether a worker may take it now")]
    notification_type: str
    setting: Annotated[UUID, msgspec.Meta(description="the reminder setting or the report subscription")]
    setting_name: str | None
    source_type: str
    source: str
    business_unit: UUID | None
    why: Annotated[str, msgspec.Meta(examples=["7 days before due_on 2026-03-31"])]
    for_whom: Annotated[ForWhom, msgspec.Meta(description="null where its setting is gone")] | None
    inbox_only: bool = False
    off: Annotated[str, msgspec.Meta(description="why nobody would get it as things stand now")] | None = None
    follows: Annotated[
        tuple[datetime, ...],
        msgspec.Meta(description=f"when it is due again within the time looked at, the first {FOLLOWING_MAX}"),
    ] = ()
    follows_count: Annotated[int, msgspec.Meta(description="how often it is due again within the time looked at")] = 0


class UpcomingPage(msgspec.Struct, frozen=True, kw_only=True):
    """What will fire, by when it is due; what is on hold or has failed is not among it."""

    items: tuple[UpcomingLine, ...]
    next_cursor: str | None
