"""The shapes of the HTTP API about stories: what became of a thing and its occurrences, line by line.

Beside `client.wire`, whose rules hold here too. Plain values: nothing here reads or writes anything.
"""

from datetime import datetime
from typing import Annotated

import msgspec

from clarion.client.wire_automation import Occurrence
from clarion.client.wire_upcoming import ForWhom
from clarion.domain.entity_event import HistoryKind


class StoryLine(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that became of an entity: an event that was handled, an occurrence that was planned or is over."""

    at: Annotated[datetime, msgspec.Meta(tz=True)]
    kind: HistoryKind
    subject: Annotated[
        str, msgspec.Meta(description="what it is about: the key of an occurrence, the guid of an event")
    ]
    cause: Annotated[str, msgspec.Meta(description="what brought it about", examples=["claim 3"])]
    text: str


class StoryPage(msgspec.Struct, frozen=True, kw_only=True):
    """The story of an entity, the newest first."""

    items: tuple[StoryLine, ...]
    next_cursor: str | None


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """One occurrence explained: why it is there, how it stands, what became of it and for whom it is."""

    occurrence: Occurrence
    why: Annotated[str, msgspec.Meta(examples=["7 days before due_on 2026-03-31"])]
    setting_name: Annotated[str, msgspec.Meta(description="null where its setting is gone")] | None
    for_whom: Annotated[ForWhom, msgspec.Meta(description="as things stand now, where it waits; else null")] | None
    means: Annotated[str, msgspec.Meta(description="what the reason means that it ended for")] | None
    remedy: str | None
    lines: Annotated[tuple[StoryLine, ...], msgspec.Meta(description="what became of it, the oldest first")]
