"""Tables of people, of members of groups and of relations: read and written in chunks, however large they are.

A chunk is stored as a whole; a row in which something is wrong is left out and reported, and all others are stored. To
import the same file again changes nothing, so that an import that was interrupted is simply started again. A dry run
checks the same and stores nothing. For the program only: over HTTP people are put by the thousand in JSON.
"""

from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Mapping, Sequence
from typing import Final, Generic, TypeVar
from uuid import UUID

import msgspec

from clarion.bootstrap import Platform
from clarion.catalog.people import ContactEntry, People, opened_profile
from clarion.catalog.people_table import (
    Known,
    cells_of,
    check_columns,
    column_of,
    edit_of,
    header_of,
)
from clarion.catalog.person_entry import name_in
from clarion.catalog.table import BadRow, Columns, ReadLine, Row, read_rows, written
from clarion.dispatch.request import Trace
from clarion.domain.group import Relation, check_word, read_entity
from clarion.domain.identity import Identity, read_person
from clarion.domain.person import StoredPerson
from clarion.domain.seal import TenantKeys
from clarion.errors import InvalidInput
from clarion.operations.groups import is_group, named
from clarion.operations.whom import opened_destination
from clarion.ports.ensure import ITEMS_MAX, in_sets

CHUNK_BYTES_MAX: Final = 1024 * 1024
"""Of a chunk: a thousand rows of usual length are some hundred kilobytes, a thousand of the longest would be 256 MB."""

GROUPS_KNOWN_MAX: Final = 10_000
"""Groups that an import remembers to be there."""

MEMBERS: Final = Columns(known=("group", "person"), required=("group", "person"))
RELATIONS: Final = Columns(known=("entity", "relation", "person"), required=("entity", "relation", "person"))

T = TypeVar("T")

Note = Callable[[BadRow], None]
"""Is told of each row that is left out."""

Progress = Callable[[int], None]
"""Is told after each chunk how many rows were read."""


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an import, or would."""

    dry_run: bool
    rows: int = 0
    accepted: int = 0
    refused: int = 0
    added: int | None = None
    changed: int | None = None
    unknown: int | None = None


class Chunk(Generic[T]):
    """Rows that are stored together, each with what it says, and those that are left out."""

    def __init__(self) -> None:
        self.read: list[tuple[Row, T]] = []
        self.bad: list[BadRow] = []
        self.size = 0
        self.keys: set[Hashable] = set()

    @property
    def is_full(self) -> bool:
        """Tell whether it is as much as is stored at once."""
        return len(self.read) + len(self.bad) >= ITEMS_MAX or self.size >= CHUNK_BYTES_MAX


class Tables:
    """Imports and exports."""

    def __init__(self, platform: Platform) -> None:
        """Work on this platform."""
        self._store = platform.store
        self._keyring = platform.keyring
        self._people = People(catalog=platform.store, dispatcher=platform.dispatcher, keyring=platform.keyring)

    async def import_people(
        self,
        tenant_id: str,
        readline: ReadLine,
        *,
        actor: str,
        trace: Trace,
        note: Note,
        progress: Progress,
        region: str | None = None,
        dry_run: bool = False,
    ) -> Imported:
        """Store the people of a table, each as far as the table has columns for."""
        declared = {one.name: one for one in await self._store.list_attributes(tenant_id)}
        rows = read_rows(readline, lambda names: check_columns(names, declared))
        counted = Imported(dry_run=dry_run)
        for chunk in chunks(rows, lambda row: edit_of(row, declared), alone=lambda edit: edit.identity):
            edits = [edit for _, edit in chunk.read]
            if dry_run:
                bad = await self._people.check(tenant_id, edits, region=region, create=True)
            else:
                bad = await self._people.edit(
                    tenant_id, edits, trace=trace, actor=actor, region=region, create=True, skip=True
                )
            chunk.bad += [
                BadRow.of(row.number, one.error, column=column_of(one.error, row))
                for one in bad
                for row in [chunk.read[one.place][0]]
            ]
            counted = count(counted, chunk, note, progress)
        return counted

    async def export_people(self, tenant_id: str) -> AsyncIterator[tuple[int, str]]:
        """Write all people, a piece of the table at a time, each with the number of its rows."""
        keys = await self._keyring.get(tenant_id)
        declared = await self._store.list_attributes(tenant_id)
        yield 0, written([header_of(declared)])
        after = ""
        while hashes := await self._store.list_people(tenant_id, after=after, limit=ITEMS_MAX):
            after = hashes[-1]
            found = await self._known(tenant_id, keys, hashes)
            yield len(found), written(cells_of(one, declared) for one in found)

    async def _known(self, tenant_id: str, keys: TenantKeys, hashes: Sequence[str]) -> list[Known]:
        """Read people with all that is known of them, opened."""
        stored = await self._store.find_people(tenant_id, hashes)
        ids = [one.person.person_version_id for one in stored.values()]
        versions = await self._store.find_person_versions(tenant_id, [one for one in ids if one is not None])
        profiles = {one.recipient_id_hash: opened_profile(keys, one) for one in versions.values()}
        places = [at.address_id for one in stored.values() for at in one.person.contacts if at.is_current]
        destinations: dict[int, str] = {}
        for some in in_sets(places):
            for version in await self._store.find_addresses(tenant_id, some):
                destinations[version.id or 0] = opened_destination(version, keys, whole=True)
        return [_known(stored[one], profiles.get(one, {}), destinations) for one in hashes if one in stored]

    async def import_members(
        self,
        tenant_id: str,
        readline: ReadLine,
        *,
        actor: str,
        note: Note,
        progress: Progress,
        dry_run: bool = False,
    ) -> Imported:
        """Add people to the groups that a table names; nobody is taken out."""
        keys = await self._keyring.get(tenant_id)
        counted = Imported(dry_run=dry_run, added=0, unknown=0)
        known: dict[UUID, bool] = {}
        for chunk in chunks(read_rows(readline, MEMBERS.check), _membership):
            by_group: dict[UUID, list[tuple[Row, Identity]]] = {}
            for row, (guid, identity) in chunk.read:
                by_group.setdefault(guid, []).append((row, identity))
            for guid, members in by_group.items():
                if not await self._is_group(tenant_id, guid, known):
                    chunk.bad += [_no_group(row.number, guid) for row, _ in members]
                    continue
                hashes = [keys.hash_of(identity) for _, identity in members]
                if dry_run:
                    continue
                change = await self._store.change_members(tenant_id, guid, add=hashes, remove=[], actor=actor)
                if change is None:  # somebody removed it since it was looked up
                    chunk.bad += [_no_group(row.number, guid) for row, _ in members]
                    continue
                counted = msgspec.structs.replace(
                    counted,
                    added=(counted.added or 0) + change.added,
                    unknown=(counted.unknown or 0) + change.unknown,
                )
            counted = count(counted, chunk, note, progress)
        return counted

    async def _is_group(self, tenant_id: str, guid: UUID, known: dict[UUID, bool]) -> bool:
        """Tell whether there is a group; it is asked once."""
        if guid not in known:
            if len(known) >= GROUPS_KNOWN_MAX:
                known.clear()
            known[guid] = await is_group(self._store, tenant_id, guid)
        return known[guid]

    async def export_members(self, tenant_id: str, guid: UUID | None = None) -> AsyncIterator[tuple[int, str]]:
        """Write who is in a group, or in all of them; who is not known has no name that could be written."""
        yield 0, written([MEMBERS.known])
        async for group in self._groups(tenant_id, guid):
            after = ""
            while members := await self._store.list_members(tenant_id, group, after=after, limit=ITEMS_MAX):
                after = members[-1].recipient_id_hash
                rows = [(str(group), name) for one in members if (name := named(one.identity)) is not None]
                yield len(rows), written(rows)

    async def _groups(self, tenant_id: str, guid: UUID | None) -> AsyncIterator[UUID]:
        if guid is not None:
            yield guid
            return
        after: UUID | None = None
        while found := await self._store.list_groups(tenant_id, after=after, limit=ITEMS_MAX):
            for one in found:
                yield one.guid
            after = found[-1].guid

    async def import_relations(
        self,
        tenant_id: str,
        readline: ReadLine,
        *,
        actor: str,
        note: Note,
        progress: Progress,
        dry_run: bool = False,
    ) -> Imported:
        """Add the relations of a table; none is removed."""
        keys = await self._keyring.get(tenant_id)
        counted = Imported(dry_run=dry_run, added=0, unknown=0)
        for chunk in chunks(read_rows(readline, RELATIONS.check), lambda row: _relation(row, keys)):
            relations = [relation for _, relation in chunk.read]
            if not dry_run:
                change = await self._store.change_relations(tenant_id, add=relations, remove=[], actor=actor)
                counted = msgspec.structs.replace(
                    counted,
                    added=(counted.added or 0) + change.added,
                    unknown=(counted.unknown or 0) + change.unknown,
                )
            counted = count(counted, chunk, note, progress)
        return counted


def chunks(
    rows: Iterator[Row | BadRow],
    read: Callable[[Row], T],
    *,
    alone: Callable[[T], Hashable] | None = None,
    column_of: Callable[[InvalidInput, Row], str] = column_of,
) -> Iterator[Chunk[T]]:
    """Put rows together that are stored together; what is `alone` is in no chunk twice.

    So of a person who comes twice in a table the later row stands, wherever the chunks end. Where the table turns out
    to be no table, what stands before that is still given.
    """
    chunk: Chunk[T] = Chunk()
    while True:
        try:
            row = next(rows, None)
        except InvalidInput:
            yield chunk
            raise
        if row is None:
            yield chunk
            return
        if chunk.is_full:
            yield chunk
            chunk = Chunk()
        if isinstance(row, BadRow):
            chunk.bad.append(row)
            continue
        try:
            said = read(row)
        except InvalidInput as error:
            chunk.bad.append(BadRow.of(row.number, error, column=column_of(error, row)))
            continue
        key = None if alone is None else alone(said)
        if key is not None and key in chunk.keys:
            yield chunk
            chunk = Chunk()
        chunk.read.append((row, said))
        chunk.size += row.size
        chunk.keys.add(key)


def count(counted: Imported, chunk: Chunk[T], note: Note, progress: Progress) -> Imported:
    """Count a chunk, and tell what was left out of it, in the order of the rows."""
    for one in sorted(chunk.bad, key=lambda one: one.row):
        note(one)
    bad = {one.row for one in chunk.bad}
    refused, rows = len(bad), len(bad | {row.number for row, _ in chunk.read})
    counted = msgspec.structs.replace(
        counted,
        rows=counted.rows + rows,
        accepted=counted.accepted + rows - refused,
        refused=counted.refused + refused,
    )
    progress(counted.rows)
    return counted


def _known(stored: StoredPerson, profile: Mapping[str, object], destinations: Mapping[int, str]) -> Known:
    name, others = name_in(profile)
    return Known(
        identity=stored.person.identity,
        name=name,
        locale=stored.person.locale,
        zone=stored.person.tz_id,
        profile=others,
        contacts=tuple(
            ContactEntry(channel=at.channel, destination=destinations[at.address_id], verified=at.verified)
            for at in stored.person.contacts
            if at.is_current and at.address_id in destinations
        ),
        attributes=stored.attributes,
    )


def _membership(row: Row) -> tuple[UUID, Identity]:
    try:
        guid = UUID(row.cells["group"].strip())
    except ValueError:
        raise InvalidInput("it is no guid", field="group", hint="write the guid of a group") from None
    return guid, read_person(row.cells["person"], field="person")


def _relation(row: Row, keys: TenantKeys) -> Relation:
    entity_type, entity_guid = read_entity(row.cells["entity"].strip(), field="entity")
    return Relation(
        entity_type=entity_type,
        entity_guid=entity_guid,
        relation=check_word(row.cells["relation"].strip(), field="relation"),
        recipient_id_hash=keys.hash_of(read_person(row.cells["person"], field="person")),
    )


def _no_group(number: int, guid: UUID) -> BadRow:
    return BadRow(
        row=number, column="group", reason=f"there is no group {guid}", remedy="put it first: clarion groups put"
    )
