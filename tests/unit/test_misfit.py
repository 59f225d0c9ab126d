"""What msgspec says about a value that does not fit, and what people are told instead."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal
from uuid import UUID

import msgspec
import pytest

from clarion.domain.misfit import read_json_fault, read_misfit


class Colour(StrEnum):
    RED = "red"
    GREEN = "green"


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    name: Annotated[str, msgspec.Meta(min_length=2, max_length=4, pattern="^[a-z]*$")]
    colours: list[Colour] = []


class Shape(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    number: Annotated[int, msgspec.Meta(ge=1, le=9)] = 1
    ratio: float = 1.0
    inner: Inner | None = None
    many: Annotated[tuple[Inner, ...], msgspec.Meta(max_length=1)] = ()
    colour: Colour = Colour.RED
    at: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    guid: UUID | None = None
    word: Literal["a", "b"] | None = None
    text: Annotated[str, msgspec.Meta(min_length=1)] = "x"
    flag: bool | None = None
    more: Annotated[dict[str, int], msgspec.Meta(max_length=1)] = {}


@pytest.mark.parametrize(
    "body, field, what, hint",
    [
        ('{"number": "x"}', "number", "it is text and must be a whole number", ""),
        ('{"number": 0}', "number", "it is too small", "use 1 or more"),
        ('{"number": 10}', "number", "it is too large", "use 9 or less"),
        ('{"ratio": []}', "ratio", "it is a list and must be a number", ""),
        ('{"inner": {"name": "a"}}', "inner.name", "it is too short", "use 2 characters or more"),
        (
            '{"many": [{"name": "ab", "colours": ["red", "blue"]}]}',
            "many[0].colours[1]",
            "'blue' is not one of its words",
            "choose from red, green",
        ),
        ('{"word": "d"}', "word", "'d' is not one of its words", "choose from a, b"),
        ('{"text": ""}', "text", "it is empty", "use 1 character or more"),
        ('{"inner": {"name": "abcde"}}', "inner.name", "it is too long", "use 4 characters or less"),
        ('{"inner": {"name": "AB"}}', "inner.name", "it is blank, or holds characters that it cannot have", ""),
        ('{"inner": {}}', "inner.name", "it is missing", ""),
        ('{"nope": 1}', "nope", "there is no such field", ""),
        ('{"many": [{"name": "ab", "x": 1}]}', "many[0].x", "there is no such field", ""),
        ('{"many": [{"name": "ab"}, {"name": "ab"}]}', "many", "it has too many entries", "use 1 or less"),
        ('{"colour": "blue"}', "colour", "'blue' is not one of its words", "choose from red, green"),
        ('{"at": "2026-01-01T00:00:00"}', "at", "it names no zone", "end it with Z or an offset such as +01:00"),
        ('{"at": "soon"}', "at", "it is no time", "write it as 2027-01-31T08:00:00+01:00"),
        ('{"guid": "7"}', "guid", "it is no guid", ""),
        ('{"flag": 1}', "flag", "it is a whole number and must be true or false or null", ""),
        ('{"more": {"a": 1, "b": 2}}', "more", "it has too many fields", "use 1 or less"),
        ("[]", "", "it is a list and must be an object", ""),
    ],
)
def test_what_does_not_fit_is_said_in_our_own_words(body: str, field: str, what: str, hint: str) -> None:
    with pytest.raises(msgspec.ValidationError) as raised:
        msgspec.json.decode(body, type=Shape)
    assert read_misfit(str(raised.value), Shape) == (field, what, hint)
    assert ":" not in what


def test_a_sentence_that_is_not_known_is_not_passed_on() -> None:
    assert read_misfit("The frobnicator was unhappy - at `$.x`") == ("x", "it cannot be used", "")


@pytest.mark.parametrize(
    "text, says",
    [("{", "it ends too early"), ('{"a": x}', "it goes wrong at byte 6"), ("{} x", "it goes wrong at byte 4")],
)
def test_it_is_said_where_a_text_stops_being_json(text: str, says: str) -> None:
    with pytest.raises(msgspec.DecodeError) as raised:
        msgspec.json.decode(text)
    assert read_json_fault(str(raised.value)) == says
