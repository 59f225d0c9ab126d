"""The shapes of inboxes: their lines as readers see them, and how many there are (see `wire`)."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

import msgspec

from clarion.client.wire import PLAIN, At, PageQuery
from clarion.domain.definition import CATEGORY_CHARS_MAX


class InboxQuery(PageQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which page of an inbox, and of which of its lines."""

    category: (
        Annotated[
            str,
            msgspec.Meta(
                min_length=1, max_length=CATEGORY_CHARS_MAX, pattern=PLAIN, description="only lines of this category"
            ),
        ]
        | None
    ) = None
    unread: Annotated[bool, msgspec.Meta(description="only lines that were not read")] = False
    archived: Annotated[bool, msgspec.Meta(description="archived lines, and no others")] = False


class InboxMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One line of an inbox. Its times say when it was marked so; where all were at once, the last time that was."""

    message_id: UUID
    type: str
    category: str | None
    title: Annotated[str, msgspec.Meta(description="null for a key whose role may not see what readers see")] | None = (
        None
    )
    body: Annotated[str, msgspec.Meta(description="as `title`")] | None = None
    created_at: At
    expires_at: Annotated[datetime, msgspec.Meta(tz=True, description="from then on it is in no list")] | None = None
    seen_at: Annotated[datetime, msgspec.Meta(tz=True, description="null for one that was not seen")] | None = None
    read_at: Annotated[datetime, msgspec.Meta(tz=True, description="null for one that is unread")] | None = None
    archived_at: Annotated[datetime, msgspec.Meta(tz=True, description="null for one that is in the inbox")] | None = (
        None
    )


class InboxPage(msgspec.Struct, frozen=True, kw_only=True):
    """Lines of an inbox, newest first."""

    items: tuple[InboxMessage, ...]
    next_cursor: str | None


class InboxCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many lines an inbox has; what has expired is not counted."""

    lines: Annotated[int, msgspec.Meta(description="in the inbox: all but the archived ones")]
    unseen: Annotated[int, msgspec.Meta(description="of these, not seen yet: the number for a badge")]
    unread: Annotated[int, msgspec.Meta(description="of these, unread")]
    archived: int
