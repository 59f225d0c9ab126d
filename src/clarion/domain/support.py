"""Support: what a person should look at, one case per cause, and whether it is still open.

Nothing here reads or writes anything. A case's id derives from its cause, so that the same trouble is one case however
often it is seen.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final, Protocol
from uuid import UUID

import msgspec

from clarion.domain import derived_id
from clarion.domain.fingerprint import Fingerprint
from clarion.domain.machine import Cause, Machine, by


class SupportStatus(StrEnum):
    """Whether anyone still has to look."""

    OPEN = "Open"
    RESOLVED = "Resolved"


SUPPORT_CASE = Machine(
    name="SupportCase",
    initial=frozenset({SupportStatus.OPEN}),
    table={
        SupportStatus.OPEN: {SupportStatus.RESOLVED: by(Cause.REQUEST)},
        SupportStatus.RESOLVED: {SupportStatus.OPEN: by(Cause.ENSURE, note="seen again: count + 1")},
    },
)

DETAILS_BYTES_MAX: Final = 4096
"""As for every diagnostic (docs/reference/schema.md)."""

_VALUE_CHARS = (120, 40, 12)
"""How much of a long value is shown: the first of these with which all differing fields fit into the details."""


class SupportKind(StrEnum):
    """What kind of trouble a case is."""

    CONFLICT = "Conflict"
    HOLD = "Hold"
    UNCERTAIN = "Uncertain"
    DEAD_LETTER = "DeadLetter"
    MISCONFIGURATION = "Misconfiguration"
    OUTAGE = "Outage"


KIND_IN_WORDS: Final[Mapping[SupportKind, str]] = {kind: kind.value for kind in SupportKind} | {
    SupportKind.DEAD_LETTER: "Failed"
}
"""What people read; the names above are stored, and part of a case's id."""

RECORD_IN_WORDS: Final[Mapping[str, str]] = {
    "NotificationJob": "notification",
    "NotificationScheduler": "notification",
    "OutgoingMessage": "message",
    "UserMessage": "inbox line",
    "AddressVersion": "address",
    "ProviderAccount": "account",
    "Template": "template version",
    "EntityEvent": "event",
    "AutomationScheduler": "occurrence",
}


FIELD_IN_WORDS: Final[Mapping[str, str]] = {
    "event_type": "type",
    "partition_key": "entity or recipient",
    "source": "entity",
    "source_type": "entity",
    "payload_hash": "recipients, data, lane or not_before_at",
    "destination_index": "address",
    "key_hash": "address",
    "recipient_id_hash": "recipient",
}
"""What callers call the fields in which two requests under one key can differ."""

_DIRECT_JOB: Final = re.compile(r"\d+_([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
"""The row key of a direct job: its time counted down, and its guid."""


class SupportCase(msgspec.Struct, frozen=True, kw_only=True):
    """One cause that a person should look at, how often it was seen, and how it was last resolved."""

    case_id: UUID
    kind: SupportKind
    status: SupportStatus = SupportStatus.OPEN
    record: str
    record_key: str
    details: str
    seen_count: int = 1
    correlation_id: str
    first_seen_at: datetime | None = None
    last_seen_at: datetime | None = None
    resolved_at: datetime | None = None
    resolved_by: str | None = None
    resolution: str | None = None


class Keyed(Protocol):
    """A record that an ensure can be in conflict about."""

    @property
    def key(self) -> tuple[str, ...]:
        """What is unique within the tenant."""
        ...


def differing_in_words(fields: Iterable[str]) -> list[str]:
    """Name differing fields as callers do; the payload's hash covers the others, so it is told where it is alone."""
    named = list(fields)
    named = [name for name in named if name != "payload_hash"] or named
    return list(dict.fromkeys(FIELD_IN_WORDS.get(name, name.removesuffix("_hash").replace("_", " ")) for name in named))


def about(case: SupportCase) -> str:
    """Say what a case is about: by the name that people know it by, where it has one."""
    word = RECORD_IN_WORDS.get(case.record, case.record)
    try:
        key = msgspec.json.decode(case.record_key, type=list[str])
    except msgspec.DecodeError:
        return word
    if case.record in ("ProviderAccount", "EntityEvent", "AutomationScheduler"):
        return " ".join([word, *key])
    job = next(filter(None, map(_DIRECT_JOB.fullmatch, key)), None)
    if job is None:
        return word
    return f"{word} {job[1]}" if word == "notification" else f"{word} of notification {job[1]}"


def conflict_case(
    *, tenant_id: str, given: Keyed, found: object, fields: Sequence[str], correlation_id: str
) -> SupportCase:
    """Make the case for an ensure that found other content under its key: which fields differ, and how."""
    record = type(given).__name__
    return SupportCase(
        case_id=derived_id.support_case_id(tenant_id=tenant_id, kind=SupportKind.CONFLICT, parts=[record, *given.key]),
        kind=SupportKind.CONFLICT,
        record=record,
        record_key=msgspec.json.encode(given.key).decode(),
        details=_details(given, found, fields),
        correlation_id=correlation_id,
    )


def _details(given: object, found: object, fields: Sequence[str]) -> str:
    """Write both values of each differing field, cut so that the whole fits."""
    for chars in _VALUE_CHARS:
        pairs = {
            name: {"stored": _shown(getattr(found, name), chars), "given": _shown(getattr(given, name), chars)}
            for name in fields
        }
        details = msgspec.json.encode({"differing": pairs})
        if len(details) <= DETAILS_BYTES_MAX:
            return details.decode()
    return msgspec.json.encode({"differing": list(fields)}).decode()


def _shown(value: object, chars: int) -> str | None:
    """Give a value as a person reads it, cut where it is long."""
    if value is None:
        return None
    text = value.text if isinstance(value, Fingerprint) else str(value)
    return text if len(text) <= chars else text[: chars - 1] + "…"
