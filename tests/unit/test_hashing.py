"""Canonical hashing (I-05): what does not matter changes nothing, everything else does, and tags are respected."""

import json
import math
import unicodedata
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import IntEnum
from types import MappingProxyType
from uuid import UUID

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from clarion.domain import hashing
from clarion.domain.hashing import canonical_json, digest, keyed_digest, shortest_number
from clarion.domain.identity import Channel
from clarion.errors import InvalidInput, UnknownVersion

SECRET = bytes(range(32))
AT = datetime(2026, 3, 4, 5, 6, 7, 500_000, tzinfo=UTC)

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5) | st.sampled_from(["e\u0301", "\u00e9", "\u212b"])
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | FLOATS | TEXTS
NAMES = st.dictionaries(TEXTS.map(lambda text: unicodedata.normalize("NFC", text)), st.none(), max_size=4)
CONTENTS: st.SearchStrategy[Json] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | NAMES.flatmap(lambda names: st.fixed_dictionaries(dict.fromkeys(names, inner)))
    ),
    max_leaves=12,
)

thorough = settings(deadline=None, max_examples=200)  # no deadline: the machine is shared, and no test is timed


def meaning(value: Json) -> object:
    """Reduce content to what may matter, in a form that Python compares: the specification in other words."""
    match value:
        case bool() | None:
            return ("word", value)
        case int() | float():
            return ("number", float(value))
        case str():
            return ("text", unicodedata.normalize("NFC", value))
        case list():
            return ("array", tuple(meaning(item) for item in value))
        case dict():
            members = {
                (unicodedata.normalize("NFC", name), meaning(member))
                for name, member in value.items()
                if member is not None
            }
            return ("object", frozenset(members))


def disguised(value: Json) -> object:
    """Write the same content differently: order, Unicode form, number type, container type, null members."""
    match value:
        case bool() | None:
            return value
        case int():
            return float(value)
        case float():
            return int(value) if value.is_integer() and abs(value) <= 2**53 else value
        case str():
            return unicodedata.normalize("NFD", value)
        case list():
            return tuple(disguised(item) for item in value)
        case dict():
            turned = {unicodedata.normalize("NFD", name): disguised(value[name]) for name in reversed(value)}
            return MappingProxyType({"\uffff absent": None} | turned)


@thorough
@given(CONTENTS)
def test_what_does_not_matter_does_not_change_the_hash(content: Json) -> None:
    assert digest(disguised(content)) == digest(content)
    assert keyed_digest(SECRET, disguised(content)) == keyed_digest(SECRET, content)


@thorough
@given(CONTENTS, CONTENTS)
@example({"a": 1}, {"a": "1"})
@example({"a": 1}, {"a": True})
@example({"a": 0}, {"a": False})
@example({"a": 0}, {})
@example({"a": ""}, {})
@example({"a": []}, {})
@example({"a": [None]}, {"a": []})
@example([1, 2], [2, 1])
@example(["ab", "c"], ["a", "bc"])
@example(["a", "b"], ['a","b'])
@example({"a": {"b": 1}}, {"a": 1, "b": 1})
@example("\ufb01", "fi")
@example("a", "A")
@example(0.1 + 0.2, 0.3)
def test_whatever_else_differs_changes_the_hash(one: Json, other: Json) -> None:
    assert (digest(one) == digest(other)) == (meaning(one) == meaning(other))


@thorough
@given(CONTENTS)
def test_the_canonical_form_is_json_and_reads_back_as_what_it_stands_for(content: Json) -> None:
    form = canonical_json(content)
    assert meaning(json.loads(form)) == meaning(content)
    assert canonical_json(json.loads(form, parse_int=float)) == form  # JSON's numbers are doubles (RFC 8785)


@thorough
@given(FLOATS)
@example(5e-324)
@example(1.7976931348623157e308)
@example(1e21)
@example(999999999999999900000.0)
@example(1e-6)
@example(9.999999999999999e-7)
def test_a_number_reads_back_as_itself_and_no_shorter_form_does(number: float) -> None:
    written = shortest_number(number)
    assert float(written) == number
    digits = sum(character.isdigit() for character in written.partition("e")[0].strip("-0.").replace(".", ""))
    if digits > 1:
        assert float(f"{number:.{digits - 2}e}") != number


@pytest.mark.parametrize(
    "number, written",
    [
        (0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (-1.5, "-1.5"),
        (100.0, "100"),
        (2**53, "9007199254740992"),
        (1e20, "100000000000000000000"),
        (123456789012345680000.0, "123456789012345680000"),
        (1e21, "1e+21"),
        (1.5e300, "1.5e+300"),
        (1e-6, "0.000001"),
        (1.25e-6, "0.00000125"),
        (1e-7, "1e-7"),
        (-1.25e-7, "-1.25e-7"),
        (5e-324, "5e-324"),
        (1e23, "1e+23"),
        (333333333.33333329, "333333333.3333333"),
    ],
)
def test_numbers_are_laid_out_as_ecmascript_does(number: float, written: str) -> None:
    assert shortest_number(number) == written
    assert canonical_json([number]) == f"[{written}]".encode()


@thorough
@given(st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1)), st.integers(-1439, 1439))  # noqa: DTZ001 zone follows
def test_equal_instants_hash_alike_in_every_zone(naive: datetime, minutes: int) -> None:
    at = naive.replace(tzinfo=UTC)
    elsewhere = at.astimezone(timezone(timedelta(minutes=minutes)))
    assert digest({"at": elsewhere}) == digest({"at": at})
    assert digest({"at": at + timedelta(microseconds=1)}) != digest({"at": at})
    assert datetime.fromisoformat(json.loads(canonical_json(at))) == at


class Size(IntEnum):
    BIG = 3


def test_typed_values_are_written_as_their_text() -> None:
    guid = UUID("6f9619ff-8b86-4d01-b42d-00c04fc964ff")
    content = {Channel.SMS: [Channel.EMAIL, Size.BIG, guid, date(2026, 3, 31), AT]}
    assert canonical_json(content) == f'{{"sms":["email",3,"{guid}","2026-03-31","2026-03-04T05:06:07.5Z"]}}'.encode()


class Odd:
    """A type that the canonical form does not know."""


@pytest.mark.parametrize(
    "content, field",
    [
        ({"a": math.nan}, "$.a"),
        ({"a": [1, math.inf]}, "$.a[1]"),
        ({"a": 2**53 + 1}, "$.a"),
        ({"a": -(2**53) - 1}, "$.a"),
        ({"a": Decimal("0.1")}, "$.a"),
        ({"a": b"bytes"}, "$.a"),
        ({"a": {1, 2}}, "$.a"),
        ({"a": timedelta(1)}, "$.a"),
        ({"a": Odd()}, "$.a"),
        ({"a": datetime(2026, 3, 4)}, "$.a"),  # noqa: DTZ001 naive on purpose
        ({"a": datetime.max.replace(tzinfo=timezone(timedelta(hours=-1)))}, "$.a"),
        ({"a": "\ud800"}, "$.a"),
        ({"\ud800": 1}, "$, a member's name"),
        ({1: "a"}, "$"),
        ({"e\u0301": 1, "\u00e9": 1}, "$"),
        ({"ann@example.com": {"code": math.nan}}, "$.[member 0].code"),
    ],
)
def test_what_has_no_one_form_is_refused_by_its_place(content: object, field: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        canonical_json(content)
    assert refusal.value.field == field
    assert refusal.value.hint


def nested(levels: int) -> list[object]:
    inner: list[object] = []
    for _ in range(levels - 1):
        inner = [inner]
    return inner


def test_content_may_be_32_levels_deep_and_no_deeper() -> None:
    assert canonical_json(nested(hashing.DEPTH_MAX)) == b"[" * 32 + b"]" * 32
    with pytest.raises(InvalidInput, match="32"):
        canonical_json(nested(hashing.DEPTH_MAX + 1))
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(InvalidInput, match="inside each other"):
        canonical_json(endless)


def test_content_may_take_8_mib_and_no_more() -> None:
    fits = "x" * (hashing.SIZE_MAX - 2)
    assert len(canonical_json(fits)) == hashing.SIZE_MAX
    with pytest.raises(InvalidInput, match="bytes"):
        canonical_json(fits + "x")


def test_content_that_doubles_at_every_level_is_stopped_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashing, "SIZE_MAX", 1000)
    shared: object = "x"
    for _ in range(hashing.DEPTH_MAX):
        shared = [shared, shared]
    with pytest.raises(InvalidInput, match="1000 bytes"):
        canonical_json(shared)


def test_the_tag_written_first_is_the_current_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashing, "PLAIN", {"h0": lambda _: "", **hashing.PLAIN})
    assert hashing.plain_tags() == ("h1", "h0")


def test_a_key_that_could_be_guessed_is_refused() -> None:
    with pytest.raises(InvalidInput, match="31 bytes"):
        keyed_digest(bytes(31), [1])


def test_no_hash_is_made_under_a_tag_that_nobody_knows() -> None:
    with pytest.raises(UnknownVersion, match="h9"):
        digest([1], tag="h9")
    with pytest.raises(UnknownVersion, match="h1"):
        keyed_digest(SECRET, [1], tag="h1")


@thorough
@given(TEXTS, TEXTS)
def test_a_name_given_twice_in_two_unicode_forms_is_refused_unless_one_is_null(name: str, value: str) -> None:
    composed, decomposed = unicodedata.normalize("NFC", name), unicodedata.normalize("NFD", name)
    assume(composed != decomposed)
    with pytest.raises(InvalidInput, match="normalisation"):
        canonical_json({composed: value, decomposed: value})
    assert canonical_json({composed: None, decomposed: value}) == canonical_json({composed: value})


@given(st.lists(st.text(st.characters(max_codepoint=127), max_size=20), max_size=5))
@thorough
def test_a_list_of_plain_texts_has_the_same_form_by_the_short_way_as_by_the_long(texts: list[str]) -> None:
    assert (
        canonical_json(texts) == canonical_json(tuple(texts)) == canonical_json([*texts, "é"])[:-5].rstrip(b",") + b"]"
    )
