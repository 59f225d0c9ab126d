"""The shapes of the HTTP API about notification types: which there are, publishing one, looking at one, and trying one.

Beside `client.wire`, whose rules hold here too. Plain values: nothing here reads or writes anything.
"""

from typing import Annotated, Final

import msgspec

from clarion.client.wire import PLAIN, At
from clarion.domain.definition import Definition
from clarion.domain.identity import Channel, Lane

FileName = Annotated[str, msgspec.Meta(min_length=1, max_length=100, pattern=PLAIN)]

FILES_MAX: Final = 500
"""Files of one notification in a request: 50 languages with ten files each."""

SAMPLE_NOTE: Final = "without it, the definition's sample"


class NotificationType(msgspec.Struct, frozen=True, kw_only=True):
    """A published notification type, at its latest version."""

    type: str
    version: int
    title: str
    description: str
    channels: tuple[Channel, ...]
    lane: Lane
    enabled: bool
    variables: Annotated[tuple[str, ...], msgspec.Meta(description="what `data` must have")]
    quarantined: Annotated[
        bool, msgspec.Meta(description="whether it was found to hurt others: then sends of it are refused")
    ] = False


class TypeList(msgspec.Struct, frozen=True, kw_only=True):
    """Every published type, by name."""

    items: tuple[NotificationType, ...]


class EnabledRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether notifications of a type are sent."""

    enabled: bool


class TypeRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A notification type as its author wrote it: what a folder of files holds, in one object."""

    definition: Annotated[
        Definition, msgspec.Meta(description="what definition.toml says; its key is that of the path")
    ]
    files: Annotated[
        dict[FileName, str],
        msgspec.Meta(max_length=FILES_MAX, description="template files by name", examples=[{"sms.liquid": "Hello"}]),
    ]
    layouts: Annotated[
        dict[FileName, str],
        msgspec.Meta(max_length=FILES_MAX, description="files of layouts and partials by name"),
    ] = {}
    locales: Annotated[
        dict[FileName, dict[FileName, str]],
        msgspec.Meta(max_length=50, description="the texts that the templates read, by language and name"),
    ] = {}
    schema: (
        Annotated[dict[str, object], msgspec.Meta(description="JSON Schema (2020-12) that the data has to fit")] | None
    ) = None
    with_category: Annotated[
        bool,
        msgspec.Meta(
            description="where other types of its category say otherwise of `may_unsubscribe`, publish new versions of "
            "them that say the same; without it that is a mistake"
        ),
    ] = False
    dry_run: Annotated[bool, msgspec.Meta(description="store nothing, and say what would change")] = False


class FieldChange(msgspec.Struct, frozen=True, kw_only=True):
    """A field of a definition that differs from the version before."""

    field: str
    before: object
    after: object


class PartChange(msgspec.Struct, frozen=True, kw_only=True):
    """A part whose text differs from the version before; a mail's HTML is as it was compiled."""

    locale: str
    channel: Channel
    part: str
    lines: Annotated[tuple[str, ...], msgspec.Meta(description="what goes begins with -, what comes with +")]


class TypeChange(msgspec.Struct, frozen=True, kw_only=True):
    """What publishing made of a notification type, or would make of it."""

    type: str
    version: Annotated[int, msgspec.Meta(description="that stands now, or would stand")]
    created: Annotated[bool, msgspec.Meta(description="whether this version is new; the same content is the same one")]
    fields: tuple[FieldChange, ...] = ()
    parts: tuple[PartChange, ...] = ()
    others: Annotated[
        tuple["TypeChange", ...], msgspec.Meta(description="types of its category that change `with_category`")
    ] = ()


class TypeVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One published version, which never changes."""

    version: int
    content_hash: str
    created_at: At
    quarantined_at: (
        Annotated[At, msgspec.Meta(description="when it was found to hurt others; it is not merged since then")] | None
    ) = None


class TypeDetails(msgspec.Struct, frozen=True, kw_only=True):
    """A notification type as it is published now, and its versions."""

    type: str
    version: int
    enabled: bool
    definition: Definition
    variables: Annotated[tuple[str, ...], msgspec.Meta(description="what `data` must have")]
    schema: Annotated[dict[str, object], msgspec.Meta(description="that `data` has to fit")] | None = None
    versions: Annotated[tuple[TypeVersion, ...], msgspec.Meta(description="newest first, 100 at most")]


class PreviewRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What to merge into a type's templates."""

    data: Annotated[dict[str, object], msgspec.Meta(description=f"as in a send; {SAMPLE_NOTE}")] | None = None
    recipient: Annotated[dict[str, object], msgspec.Meta(description=f"the person's profile; {SAMPLE_NOTE}")] | None = (
        None
    )
    entity: (
        Annotated[dict[str, object], msgspec.Meta(description=f"what it is about, with its data; {SAMPLE_NOTE}")] | None
    ) = None
    locale: Annotated[str, msgspec.Meta(max_length=35, description="the language that the reader wants")] | None = None
    zone: Annotated[str, msgspec.Meta(max_length=64, examples=["Europe/Vienna"])] = "UTC"
    channel: Annotated[Channel, msgspec.Meta(description="only this of the type's channels")] | None = None
    version: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1, description="without it the latest one")] | None = None


class TypePreview(msgspec.Struct, frozen=True, kw_only=True):
    """How a notification would read; nothing is sent."""

    type: str
    version: Annotated[int, msgspec.Meta(description="0 for files that are not published")]
    locale: Annotated[str, msgspec.Meta(description="the language of the texts that were taken")]
    contents: Annotated[
        dict[Channel, dict[str, str]],
        msgspec.Meta(description="by channel and part: a mail has subject, html and text"),
    ]
