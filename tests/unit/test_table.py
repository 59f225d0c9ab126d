"""Tables: every kind of broken text, the limits, and cells that a spreadsheet must not take for formulas."""

import csv
import io
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clarion.catalog.table import ROW_BYTES_MAX, BadRow, Columns, Row, guarded, read_rows, unguarded, written
from clarion.errors import InvalidInput

COLUMNS = Columns(known=("person", "name", "note"), prefixes=("attribute.",), required=("person",))
FORMULAS = (
    *(
        "=1+1",
        "+43660123",
        "-7",
        "@SUM(A1)",
        "\tx",
        "\rx",
        "\nx",
        "\uff1d1",
        "\uff0b1",
        "\uff0d1",
        "\uff20x",
        "\ufe621",
        "\ufe631",
        "\ufe661",
        "\ufe6b1",
        "\u22121",
    ),
    *("=cmd|' /C calc'!A0", '=HYPERLINK("https://example.com";"x")', "+", "=", "@"),
)


def rows_of(text: str | bytes) -> list[Row | BadRow]:
    data = text.encode() if isinstance(text, str) else text
    return list(read_rows(io.BytesIO(data).readline, COLUMNS.check))


def refusal(text: str | bytes) -> InvalidInput:
    with pytest.raises(InvalidInput) as refused:
        rows_of(text)
    return refused.value


def test_rows_are_read_by_the_names_of_their_columns() -> None:
    rows = rows_of('name, person\nSam,user:1\n\n"Kim, the\nsecond",user:2\n"say ""hi""",user:3')
    assert [(row.number, row.cells) for row in rows if isinstance(row, Row)] == [
        (2, {"name": "Sam", "person": "user:1"}),
        (4, {"name": "Kim, the\nsecond", "person": "user:2"}),
        (5, {"name": 'say "hi"', "person": "user:3"}),
    ]
    assert len(rows) == 3


@pytest.mark.parametrize(
    "text", ["\ufeffperson\nuser:1\n", "person\r\nuser:1\r\n", "person\nuser:1", '\ufeff"person"\n"user:1"']
)
def test_a_bom_and_either_line_end_are_taken(text: str) -> None:
    (row,) = rows_of(text)
    assert isinstance(row, Row)
    assert row.cells == {"person": "user:1"}


@pytest.mark.parametrize(
    "text, field, says",
    [
        ("", "row 1", "the file is empty"),
        ("\n\n", "row 1", "the column person is missing"),
        ("name\nSam\n", "row 1", "the column person is missing"),
        ("person,person\n", "row 1", "the column 'person' comes twice"),
        ("person,nmae\n", "row 1", "did you mean name?"),
        ("person,zzz\n", "row 1", "the columns are person, name, note, attribute.NAME"),
        ("person,attribute.\n", "row 1", "there is no column 'attribute.'"),
        ("person,\n", "row 1", "there is no column ''"),
        ("person;name\n", "row 1", "separate the columns by commas"),
        (f"person,{','.join(f'attribute.a{n}' for n in range(200))}\n", "row 1", "it has 201 columns"),
        (b"person\nuser:1\nuser:\xe4\n", "row 3", "it is not UTF-8"),
        ("person\nuser:1\n".encode("utf-16"), "row 1", "it holds a NUL"),
        (b"person\nuser:\x001\n", "row 2", "it holds a NUL"),
        ('person\n"user:1\nuser:2\n', "row 2", "a quote is left open"),
        ('person\n"user:1"x\n', "row 2", "followed by something else"),
        ("person\ruser:1\r", "row 1", "a carriage return alone"),
        (b"\x1f\x8b\x08\x00\x00", "row 1", "NUL"),
    ],
)
def test_what_is_no_table_is_refused_at_its_row(text: str | bytes, field: str, says: str) -> None:
    refused = refusal(text)
    assert refused.field == field
    assert says in str(refused)


def test_rows_before_the_one_that_cannot_be_read_are_given() -> None:
    rows = read_rows(io.BytesIO(b"person\nuser:1\nuser:\xff\n").readline, COLUMNS.check)
    assert isinstance(next(rows), Row)
    with pytest.raises(InvalidInput):
        next(rows)


def test_a_row_with_other_cells_is_bad_alone() -> None:
    rows = rows_of("person,name\nuser:1\nuser:2,Kim\nuser:3,a,b\n")
    assert [row.number if isinstance(row, Row) else (row.row, row.reason) for row in rows] == [
        (2, "it has 1 cells, and the first row has 2"),
        3,
        (4, "it has 3 cells, and the first row has 2"),
    ]


class Endless:
    """A file that is one line of a gigabyte, made as it is read."""

    def __init__(self, *first: bytes) -> None:
        self.left = 1024**3
        self.first = list(first)

    def readline(self, most: int) -> bytes:
        if self.first:
            return self.first.pop(0)
        size = min(most, self.left)
        self.left -= size
        return b"x" * size


@pytest.mark.parametrize("first", [(), (b"person\n",), (b"person\n", b'"')])
def test_a_line_of_a_gigabyte_is_refused_without_being_held(first: tuple[bytes, ...]) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInput, match="longer than 256 kB"):
            list(read_rows(Endless(*first).readline, COLUMNS.check))
        assert tracemalloc.get_traced_memory()[1] < 16 * ROW_BYTES_MAX
    finally:
        tracemalloc.stop()


def test_a_row_of_many_lines_is_as_long_as_one_of_one_line() -> None:
    fits = "x\n" * ((ROW_BYTES_MAX - 20) // 2)
    (row,) = rows_of(f'person,note\nuser:1,"{fits}"\n')
    assert isinstance(row, Row)
    assert row.cells["note"] == fits
    assert "longer than" in refusal(f'person,note\nuser:1,"{fits}{fits}"\n').message


@pytest.mark.parametrize("cell", FORMULAS)
def test_a_formula_is_written_as_text_and_read_as_it_was(cell: str) -> None:
    assert guarded(cell) == f"'{cell}"
    assert written([[cell]]) == '"' + f"'{cell}".replace('"', '""') + '"\n'
    assert unguarded(guarded(cell)) == cell


@pytest.mark.parametrize("cell", ["", "'", "'Abc'", "O'Neill", "''", "1+1", "a=b", " =1", "'t Hart"])
def test_any_other_cell_stays_as_it_is_both_ways(cell: str) -> None:
    assert guarded(cell) == cell == unguarded(cell)


@pytest.mark.parametrize("cell", ["'=1", "''=1", "'+43", "'''@"])
def test_a_cell_that_really_begins_with_quotes_keeps_them(cell: str) -> None:
    assert guarded(cell) == f"'{cell}"
    assert unguarded(guarded(cell)) == cell


@given(
    st.lists(
        st.text(
            alphabet=st.one_of(
                st.sampled_from("'=+-@\t\r\n\uff1d\",;a"),
                st.characters(exclude_categories=["Cs"], exclude_characters="\0"),
            ),
            max_size=20,
        ),
        min_size=1,
        max_size=4,
    )
)
def test_whatever_is_written_is_read_again_and_begins_no_formula(cells: list[str]) -> None:
    text = written([cells])
    (read,) = csv.reader(io.StringIO(text, newline=""))
    assert [unguarded(one) for one in read] == cells
    assert not [
        one for one in read if one and one[0] in "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20\ufe62\ufe63\ufe66\ufe6b\u2212"
    ]
