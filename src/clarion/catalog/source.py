"""A notification as its author wrote it, and what becomes of its files in each of its languages.

Which file counts in a language (`email.text.de.liquid` before `email.text.liquid`), and what is put into it: layout,
partials and texts (`domain.expansion`). Pure: `folder` reads the files, the renderer compiles what comes out here.
"""

import json
import re
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Final, NamedTuple

import msgspec

from clarion.catalog.json_line import second_line_of
from clarion.domain.definition import Definition
from clarion.domain.expansion import NAME, Expanded, Pieces, Text, expand, layout_file
from clarion.domain.identity import Channel
from clarion.domain.locale import normal, parents
from clarion.domain.strict_json import check_keys
from clarion.errors import InvalidInput
from clarion.ports.renderer import (
    DEFINITION,
    FILES_OF,
    OPTIONAL_FILES_OF,
    SCHEMA,
    Bundle,
    FieldMistake,
    NotCompiled,
    Renderer,
    TemplateMistake,
)

MJML: Final = "email.mjml.liquid"
LAID_OUT: Final = frozenset({MJML, "email.text.liquid"})
"""The files that a layout goes around."""

_ENDING: Final = ".liquid"
_KNOWN: Final = frozenset(chain(*FILES_OF.values(), *OPTIONAL_FILES_OF.values()))

_LAYOUT: Final = re.compile(r"_?[a-z0-9][a-z0-9-]{0,62}\.(mjml|text)\.liquid", re.ASCII)

Translated = dict[str, dict[str, Expanded]]
"""By language, the files of a notification with everything put in."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A notification's definition and files, and what stands beside the types: layouts and texts."""

    definition: Definition
    files: Mapping[str, str]
    """Template files by name, those for one language too."""
    layouts: Mapping[str, str] = {}
    """Files of layouts and partials by name."""
    texts: Mapping[str, Mapping[str, Text]] = {}
    """By language and name: the type's own, and those of all types."""
    schema: Mapping[str, object] | None = None
    """What `schema.json` says of the data."""


class Written(NamedTuple):
    """A notification, and how a mistake is told to its author: by file and line, or as the field of a request."""

    source: Source
    placed: Callable[[InvalidInput], InvalidInput]


def compile_source(renderer: Renderer, source: Source, mistakes: list[InvalidInput]) -> Bundle | None:
    """Compile a notification; what is wrong is added to `mistakes`, by its files' names, and then there is None."""
    found: list[InvalidInput] = []
    bundle, translated = None, translate(source, found)
    usual = source.definition.locales[0]
    plain = {locale: {name: one.text for name, one in files.items()} for locale, files in translated.items()}
    try:
        bundle = renderer.compile(source.definition, plain.pop(usual), locales=plain, schema=source.schema)
    except NotCompiled as refused:
        for locale, error in refused.mistakes:
            expanded = translated[locale or usual].get(error.field)
            if expanded is None or expanded.is_whole:  # what is not whole brings mistakes that nobody made
                found.append(_placed(error, expanded))
    mistakes += {(one.field, one.message, _path(one)): one for one in found}.values()
    return None if found else bundle


def _path(error: InvalidInput) -> tuple[str | int, ...]:
    return error.path if isinstance(error, FieldMistake) else ()


def _placed(error: InvalidInput, expanded: Expanded | None) -> InvalidInput:
    """Say where its author finds a mistake."""
    if expanded is None:
        return error
    if not isinstance(error, TemplateMistake):
        return InvalidInput(error.message, field=expanded.file, hint=error.hint)
    known = error.position is not None
    place = expanded.place_of(error.position or 0) if known else expanded.place_of_line(error.line)
    return InvalidInput(f"line {place.line}: {error.what}", field=place.file, hint=error.hint)


def translate(source: Source, mistakes: list[InvalidInput]) -> Translated:
    """Give a notification's files in each of its languages; what is wrong is added to `mistakes`."""
    variants = _variants(source, mistakes)
    layouts = _layouts(source, mistakes)
    translated: Translated = {}
    for locale in source.definition.locales:
        pieces = Pieces(
            layouts=source.layouts,
            texts=_texts(source, locale),
            missing={},
        )
        chosen = {
            file: name
            for file, by_locale in variants.items()
            if (name := next((by_locale[one] for one in [*parents(locale), ""] if one in by_locale), None))
        }
        translated[locale] = {
            file: expand(
                source.files[name],
                file=name,
                is_mjml=file == MJML,
                layout=layouts.get(file),
                pieces=pieces,
                mistakes=mistakes,
            )
            for file, name in chosen.items()
        }
        if source.definition.layout is not None and not layouts:
            files = {file: msgspec.structs.replace(one, is_whole=False) for file, one in translated[locale].items()}
            translated[locale] = files
        mistakes += [
            InvalidInput(
                f"there is no text {name!r}, which {place.file} reads on line {place.line}",
                field=f"locales/{locale}.toml",
                hint=f"add it to [{source.definition.key}] or [shared]",
            )
            for name, place in pieces.missing.items()
        ]
    return translated


def read_schema(text: str) -> Mapping[str, object]:
    """Read a JSON Schema as it was written, or raise InvalidInput that says where it stops being JSON."""
    try:
        read = json.loads(text)
        check_keys(text.encode())
    except json.JSONDecodeError as error:
        raise InvalidInput(f"line {error.lineno}: this is no JSON", field=SCHEMA, hint="correct the file") from None
    except (RecursionError, ValueError):
        raise InvalidInput("this is no JSON that can be used", field=SCHEMA, hint="make it simpler") from None
    except InvalidInput as error:
        what = f"line {second_line_of(text, error.field)}: {error.field!r} is given twice"
        raise InvalidInput(what, field=SCHEMA, hint=error.hint) from None
    if not isinstance(read, Mapping):
        raise InvalidInput("it is no object", field=SCHEMA, hint='write one, such as {"type": "object"}')
    return read


def _variants(source: Source, mistakes: list[InvalidInput]) -> dict[str, dict[str, str]]:
    """Tell for each file of a channel under which names it is there, by language; "" for all others."""
    variants: dict[str, dict[str, str]] = {}
    for name in sorted(source.files):
        stem, _, locale = name.removesuffix(_ENDING).rpartition(".")
        if name in _KNOWN or f"{stem}{_ENDING}" not in _KNOWN:
            variants.setdefault(name, {})[""] = name  # an unknown name is refused with the channels'
            continue
        variants.setdefault(f"{stem}{_ENDING}", {})[locale] = name
        if not any(locale in parents(one) for one in source.definition.locales):
            mistakes.append(
                InvalidInput(
                    f"the definition does not list the language {locale}",
                    field=name,
                    hint=f"add it to locales in {DEFINITION}, or remove the file",
                )
            )
    return variants


def _layouts(source: Source, mistakes: list[InvalidInput]) -> dict[str, str]:
    """Name the layout's file of each file that it goes around; a layout may be for one of the two only."""
    layout = source.definition.layout
    if layout is None:
        return {}
    names = {file: layout_file(layout, is_mjml=file == MJML) for file in sorted(LAID_OUT)}
    found = {file: name for file, name in names.items() if name in source.layouts}
    if not found:
        hint = f"add layouts/{names[MJML]}, or correct the name"
        mistakes.append(FieldMistake(f"there is no layout {layout!r}", file=DEFINITION, path=("layout",), hint=hint))
    if Channel.EMAIL not in source.definition.channels:
        hint = "take layout out, or list the channel email"
        what = "it has a layout, and only mail has one"
        mistakes.append(FieldMistake(what, file=DEFINITION, path=("layout",), hint=hint))
    return found


def _texts(source: Source, locale: str) -> dict[str, Text]:
    """Give the texts of a language; a region takes from its language what it does not have itself."""
    found: dict[str, Text] = {}
    for one in reversed(list(parents(locale))):
        found |= source.texts.get(one, {})
    return found


Wrong = tuple[str, str]
"""What is wrong, and what to do."""


def wrong_layout(name: str) -> Wrong | None:
    """Say what is wrong with the name of a layout's file."""
    if _LAYOUT.fullmatch(name):
        return None
    return "no layout has such a name", "call it school.mjml.liquid, or _signature.text.liquid"


def wrong_locale(name: str) -> Wrong | None:
    """Say what is wrong with the name of a language that texts are in."""
    return None if normal(name) == name else ("no language has such a name", "call it de, pt-BR or zh-Hant")


def wrong_text(name: str, value: object) -> Wrong | None:
    """Say what is wrong with a text, and what to do."""
    if not isinstance(value, str):
        return "is no text", "put it between quotes"
    if not NAME.fullmatch(name):
        return "cannot be a name", "use letters, digits, - and _"
    if "{%" in value:
        return "holds a tag, and texts hold only variables", "put the tag into the template, with a text in each branch"
    return None
