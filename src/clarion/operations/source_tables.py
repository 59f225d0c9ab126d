"""Tables of sources: read and written in chunks, however large they are. For the program only, as all tables are.

A chunk is stored as a whole, with the events that tell of what changed in it; a row in which something is wrong is left
out and reported. To import the same file again changes nothing and makes no event.
"""

from collections.abc import AsyncIterator
from typing import Final

import msgspec

from clarion.bootstrap import Platform
from clarion.catalog.source_entry import SourceEntry
from clarion.catalog.source_records import SourceRecords
from clarion.catalog.source_table import cells_of, check_columns, column_of, columns_of, entry_of, header_of
from clarion.catalog.table import BadRow, ReadLine, read_rows, written
from clarion.dispatch.request import Trace
from clarion.domain.source import SourceFacts, check_type
from clarion.operations.sources import TOPIC, require_stored
from clarion.operations.tables import Imported, Note, Progress, chunks, count
from clarion.operations.wake import Wake
from clarion.sealing.sources import opened_source

EXPORTED_MAX: Final = 500
"""Sources that are opened at once: eight megabytes, where each says as much as one may."""


class SourceTables:
    """Imports and exports of sources."""

    def __init__(self, platform: Platform, *, wake: Wake) -> None:
        """Work on this platform, and wake workers."""
        self._store = platform.store
        self._keyring = platform.keyring
        self._provided = platform.sources.provided
        self._records = SourceRecords(store=platform.store, facts=platform.store, keyring=platform.keyring)
        self._wake = wake

    async def import_sources(
        self,
        tenant_id: str,
        source_type: str,
        readline: ReadLine,
        *,
        actor: str,
        trace: Trace,
        note: Note,
        progress: Progress,
        dry_run: bool = False,
    ) -> Imported:
        """Store the sources of a table, each as a whole; none is removed."""
        require_stored(source_type, self._provided)
        counted = Imported(dry_run=dry_run, changed=None if dry_run else 0)
        rows = read_rows(readline, check_columns)
        for chunk in chunks(rows, entry_of, alone=_id_of, column_of=column_of):
            read = chunk.read
            good, bad = await self._records.check(tenant_id, source_type, [entry for _, entry in read])
            chunk.bad += [
                BadRow.of(row.number, one.error, column=column_of(one.error, row))
                for one in bad
                for row in [read[one.place][0]]
            ]
            if good and not dry_run:
                answers = await self._records.put(tenant_id, source_type, list(good.values()), actor=actor, trace=trace)
                changed = sum(one.changed for one in answers)
                counted = msgspec.structs.replace(counted, changed=(counted.changed or 0) + changed)
                if changed:
                    self._wake(TOPIC)
            counted = count(counted, chunk, note, progress)
        return counted

    async def export_sources(self, tenant_id: str, source_type: str) -> AsyncIterator[tuple[int, str]]:
        """Write all sources of a type, a piece of the table at a time, each with the number of its rows.

        They are read twice: first for the columns that they need.
        """
        check_type(source_type, field="type")
        columns: set[str] = set()
        async for some in self._all(tenant_id, source_type):
            for one in some:
                columns |= columns_of(one)
            header_of(columns)  # refuses what would not fit, before all of them are read
        header = header_of(columns)
        yield 0, written([header])
        async for some in self._all(tenant_id, source_type):
            yield len(some), written(cells_of(one, header) for one in some)

    async def _all(self, tenant_id: str, source_type: str) -> AsyncIterator[list[SourceFacts]]:
        """Read the sources of a type, opened, a page at a time."""
        keys, after = await self._keyring.get(tenant_id), ""
        while found := await self._store.list_sources(tenant_id, source_type, after=after, limit=EXPORTED_MAX):
            after = found[-1].source
            yield [opened_source(keys, one) for one in found]


def _id_of(entry: SourceEntry) -> str:
    return entry.source
