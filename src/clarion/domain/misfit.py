"""Why a value does not fit its shape, in our own words: a library's sentences speak of types in a program.

msgspec compares values with shapes, and says in English what it found. Here its sentences are taken apart, so that
every door says the same thing in the same words. A sentence that is not known here becomes a general one, so none of
the library's own ever reaches anybody. Pure.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Final, NamedTuple, Union, get_args, get_origin

import msgspec
from msgspec import inspect

from clarion.domain.part import UNSEEN

MISSING: Final = "it is missing"

UNREADABLE: Final = "it is blank, or holds a control character or one that turns letters around"
"""Said of a name that holds what nobody sees."""

_PATH: Final = re.compile(r"^(?P<what>.*?)(?: - at (?:`key` in )?`\$?\.?(?P<path>.*?)`)?$", re.DOTALL)

_KINDS: Final = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
    "datetime": "a time",
    "uuid": "a guid",
}
_ANY: Final = "something else"

_SENTENCES: Final = (
    (re.compile(r"Expected `int` >= (-?\d+)"), "it is too small", "use {0} or more"),
    (re.compile(r"Expected `int` <= (-?\d+)"), "it is too large", "use {0} or less"),
    (re.compile(r"Expected `str` of length >= 1\b"), "it is empty", "use 1 character or more"),
    (re.compile(r"Expected `str` of length >= (\d+)"), "it is too short", "use {0} characters or more"),
    (re.compile(r"Expected `str` of length <= (\d+)"), "it is too long", "use {0} characters or less"),
    (re.compile(r"Expected `array` of length >= (\d+)"), "it has too few entries", "use {0} or more"),
    (re.compile(r"Expected `array` of length <= (\d+)"), "it has too many entries", "use {0} or less"),
    (re.compile(r"Expected `object` of length >= (\d+)"), "it has too few fields", "use {0} or more"),
    (re.compile(r"Expected `object` of length <= (\d+)"), "it has too many fields", "use {0} or less"),
    (re.compile(rf"Expected `str` matching regex .*{re.escape(repr(UNSEEN)[1:-1])}"), UNREADABLE, ""),
    (
        re.compile(r"Expected `str` matching regex .*2\[0-3\]"),
        "it is no time of day",
        "write it such as 09:00 or 17:30",
    ),
    (
        re.compile(r"Expected `str` matching regex '\^\[(?:a-z|A-Za-z_)\]\["),
        "it is no name that a field or a type can have",
        "begin it with a letter, in lower case for a type, and go on with letters, digits and _",
    ),
    (re.compile(r"Expected `str` matching regex"), "it is blank, or holds characters that it cannot have", ""),
    (re.compile(r"Expected `datetime` with"), "it names no zone", "end it with Z or an offset such as +01:00"),
    (re.compile(r"Invalid enum value (.{1,80})"), "{0} is not one of its words", ""),
    (re.compile(r"Invalid (?:RFC3339|epoch)"), "it is no time", "write it as 2027-01-31T08:00:00+01:00"),
    (re.compile(r"Invalid UUID"), "it is no guid", ""),
    (re.compile(r"(?:Integer|Number) (?:value )?out of range"), "it is too large", ""),
    (re.compile(r"Invalid value (.{1,80})"), "{0} is not one of its words", ""),
)


class Misfit(NamedTuple):
    """One thing that does not fit."""

    field: str
    """Its path as the caller wrote it, such as `to[0].user`; empty for the whole."""
    what: str
    hint: str = ""
    """What to do, where the shape says it."""


def read_misfit(said: str, shape: object = None) -> Misfit:
    """Take a sentence of msgspec's apart; the shape, where it is given, has the words that a field can have."""
    found = _PATH.match(said)
    what, path = (found["what"], found["path"] or "") if found else (said, "")
    named = re.search(r"(unknown|missing required) field `(.*?)`", what)
    if named:
        field = f"{path}.{named[2]}" if path else named[2]
        return Misfit(field, "there is no such field" if named[1] == "unknown" else MISSING)
    for pattern, sentence, advice in _SENTENCES:
        if match := pattern.match(what):
            has_words = shape is not None and ("enum" in what or what.startswith("Invalid value"))
            words = _words_at(inspect.type_info(shape), path) if has_words else ()
            hint = f"choose from {', '.join(words)}" if words else advice.format(*match.groups())
            return Misfit(path, sentence.format(*match.groups()), hint)
    if kinds := re.match(r"Expected `(.*?)`, got `(.*?)`", what):
        return Misfit(path, f"it is {_kind(kinds[2])} and must be {_kind(kinds[1])}")
    return Misfit(path, "it cannot be used")


def misfits_in(value: object, shape: Any) -> list[Misfit]:  # noqa: ANN401  (a shape is a type or a form of one)
    """Name everything in a value that does not fit a shape, where a library stops at the first."""
    return list(_misfits(value, shape, ""))


def written(path: Sequence[str | int]) -> str:
    """Write a path as callers do."""
    return "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in path).removeprefix(".")


def _misfits(value: object, shape: Any, path: str) -> Iterator[Misfit]:  # noqa: ANN401  (as above)
    try:
        msgspec.convert(value, shape, str_keys=True)
    except msgspec.ValidationError as error:
        whole = read_misfit(str(error), shape)
        inner = list(_inside(value, shape, path))
        yield from inner or [whole._replace(field=_joined(path, whole.field))]


def _inside(value: object, shape: Any, path: str) -> Iterator[Misfit]:  # noqa: ANN401  (as above)
    """Look at each part of a value by itself, if its shape has parts."""
    origin, arguments = get_origin(shape), get_args(shape)
    if origin in (Annotated, Union, UnionType):
        for one in arguments[:1] if origin is Annotated else _meant(value, arguments):
            yield from _inside(value, one, path)
    elif origin is dict and isinstance(value, Mapping):
        for name, entry in value.items():
            place = _joined(path, str(name))
            yield from (one._replace(field=place) for one in _misfits(name, arguments[0], ""))
            yield from _misfits(entry, arguments[1], place)
    elif origin is tuple and isinstance(value, list | tuple):
        for number, entry in enumerate(value):
            yield from _misfits(entry, arguments[0], f"{path}[{number}]")
    elif isinstance(shape, type) and issubclass(shape, msgspec.Struct) and isinstance(value, Mapping):
        yield from _in_fields(value, shape, path)


def _meant(value: object, shapes: Sequence[Any]) -> Sequence[Any]:
    """Of several shapes give that which a value says that it has, where they are told apart by a word in it."""
    tagged = [one for one in shapes if getattr(getattr(one, "__struct_config__", None), "tag_field", None)]
    if not isinstance(value, Mapping) or not tagged:
        return shapes
    tags = {one: one.__struct_config__ for one in tagged}
    return [one for one, config in tags.items() if config.tag == value.get(config.tag_field)]


def _in_fields(value: Mapping[str, object], shape: type[msgspec.Struct], path: str) -> Iterator[Misfit]:
    fields, config = {one.encode_name: one for one in msgspec.structs.fields(shape)}, shape.__struct_config__
    known = {*fields, config.tag_field}
    for name in [one for one in value if one not in known and config.forbid_unknown_fields]:
        yield Misfit(_joined(path, str(name)), "there is no such field")
    for name, field in fields.items():
        if name in value:
            yield from _misfits(value[name], field.type, _joined(path, name))
        elif field.required:
            yield Misfit(_joined(path, name), MISSING)


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path and name and not name.startswith("[") else f"{path}{name}"


def _words_at(shape: inspect.Type, path: str) -> tuple[str, ...]:
    """Give the words that the field at a path can have, if it is one of those that have only some."""
    match shape:
        case inspect.Metadata(type=inner):
            return _words_at(inner, path)
        case inspect.UnionType(types=types):
            tags = tuple(str(one.tag) for one in types if isinstance(one, inspect.StructType) and one.tag_field == path)
            return tags or next(filter(None, (_words_at(one, path) for one in types)), ())
        case inspect.StructType(fields=fields):
            name, _, rest = path.partition(".")
            name, entry, _ = name.partition("[")
            kind = next((one.type for one in fields if one.encode_name == name), inspect.AnyType())
            return _words_at(_entry(kind) if entry else kind, rest)
        case inspect.EnumType(cls=words) if not path:
            return tuple(str(one.value) for one in words)
        case inspect.LiteralType(values=values) if not path:
            return tuple(map(str, values))
        case _:
            return ()


def _entry(shape: inspect.Type) -> inspect.Type:
    """Give the shape of a list's entries."""
    match shape:
        case inspect.Metadata(type=inner):
            return _entry(inner)
        case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
            return item
        case _:
            return inspect.AnyType()


def _kind(names: str) -> str:
    return " or ".join(_KINDS.get(name, _ANY) for name in names.split(" | "))


def read_json_fault(said: str) -> str:
    """Say where a text stops being JSON, as far as msgspec tells."""
    if "truncated" in said:
        return "it ends too early"
    at = re.search(r"\(byte (\d+)\)", said)
    return f"it goes wrong at byte {at[1]}" if at else "it is not written as JSON is"
