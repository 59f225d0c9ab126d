"""What publishing a notification would change: fields of its definition, and lines of its parts. Pure."""

from collections.abc import Iterator, Mapping
from difflib import unified_diff
from typing import Final

import msgspec

from clarion.domain.identity import Channel
from clarion.ports.renderer import Bundle

LINES_MAX: Final = 40
"""Changed lines of one part that are shown: enough to see what it is, and no page of HTML."""


_Place = tuple[str, Channel, str]


class FieldChange(msgspec.Struct, frozen=True, kw_only=True):
    """A field of a definition that differs."""

    field: str
    before: object
    after: object


class PartChange(msgspec.Struct, frozen=True, kw_only=True):
    """A part whose text differs, as the lines that go (`-`) and come (`+`); a mail's HTML is as it was compiled."""

    locale: str
    channel: Channel
    part: str
    lines: tuple[str, ...]


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What publishing would make of one notification."""

    bundle: Bundle
    is_new: bool
    """Whether a version would be made."""
    version: int
    """That would stand then."""
    fields: tuple[FieldChange, ...] = ()
    parts: tuple[PartChange, ...] = ()

    @classmethod
    def of(cls, stored: tuple[int, Bundle] | None, bundle: Bundle) -> "Change":
        """Compare what is stored, with its version, to what would be."""
        if stored is None:
            return cls(bundle=bundle, is_new=True, version=1)
        version, before = stored
        if before.content_hash == bundle.content_hash:
            return cls(bundle=bundle, is_new=False, version=version)
        return cls(
            bundle=bundle,
            is_new=True,
            version=version + 1,
            fields=(*_fields(before, bundle), *_schema(before, bundle)),
            parts=tuple(_parts(before, bundle)),
        )


def _fields(before: Bundle, after: Bundle) -> Iterator[FieldChange]:
    old, new = msgspec.to_builtins(before.definition), msgspec.to_builtins(after.definition)
    for field in new:
        if old[field] != new[field]:
            yield FieldChange(field=field, before=old[field], after=new[field])


def _schema(before: Bundle, after: Bundle) -> Iterator[FieldChange]:
    if before.schema != after.schema:
        yield FieldChange(field="schema", before=before.schema, after=after.schema)


def _parts(before: Bundle, after: Bundle) -> Iterator[PartChange]:
    old, new = _texts(before), _texts(after)
    for place in sorted(old.keys() | new.keys()):
        lines = list(unified_diff(_lines(old, place), _lines(new, place), lineterm="", n=1))[2:]
        if lines:
            more = [f"… {len(lines) - LINES_MAX} more lines"] if len(lines) > LINES_MAX else []
            locale, channel, part = place
            yield PartChange(locale=locale, channel=channel, part=part, lines=(*lines[:LINES_MAX], *more))


def _lines(texts: Mapping[_Place, str], place: _Place) -> list[str]:
    """Give a part line by line; compiled HTML, which has few lines, element by element."""
    text = texts.get(place, "")
    return (text.replace("><", ">\n<") if place[2] == "html" else text).splitlines()


def _texts(bundle: Bundle) -> dict[_Place, str]:
    """Give the text of each part by language, channel and name."""
    all_parts = {bundle.definition.locales[0]: bundle.parts, **bundle.locales}
    return {
        (locale, channel, part): text
        for locale, channels in all_parts.items()
        for channel, parts in channels.items()
        for part, text in parts.items()
    }
