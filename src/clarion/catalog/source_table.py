"""Sources as rows of a table: each row is a source as a whole, and each column says of which kind its values are.

`field:NAME` is text, `number:NAME` and `truth:NAME` are fields that are numbers and truths, `date:NAME` is a day,
`metric:NAME` a number that thresholds look at, `metric:NAME:SCOPE` one for a part of the source. An empty cell is
nothing, and so is what the table has no column for. Pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from uuid import UUID

import msgspec

from clarion.catalog.source_entry import SourceEntry
from clarion.catalog.table import COLUMNS_MAX, Columns, Row
from clarion.domain import part
from clarion.domain.attribute import Kind, read_text
from clarion.domain.source import FieldName, FieldValue, SourceFacts
from clarion.errors import InvalidInput

FIELDS: Final[Mapping[str, Kind]] = {"field:": Kind.TEXT, "number:": Kind.NUMBER, "truth:": Kind.TRUTH}
"""With what the column of a field begins, and the kind of its values."""

DATE: Final = "date:"
METRIC: Final = "metric:"

OWN: Final = ("id", "business_unit", "entity")
SOURCES: Final = Columns(known=OWN, prefixes=(*FIELDS, DATE, METRIC), required=("id",))


def check_columns(names: Sequence[str]) -> None:
    """Refuse a table with other columns, or with a name that templates cannot write."""
    SOURCES.check(names)
    for name in names:
        if name not in OWN and not _is_name(_name_in(name)):
            raise InvalidInput(
                f"{name[:80]!r} names nothing that templates can write",
                field="row 1",
                hint="use 1 to 64 of A-Z, a-z, 0-9 and '_' for the name, not starting with a digit",
            )


def entry_of(row: Row) -> SourceEntry:
    """Read what a row says of its source; an error names the column."""
    fields: dict[str, object] = {}
    dates: dict[str, object] = {}
    metrics: dict[str, object] = {}
    for column, cell in row.cells.items():
        if column in OWN or not cell.strip():
            continue
        name = _name_in(column)
        prefix = column[: column.index(":") + 1]
        if prefix == DATE:
            dates[name] = cell.strip()
        elif prefix == METRIC:
            _add_metric(metrics, column, read_text(Kind.NUMBER, cell.strip(), field=column))
        elif name in fields:
            raise InvalidInput(f"the row says another {name} too", field=column, hint="fill in one of the two columns")
        else:
            kind = FIELDS[prefix]
            fields[name] = cell if kind is Kind.TEXT else read_text(kind, cell.strip(), field=column)
    return SourceEntry(
        source=row.cells["id"],
        business_unit=_guid(row.cells, "business_unit"),
        entity=_guid(row.cells, "entity"),
        fields=fields,
        dates=dates,
        metrics=metrics,
    )


def column_of(error: InvalidInput, row: Row) -> str:
    """Name the column that an error of a source speaks of; `fields` and such, where it speaks of several."""
    field = error.field or ""
    kind, _, name = field.partition(".")
    if not name or field in row.cells:
        return field
    metric, _, scope = name.partition(".")
    columns = {
        "fields": [f"{prefix}{name}" for prefix in FIELDS],
        "dates": [f"{DATE}{name}"],
        "metrics": [f"{METRIC}{metric}:{scope}", f"{METRIC}{metric}"],
    }
    return next((one for one in columns.get(kind, ()) if row.cells.get(one, "").strip()), field)


def columns_of(facts: SourceFacts) -> set[str]:
    """Name the columns that a source needs beside its own."""
    content = facts.content
    return {
        *(f"{_prefix_of(value)}{name}" for name, value in content.fields.items() if value is not None),
        *(f"{DATE}{name}" for name in content.dates),
        *(column for name, value in content.metrics.items() for column, _ in _metric_cells(name, value)),
    }


def header_of(columns: Iterable[str]) -> list[str]:
    """Name the columns of a table that holds these; refuse one that could not be read again."""
    header = [*OWN, *sorted(columns)]
    if len(header) > COLUMNS_MAX:
        raise InvalidInput(
            f"together the sources have {len(header) - len(OWN)} different fields, dates and metrics",
            field="type",
            hint=f"a table has at most {COLUMNS_MAX} columns; read them page by page with the API",
        )
    return header


def cells_of(facts: SourceFacts, header: Sequence[str]) -> list[str]:
    """Write a source as a row of a table with these columns, which are all that it needs."""
    content = facts.content
    cells = {
        "id": facts.source,
        "business_unit": str(facts.business_unit or ""),
        "entity": str(facts.entity),
        **{f"{_prefix_of(value)}{name}": _text(value) for name, value in content.fields.items() if value is not None},
        **{f"{DATE}{name}": day.isoformat() for name, day in content.dates.items()},
        **{column: _text(one) for name, value in content.metrics.items() for column, one in _metric_cells(name, value)},
    }
    if not cells.keys() <= set(header):
        raise InvalidInput(
            f"the source {facts.source!r} was changed and has new fields", field="type", hint="start the export again"
        )
    return [cells.get(name, "") for name in header]


def _name_in(column: str) -> str:
    """Give the name in a column's; behind that of a metric there may be a scope."""
    prefix, _, name = column.partition(":")
    return name.partition(":")[0] if f"{prefix}:" == METRIC else name


def _add_metric(metrics: dict[str, object], column: str, value: object) -> None:
    name, colon, scope = column.removeprefix(METRIC).partition(":")
    before = metrics.get(name)
    if before is not None and (not colon or not isinstance(before, dict)):
        raise InvalidInput(
            f"the row says {name} as a whole and in parts", field=column, hint="fill in the one or the others"
        )
    if not colon:
        metrics[name] = value
    else:
        metrics[name] = {**(before if isinstance(before, dict) else {}), scope: value}


def _metric_cells(name: str, value: float | Mapping[str, float]) -> list[tuple[str, float]]:
    if isinstance(value, Mapping):
        return [(f"{METRIC}{name}:{scope}", one) for scope, one in value.items()]
    return [(f"{METRIC}{name}", value)]


def _prefix_of(value: FieldValue) -> str:
    kind = Kind.TEXT if isinstance(value, str) else Kind.TRUTH if isinstance(value, bool) else Kind.NUMBER
    return next(prefix for prefix, one in FIELDS.items() if one is kind)


def _text(value: FieldValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return part.number(value, field="value") if isinstance(value, int | float) else value or ""


def _guid(cells: Mapping[str, str], column: str) -> UUID | None:
    text = cells.get(column, "").strip()
    try:
        return UUID(text) if text else None
    except ValueError:
        raise InvalidInput("it is no guid", field=column, hint="write a guid, or leave it empty") from None


def _is_name(text: str) -> bool:
    try:
        msgspec.convert(text, FieldName)
    except msgspec.ValidationError:
        return False
    return True
