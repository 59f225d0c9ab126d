"""One tenant's tables as they are at one moment. Reads the tables of `snapshot.sql`; writes nothing.

The order is that in which the rows can be put in again: a tenant before its keys.
"""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.transaction import Transaction
from clarion.errors import InvalidInput
from clarion.ports.snapshot import TableCopy, Value

_SQL: Final = Statements("snapshot.sql")
_COPY: Final = "copy_"
_STANDINGS: Final = ("pending", "held", "processing", "failed")
_EPOCH_AT: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


async def copy_tenant(
    transaction: Transaction, tenant_id: str, *, until: datetime, rows_max: int
) -> Mapping[str, TableCopy]:
    """Read every table, or refuse a tenant that has more rows than are to be held."""
    tables: dict[str, TableCopy] = {}
    left = rows_max
    for name, statement in _SQL.items():
        more: dict[str, Any] = {}
        if name == "copy_automation_scheduler":
            more = {"standings": _STANDINGS, "until": until}
        columns, rows = await transaction.copy(statement, tenant_id=tenant_id, most=left + 1, **more)
        left -= len(rows)
        table = name.removeprefix(_COPY)
        if left < 0:
            raise InvalidInput(
                f"the tenant has too much to be copied: more than {rows_max} rows up to the table {table}",
                field="days",
                hint="look ahead for fewer days, or read what waits with `clarion upcoming`",
            )
        tables[table] = TableCopy(columns, [[plain(value) for value in row] for row in rows])
    return tables


def plain(value: Any) -> Value:  # noqa: ANN401  whatever a driver gives
    """Give a value as SQLite keeps it."""
    match value:
        case bool():
            return int(value)
        case datetime():
            return int((value - _EPOCH_AT) // _MICROSECOND)
        case timedelta():
            return int(value // _MICROSECOND)
        case UUID() | date():
            return str(value)
        case _:
            known: Value = value
            return known
