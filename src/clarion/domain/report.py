"""Report subscriptions: which report goes to whom, how often. Pure.

Each planned run is one occurrence, named by the instant that its rule planned; a run by hand is named by its guid.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final
from uuid import UUID

import msgspec

from clarion.domain.audience import Addressee
from clarion.domain.identity import Identity

PARAMETERS_MAX: Final = 20


class MissedRuns(StrEnum):
    """What becomes of runs that fell due while nothing worked."""

    CATCH_UP_ONCE = "catch_up_once"
    SKIP = "skip"


class ReportForm(StrEnum):
    """What a report is written as."""

    HTML = "html"
    CSV = "csv"


class ReportDelivery(StrEnum):
    """How its reader gets it: in the message itself, or by a link that expires."""

    INLINE = "inline"
    LINK = "link"


class ReportSubscription(msgspec.Struct, frozen=True, kw_only=True):
    """One subscription as it was written. `rule` is an RRULE or a cron line, in the zone `tz_id`."""

    guid: UUID
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    report: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
    parameters: Annotated[Mapping[str, str], msgspec.Meta(max_length=PARAMETERS_MAX)] = {}
    rule: Annotated[str, msgspec.Meta(min_length=1, max_length=500)]
    tz_id: str
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    missed: MissedRuns = MissedRuns.CATCH_UP_ONCE
    form: ReportForm = ReportForm.HTML
    delivery: ReportDelivery = ReportDelivery.INLINE
    notification_type: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    to: tuple[Identity, ...] = ()
    recipients: tuple[Addressee, ...] | None = None
    business_unit: UUID | None = None
    active: bool = True
