"""Attributes: one text for each value of a kind, and a plain sentence for what is none."""

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clarion.domain.attribute import Kind, canonical, read_text, require_name, value_of
from clarion.errors import InvalidInput


@pytest.mark.parametrize(
    "kind, value, text",
    [
        (Kind.TEXT, "Wien", "Wien"),
        (Kind.TEXT, "Zu\u0308rich", "Z\u00fcrich"),
        (Kind.TEXT, "7", "7"),
        (Kind.NUMBER, 7, "7"),
        (Kind.NUMBER, 7.0, "7"),
        (Kind.NUMBER, -0.5, "-0.5"),
        (Kind.NUMBER, -0.0, "0"),
        (Kind.TRUTH, True, "true"),
        (Kind.TRUTH, False, "false"),
        (Kind.DATE, "2026-03-31", "2026-03-31"),
        (Kind.DATE, date(2026, 3, 31), "2026-03-31"),
    ],
)
def test_a_value_has_one_text(kind: Kind, value: object, text: str) -> None:
    assert canonical(kind, value) == text


@pytest.mark.parametrize(
    "kind, value",
    [
        (Kind.TEXT, 7),
        (Kind.TEXT, True),
        (Kind.TEXT, ""),
        (Kind.TEXT, "  "),
        (Kind.TEXT, "two\nlines"),
        (Kind.TEXT, "x" * 201),
        (Kind.TEXT, "\u00e9" * 101),
        (Kind.TEXT, "\ud800"),
        (Kind.NUMBER, "7"),
        (Kind.NUMBER, True),
        (Kind.NUMBER, float("nan")),
        (Kind.NUMBER, float("inf")),
        (Kind.NUMBER, 2**60),
        (Kind.TRUTH, 1),
        (Kind.TRUTH, "true"),
        (Kind.DATE, "31.3.2026"),
        (Kind.DATE, "2026-02-30"),
        (Kind.DATE, "20260331"),
        (Kind.DATE, datetime(2026, 3, 31, tzinfo=UTC)),
        (Kind.DATE, 20260331),
        (Kind.TEXT, None),
        (Kind.TEXT, ["Wien"]),
    ],
)
def test_what_is_none_of_its_kind_is_refused_with_its_field(kind: Kind, value: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        canonical(kind, value, field="attributes.x")
    assert refused.value.field == "attributes.x"
    assert refused.value.hint


@pytest.mark.parametrize(
    "kind, text, value",
    [
        (Kind.TEXT, "7", "7"),
        (Kind.NUMBER, "7", 7),
        (Kind.NUMBER, "-2.50", -2.5),
        (Kind.NUMBER, "1e3", 1000.0),
        (Kind.TRUTH, "True", True),
        (Kind.TRUTH, "false", False),
        (Kind.DATE, "2026-03-31", "2026-03-31"),
    ],
)
def test_what_can_only_be_given_as_text_is_read_by_its_kind(kind: Kind, text: str, value: object) -> None:
    assert read_text(kind, text) == value


@pytest.mark.parametrize(
    "kind, text",
    [
        (Kind.NUMBER, "seven"),
        (Kind.NUMBER, ""),
        (Kind.NUMBER, "nan"),
        (Kind.NUMBER, "1_000"),
        (Kind.NUMBER, "1,5"),
        (Kind.NUMBER, "9" * 31),
        (Kind.NUMBER, "\u0667"),
        (Kind.TRUTH, "1"),
        (Kind.TRUTH, ""),
    ],
)
def test_text_that_is_no_value_is_refused(kind: Kind, text: str) -> None:
    with pytest.raises(InvalidInput, match=f"it is no {kind}"):
        read_text(kind, text)


@given(
    st.one_of(
        st.tuples(st.just(Kind.NUMBER), st.integers(-(2**53), 2**53) | st.floats(-1e15, 1e15)),
        st.tuples(st.just(Kind.TRUTH), st.booleans()),
        st.tuples(st.just(Kind.DATE), st.dates().map(date.isoformat)),
    )
)
def test_a_stored_text_is_the_value_that_was_given(given_value: tuple[Kind, object]) -> None:
    kind, value = given_value
    text = canonical(kind, value)
    assert value_of(kind, text) == value
    assert canonical(kind, value_of(kind, text)) == text


@pytest.mark.parametrize("name", ["", "Grade", "7th", "grade level", "grade.level", "x" * 65, "\u00e4", "grade\n"])
def test_a_name_is_a_word(name: str) -> None:
    with pytest.raises(InvalidInput, match="not the name of an attribute"):
        require_name(name)
    assert require_name("grade_7-b") == "grade_7-b"
