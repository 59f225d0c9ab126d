"""Data against the JSON Schema (2020-12) that a type has for it, in our own words and in bounded time.

A schema comes from a tenant, and validating must not hurt others (X-33). Regular expressions take linear time, and
nothing is ever fetched. Two things the library does not bound, and they are bounded here: references that multiply
(twenty short definitions that each refer twice to the next are a million checks), and the product of a large schema
and large data. So a schema is unrolled and weighed (`weight`) when it is published, may not refer to itself, and has no
`unevaluated…` keywords, whose time grows with the square of what stands around them.

Errors name the field and what the schema says of it, never a value of the data. Reads and writes nothing but its own
memory; the library is loaded once a type has a schema.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import partial
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import msgspec

from clarion.adapters.renderers.weight import Amount, Weight, weight_of
from clarion.domain.held import Held
from clarion.domain.misfit import written
from clarion.errors import InvalidInput
from clarion.ports.renderer import SCHEMA, Bundle, FieldMistake

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator, ValidationError

SCHEMAS_MAX: Final = 1000
"""Subschemas with all references followed. A schema of fifty fields has a hundred."""

DEPTH_MAX: Final = 32
"""Subschemas inside each other, which is as deep as data may be."""

REGEX_BYTES_MAX: Final = 1024 * 1024
"""What one compiled regular expression may take; `\\p{L}{1000}` would take more."""

COST_MAX: Final = 20_000_000
"""What a check may take, in the units of `weight`: a quarter of a second at worst."""

COST_BRIEF_MAX: Final = 200_000
"""What the event loop waits for: some 2 ms at worst, and microseconds for an ordinary message."""

SHORT: Final = Amount(size=1000, values=100, numbers=100)
"""A short message: a schema that this is too large for is not published."""

HELD_BYTES_MAX: Final = 64 * 1024 * 1024
"""Compiled schemas in memory, some tens of kilobytes each."""

BYTES_OF: Final = 20
"""What a character of a schema takes when it is compiled."""

PATTERN_BYTES: Final = 100_000
"""What a regular expression may take beside that: a tenth of what the largest takes."""

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

_ONE: Final = frozenset({"items", "contains", "additionalProperties", "propertyNames", "not", "if", "then", "else"})
_LIST: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED: Final = frozenset({"properties", "patternProperties", "dependentSchemas"})
_REFUSED: Final = frozenset(
    {"$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef", "unevaluatedItems", "unevaluatedProperties"}
)

_KINDS: Final[Mapping[str, str]] = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}

_SENTENCES: Final[Mapping[str, tuple[str, str]]] = {
    "minimum": ("it is too small", "use {} or more"),
    "exclusiveMinimum": ("it is too small", "use more than {}"),
    "maximum": ("it is too large", "use {} or less"),
    "exclusiveMaximum": ("it is too large", "use less than {}"),
    "multipleOf": ("it is no multiple of {}", "use one"),
    "minLength": ("it is too short", "use {} characters or more"),
    "maxLength": ("it is too long", "use {} characters or less"),
    "minItems": ("it has too few entries", "use {} or more"),
    "maxItems": ("it has too many entries", "use {} or less"),
    "minProperties": ("it has too few fields", "use {} or more"),
    "maxProperties": ("it has too many fields", "use {} or less"),
    "uniqueItems": ("it has an entry twice", "give each once"),
    "pattern": ("it does not have the form {}", "write it so"),
    "format": ("it is no {}", "write it as one"),
    "const": ("it is not {}", "write that"),
    "enum": ("it is not one of its words", "choose from {}"),
    "contains": ("it lacks an entry that it must have", "add one"),
    "anyOf": ("it has none of the forms that it may have", "choose one of them"),
    "oneOf": ("it does not have exactly one of the forms that it may have", "choose one of them"),
    "not": ("it has a form that it may not have", "choose another"),
    "propertyNames": ("it has a field whose name it may not have", "call it otherwise"),
}

MISTAKES_MAX: Final = 50
"""Mistakes of one schema, or of one sample, that are told at once."""

Path = tuple[str | int, ...]
"""Where something stands in a schema."""

SHOWN_MAX: Final = 120
"""Characters of a schema that an error quotes."""


def mistakes_in(schema: Mapping[str, object]) -> list[FieldMistake]:
    """Name everything that keeps a schema from being used."""
    if schema.get("$schema", DIALECT) != DIALECT:
        return [_wrong(("$schema",), "it is another dialect", f"write {DIALECT}, or leave it out")]
    counted = _Count(schema)
    counted.count(schema, (), inside=())
    found = counted.mistakes
    if not found and counted.weight.cost(SHORT) > COST_MAX:
        what = "its enums, consts, numbers and regular expressions are so many that a check takes too long"
        found = [_wrong((), what, "shorten the longest enum, or take bounded repeats such as {1000} out")]
    left = deepcopy(dict(schema))
    return [*found, *_refused_by_the_library(left)] if all(_take_out(left, one.path) for one in found) else found


def misfits_of(schema: Mapping[str, object], data: Mapping[str, object]) -> Iterator[InvalidInput]:
    """Say everything in some data that does not fit a schema."""
    if _weighed(schema).cost(Amount.of(data)) > COST_MAX:
        yield _too_large()
    else:
        yield from map(_said, islice(_compiled(schema).iter_errors(data), MISTAKES_MAX))


class Schemas:
    """Compiled schemas of bundles, in memory by their content."""

    def __init__(self) -> None:
        """Start with none."""
        self._held = Held[str, "tuple[Draft202012Validator, Weight]"](HELD_BYTES_MAX)
        self._lock = Lock()

    def check(self, bundle: Bundle, data: Mapping[str, object], *, briefly: bool) -> bool:
        """Raise InvalidInput where data does not fit; with `briefly` give False where that takes long."""
        if bundle.schema is None:
            return True
        validator, weight = self._get(bundle.content_hash, bundle.schema)
        cost = weight.cost(Amount.of(data))
        if cost > COST_MAX:
            raise _too_large()
        if briefly and cost > COST_BRIEF_MAX:
            return False
        misfit = _misfit(validator, data)
        if misfit is not None:
            raise misfit
        return True

    def _get(self, content_hash: str, schema: Mapping[str, object]) -> "tuple[Draft202012Validator, Weight]":
        held = self._held.get(content_hash)
        if held is None:
            held = _compiled(schema), _weighed(schema)
            text = msgspec.json.encode(schema)
            size = BYTES_OF * len(text) + PATTERN_BYTES * text.count(b'"pattern')
            with self._lock:  # the door may compile in a thread
                self._held.put(content_hash, held, size=size)
        return held


def _weighed(schema: Mapping[str, object]) -> Weight:
    counted = _Count(schema)
    counted.count(schema, (), inside=())
    for one in counted.mistakes:
        raise one
    return counted.weight


class _Count:
    """Counts and weighs the subschemas of a schema with all references followed, and notes what has no bound."""

    def __init__(self, root: Mapping[str, object]) -> None:
        self._root = root
        self._counted = 0
        self._weights: dict[int, Weight] = {}  # by subschema: with references one can come again and again
        self.weight = Weight()
        self.mistakes: list[FieldMistake] = []

    def count(self, schema: object, path: Path, *, inside: Sequence[str], depth: int = 0) -> None:
        """Count a subschema and those in it; `inside` has the references that led to it."""
        self._counted += 1
        if self._counted > SCHEMAS_MAX + 1:
            return  # it was said
        if self._counted > SCHEMAS_MAX:
            what = f"with its references followed it has over {SCHEMAS_MAX} subschemas"
            self._wrong(path, what, "make it simpler")
            return
        if depth > DEPTH_MAX:
            self._wrong(path, f"it is nested over {DEPTH_MAX} deep", "make it flatter")
            return
        if not isinstance(schema, Mapping):
            self.weight += Weight(sized=1)
            return  # true, false, or something that the library refuses
        for refused in sorted(_REFUSED & schema.keys()):
            self._wrong((*path, refused), "it cannot be used here", "take it out and write out what it stands for")
        if "$id" in schema and path:
            self._wrong((*path, "$id"), "only the whole schema may have a name", "take it out")
        if id(schema) not in self._weights:
            self._weights[id(schema)] = weight_of(schema)
        self.weight += self._weights[id(schema)]
        for name, inner in _inner(schema, path):
            self.count(inner, name, inside=inside, depth=depth + 1)
        if "$ref" in schema:
            self._follow(schema["$ref"], (*path, "$ref"), inside=inside, depth=depth)

    def _follow(self, reference: object, path: Path, *, inside: Sequence[str], depth: int) -> None:
        if not isinstance(reference, str) or not reference.startswith("#/$defs/"):
            self._wrong(path, "it leads out of the schema's own $defs", "write #/$defs/NAME")
            return
        if "%" in reference:  # the library reads %61 as a, so it could lead elsewhere than we follow it
            self._wrong(path, "it has a %", "write the name in $defs without one, and refer to it as it is written")
            return
        if reference in inside:
            self._wrong(path, "it leads back to itself", "write the levels out that there can be")
            return
        found: object = self._root
        for name in reference[2:].split("/"):
            key = name.replace("~1", "/").replace("~0", "~")
            found = found.get(key) if isinstance(found, Mapping) else None
        if found is None:
            self._wrong(path, "there is nothing where it leads to", "correct it, or add that to $defs")
            return
        place = tuple(reference[2:].split("/"))
        self.count(found, place, inside=(*inside, reference), depth=depth + 1)

    def _wrong(self, path: Path, what: str, hint: str) -> None:
        is_known = any((one.path, one.message) == (path, what) for one in self.mistakes)  # of a definition used twice
        if not is_known and len(self.mistakes) < MISTAKES_MAX:
            self.mistakes.append(_wrong(path, what, hint))


def _inner(schema: Mapping[str, object], path: Path) -> Iterator[tuple[Path, object]]:
    """Give the subschemas that stand in a schema and are applied with it, each with its path."""
    for keyword, value in schema.items():
        place = (*path, keyword)
        if keyword in _ONE:
            yield place, value
        elif keyword in _LIST and isinstance(value, Sequence):
            yield from (((*place, number), one) for number, one in enumerate(value))
        elif keyword in _NAMED and isinstance(value, Mapping):
            yield from (((*place, name), one) for name, one in value.items())


def _refused_by_the_library(left: dict[str, object]) -> Iterator[FieldMistake]:
    """Name what JSON Schema does not have, one thing after the other: each is taken out to find the next."""
    for _ in range(MISTAKES_MAX):
        try:
            _compiled(left)
        except FieldMistake as error:
            yield error
            if not _take_out(left, error.path):
                return
        else:
            return


def _take_out(schema: dict[str, object], path: Path) -> bool:
    """Take the keyword out at which a path ends, or that holds what it ends at; tell whether there is one."""
    inside: list[tuple[dict[str, object], str]] = []
    found: object = schema
    for step in path:
        if isinstance(found, dict) and isinstance(step, str) and step in found:
            inside.append((found, step))
            found = found[step]
        elif isinstance(found, list) and isinstance(step, int) and step < len(found):
            found = found[step]
        else:
            break
    if inside:
        holder, keyword = inside[-1]
        del holder[keyword]
    return bool(inside)


def _compiled(schema: Mapping[str, object]) -> "Draft202012Validator":
    from jsonschema_rs import Draft202012Validator, RegexOptions, ValidationError

    plain = {name: value for name, value in schema.items() if name not in ("$id", "$schema")}
    try:
        return Draft202012Validator(
            plain,
            validate_formats=True,
            pattern_options=RegexOptions(size_limit=REGEX_BYTES_MAX, dfa_size_limit=REGEX_BYTES_MAX),
            offline=True,
        )
    except ValidationError as error:
        is_regex = error.kind.name == "format" or error.schema_path[-1:] == ["pattern"]
        what = "this regular expression cannot be used" if is_regex else "JSON Schema does not have this here"
        hint = "write one without references back and looking around" if is_regex else "correct it"
        raise _wrong(tuple(error.instance_path), what, hint) from None
    except ValueError:
        raise _wrong((), "it is nested too deeply", "make it flatter") from None


def _misfit(validator: "Draft202012Validator", data: Mapping[str, object]) -> InvalidInput | None:
    from jsonschema_rs import ValidationError

    try:
        validator.validate(data)
    except ValidationError as error:
        return _said(error)
    return None


def _said(error: "ValidationError") -> InvalidInput:
    """Say in our own words what does not fit."""
    name, value = error.kind.name, error.kind.value
    field = _below("data", _path(error.instance_path))
    match name:
        case "required":
            return InvalidInput("it is missing", field=_below(field, str(value)), hint="add it and send again")
        case "additionalProperties":
            return InvalidInput("there is no such field", field=_below(field, str(value[0])), hint="take it out")
        case "type":
            wanted = " or ".join(_KINDS.get(one, one) for one in value)
            return InvalidInput(f"it is {_kind(error.instance)} and must be {wanted}", field=field, hint="correct it")
        case _:
            pass
    what, hint = _SENTENCES.get(name, ("it cannot be used", "correct it; the type's schema says how"))
    write: Callable[[object], str] = partial(_written, is_list=name == "enum")
    return InvalidInput(what.format(write(value)), field=field, hint=hint.format(write(value)))


def _written(value: Any, *, is_list: bool) -> str:  # noqa: ANN401  (what a schema says)
    """Write what a schema says, cut where it is long."""
    text = ", ".join(map(str, value)) if is_list and isinstance(value, list) else str(value)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…"


def _kind(value: object) -> str:
    """Name what JSON calls a value."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int():
            return "a whole number"
        case float():
            return "a number"
        case str():
            return "text"
        case Mapping():
            return "an object"
        case _:
            return "a list"


def _path(steps: Sequence[str | int]) -> str:
    """Write a path as callers do, cut where it is long."""
    return written(steps)[:SHOWN_MAX]


def _below(path: str, name: str) -> str:
    if not path or not name or name.startswith("["):
        return f"{path}{name}"
    return f"{path}.{name}"


def _too_large() -> InvalidInput:
    return InvalidInput("it is too large to be checked against the schema of its type", field="data", hint="send less")


def _wrong(path: Path, what: str, hint: str) -> FieldMistake:
    """Make the error for a schema that cannot be used."""
    return FieldMistake(what, file=SCHEMA, path=path, hint=hint)
