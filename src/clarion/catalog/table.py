"""CSV (X-26): rows read one by one from a file of any size, and cells written so that none is taken for a formula.

A table begins with the names of its columns. It is UTF-8, with commas and double quotes (RFC 4180); a cell may hold
line breaks. What is held in memory is one row, whatever the file holds: a line without an end is refused when it is
longer than a row may be. A mistake in a cell concerns its row alone; after text that cannot be read as rows nobody can
tell where the next one begins, so that reading ends there.

Knows nothing of what the columns mean.
"""

import csv
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from io import StringIO
from typing import Final

import msgspec

from clarion.errors import InvalidInput

ROW_BYTES_MAX: Final = 256 * 1024
"""Fifty push tokens, the longest addresses that there are, and a whole profile fit into it."""

COLUMNS_MAX: Final = 200
"""A tenant has at most a hundred attributes; the rest are a person's own fields."""

_FORMULA: Final = "=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20\ufe62\ufe63\ufe66\ufe6b\u2212"
"""With what a spreadsheet begins a formula, or what it turns into that: tabs, line breaks, wide and small forms."""
_GUARDED: Final = re.compile(f"'+[{_FORMULA}]")
_DANGEROUS: Final = re.compile(f"'*[{_FORMULA}]")

_BOM: Final = "\ufeff"

ReadLine = Callable[[int], bytes]
"""Reads up to the end of a line, or so many bytes of it; nothing at the end of the file."""


Check = Callable[[Sequence[str]], None]
"""Refuses the names of columns that a table cannot have."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One row by the names of its columns, and its number as a spreadsheet shows it: the names are row 1."""

    number: int
    cells: Mapping[str, str]
    size: int = 0


class BadRow(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with a row, in which column, and what to do about it."""

    row: int
    column: str
    reason: str
    remedy: str

    @classmethod
    def of(cls, number: int, error: InvalidInput, *, column: str) -> "BadRow":
        """Say what an error means in a table."""
        return cls(row=number, column=column, reason=error.message, remedy=error.hint)


class Columns(msgspec.Struct, frozen=True, kw_only=True):
    """Which columns a table may have: these, and any that begin with one of the prefixes; and which it must have."""

    known: tuple[str, ...]
    prefixes: tuple[str, ...] = ()
    required: tuple[str, ...] = ()

    def check(self, names: Sequence[str]) -> None:
        """Refuse names that are none of these, that come twice or that are missing."""
        if len(names) > COLUMNS_MAX:
            raise _refused(f"it has {len(names)} columns", hint=f"use at most {COLUMNS_MAX}")
        for name in names:
            if names.count(name) > 1:
                raise _refused(f"the column {_shown(name)} comes twice", hint="name each column once")
            if name not in self.known and not self._has_prefix(name):
                raise _refused(f"there is no column {_shown(name)}", hint=self._advice(name))
        for name in self.required:
            if name not in names:
                raise _refused(f"the column {name} is missing", hint=f"the first row names the columns: {self._listed}")

    def _has_prefix(self, name: str) -> bool:
        return any(name.startswith(one) and name != one for one in self.prefixes)

    def _advice(self, name: str) -> str:
        if ";" in name or "\t" in name:
            return "separate the columns by commas"
        near = get_close_matches(name, self.known, n=1)
        return f"did you mean {near[0]}? The columns are {self._listed}" if near else f"the columns are {self._listed}"

    @property
    def _listed(self) -> str:
        return ", ".join((*self.known, *(f"{one}NAME" for one in self.prefixes)))


class _Lines:
    """The lines of a file as text, with the bytes that the present row has taken so far."""

    def __init__(self, readline: ReadLine) -> None:
        self.row = 1
        self.used = 0
        self._readline = readline
        self._is_first = True

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._readline(ROW_BYTES_MAX + 1 - self.used)
        if not line:
            raise StopIteration
        self.used += len(line)
        if self.used > ROW_BYTES_MAX:
            raise self._refused(
                f"it is longer than {ROW_BYTES_MAX // 1024} kB", hint="see that no quote before it is left open"
            )
        if b"\0" in line:
            raise self._refused("it holds a NUL", hint="save the file as CSV in UTF-8")
        try:
            text = line.decode()
        except UnicodeDecodeError:
            raise self._refused("it is not UTF-8", hint="save the file as CSV in UTF-8") from None
        if self._is_first:
            self._is_first, text = False, text.removeprefix(_BOM)
        return text

    def _refused(self, message: str, *, hint: str) -> InvalidInput:
        return InvalidInput(message, field=f"row {self.row}", hint=hint)


def read_rows(readline: ReadLine, check: Check) -> Iterator[Row | BadRow]:
    """Read a table row by row; one that has other cells than the header is bad, and an empty one is passed over.

    `check` refuses the names of columns.
    """
    csv.field_size_limit(ROW_BYTES_MAX)
    lines = _Lines(readline)
    reader = csv.reader(lines, strict=True)
    names: list[str] = []
    while True:
        lines.used = 0
        try:
            cells = next(reader, None)
        except csv.Error:
            raise InvalidInput(
                "it is no CSV: a quote is left open, or is followed by something else than a comma, or a line ends "
                "with a carriage return alone",
                field=f"row {lines.row}",
                hint='put cells with commas, quotes or line breaks into double quotes, and write a quote as ""',
            ) from None
        if cells is None:
            break
        if not names:
            names = [cell.strip() for cell in cells]
            check(names)
        elif len(cells) == len(names):
            yield Row(number=lines.row, cells=dict(zip(names, map(unguarded, cells), strict=True)), size=lines.used)
        elif cells:
            yield BadRow(
                row=lines.row,
                column="",
                reason=f"it has {len(cells)} cells, and the first row has {len(names)}",
                remedy="give it a cell for each column; put one that holds a comma into double quotes",
            )
        lines.row += 1
    if not names:
        raise _refused("the file is empty", hint="the first row names the columns")


def guarded(cell: str) -> str:
    """Write a cell so that a spreadsheet shows it: a quote comes before what would be read as a formula."""
    return f"'{cell}" if _DANGEROUS.match(cell) else cell


def unguarded(cell: str) -> str:
    """Read a cell as it was before `guarded`; a quote before anything else is part of it."""
    return cell[1:] if _GUARDED.match(cell) else cell


def written(rows: Iterable[Collection[str]]) -> str:
    """Write rows, every cell in quotes and guarded."""
    text = StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(map(guarded, row) for row in rows)
    return text.getvalue()


def _refused(message: str, *, hint: str) -> InvalidInput:
    return InvalidInput(message, field="row 1", hint=hint)


def _shown(name: str) -> str:
    return repr(name[:64])
