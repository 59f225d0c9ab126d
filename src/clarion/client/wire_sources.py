"""The shapes of the HTTP API about sources: the documents, invoices, classes and employees that reminders are about.

Beside `client.wire`, whose rules hold here too. Fields, dates and metrics are read value by value where they are
checked, so that each mistake is told by its name. Plain values: nothing here reads or writes anything.
"""

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Final
from uuid import UUID

import msgspec

from clarion.client.wire import PLAIN_NAME, At
from clarion.domain.source import FIELDS_MAX

SOURCES_MAX: Final = 500
"""Sources in one request: as many as people, and as long as one transaction may keep others waiting."""

_NAMES: Final = {"propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]{0,63}$"}, "maxProperties": FIELDS_MAX}
_NUMBERS: Final = {
    "anyOf": [
        {"type": "number"},
        {"type": "object", "additionalProperties": {"type": "number"}},
        {"type": "null"},
    ]
}

Fields = Annotated[
    Mapping[str, Annotated[object, msgspec.Meta(extra_json_schema={"type": ["string", "number", "boolean", "null"]})]],
    msgspec.Meta(
        description="what filters compare and templates read, by name: text, numbers, truths", extra_json_schema=_NAMES
    ),
]
Dates = Annotated[
    Mapping[
        str,
        Annotated[
            object,
            msgspec.Meta(extra_json_schema={"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]}),
        ],
    ],
    msgspec.Meta(description="what reminders count from, by name: days such as 2026-03-31", extra_json_schema=_NAMES),
]
Metrics = Annotated[
    Mapping[str, Annotated[object, msgspec.Meta(extra_json_schema=_NUMBERS)]],
    msgspec.Meta(
        description="what thresholds look at, by name: a number, or one for each part of the source by its name",
        extra_json_schema=_NAMES,
    ),
]
SourceName = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=200,
        pattern=PLAIN_NAME,
        description="your own id of it; in a path, what is no letter or digit is percent-encoded: `2026/17` is "
        "`2026%2F17`",
        examples=["2026-0815"],
    ),
]


class SourceBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A source as a whole: what is left out, it has not."""

    fields: Fields = {}
    dates: Dates = {}
    metrics: Metrics = {}
    business_unit: Annotated[UUID, msgspec.Meta(description="in whose zone its reminders are due")] | None = None
    entity: (
        Annotated[
            UUID,
            msgspec.Meta(
                description="its guid, under which its history opens, where you have one; a source keeps the one that "
                "it was stored with first"
            ),
        ]
        | None
    ) = None


class SourceRequest(SourceBody, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One source as a whole."""


class SourceItem(SourceBody, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One of many sources."""

    id: SourceName


class SourcesRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Sources of one type as they shall be, each as a whole."""

    sources: Annotated[tuple[SourceItem, ...], msgspec.Meta(min_length=1, max_length=SOURCES_MAX)]


class SourceStored(msgspec.Struct, frozen=True, kw_only=True):
    """What putting or removing a source came to."""

    id: SourceName
    version: Annotated[int, msgspec.Meta(description="counted by Clarion, one more for each change")]
    changed: Annotated[bool, msgspec.Meta(description="false where it was so already")]
    event_id: Annotated[
        UUID | None, msgspec.Meta(description="of the event that tells of the change; null without one")
    ]


class SourcesStored(msgspec.Struct, frozen=True, kw_only=True):
    """What putting several came to, in the order in which they were sent."""

    changed: int
    items: tuple[SourceStored, ...]


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A source as stored."""

    type: str
    id: SourceName
    entity: Annotated[UUID, msgspec.Meta(description="under which its history opens")]
    business_unit: UUID | None
    version: int
    changed_at: At | None
    fields: Annotated[
        dict[str, str | bool | int | float | None] | None,
        msgspec.Meta(description="null, as dates and metrics are, for a key whose role may neither tell nor reveal"),
    ]
    dates: dict[str, date] | None
    metrics: dict[str, float | dict[str, float]] | None


class SourcePage(msgspec.Struct, frozen=True, kw_only=True):
    """Sources of a type, by id."""

    items: tuple[Source, ...]
    next_cursor: str | None
