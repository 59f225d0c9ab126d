"""One of two stores that are compared: what was done to it so far, and all that it holds, in a form to compare.

Two stores choose different ids and read different clocks. So an id is written as its place among the ids of its table,
which is the same on both if they hand out ids in the same order, and an instant as its distance from the store's `now`
(one that a caller gave is the same on both as it is). Everything else must be equal as it is.
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from itertools import zip_longest
from typing import Final, NamedTuple, Protocol

import msgspec

from clarion.domain.address import AddressVersion
from clarion.domain.call import CallOutcome
from clarion.domain.claim import ClaimedMessage, StageClaim, UncertainSend
from clarion.domain.inbox import UserMessage
from clarion.domain.notification import NotificationJob
from clarion.domain.outgoing import OutgoingMessage
from clarion.domain.person import PersonVersion
from clarion.domain.recipient import RecipientJob
from clarion.domain.support import SupportCase
from clarion.domain.timeline import OutgoingTimeline
from clarion.ports.automation import DueClaim
from clarion.ports.catalog import AuditEntry
from clarion.ports.inbox import InboxLine
from clarion.ports.insights import UncertainLine
from clarion.ports.source import EventClaim
from clarion.testing.contracts.harness import RECORDS, StoreHarness, by_key
from clarion.testing.row import DeliveryAttempt, FlowCount, Transition, WebhookEvent

COMPARED: Final[tuple[type[msgspec.Struct], ...]] = (
    *RECORDS,
    Transition,
    DeliveryAttempt,
    WebhookEvent,
    AuditEntry,
    RecipientJob,
)
"""Every row that is compared after every operation."""

_OF_A_MESSAGE: Final = (OutgoingTimeline, ClaimedMessage, UncertainSend, UncertainLine)
"""Answers whose `id` is that of an outgoing row."""

_TABLE_OF: Final[Mapping[str, type]] = {
    "outgoing_id": OutgoingMessage,
    "address_id": AddressVersion,
    "person_version_id": PersonVersion,
    "user_message_id": UserMessage,
    "job_id": NotificationJob,
}
"""What a field of this name refers to."""

_CHOSEN: Final = {"flow_id": "a flow", "hash": "a hash over instants"}
"""Fields that say nothing beyond what others say: a flow's names are compared, and the audit's chain has its tests."""


class Side:
    """A store, the tenant, the claims that were made so far and what was said of each."""

    def __init__(self, harness: StoreHarness, tenant_id: str) -> None:
        """Start without claims."""
        self.harness = harness
        self.store = harness.store
        self.tenant_id = tenant_id
        self.claims: list[ClaimedMessage] = []
        self.said: dict[int, CallOutcome] = {}
        self.stages: list[StageClaim] = []
        self.events: list[EventClaim] = []
        self.due: list[DueClaim] = []

    async def rows(self) -> list[OutgoingMessage]:
        """Read the tenant's outgoing rows in an order that is the same on both sides."""
        return by_key(await self.harness.rows(self.tenant_id, OutgoingMessage))

    async def names(self) -> dict[int, tuple[str, str]]:
        """Name each outgoing row by its keys instead of its id."""
        return {row.id or 0: (row.pk, row.rk) for row in await self.rows()}

    async def look(self) -> "Look":
        """Read everything that the tenant has."""
        rows = {kind: await self.harness.rows(self.tenant_id, kind) for kind in COMPARED}
        return Look(now_at=await self.harness.now(), rows=rows)


class Operation(Protocol):
    """Something to do to a store."""

    async def run(self, side: Side) -> object:
        """Do it, and give what it came to."""
        ...


class Instant(NamedTuple):
    """An instant, and how far it is from now."""

    at: datetime
    distance: timedelta


class Look:
    """All rows of a tenant at one moment, by which answers of that moment are read too."""

    def __init__(self, *, now_at: datetime, rows: Mapping[type, Sequence[msgspec.Struct]]) -> None:
        """Take the rows as they are stored."""
        self._now_at = now_at
        self._rows = rows
        self._places = {
            kind: {number: place for place, number in enumerate(sorted(getattr(row, "id", 0) for row in some))}
            for kind, some in rows.items()
        }

    @property
    def rows(self) -> Mapping[str, object]:
        """Every row, comparably; counters without those that are nought, and in the order of their names."""
        counts = sorted((row.key, row.n) for row in self._rows[FlowCount] if isinstance(row, FlowCount) and row.n)
        plain = {kind.__name__: self.comparable(rows) for kind, rows in self._rows.items()}
        return {**plain, FlowCount.__name__: counts}

    def comparable(self, value: object) -> object:
        """Write a value so that it is equal to the other store's if and only if both mean the same."""
        if value is None or isinstance(value, str | int | bytes):
            return value
        match value:
            case datetime():
                return Instant(value, value - self._now_at)
            case float():
                return timedelta(seconds=value)
            case msgspec.Struct():
                return self._struct(value)
            case Mapping():
                return {key: self.comparable(one) for key, one in value.items()}
            case Sequence():
                return [self.comparable(one) for one in value]
            case AbstractSet():
                return sorted(value, key=repr)
            case _:
                return value

    def _struct(self, value: msgspec.Struct) -> dict[str, object]:
        """Write each field of a record under its name."""
        return {name: self._field(value, name) for name in value.__struct_fields__}

    def _field(self, value: msgspec.Struct, name: str) -> object:
        plain = getattr(value, name)
        if name in _CHOSEN:
            return _CHOSEN[name]
        if isinstance(value, SupportCase) and name == "details":
            return self._details(value)
        if isinstance(value, AuditEntry) and name == "subject":
            kind, _, number = value.subject.partition(" ")
            return (kind, self._place(OutgoingMessage, int(number))) if kind == "outgoing" else value.subject
        if name == "id" and isinstance(plain, int):
            return self._place(_table_of(value), plain)
        return self._place(_TABLE_OF[name], plain) if name in _TABLE_OF else self.comparable(plain)

    def _place(self, kind: type, number: int | None) -> object:
        """Write an id as the how-manieth of its table; one that is not stored has none."""
        return None if number is None else self._places[kind].get(number, "not stored")

    def _details(self, case: SupportCase) -> object:
        """Read what a case says; of a conflict about an address by its id, which address that is."""
        details = msgspec.json.decode(case.details)
        shown = details.get("differing", {})
        if "address_id" in shown:
            found = {side: self._place(AddressVersion, int(one)) for side, one in shown["address_id"].items()}
            details["differing"] = {**shown, "address_id": found}
        return details


def _table_of(value: msgspec.Struct) -> type:
    """Say whose `id` a record has."""
    if isinstance(value, _OF_A_MESSAGE):
        return OutgoingMessage
    return UserMessage if isinstance(value, InboxLine) else type(value)


def differences(one: object, other: object, *, within: timedelta, path: str = "") -> Iterator[str]:
    """Say where two comparable values differ; instants may differ by this much, because each store has its clock."""
    if one == other:
        return
    match one, other:
        case Instant(at=mine_at, distance=mine), Instant(at=theirs_at, distance=theirs):
            if mine_at != theirs_at and abs(mine - theirs) > within:
                yield f"{path}: {mine} against {theirs} from now"
        case timedelta(), timedelta():
            if abs(one - other) > within:
                yield f"{path}: {one} against {other}"
        case dict(), dict():
            for key in one.keys() | other.keys():
                yield from differences(one.get(key), other.get(key), within=within, path=f"{path}.{key}")
        case ((list() | tuple()), (list() | tuple())):
            for place, pair in enumerate(zip_longest(one, other, fillvalue="nothing")):
                yield from differences(*pair, within=within, path=f"{path}[{place}]")
        case _:
            yield f"{path}: {one!r} against {other!r}"
