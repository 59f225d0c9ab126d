"""What an application says of a source, and how each mistake in it is told."""

from datetime import date

import pytest

from clarion.catalog.source_entry import SourceEntry, check_source, check_sources, refusal
from clarion.domain.source import SourceContent, check_id, check_type
from clarion.errors import InvalidInput, InvalidItems


def mistakes(**said: object) -> list[tuple[str, str]]:
    """Check an entry that says this, and give field and message of everything that is wrong."""
    with pytest.raises(InvalidItems) as refused:
        check_source(SourceEntry(source="2026-17", **said))  # type: ignore[arg-type]  # by name
    return [(one.field, one.message) for one in refused.value.mistakes]


def test_an_entry_is_read_into_fields_dates_and_metrics() -> None:
    read = check_source(
        SourceEntry(
            source="a/b ß",
            fields={"number": "17", "paid": False, "total": 12.5, "lines": 3, "note": None},
            dates={"due_on": "2028-02-29", "paid_on": None},
            metrics={"open": 12, "seats": {"north wing": 3}},
        )
    )
    assert read.content == SourceContent(
        fields={"number": "17", "paid": False, "total": 12.5, "lines": 3},
        dates={"due_on": date(2028, 2, 29)},
        metrics={"open": 12.0, "seats": {"north wing": 3.0}},
    )


@pytest.mark.parametrize("day", ["2026-02-30", "2027-02-29", "30.1.2026", "2026-W09-6", "20260130", "", 20260130, True])
def test_a_date_that_there_is_not_is_told_by_its_name(day: object) -> None:
    assert mistakes(dates={"due_on": day}) == [("dates.due_on", "it is no date that there is")]


@pytest.mark.parametrize("day", ["1899-12-31", "2200-01-01", "0001-01-01", "9999-12-31"])
def test_a_date_that_no_reminder_can_be_about_is_refused(day: str) -> None:
    assert mistakes(dates={"due_on": day}) == [("dates.due_on", "it is outside of the years 1900 to 2199")]


@pytest.mark.parametrize(
    "value, field, message",
    [
        ("12", "metrics.open", "it is no number"),
        (True, "metrics.open", "it is no number"),
        ([1], "metrics.open", "it is no number"),
        (float("nan"), "metrics.open", "it is no finite number"),
        (float("-inf"), "metrics.open", "it is no finite number"),
        (10**400, "metrics.open", "it has too many digits to be exact"),
        ({"a": "1"}, "metrics.open.a", "it is no number"),
        ({"": 1}, "metrics.open", "a scope has no name, or one that nobody can read"),
        ({}, "metrics.open", "it has 0 scopes"),
        ({"*": 1}, "metrics.open", "a scope is called *, which means each of them"),
        ({f"s{n}": n for n in range(101)}, "metrics.open", "it has 101 scopes"),
    ],
)
def test_a_metric_that_is_no_number_is_told_by_its_name(value: object, field: str, message: str) -> None:
    assert mistakes(metrics={"open": value}) == [(field, message)]


@pytest.mark.parametrize("value", [[], {}, 2**53 + 1, float("inf"), "\ud800"])
def test_a_field_that_is_no_value_is_told_by_its_name(value: object) -> None:
    assert [field for field, _ in mistakes(fields={"note": value})] == ["fields.note"]


@pytest.mark.parametrize("name", ["", "2nd", "due on", "größe", "a" * 65, "a.b"])
def test_a_name_that_no_template_can_write_is_refused(name: str) -> None:
    assert mistakes(fields={name: 1}) == [(f"fields.{name[:64]}", "it is no name that templates can write")]


def test_every_mistake_is_told_at_once() -> None:
    told = mistakes(
        fields={"2nd": 1, "list": []},
        dates={"due_on": "2026-02-30"},
        metrics={f"m{n}": n for n in range(51)},
    )
    assert [field for field, _ in told] == ["fields.2nd", "fields.list", "dates.due_on", "metrics"]


def test_in_a_set_each_mistake_has_its_place_and_nothing_comes_twice() -> None:
    good, bad = check_sources(
        [
            SourceEntry(source="1"),
            SourceEntry(source="2", dates={"due_on": "never"}, metrics={"open": "x"}),
            SourceEntry(source="1"),
            SourceEntry(source="\t"),
        ]
    )
    assert set(good) == {0}
    assert [one.field for one in refusal(bad).mistakes] == [
        *("sources[1].dates.due_on", "sources[1].metrics.open", "sources[2].id", "sources[3].id"),
    ]


@pytest.mark.parametrize("text", ["a/b", "a b", "Rechnung März", "a%2Fb", "..a", "/", "日" * 22, "x" * 200])
def test_an_id_may_hold_nearly_anything(text: str) -> None:
    assert check_id(text, field="id") == text


@pytest.mark.parametrize("text", ["", " ", ".", "..", "a\nb", "a\u202eb", "x" * 201, "日" * 23, "\ud800"])
def test_an_id_that_no_path_or_key_can_hold_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_id(text, field="id")
    assert (refused.value.field, bool(refused.value.hint)) == ("id", True)


@pytest.mark.parametrize("text", ["", "Invoice", "7b", "a b", "a/b", "x" * 65])
def test_a_type_is_a_word(text: str) -> None:
    with pytest.raises(InvalidInput, match="no type of a source"):
        check_type(text, field="type")
