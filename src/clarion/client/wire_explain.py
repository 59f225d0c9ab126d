"""The shapes of asking what a notification would do: what is asked, and what is answered (see `wire`)."""

from typing import Annotated
from uuid import UUID

import msgspec

from clarion.client.wire import PLAIN, Entity, Message, Recipient, RecipientLine, RecipientName
from clarion.client.wire_rule import Rule, Totals
from clarion.domain.identity import Channel
from clarion.domain.setting import Place


class WouldRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A notification that nobody sends, and the person of whom it is asked."""

    type: Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=PLAIN, examples=["invoice-due"])]
    recipient: Annotated[Recipient, msgspec.Meta(description="a user or an employee")]
    entity: Annotated[Entity, msgspec.Meta(description="what it would be about; its data is not read")] | None = None
    channels: Annotated[
        tuple[Channel, ...],
        msgspec.Meta(max_length=len(Channel), description="those that the send would ask for; all where it is empty"),
    ] = ()
    business_unit: Annotated[UUID, msgspec.Meta(description="on whose behalf it would be sent")] | None = None


class WholeSkip(msgspec.Struct, frozen=True, kw_only=True):
    """Why nobody at all would get it."""

    rule: Rule
    reason: str


class WouldChannel(msgspec.Struct, frozen=True, kw_only=True):
    """One channel of the notification, or one address on it: whether a message would go there, or why not."""

    channel: Channel
    goes: bool
    destination: (
        Annotated[str, msgspec.Meta(description="where it would go; masked unless the key's role may reveal messages")]
        | None
    ) = None
    rule: Rule | None = None
    reason: str | None = None


class Decided(msgspec.Struct, frozen=True, kw_only=True):
    """Whose setting decides: the tenant's, the business unit's, or null where nobody has set it."""

    enabled: Place | None
    recipients: Place | None
    channels: Place | None


class Would(msgspec.Struct, frozen=True, kw_only=True):
    """What would become of a notification for one person, as things stand now."""

    type: str
    version: int
    recipient: RecipientName
    known: Annotated[bool, msgspec.Meta(description="whether the tenant has this person")]
    skipped: Annotated[
        WholeSkip | None,
        msgspec.Meta(description="why nobody would get it; `channels` is then what would be if it were on"),
    ]
    channels: tuple[WouldChannel, ...]
    named_by: Annotated[
        tuple[str, ...],
        msgspec.Meta(
            description="by which recipients of the settings the person is meant where a send names nobody, such as "
            "role:teacher; none where they are not",
            examples=[["role:teacher"]],
        ),
    ]
    names: Annotated[tuple[str, ...], msgspec.Meta(description="all recipients that the settings name")]
    decided_by: Decided


class RecipientOutcome(RecipientLine, frozen=True, kw_only=True):
    """Somebody whom a notification is for: what was made for them, and where nothing was."""

    messages: tuple[Message, ...]
    in_inbox: Annotated[bool, msgspec.Meta(description="whether a line was put into their inbox")]


class RecipientPage(msgspec.Struct, frozen=True, kw_only=True):
    """Recipients of a notification, in an order of their own; nobody while it is not decided who they are."""

    items: tuple[RecipientOutcome, ...]
    totals: Totals
    next_cursor: str | None
