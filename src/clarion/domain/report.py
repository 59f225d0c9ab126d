"""Report subscriptions: which report goes to whom, how often. Pure.

Each planned run is one occurrence, named by the instant that its rule planned; a run by hand is named by its guid.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated
from uuid import UUID

import msgspec

from clarion.domain.audience import ADDRESSEES_MAX, Addressee, require_one
from clarion.domain.identity import Identity, IdentityDomain
from clarion.domain.instant import require_storable
from clarion.domain.occurrence import Timing
from clarion.domain.recurrence import Recurrence, require_due
from clarion.domain.report_choice import (
    PARAMETERS_MAX,
    SUBSCRIPTION_BYTES_MAX,
    TO_MAX,
    MissedRuns,
    ParameterName,
    ParameterValue,
    ReportDelivery,
    ReportForm,
)
from clarion.errors import InvalidInput


class ReportSubscription(msgspec.Struct, frozen=True, kw_only=True):
    """One subscription as it was written. `rule` is an RRULE or a cron line, in the zone `tz_id`."""

    guid: UUID
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    report: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
    parameters: Annotated[Mapping[ParameterName, ParameterValue], msgspec.Meta(max_length=PARAMETERS_MAX)] = {}
    rule: Annotated[str, msgspec.Meta(min_length=1, max_length=500)]
    tz_id: str
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    missed: MissedRuns = MissedRuns.CATCH_UP_ONCE
    form: ReportForm = ReportForm.HTML
    delivery: ReportDelivery = ReportDelivery.INLINE
    notification_type: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    to: Annotated[tuple[Identity, ...], msgspec.Meta(max_length=TO_MAX)] = ()
    recipients: Annotated[tuple[Addressee, ...], msgspec.Meta(max_length=ADDRESSEES_MAX)] | None = None
    business_unit: UUID | None = None
    active: bool = True

    @property
    def recurrence(self) -> Recurrence:
        """Read its rule, or refuse it with words."""
        return Recurrence.read(self.rule, tz_id=self.tz_id, starts_at=self.starts_at, ends_at=self.ends_at)


def require_subscription(subscription: ReportSubscription, *, now: datetime) -> Timing | None:
    """Refuse a subscription that could never be kept; say when it is due next, None where it is not active."""
    for place, one in enumerate(subscription.to):
        if one.domain is IdentityDomain.ADDRESS:
            raise InvalidInput(
                "a subscription names people and groups, not addresses",
                field=f"to[{place}]",
                hint="name a user, an employee or a group; an address belongs to a person",
            )
    for place, addressee in enumerate(subscription.recipients or ()):
        require_one(addressee, field=f"recipients[{place}]")
    starts_at, ends_at = subscription.starts_at, subscription.ends_at
    for field, at in (("starts_at", starts_at), ("ends_at", ends_at)):
        if at is not None:
            require_storable(at, field=field)
    if starts_at is not None and ends_at is not None and ends_at < starts_at:
        raise InvalidInput("it ends before it begins", field="ends_at", hint="give it a later end")
    recurrence = subscription.recurrence
    return require_due(recurrence, now=now) if subscription.active else None


def subscription_text(subscription: ReportSubscription) -> str:
    """Write a subscription as it is stored, or refuse one that is too long."""
    text = msgspec.json.encode(subscription)
    if len(text) > SUBSCRIPTION_BYTES_MAX:
        raise InvalidInput(
            f"the subscription is {len(text)} bytes long as JSON",
            field="parameters",
            hint=f"use shorter values, or fewer: {SUBSCRIPTION_BYTES_MAX} bytes is the most",
        )
    return text.decode()
