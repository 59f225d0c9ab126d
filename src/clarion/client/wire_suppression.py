"""The shapes of the HTTP API about who gets nothing, and what people want.

Beside `client.wire`, whose rules hold here too. Plain values: nothing here reads or writes anything.
"""

from datetime import datetime
from typing import Annotated, Final

import msgspec

from clarion.client.wire import PLAIN_NAME, PageQuery, Reason
from clarion.domain.identity import Channel
from clarion.domain.suppression import Cause

ITEMS_MAX: Final = 500
"""Suppressions in one request: what is stored in a fraction of a second."""

CHANGES_MAX: Final = 200

RecipientText = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=4200,
        description="a person as `user:ID` or `employee:GUID`; or an address, with `email:`, `sms:`, `push:` or "
        "`chat:` before it where its form does not tell",
        examples=["user:parent-17", "sam@example.com"],
    ),
]
Category = Annotated[str, msgspec.Meta(min_length=1, max_length=60, pattern=PLAIN_NAME, examples=["news"])]


class Suppression(msgspec.Struct, frozen=True, kw_only=True):
    """Who gets nothing of what, since when, and why."""

    id: Annotated[str, msgspec.Meta(description="by which it is lifted")]
    recipient: Annotated[
        str, msgspec.Meta(description="the person, or the address, masked unless the key's role may reveal messages")
    ]
    category: Annotated[str | None, msgspec.Meta(description="null where it is about everything")]
    channel: Annotated[Channel | None, msgspec.Meta(description="null where it is about every channel")]
    cause: Cause
    note: str | None
    created_by: str
    created_at: datetime | None


class SuppressionPage(msgspec.Struct, frozen=True, kw_only=True):
    """Suppressions, newest first."""

    items: tuple[Suppression, ...]
    next_cursor: str | None


class SuppressionQuery(PageQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which page of the suppressions, and of which of them."""

    recipient: RecipientText | None = None
    cause: Annotated[Cause, msgspec.Meta(description="only those of this cause")] | None = None


class SuppressionItem(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Who is to get nothing of what; without a category nothing at all."""

    recipient: RecipientText
    category: Category | None = None
    channel: Annotated[Channel, msgspec.Meta(description="of the category, on this channel only")] | None = None


class SuppressionRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whom to suppress, and why; the audit log keeps it."""

    items: Annotated[tuple[SuppressionItem, ...], msgspec.Meta(min_length=1, max_length=ITEMS_MAX)]
    reason: Reason


class SuppressionsAdded(msgspec.Struct, frozen=True, kw_only=True):
    """How many of them were not suppressed so before."""

    added: int
    warnings: Annotated[
        tuple[str, ...], msgspec.Meta(description="what of it has no effect, such as a category that no type has")
    ] = ()


class ReasonQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why; the audit log keeps it."""

    reason: Reason


class Preference(msgspec.Struct, frozen=True, kw_only=True):
    """One category, and whether its notifications reach the person by each channel that it uses."""

    category: str
    titles: Annotated[tuple[str, ...], msgspec.Meta(description="the notification types of the category")]
    required: Annotated[bool, msgspec.Meta(description="it cannot be switched off")]
    channels: dict[Channel, bool]


class Preferences(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody can choose, and how it stands."""

    person: str
    stopped: Annotated[Cause | None, msgspec.Meta(description="why they get nothing at all, whatever is chosen")]
    items: tuple[Preference, ...]


class PreferenceChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A category as somebody wants it: on one channel, or on all of them."""

    category: Category
    channel: Channel | None = None
    on: bool


class PreferencesRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What changes; everything else stays."""

    changes: Annotated[tuple[PreferenceChange, ...], msgspec.Meta(min_length=1, max_length=CHANGES_MAX)]
    reason: Reason | None = None
