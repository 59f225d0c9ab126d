"""Sources: the documents, invoices, classes and employees that reminders are about, as an application described them.

A source has fields for filters and templates, dates that reminders count from, and metrics that thresholds look at.
Whoever provides it, a record of ours or a plugin, rules see it as `SourceFacts`. Pure; what is stored is sealed by
whoever stores it.
"""

from collections.abc import Mapping
from datetime import date, datetime
from enum import StrEnum
from math import isfinite
from typing import Annotated, Final
from uuid import UUID

import msgspec

from clarion.domain import part
from clarion.domain.part import END, UNSEEN
from clarion.errors import InvalidInput, InvalidKey

FIELDS_MAX: Final = 50
"""Of each of the three kinds: as many as the widest form that people fill in."""

CONTENT_BYTES_MAX: Final = 16 * 1024
"""As JSON: it travels with every notification about the source, so it is no place for documents."""

SCOPES_MAX: Final = 100
"""Of one metric: the rooms of a house or the months of some years. Each is planned by itself."""

SCOPE_CHARS_MAX: Final = 100
"""Of the name of a scope, which is part of the key of an occurrence."""

ID_BYTES_MAX: Final = 200
"""Of an id as keys spell it: the key of an occurrence takes 400 bytes, and setting, type and date take the rest."""

WHOLE: Final = "all"
"""The scope of a metric that has one value for the whole source."""

SourceType = Annotated[str, msgspec.Meta(min_length=1, max_length=64, pattern=r"^[a-z][a-z0-9_-]*" + END)]
"""The kind of a source, as definitions and settings write it."""

SourceId = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=rf"^(?=.*\S)[^{UNSEEN}]+{END}")]
"""The id that its application knows a source by."""

FieldName = Annotated[str, msgspec.Meta(min_length=1, max_length=64, pattern=r"^[A-Za-z_][A-Za-z0-9_]*" + END)]
"""The name of a field, date or metric, as templates write it."""

FieldValue = str | bool | int | float | None


class SourceContent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an application says of a source; what is absent is not known. This is what is sealed."""

    fields: Mapping[FieldName, FieldValue] = {}
    dates: Mapping[FieldName, date] = {}
    metrics: Mapping[FieldName, float | Mapping[str, float]] = {}


class SourceRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A source as it is stored; field names are column names.

    `row_version` is counted by the store, one more for each change; an `active` of False is what is left of a source
    that was removed. `content` is sealed. `days` are its dates as the scan of reconciliation finds them.
    """

    source_type: str
    source: str
    entity_guid: UUID
    business_unit: UUID | None = None
    active: bool = True
    content: bytes
    content_hash: str
    days: tuple[tuple[str, date], ...] = ()
    row_version: int = 1
    changed_at: datetime | None = None


class SourceChange(StrEnum):
    """What became of a source, as the last word of the type of the event that tells of it."""

    CREATED = "created"
    CHANGED = "changed"
    REMOVED = "removed"


def after_put(given: SourceRecord, stored: SourceRecord | None) -> tuple[SourceRecord, SourceChange] | None:
    """Say what a source is after it was put, and what that means; None where it was so already.

    It keeps the entity that it was stored with first, and its row version counts on whatever becomes of it. One that
    is removed keeps its business unit: who removes it need not know it. The removal of one that is not there says
    nothing new.
    """
    if stored is None:
        return (msgspec.structs.replace(given, row_version=1), SourceChange.CREATED) if given.active else None
    if given.active:
        same = (stored.content_hash, stored.business_unit) == (given.content_hash, given.business_unit)
        if stored.active and same:
            return None
        change = SourceChange.CHANGED if stored.active else SourceChange.CREATED
    elif stored.active:
        change = SourceChange.REMOVED
    else:
        return None
    after = msgspec.structs.replace(
        given,
        entity_guid=stored.entity_guid,
        business_unit=given.business_unit if given.active else stored.business_unit,
        days=given.days if given.active else (),
        row_version=stored.row_version + 1,
    )
    return after, change


class SourceFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A source as rules see it; `version` is that of a record of ours, and 0 where a plugin provides it."""

    source_type: str
    source: str
    entity: UUID
    business_unit: UUID | None = None
    active: bool = True
    version: int = 0
    content: SourceContent = SourceContent()

    def metric(self, name: str, scope: str) -> float | None:
        """Give a metric in a scope; None where the source has none."""
        value = self.content.metrics.get(name)
        if isinstance(value, Mapping):
            return value.get(scope)
        return value if scope == WHOLE else None

    def scopes(self, name: str) -> tuple[str, ...]:
        """Name the scopes in which the source has a metric."""
        value = self.content.metrics.get(name)
        if isinstance(value, Mapping):
            return tuple(sorted(value))
        return () if value is None else (WHOLE,)


def require_content(content: SourceContent) -> bytes:
    """Write content as JSON, or refuse what is beyond its limits."""
    for name in ("fields", "dates", "metrics"):
        if len(getattr(content, name)) > FIELDS_MAX:
            raise _refused(name, "it has too many entries", f"use {FIELDS_MAX} or less")
    for name, value in content.metrics.items():
        scopes = value if isinstance(value, Mapping) else {WHOLE: value}
        if len(scopes) > SCOPES_MAX:
            raise _refused(f"metrics.{name}", "it has too many scopes", f"use {SCOPES_MAX} or less")
        if any(not 1 <= len(scope) <= SCOPE_CHARS_MAX for scope in scopes):
            raise _refused(f"metrics.{name}", "a scope has no name, or too long a one", "name it by a word")
    numbers = [*content.fields.values(), *_values_of(content)]
    if any(isinstance(one, float) and not isfinite(one) for one in numbers):
        raise _refused("fields", "it holds a number that is none", "leave it out where there is none")
    written = msgspec.json.encode(content)
    if len(written) > CONTENT_BYTES_MAX:
        raise _refused(
            "fields",
            f"fields, dates and metrics are {len(written)} bytes long as JSON",
            f"leave out what no reminder needs: {CONTENT_BYTES_MAX} bytes is the most",
        )
    return written


def check_type(text: str, *, field: str) -> str:
    """Refuse what is no type of a source."""
    try:
        return msgspec.convert(text, SourceType)
    except msgspec.ValidationError:
        raise InvalidInput(
            "it is no type of a source",
            field=field,
            hint="use 1 to 64 of a-z, 0-9, '-' and '_', starting with a letter, such as invoice",
        ) from None


def check_id(text: str, *, field: str) -> str:
    """Refuse what no source can be known by: what nobody sees, what stands in no path, what is too long for a key."""
    try:
        spelled = part.text(msgspec.convert(text, SourceId), field=field)
    except (msgspec.ValidationError, InvalidKey):
        raise InvalidInput(
            "it is blank, too long, or holds what nobody sees", field=field, hint="use 1 to 200 characters in one line"
        ) from None
    if text in (".", ".."):
        raise InvalidInput("no path can name it", field=field, hint="use another id than dots alone")
    if len(spelled) > ID_BYTES_MAX:
        raise InvalidInput(
            f"it is {len(spelled)} bytes long as keys spell it",
            field=field,
            hint=f"use {ID_BYTES_MAX} or less; a character outside A-Z a-z 0-9 . _ ~ - takes 3 bytes or more",
        )
    return text


def _values_of(content: SourceContent) -> list[float]:
    """Give every value of every metric."""
    parts = [value.values() if isinstance(value, Mapping) else (value,) for value in content.metrics.values()]
    return [one for values in parts for one in values]


def _refused(field: str, what: str, hint: str) -> InvalidInput:
    return InvalidInput(what, field=field, hint=hint)
