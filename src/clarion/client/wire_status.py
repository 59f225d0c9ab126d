"""The shapes of the HTTP API that say what runs, what is in trouble and what waits; the others are in `wire`."""

from datetime import datetime
from typing import Annotated

import msgspec

from clarion.client.wire import At


class WorkerLine(msgspec.Struct, frozen=True, kw_only=True):
    """One process that works, or was lost lately."""

    name: Annotated[str, msgspec.Meta(description="its machine and its number there")]
    program: Annotated[str, msgspec.Meta(description="the version that it runs")]
    channels: Annotated[tuple[str, ...], msgspec.Meta(description="on which it sends")]
    started_at: At
    seen_at: At
    lost: Annotated[bool, msgspec.Meta(description="nothing was heard of it for too long, so it does not count")]


class AccountLine(msgspec.Struct, frozen=True, kw_only=True):
    """One provider account that is in use."""

    account: str
    workers: Annotated[int, msgspec.Meta(description="how many running processes send through it")]
    failing: Annotated[bool, msgspec.Meta(description="nothing that it was given lately was taken")]
    failing_since_at: At | None
    called_at: Annotated[datetime, msgspec.Meta(tz=True, description="the last call, if there was one")] | None
    reason: str | None


class ChannelLine(msgspec.Struct, frozen=True, kw_only=True):
    """A channel on which messages wait."""

    channel: str
    oldest_seconds: Annotated[float, msgspec.Meta(description="for how long the oldest has waited")]
    served: Annotated[bool, msgspec.Meta(description="whether a running process sends on it")]


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """What runs, what is in trouble and what waits: of the whole installation, all tenants together."""

    at: At
    workers: tuple[WorkerLine, ...]
    accounts: tuple[AccountLine, ...]
    waiting: tuple[ChannelLine, ...]
    notifications_waiting: int
    oldest_notification_seconds: float
    messages_waiting: int
    oldest_message_seconds: float
    sending: int
    uncertain: int
    open_support_cases: int
    occurrences_due: Annotated[int, msgspec.Meta(description="reminders and reports that are due and not taken")] = 0
    oldest_occurrence_seconds: Annotated[float, msgspec.Meta(description="by how much the oldest is late")] = 0.0
    occurrences_held: Annotated[int, msgspec.Meta(description="that wait for a person")] = 0
    occurrences_failed: int = 0
