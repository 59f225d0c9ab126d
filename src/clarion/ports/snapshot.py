"""Snapshots: one tenant's tables as they are at one moment, copied to where what comes can be played through.

Only what decides about occurrences is copied, not what was sent: people, settings, sources, and what waits to fall due.
What is sealed stays sealed, and keys stay wrapped.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

import msgspec

Value = str | int | float | bytes | None
"""As SQLite keeps it: instants as microseconds since 1970, guids and dates as text, truth as 0 or 1."""


class TableCopy(msgspec.Struct, frozen=True):
    """Rows of one table, by the names of its columns."""

    columns: tuple[str, ...]
    rows: Sequence[Sequence[Value]]


class SnapshotStore(Protocol):
    """Gives one tenant as it is at one moment."""

    async def copy_tenant(self, tenant_id: str, *, until: datetime, rows_max: int) -> Mapping[str, TableCopy]:
        """Return a tenant's tables as they are at one moment; of occurrences those that are due by then.

        Raises InvalidInput where there are more than so many rows together. Changes nothing.
        """
        ...


class PastingStore(Protocol):
    """A store that a snapshot can be put into: one in memory, which holds nothing yet."""

    async def paste_tenant(self, tables: Mapping[str, TableCopy]) -> None:
        """Put the rows of a snapshot in, in one transaction."""
        ...
