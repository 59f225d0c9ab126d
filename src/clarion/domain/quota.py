"""Quotas: how much a tenant, or one of its API keys, may use in a day, and whether there is room for more. Pure.

A day is one of UTC, by the store's clock. What is counted is what comes in at the API's door: requests with a key, and
of what was newly accepted the notifications and the recipients that they name. A group counts as one recipient, because
its members are found later, by the workers.
"""

from datetime import UTC, date, datetime, time, timedelta
from typing import Final

import msgspec

QUOTA_MAX: Final = 10**15
"""Of one limit: more than anybody sends, and far from the end of a store's integers."""


class Amount(msgspec.Struct, frozen=True, kw_only=True):
    """So much of each thing that is counted."""

    requests: int = 0
    notifications: int = 0
    recipients: int = 0

    def __add__(self, other: "Amount") -> "Amount":
        """Give both together."""
        return Amount(
            requests=self.requests + other.requests,
            notifications=self.notifications + other.notifications,
            recipients=self.recipients + other.recipients,
        )

    def __sub__(self, other: "Amount") -> "Amount":
        """Take one away from the other."""
        return Amount(
            requests=self.requests - other.requests,
            notifications=self.notifications - other.notifications,
            recipients=self.recipients - other.recipients,
        )


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The most of each thing in a day; None is no limit."""

    requests: int | None = None
    notifications: int | None = None
    recipients: int | None = None


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What a tenant (`key_id` is empty) or a key may use in a day and has used on `day`, as it was read at `now`."""

    tenant_id: str
    key_id: str
    day: date
    requests: int
    notifications: int
    recipients: int
    requests_max: int | None
    notifications_max: int | None
    recipients_max: int | None
    last_used_at: datetime | None
    now: datetime

    @property
    def limits(self) -> Limits:
        """What it may use in a day."""
        return Limits(requests=self.requests_max, notifications=self.notifications_max, recipients=self.recipients_max)

    @property
    def used(self) -> Amount:
        """What it has used today: nothing, if its counts are of another day."""
        if self.day != self.now.astimezone(UTC).date():
            return Amount()
        return Amount(requests=self.requests, notifications=self.notifications, recipients=self.recipients)


class Shortage(msgspec.Struct, frozen=True, kw_only=True):
    """What there is too little of: how much a day allows, and how much of that is left."""

    what: str
    limit: int
    left: int


def shortage(limits: Limits, *, used: Amount, asked: Amount) -> Shortage | None:
    """Say what there is too little of for what is asked, or None where there is room; what is not asked for is not."""
    for what in Amount.__struct_fields__:
        limit, more = getattr(limits, what), getattr(asked, what)
        left = None if limit is None else max(0, limit - getattr(used, what))
        if left is not None and more > left:
            return Shortage(what=what, limit=limit, left=left)
    return None


def left_of_day(now: datetime) -> timedelta:
    """Say how long it is until counts start again: to the next midnight, UTC."""
    today = now.astimezone(UTC).date()
    return datetime.combine(today + timedelta(days=1), time(), tzinfo=UTC) - now
