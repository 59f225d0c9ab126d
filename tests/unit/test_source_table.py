"""Sources as rows of a table: columns say what their values are, and what is written is read again as it was."""

from datetime import date
from io import BytesIO
from uuid import UUID

import pytest

from clarion.catalog.source_entry import check_source
from clarion.catalog.source_table import cells_of, check_columns, column_of, columns_of, entry_of, header_of
from clarion.catalog.table import BadRow, Row, read_rows, written
from clarion.domain.source import SourceContent, SourceFacts
from clarion.errors import InvalidInput

UNIT = UUID("6f1c2c7e-2222-4000-8000-000000000001")
ENTITY = UUID("6f1c2c7e-1111-4000-8000-000000000001")
FACTS = SourceFacts(
    source_type="invoice",
    source="2026/17",
    entity=ENTITY,
    business_unit=UNIT,
    content=SourceContent(
        fields={"number": "=1+1", "total": -120.5, "lines": 3, "paid": False, "huge": 1e300, "note": "a\nb"},
        dates={"due_on": date(2026, 12, 1)},
        metrics={"open": 120.5, "seats": {"north: wing": 3.0, "south": 0.0}},
    ),
)


def rows(text: str) -> list[Row | BadRow]:
    return list(read_rows(BytesIO(text.encode()).readline, check_columns))


def row(text: str) -> Row:
    """Read the one row of a table."""
    (found,) = rows(text)
    assert isinstance(found, Row)
    return found


def test_what_is_written_is_read_again_as_it_was() -> None:
    header = header_of(columns_of(FACTS))
    entry = entry_of(row(written([header, cells_of(FACTS, header)])))
    read = check_source(entry)
    assert (read.source, read.entity, read.business_unit, read.content) == ("2026/17", ENTITY, UNIT, FACTS.content)
    assert "'=1+1" in written([cells_of(FACTS, header)]), "no spreadsheet takes it for a formula"


def test_an_empty_cell_is_nothing() -> None:
    read = check_source(entry_of(row("id,field:a,number:b,date:c,metric:d,metric:e:x,entity\n1,,,,, ,\n")))
    assert (read.content, read.entity) == (SourceContent(), None)


@pytest.mark.parametrize(
    "header, line, column",
    [
        ("id,date:due_on", "1,2026-02-30", "date:due_on"),
        ("id,metric:open", "1,twelve", "metric:open"),
        ("id,metric:open", "1,NaN", "metric:open"),
        ("id,metric:open:north", "1,inf", "metric:open:north"),
        ("id,number:total", '1,"1,5"', "number:total"),
        ("id,truth:paid", "1,maybe", "truth:paid"),
        ("id,field:a,number:a", "1,x,7", "number:a"),
        ("id,metric:a,metric:a:x", "1,2,3", "metric:a:x"),
        ("id,metric:a:x,metric:a", "1,2,3", "metric:a"),
        ("id,metric:a:", "1,2", "metric:a:"),
        ("id,number:total", "1,99999999999999999999", "number:total"),
        ("id,field:a", ".,x", "id"),
        ("id,field:a", ",x", "id"),
        ("id,entity", "1,none", "entity"),
        ("id,business_unit", "1,north", "business_unit"),
    ],
)
def test_a_mistake_is_told_of_its_column(header: str, line: str, column: str) -> None:
    read = row(f"{header}\n{line}\n")
    with pytest.raises(InvalidInput) as refused:
        check_source(entry_of(read))
    assert (column_of(refused.value, read), bool(refused.value.hint)) == (column, True)


@pytest.mark.parametrize(
    "header, what",
    [
        ("field:a", "the column id is missing"),
        ("id,due_on", "there is no column 'due_on'"),
        ("id,field:due on", "names nothing that templates can write"),
        ("id,metric:2nd:x", "names nothing that templates can write"),
        ("id,field:", "there is no column 'field:'"),
        ("id,date:a,date:a", "comes twice"),
    ],
)
def test_a_column_that_says_nothing_refuses_the_table(header: str, what: str) -> None:
    with pytest.raises(InvalidInput, match=what):
        rows(f"{header}\n")


def test_more_columns_than_can_be_read_are_not_written() -> None:
    with pytest.raises(InvalidInput, match="198 different"):
        header_of({f"field:a{n}" for n in range(198)})
    assert len(header_of({f"field:a{n}" for n in range(197)})) == 200


def test_a_source_with_a_field_that_came_since_ends_the_export_instead_of_losing_it() -> None:
    with pytest.raises(InvalidInput, match="'2026/17' was changed"):
        cells_of(FACTS, ["id", "business_unit", "entity"])
