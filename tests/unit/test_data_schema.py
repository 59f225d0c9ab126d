"""Data against the JSON Schema of its type: what is refused at the door, in which words, and what a schema may be."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from clarion.adapters.renderers import open_renderer
from clarion.adapters.renderers.schema import COST_BRIEF_MAX, SCHEMAS_MAX
from clarion.adapters.renderers.weight import STATES_MAX, states_of
from clarion.catalog.publish import compile_folder
from clarion.domain.definition import Definition
from clarion.domain.identity import Channel
from clarion.errors import InvalidDefinition, InvalidInput
from clarion.ports.renderer import Bundle, FieldMistake, NotCompiled

SMS: Final = Definition(key="a", title="A", channels=(Channel.SMS,))


def bundle_of(schema: Mapping[str, object] | None, **fields: Any) -> Bundle:
    definition = msgspec.structs.replace(SMS, **fields)
    return open_renderer().compile(definition, {"sms.liquid": "Hello"}, schema=schema)


def refusal(schema: Mapping[str, object], data: dict[str, Any]) -> str:
    """Check data at the door, and return why it is refused."""
    with pytest.raises(InvalidInput) as refused:
        open_renderer().check(bundle_of(schema), data)
    return str(refused.value)


FIELDS: Final = {
    "type": "object",
    "required": ["name"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "minLength": 2, "maxLength": 10},
        "age": {"type": ["integer", "null"], "minimum": 3, "exclusiveMaximum": 99},
        "day": {"format": "date"},
        "code": {"pattern": "^[0-9]{6}$"},
        "lane": {"enum": ["high", "low"]},
        "items": {"type": "array", "maxItems": 3, "uniqueItems": True, "items": {"$ref": "#/$defs/item"}},
        "way": {"oneOf": [{"type": "string"}, {"const": "x"}]},
    },
    "$defs": {"item": {"type": "object", "required": ["title"], "properties": {"title": {"type": "string"}}}},
}


@pytest.mark.parametrize(
    "data, says",
    [
        ({}, "data.name: it is missing: add it and send again"),
        ({"name": "Ann", "nam": 1}, "data.nam: there is no such field: take it out"),
        ({"name": 1}, "data.name: it is a whole number and must be text: correct it"),
        ({"name": "A"}, "data.name: it is too short: use 2 characters or more"),
        ({"name": "A" * 11}, "data.name: it is too long: use 10 characters or less"),
        ({"name": "Ann", "age": "x"}, "data.age: it is text and must be null or a whole number: correct it"),
        ({"name": "Ann", "age": 2}, "data.age: it is too small: use 3 or more"),
        ({"name": "Ann", "age": 99}, "data.age: it is too large: use less than 99"),
        ({"name": "Ann", "day": "secret"}, "data.day: it is no date: write it as one"),
        ({"name": "Ann", "code": "secret"}, "data.code: it does not have the form ^[0-9]{6}$: write it so"),
        ({"name": "Ann", "lane": "secret"}, "data.lane: it is not one of its words: choose from high, low"),
        ({"name": "Ann", "items": [{"title": "a"}, {}]}, "data.items[1].title: it is missing: add it and send again"),
        ({"name": "Ann", "items": [{"title": "a"}, {"title": 1}]}, "data.items[1].title: it is a whole number and"),
        ({"name": "Ann", "items": [{"title": "a"}] * 2}, "data.items: it has an entry twice: give each once"),
        ({"name": "Ann", "items": [{"title": str(n)} for n in range(4)]}, "data.items: it has too many entries: use 3"),
        ({"name": "Ann", "way": "x"}, "data.way: it does not have exactly one of the forms that it may have"),
    ],
)
def test_data_that_does_not_fit_is_refused_by_its_field_and_without_its_value(data: dict[str, Any], says: str) -> None:
    said = refusal(FIELDS, data)
    assert said.startswith(says)
    assert "secret" not in said


def test_data_that_fits_is_taken_and_a_type_without_a_schema_asks_for_none() -> None:
    data = {"name": "Ann", "age": None, "day": "2026-03-01", "code": "123456", "items": [{"title": "a"}]}
    assert open_renderer().check(bundle_of(FIELDS), data, briefly=True)
    assert open_renderer().check(bundle_of(None), {"anything": [1]}, briefly=True)


def test_the_library_is_loaded_only_where_a_type_has_a_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)  # importing it fails
    assert open_renderer().check(bundle_of(None), {"name": "Ann"})
    with pytest.raises(ImportError):
        bundle_of({"type": "object"})


@pytest.mark.parametrize(
    "schema, says",
    [
        ({"type": "nope"}, "type: JSON Schema does not have this here: correct it"),
        ({"properties": {"a": {"minLength": -1}}}, "properties.a.minLength: JSON Schema does not have this here"),
        ({"pattern": "(a"}, "pattern: this regular expression cannot be used"),
        ({"pattern": "(a)\\1"}, "pattern: this regular expression cannot be used: write one without references back"),
        ({"pattern": "(?=a)"}, "pattern: this regular expression cannot be used"),
        ({"pattern": "\\p{L}{1000}"}, "pattern: this regular expression cannot be used"),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, "$schema: it is another dialect: write https://"),
        ({"$ref": "https://example.com/x.json"}, "$ref: it leads out of the schema's own $defs: write #/$defs/NAME"),
        ({"$ref": "file:///etc/passwd"}, "$ref: it leads out of the schema's own $defs"),
        ({"properties": {"a": {"$ref": "other.json#/x"}}}, "properties.a.$ref: it leads out of the schema's own $defs"),
        (
            {"$ref": "#/$defs/%61", "$defs": {"%61": {}, "a": {"allOf": [{"$ref": "#/$defs/a"}]}}},
            "$ref: it has a %: write the name in $defs without one, and refer to it as it is written",
        ),
        ({"$ref": "#/$defs/x"}, "$ref: there is nothing where it leads to"),
        ({"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}, "$defs.a.$ref: it leads back to itself"),
        (
            {"$defs": {"a": {"properties": {"b": {"$ref": "#/$defs/a"}}}}, "$ref": "#/$defs/a"},
            "$defs.a.properties.b.$ref: it leads back to itself",
        ),
        (
            {"properties": {"a": {"$id": "https://x.example"}}},
            "properties.a.$id: only the whole schema may have a name",
        ),
        ({"unevaluatedProperties": False}, "unevaluatedProperties: it cannot be used here"),
        ({"allOf": [{"$dynamicRef": "#a"}]}, "allOf[0].$dynamicRef: it cannot be used here"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_with_its_place(schema: dict[str, object], says: str) -> None:
    with pytest.raises(NotCompiled) as refused:
        bundle_of(schema)
    assert str(refused.value).startswith(f"schema.json: {says}")


def test_references_that_multiply_are_counted() -> None:
    """Each refers twice to the next: what is written in twenty lines would be a million checks."""
    doubled = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(14)} | {"a14": {}}
    with pytest.raises(NotCompiled, match=f"it has over {SCHEMAS_MAX} subschemas: make it simpler"):
        bundle_of({"$defs": doubled, "$ref": "#/$defs/a0"})


def test_a_schema_that_is_nested_too_deeply_is_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(40):
        deep = {"properties": {"a": deep}}
    with pytest.raises(NotCompiled, match="it is nested over 32 deep: make it flatter"):
        bundle_of(deep)


def test_a_check_that_takes_long_is_not_made_in_the_event_loop_and_one_that_takes_too_long_not_at_all() -> None:
    schema = {"properties": {"list": {"items": {"allOf": [{"type": "integer"}] * 500}}}}
    renderer, bundle = open_renderer(), bundle_of(schema)
    some: dict[str, object] = {"list": [1] * 1000}
    assert COST_BRIEF_MAX < 500 * 1000
    assert not renderer.check(bundle, some, briefly=True)
    assert renderer.check(bundle, some)
    assert not renderer.is_certain(bundle, some)
    with pytest.raises(InvalidInput, match="it is too large to be checked against the schema of its type"):
        renderer.check(bundle, {"list": [1] * 60_000})


FLOATS: Final = [number + 0.5 for number in range(1000)]


@pytest.mark.parametrize(
    "field, data",
    [
        ({"items": {"enum": FLOATS}}, FLOATS[:50]),
        ({"items": {"anyOf": [{"const": one} for one in FLOATS[:200]]}}, FLOATS[:50]),
        ({"const": FLOATS[:100]}, FLOATS[:100]),
        ({"items": {"allOf": [{"minimum": 0.5}] * 200}}, FLOATS[:50]),
        ({"items": {"enum": [{"a": [n]} for n in range(500)]}}, [{"a": [499]}] * 100),
        ({"items": {"enum": [*map(str, range(1000)), 1]}}, ["1"] * 100),
        ({"pattern": "^[ab]{0,1000}$"}, "ab" * 500),
        ({"pattern": "^((a{1,10}){1,10}){1,10}$"}, "a" * 1000),
        ({"type": "object", "patternProperties": {"^[ab]{0,900}$": {}}}, {"ab" * 450: 1}),
        ({"items": {"required": [str(n) for n in range(300)]}}, [{str(n): 0 for n in range(300)}] * 2),
    ],
)
def test_a_check_that_compares_much_is_not_made_in_the_event_loop(field: dict[str, object], data: object) -> None:
    renderer, bundle = open_renderer(), bundle_of({"properties": {"x": field}})
    assert not renderer.check(bundle, {"x": data}, briefly=True)
    assert not renderer.is_certain(bundle, {"x": data})
    assert renderer.check(bundle, {"x": data})


def test_a_check_that_compares_too_much_is_not_made_at_all_and_an_ordinary_one_in_the_event_loop() -> None:
    says = "it is too large to be checked against the schema of its type"
    floats = {"properties": {"x": {"items": {"enum": FLOATS}}}}
    with pytest.raises(InvalidInput, match=says):
        open_renderer().check(bundle_of(floats), {"x": FLOATS})
    with pytest.raises(NotCompiled, match=f"the sample does not fit the schema, data: {says}"):
        bundle_of(floats, sample={"x": FLOATS})
    countries = {"enum": [f"{n:03}" for n in range(250)]}
    fields = {"from": countries, "to": countries, "id": {"pattern": "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"}}
    data = {"from": "001", "to": "249", "id": "01234567-0123-0123-0123-0123456789ab", "body": "x" * 2000}
    assert open_renderer().check(bundle_of({"properties": fields}), data, briefly=True)


@pytest.mark.parametrize(
    "schema",
    [
        {"enum": [number + 0.5 for number in range(2000)]},
        {"enum": ["x" * 100] * 2000},
        {"pattern": "(a{1000}){1000}"},
        {"allOf": [{"pattern": f"{n}[ab]{{0,1000}}"} for n in range(100)]},
        {"$defs": {"a": {"enum": FLOATS}}, "allOf": [{"$ref": "#/$defs/a"}] * 2},
    ],
    ids=["numbers", "words", "repeats in repeats", "expressions", "referred to twice"],
)
def test_a_schema_for_which_a_short_message_would_be_too_large_is_not_published(schema: dict[str, object]) -> None:
    says = "its enums, consts, numbers and regular expressions are so many that a check takes too long: shorten the"
    with pytest.raises(NotCompiled, match=says):
        bundle_of(schema)


@pytest.mark.parametrize(
    "pattern, states",
    [
        ("", 0),
        ("abc", 3),
        ("a{3}b{2,5}c{4,}", 3 + 5 + 4),
        ("(ab{3}){10}", 40),
        ("((a{10}){10}){10}", 1000),
        (r"\{9[{9}(]\(\p{L}", 5),
        (r"[\]{3}]{2}", 2),
        ("x{,3}", 5),
        ("a{0}", 1),
        ("(a{5}", 5),
        ("ab){3}", 6),
        ("(" * 5000 + "a" + "){999999999}" * 5000, STATES_MAX),
        ("[" * 50_000, 1),
    ],
)
def test_the_states_of_an_expression_are_counted_with_its_repeats(pattern: str, states: int) -> None:
    assert states_of(pattern) == states


def test_a_hostile_expression_takes_linear_time() -> None:
    """By backtracking this would never end."""
    assert refusal({"properties": {"a": {"pattern": "^(a+)+$"}}}, {"a": "a" * 5000 + "b"}).startswith("data.a: ")


def test_a_sample_that_does_not_fit_is_not_published() -> None:
    with pytest.raises(NotCompiled, match=r"the sample does not fit the schema, data\.name: ") as refused:
        bundle_of(FIELDS, sample={"name": "A", "recipient": {"name": "Ann"}})
    ((_, mistake),) = refused.value.mistakes
    assert isinstance(mistake, FieldMistake)
    assert (mistake.field, mistake.path) == ("definition.toml", ("sample", "name"))
    assert bundle_of(FIELDS, sample={"name": "Ann", "recipient": {"name": "Ann"}}).schema == FIELDS


def test_a_schema_is_part_of_the_version_and_survives_being_stored() -> None:
    bundle = bundle_of(FIELDS)
    assert len({bundle.content_hash, bundle_of(None).content_hash, bundle_of({}).content_hash}) == 3
    stored = msgspec.json.decode(msgspec.json.encode(bundle), type=Bundle)
    with pytest.raises(InvalidInput, match=r"data.name: it is missing"):
        open_renderer().check(stored, {})


# From its file.


@pytest.mark.parametrize(
    "text, says",
    [
        ('{\n"type": }', "line 2: this is no JSON: correct the file"),
        ("[]", "it is no object: write one"),
        ('{"type": "object", "type": "array"}', "line 1: 'type' is given twice: give it once"),
        ('{"type": "nope"}', "line 1: type: JSON Schema does not have this here: correct it"),
        ("[" * 50_000, "this is no JSON that can be used: make it simpler"),
    ],
    ids=["no JSON", "a list", "twice", "no schema", "deep"],
)
def test_a_file_that_is_no_schema_is_named(tmp_path: Path, text: str, says: str) -> None:
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / "definition.toml").write_text('key = "a"\ntitle = "A"\nchannels = ["sms"]\n')
    (folder / "sms.liquid").write_text("Hello")
    (folder / "schema.json").write_text(text)
    with pytest.raises(InvalidDefinition) as refused:
        compile_folder(folder, open_renderer())
    assert str(refused.value.mistakes[0]).startswith(f"{folder}/schema.json: {says}")
    (folder / "schema.json").write_text('{"required": ["name"]}')
    (bundle,) = compile_folder(folder, open_renderer())
    assert bundle.schema == {"required": ["name"]}
