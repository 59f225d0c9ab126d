"""What callers of dispatch give: the occurrence, job, content, addresses and inbox lines that they want to exist.

Plain values with their limits beside them; `checked` holds a value to its declared types and limits, so that a wrong
type is one clear error and not a strange row. Keys are not among the values: dispatch derives every one of them.
"""

from collections.abc import Mapping
from datetime import date, datetime
from functools import cache
from typing import Annotated, Any, Final, TypeVar, get_args, get_type_hints
from uuid import UUID

import msgspec

from clarion.domain.audience import ADDRESSEES_MAX, Addressee
from clarion.domain.definition import TTL_SECONDS_MAX
from clarion.domain.guard import IDEMPOTENCY_KEY_MAX
from clarion.domain.hint import Hints
from clarion.domain.identity import Channel, Identity, Lane
from clarion.domain.instant import EXPIRY_YEARS, YEARS, require_storable
from clarion.domain.locale import SIZE_MAX
from clarion.domain.misfit import read_misfit
from clarion.domain.notification import NotificationJob
from clarion.domain.occurrence import Reminder, ReportRun
from clarion.domain.part import END, plain
from clarion.domain.recipient import INLINE_MAX, Target
from clarion.errors import InvalidInput

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
"""A type, operation, template or route: short enough that several of them fit into one key."""

Instant = Annotated[datetime, msgspec.Meta(tz=True)]
Count = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
"""A version or number of a re-run: more than anybody reaches, and within every engine's integer."""

TimeToLive = Annotated[int, msgspec.Meta(ge=1, le=TTL_SECONDS_MAX)]
Locale = Annotated[str, msgspec.Meta(min_length=2, max_length=SIZE_MAX)]
Channels = Annotated[tuple[Channel, ...], msgspec.Meta(max_length=len(Channel))]
"""In the order in which they are to be tried; empty where nothing was asked for."""

Entity = tuple[Name, UUID]
"""The type and guid of the thing that a notification is about."""


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """What ties records of one request together."""

    correlation_id: Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
    traceparent: (
        Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}" + END)] | None
    ) = None


class Occurrence(msgspec.Struct, frozen=True, kw_only=True):
    """Something that falls due: what it is, when, and whether it is a deliberate re-run of what was completed."""

    what: Reminder | ReportRun
    scheduled_at: Instant
    local_date: date | None = None
    local_time: Annotated[str, msgspec.Meta(pattern=r"^\d{2}:\d{2}(:\d{2})?" + END)] | None = None
    tz_id: Name | None = None
    tzdata_version: Name | None = None
    rerun: Count | None = None
    trace: Trace


class Direct(msgspec.Struct, frozen=True, kw_only=True, tag="direct"):
    """A send that somebody asked for: under a caller's idempotency key, or under a guid minted at the door."""

    operation: Name
    idempotency_key: Annotated[str, msgspec.Meta(min_length=1, max_length=IDEMPOTENCY_KEY_MAX)] | None = None
    minted_guid: UUID | None = None


class FromAutomation(msgspec.Struct, frozen=True, kw_only=True, tag="automation"):
    """What a due occurrence leads to."""

    occurrence: Occurrence


class FromCampaign(msgspec.Struct, frozen=True, kw_only=True, tag="campaign"):
    """A campaign's anchor in its business unit's history."""

    business_unit: UUID
    campaign: UUID


class FromEvent(msgspec.Struct, frozen=True, kw_only=True, tag="event"):
    """What an entity event leads to; the entity is the job's."""

    event_type: Name
    event_guid: UUID


class JobRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A notification event: what to tell, to whom, about what, and where it comes from.

    `lane`, `not_before_at`, `template_version` and the fields of `PER_SEND` are as the caller gave them, absent where
    it gave none, and of a direct send they are compared so. `resolved_…` is what holds where nothing was given.

    `to` names people, as many as a set in the job's row may have; a door that lets strangers name them allows fewer.
    `messaging_job` is the guid of the stored content that its messages are merged from, where there is one, and
    `blob_hash` the fingerprint of that content: it is then the parent of the outgoing rows, and this job their anchor
    in the history.

    `addressees` are whom a reminder or a report tells, resolved when the recipients are frozen. Where both are absent,
    the settings of the type say whom; `addressees` without any mean nobody but those of `to`.
    """

    origin: Direct | FromAutomation | FromCampaign | FromEvent
    event_type: Name
    source_at: Instant
    entity: Entity | None = None
    entity_data: Mapping[str, object] = {}
    to: Annotated[tuple[Target, ...], msgspec.Meta(max_length=INLINE_MAX)] = ()
    addressees: Annotated[tuple[Addressee, ...], msgspec.Meta(max_length=ADDRESSEES_MAX)] | None = None
    data: Mapping[str, object] = {}
    template_key: Name | None = None
    template_version: Count | None = None
    resolved_template_version: Count | None = None
    lane: Lane | None = None
    resolved_lane: Lane = Lane.NORMAL
    resolved_one_time_code: bool = False
    not_before_at: Instant | None = None
    ttl_seconds: TimeToLive | None = None
    locale: Locale | None = None
    channels: Channels = ()
    business_unit: UUID | None = None
    hints: Hints | None = None
    messaging_job: UUID | None = None
    blob_hash: Name | None = None
    scheduled: bool = True
    actor: Name | None = None
    trace: Trace


class Payload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is sealed in a job's row: recipients, merge data, when it was to begin if not at once, and `PER_SEND`.

    `entity` is the thing that it is about as templates read it: its type, its guid and its data, as they were.
    `addressees` stand for whom the settings of the type name, where they are given. `blob_hash` is the fingerprint of
    the content that takes the place of data and entity, where a messaging job has one.
    """

    to: tuple[Target, ...]
    addressees: tuple[Addressee, ...] | None = None
    data: Mapping[str, object]
    entity: Mapping[str, object] = {}
    due_at: datetime | None = None
    ttl_seconds: int | None = None
    locale: str | None = None
    channels: tuple[Channel, ...] = ()
    business_unit: UUID | None = None
    hints: Hints | None = None
    blob_hash: str | None = None


PER_SEND: Final = ("ttl_seconds", "locale", "channels", "business_unit", "hints")
"""What a caller may ask for instead of what the type, the person or the installation says: the same fields of a
request and of the payload that is stored."""


class CampaignContent(msgspec.Struct, frozen=True, kw_only=True, tag="campaign"):
    """A draft that was sent."""

    draft: UUID


class WaveContent(msgspec.Struct, frozen=True, kw_only=True, tag="wave"):
    """The n-th resend of a campaign."""

    campaign: UUID
    n: Count


class ReportContent(msgspec.Struct, frozen=True, kw_only=True, tag="report"):
    """What a run of a report subscription made."""

    occurrence: Occurrence


class ContentRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A large payload, which is stored as a blob before any row refers to it."""

    of: CampaignContent | WaveContent | ReportContent
    content: bytes
    source_at: Instant
    template_key: Name | None = None
    template_version: Count | None = None
    resolved_template_version: Count | None = None
    trace: Trace


class Destination(msgspec.Struct, frozen=True, kw_only=True):
    """Where a recipient is reached on a channel; another destination is another version."""

    identity: Identity
    channel: Channel
    destination: str
    trace: Trace


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """What templates may read of a person, as it is now."""

    identity: Identity
    content: Mapping[str, object]
    trace: Trace


class InboxEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One recipient's line in the inbox, with what it shows; `job` is the row as it is stored.

    `hold` is the claim (scheduler id, version) under which it is made. `category` is its type's, and after `expires_at`
    it is in no list any more.
    """

    job: NotificationJob
    hold: tuple[int, int] | None = None
    recipient: Identity
    category: str | None = None
    expires_at: datetime | None = None
    content: bytes | None = None


T = TypeVar("T", bound=msgspec.Struct)

_CORRECT: Final = "correct it and ask again"


def checked(value: T) -> T:
    """Return the value if every field has its declared type and keeps its limits, else raise InvalidInput."""
    try:
        built = msgspec.to_builtins(value)
    except TypeError:
        raise _refused("it holds something that no record can", field=type(value).__name__) from None
    try:
        msgspec.convert(built, type(value))
    except msgspec.ValidationError as error:
        misfit = read_misfit(str(error), type(value))
        field = misfit.field or type(value).__name__
        raise InvalidInput(misfit.what, field=field, hint=misfit.hint or _CORRECT) from None
    except UnicodeEncodeError:
        raise _refused("it holds half of a surrogate pair", field=type(value).__name__) from None
    _check_instants(value, path="")
    return value


def taken(value: T) -> T:
    """Check a request, and return it with its names in NFC.

    A row keeps names as they are given, and some are part of its unique key (an operation, an event type). In two
    Unicode forms of one name there would be two rows for one occurrence.
    """
    normal: T = value if _is_ascii(checked(value)) else _in_nfc(value, path="")
    return normal


def _is_ascii(value: msgspec.Struct) -> bool:
    """Tell whether there is no text in a request but ASCII, which has one form; nearly all are so."""
    try:
        return msgspec.json.encode(value).isascii()
    except (OverflowError, TypeError, ValueError):
        return False  # it holds what JSON cannot


def _in_nfc(value: Any, *, path: str) -> Any:  # noqa: ANN401  a field of a request, of whichever type
    """Give names in NFC, wherever they stand in a request; data for a template is left as it is."""
    match value:
        case str() if not value.isascii():
            return plain(value, field=path)
        case tuple():
            parts = tuple(_in_nfc(one, path=path) for one in value)
            return value if parts == value else parts
        case msgspec.Struct():
            before = {name: getattr(value, name) for name in value.__struct_fields__}
            forms = {name: _in_nfc(one, path=f"{path}.{name}".strip(".")) for name, one in before.items()}
            changes = {name: form for name, form in forms.items() if form is not before[name]}
            return msgspec.structs.replace(value, **changes) if changes else value
        case _:
            return value


def _check_instants(value: msgspec.Struct, *, path: str) -> None:
    """Refuse an instant that no record can hold, wherever it stands in a request."""
    instants, parts = _fields_to_check(type(value))
    for name in instants:
        if (at := getattr(value, name)) is not None:
            years = EXPIRY_YEARS if name == "expires_at" else YEARS
            require_storable(at, field=f"{path}{name}", years=years)
    for name in parts:
        if isinstance(part := getattr(value, name), msgspec.Struct):
            _check_instants(part, path=f"{path}{name}.")


@cache
def _fields_to_check(kind: type[msgspec.Struct]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Name the fields that hold instants and those that hold further values; asked once a type, not once a row."""
    instants: list[str] = []
    parts: list[str] = []
    for name, hint in get_type_hints(kind).items():
        types = [one for one in (hint, *get_args(hint)) if isinstance(one, type)]
        if datetime in types and name not in _MAY_BE_PAST:
            instants.append(name)
        if any(issubclass(one, msgspec.Struct) for one in types):
            parts.append(name)
    return tuple(instants), tuple(parts)


_MAY_BE_PAST: Final = frozenset({"not_before_at"})
"""A time that has passed means now, even one that no engine could store; `job` checks the due time it comes to."""


def _refused(message: str, *, field: str) -> InvalidInput:
    return InvalidInput(message, field=field, hint=_CORRECT)
