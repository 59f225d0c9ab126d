"""The shapes of a rehearsal: what would be sent in the next days, played through on a copy.

For the program only, which prints them with `--json`. Plain values: nothing here reads or writes anything.
"""

from collections.abc import Mapping
from datetime import date, datetime
from enum import StrEnum
from typing import Annotated

import msgspec

from clarion.domain.automation import AutomationType
from clarion.domain.identity import Channel
from clarion.domain.planning import EndReason
from clarion.domain.skip import SkipRule


class Rehearsed(StrEnum):
    """What an occurrence came to in a rehearsal."""

    HANDED_OVER = "handed_over"
    SKIPPED = "skipped"
    DEACTIVATED = "deactivated"
    HELD = "held"
    FAILED = "failed"
    WAITS = "waits"


class RehearsedLine(msgspec.Struct, frozen=True, kw_only=True):
    """One occurrence that fell due in a rehearsal, and the messages that it made."""

    key: str
    type: AutomationType
    due_at: Annotated[datetime, msgspec.Meta(tz=True)]
    local_date: date | None
    local_time: str | None
    zone: str | None
    notification_type: str
    setting_name: str | None
    source_type: str
    source: str
    why: str
    outcome: Rehearsed
    reason: EndReason | None = None
    failure: str | None = None
    recipients: int = 0
    messages: Mapping[Channel, int] = {}
    not_sent: Annotated[
        Mapping[SkipRule, int], msgspec.Meta(description="channels by which somebody got nothing, by the rule")
    ] = {}


class RehearsedTotals(msgspec.Struct, frozen=True, kw_only=True):
    """What a rehearsal came to altogether."""

    occurrences: Mapping[Rehearsed, int] = {}
    messages: Mapping[Channel, int] = {}
    not_sent: Mapping[SkipRule, int] = {}


class Rehearsal(msgspec.Struct, frozen=True, kw_only=True):
    """What would be sent between two instants. `items` are the first; `totals` count all."""

    from_at: Annotated[datetime, msgspec.Meta(tz=True)]
    until_at: Annotated[datetime, msgspec.Meta(tz=True, description="earlier than asked for where it had to stop")]
    stopped: str | None = None
    totals: RehearsedTotals
    items: tuple[RehearsedLine, ...]
