"""The shapes of the HTTP API, as both sides see them: what is asked, what is answered, and how long it may be.

The API reads and writes exactly these and draws its OpenAPI description from them; the client reads and writes them
too, so that the two cannot drift apart. Plain values: nothing here reads or writes anything.
"""

from datetime import datetime
from typing import Annotated, Final, Literal
from uuid import UUID

import msgspec

from clarion.client.wire_rule import Result, Rule, Totals
from clarion.domain.definition import TTL_SECONDS_MAX
from clarion.domain.hint import Hints
from clarion.domain.identity import Channel, Lane
from clarion.domain.locale import SIZE_MAX
from clarion.domain.part import END, UNSEEN
from clarion.domain.recipient import NAMED_MAX

PAGE_MAX: Final = 100
"""A page that a person reads and a response that stays small; the store gives one more, which tells if more follow."""

PAGE: Final = 50

ROW_ID_MAX: Final = 2**63 - 1
"""What every store's integer holds."""

PLAIN: Final = rf"^[^{UNSEEN}]*{END}"
"""Names have no characters that nobody sees: none has a meaning in a name."""

PLAIN_NAME: Final = rf"^(?=.*\S)[^{UNSEEN}]+{END}"
"""A name that is not blank either."""

At = Annotated[datetime, msgspec.Meta(tz=True)]
Cursor = Annotated[str, msgspec.Meta(max_length=1024, description="`next_cursor` of the page before")]
Reason = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=1000,
        pattern=r"^[^\x00]*[^\s\x00][^\x00]*" + END,
        description="why; it stands in the audit log",
    ),
]


WorkStatus = Annotated[
    str, msgspec.Meta(description="how the work stands: Done means that messages were made; `result` tells their fate")
]


RecipientName = Annotated[
    str,
    msgspec.Meta(
        description="user:ID, employee:GUID, group:GUID, or an address, which is masked unless the key's role may "
        "reveal messages",
        examples=["user:parent-17", "r…n@example.com"],
    ),
]


class Recipient(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Exactly one of `user`, `employee`, `group` and `address`; `channel` goes with an address."""

    user: (
        Annotated[
            str, msgspec.Meta(min_length=1, max_length=200, pattern=PLAIN_NAME, description="your own id of a user")
        ]
        | None
    ) = None
    employee: UUID | None = None
    group: UUID | None = None
    address: (
        Annotated[
            str,
            msgspec.Meta(min_length=1, max_length=4096, description="a mail address, a phone number or a device token"),
        ]
        | None
    ) = None
    channel: (
        Annotated[Channel, msgspec.Meta(description="for an address whose form does not tell: push and chat")] | None
    ) = None


class Entity(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a notification is about; its history lists the notification."""

    type: Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=PLAIN, examples=["invoice"])]
    guid: UUID
    data: Annotated[
        dict[str, object],
        msgspec.Meta(
            description="what templates read of it as `entity.NAME`, beside its type and guid; as it is now, whatever "
            "becomes of it later. Given with a send, and not answered"
        ),
    ] = {}


class SendRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A notification to send."""

    type: Annotated[
        str, msgspec.Meta(min_length=1, max_length=200, pattern=PLAIN, description="a published notification type")
    ]
    to: Annotated[
        tuple[Recipient, ...],
        msgspec.Meta(max_length=NAMED_MAX, description="empty: whom the settings of the type name when it is sent"),
    ] = ()
    data: Annotated[dict[str, object], msgspec.Meta(description="what the templates merge in")] = {}
    entity: Entity | None = None
    lane: (
        Annotated[
            Lane,
            msgspec.Meta(
                description="how urgent, instead of the type's own lane; a more urgent one needs a key with the role "
                "urgent-sender or admin"
            ),
        ]
        | None
    ) = None
    not_before_at: Annotated[datetime, msgspec.Meta(tz=True, description="send no earlier than this")] | None = None
    ttl_seconds: (
        Annotated[
            int,
            msgspec.Meta(
                ge=1, le=TTL_SECONDS_MAX, description="after so long it is not sent any more, instead of the type's own"
            ),
        ]
        | None
    ) = None
    locale: (
        Annotated[
            str,
            msgspec.Meta(
                min_length=2,
                max_length=SIZE_MAX,
                description="the language that it is written in, instead of the recipient's own",
                examples=["de-AT"],
            ),
        ]
        | None
    ) = None
    channels: Annotated[
        tuple[Channel, ...],
        msgspec.Meta(
            max_length=len(Channel),
            description="only these of the type's channels, each once, in the order in which they are tried; all of "
            "them where it is empty",
        ),
    ] = ()
    business_unit: Annotated[UUID, msgspec.Meta(description="on whose behalf it is sent")] | None = None
    hints: Hints | None = None


class SendAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The notification is stored and will be worked on."""

    job_id: UUID
    message_id: (
        Annotated[UUID, msgspec.Meta(description="of a single recipient; null for several and for a group")] | None
    )
    accepted_at: At
    repeated: Annotated[bool, msgspec.Meta(description="the key was used for this very request before: nothing new")]
    warnings: Annotated[
        tuple[str, ...],
        msgspec.Meta(
            description="what keeps it waiting as things stand, such as a channel without worker or a missing setting"
        ),
    ] = ()


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider reported is stored."""

    kept: Annotated[int, msgspec.Meta(description="how many of the events were new")]


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """A channel on which a recipient got nothing, and why; `destination` where it was one of their addresses."""

    channel: Channel
    reason: str
    rule: Rule | None = None
    destination: Annotated[str, msgspec.Meta(description="masked unless the key's role may reveal messages")] | None = (
        None
    )


class RecipientLine(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody whom a notification is for, and where it was not sent to them."""

    recipient: RecipientName
    message_id: Annotated[UUID, msgspec.Meta(description="of what they get; null while a group is not resolved")] | None
    skipped: tuple[Skipped, ...]


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One recipient on one channel, and where it stands."""

    id: Annotated[int, msgspec.Meta(description="names the row for a retry, together with its version")]
    version: int
    message_id: UUID
    recipient: RecipientName | None = None
    destination: (
        Annotated[
            str,
            msgspec.Meta(description="where it goes; masked unless the key's role may reveal messages"),
        ]
        | None
    ) = None
    channel: Channel
    status: str
    rule: Rule | None = None
    attempts: int
    reason: str | None
    account: str | None
    due_at: At | None
    created_at: At


class InboxLine(msgspec.Struct, frozen=True, kw_only=True):
    """One recipient who has it in the inbox."""

    message_id: UUID
    recipient: RecipientName | None = None
    created_at: At


class Notification(msgspec.Struct, frozen=True, kw_only=True):
    """A notification and how it stands now."""

    job_id: UUID
    type: str
    template_version: int | None
    entity: Entity | None
    business_unit: UUID | None = None
    lane: Lane | None
    result: Result | None = None
    stage: Annotated[str, msgspec.Meta(description="which work is done for it, or was done last")] | None
    status: WorkStatus | None
    reason: str | None
    rule: Rule | None = None
    accepted_at: At
    due_at: At | None
    actor: str | None
    correlation_id: str
    recipients: tuple[RecipientLine, ...] = ()
    messages: tuple[Message, ...]
    inbox: tuple[InboxLine, ...]
    totals: Totals | None = None


class Canceled(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing of the notification is sent from now on; what was sent before stays sent."""

    job_id: UUID
    repeated: Annotated[bool, msgspec.Meta(description="it was canceled before")]


class TimelineLine(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened; `channel` and `message_id` are null where it concerns the whole notification."""

    at: At
    what: str
    detail: str | None
    channel: Channel | None
    message_id: UUID | None
    recipient: RecipientName | None = None
    rule: Rule | None = None


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """The whole timeline in order, and how the messages that it is about stand now."""

    job_id: UUID
    message_id: UUID | None
    type: str
    lines: tuple[TimelineLine, ...]
    recipients: tuple[RecipientLine, ...] = ()
    messages: tuple[Message, ...] = ()
    totals: Totals | None = None


class PageQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which page of a list."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=PAGE_MAX, description="how many items at most")] = PAGE
    cursor: Cursor | None = None


class NotificationLine(msgspec.Struct, frozen=True, kw_only=True):
    """One notification in a list."""

    job_id: UUID
    type: str
    recipients: Annotated[
        int, msgspec.Meta(description="how many; how many the sender named, where nobody is decided on")
    ] = 0
    recipient: Annotated[RecipientName, msgspec.Meta(description="who, if a single one was named")] | None = None
    result: Result | None = None
    status: WorkStatus | None
    accepted_at: At
    message_id: (
        Annotated[UUID, msgspec.Meta(description="in the history of a person: what they got of it, or would have")]
        | msgspec.UnsetType
    ) = msgspec.UNSET
    skipped: (
        Annotated[
            tuple[Skipped, ...],
            msgspec.Meta(description="in the history of a person: why they got nothing of it, where that was decided"),
        ]
        | msgspec.UnsetType
    ) = msgspec.UNSET


class NotificationPage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Notifications, newest first."""

    items: tuple[NotificationLine, ...]
    next_cursor: str | None
    searched_to_at: (
        Annotated[
            datetime,
            msgspec.Meta(
                tz=True,
                description="only where a filter was given and the page ended early: all that was accepted since then "
                "was looked at, and `next_cursor` goes on from there",
            ),
        ]
        | None
    ) = None


class NotificationQuery(PageQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which page of the notifications, and of which of them."""

    type: (
        Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=PLAIN, description="only of this type")]
        | None
    ) = None
    result: Annotated[Result, msgspec.Meta(description="only with this result")] | None = None
    since_at: Annotated[datetime, msgspec.Meta(tz=True, description="accepted at this time or later")] | None = None
    until_at: Annotated[datetime, msgspec.Meta(tz=True, description="accepted before this time")] | None = None


class Alive(msgspec.Struct, frozen=True, kw_only=True):
    """The process lives."""

    alive: bool = True


class Ready(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Requests can be sent here; `warning` is something that a person should look at."""

    ready: Literal[True]
    warning: str | None = None


class Mistake(msgspec.Struct, frozen=True, kw_only=True):
    """One of several things that are wrong in a request."""

    field: Annotated[str, msgspec.Meta(description="that must change", examples=["files.sms.liquid"])]
    detail: Annotated[str, msgspec.Meta(description="what is wrong, on which line, and what to do")]


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What went wrong and what to do about it, as RFC 9457 has it."""

    type: Annotated[str, msgspec.Meta(examples=["urn:clarion:error:invalid-input"])]
    title: str
    status: int
    detail: str
    code: Annotated[str, msgspec.Meta(description="stable; a program may compare it", examples=["invalid-input"])]
    correlation_id: Annotated[str, msgspec.Meta(description="ties this answer to our logs")]
    field: Annotated[str, msgspec.Meta(description="of the request, that must change")] | None = None
    mistakes: Annotated[
        tuple[Mistake, ...], msgspec.Meta(description="all of them, where a request can have several")
    ] = ()
