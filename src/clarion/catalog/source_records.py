"""Sources that an application puts in: checked as a whole, sealed, stored and removed.

Everything that is named is looked up before anything is stored. Each change makes the event that tells of it, in the
same transaction of the store. Reads and writes through `ports.source`; which types plugins provide is not known here.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from uuid import UUID

from clarion.catalog.source_entry import BadSource, CheckedSource, SourceEntry, check_sources
from clarion.dispatch.request import Trace
from clarion.domain.source import SourceContent
from clarion.errors import InvalidInput
from clarion.ports.ensure import in_sets
from clarion.ports.facts import FactStore
from clarion.ports.source import RecordStore, SourceAnswer
from clarion.sealing.keyring import Keyring
from clarion.sealing.sources import sealed_source


class SourceRecords:
    """Puts and removes stored sources."""

    def __init__(self, *, store: RecordStore, facts: FactStore, keyring: Keyring) -> None:
        """Store here, under these keys; `facts` knows the business units."""
        self._store = store
        self._facts = facts
        self._keyring = keyring

    async def check(
        self, tenant_id: str, source_type: str, entries: Sequence[SourceEntry]
    ) -> tuple[dict[int, CheckedSource], list[BadSource]]:
        """Tell the entries that can be stored, by their places, from those that cannot, and why; stores nothing."""
        good, bad = check_sources(entries)
        units = await self._units(tenant_id, good.values())
        entities = await self._entities(tenant_id, source_type, good.values())
        for place, one in list(good.items()):
            mistakes = [
                *([_no_unit()] if one.business_unit is not None and one.business_unit not in units else []),
                *([_other_entity()] if entities.get(one.source, one.entity) != one.entity else []),
            ]
            if mistakes:
                del good[place]
                bad += [BadSource(place=place, error=error) for error in mistakes]
        return good, bad

    async def put(
        self, tenant_id: str, source_type: str, sources: Sequence[CheckedSource], *, actor: str, trace: Trace
    ) -> list[SourceAnswer]:
        """Store sources that were checked, each as a whole; answers in the order given."""
        keys = await self._keyring.get(tenant_id)
        records = [
            sealed_source(
                keys,
                source_type=source_type,
                source=one.source,
                content=one.content,
                nonce=self._keyring.nonce(),
                entity=one.entity,
                business_unit=one.business_unit,
            )
            for one in sources
        ]
        answers: list[SourceAnswer] = []
        for some in in_sets(records):
            answers += await self._store.put_sources(tenant_id, some, actor=actor, correlation_id=trace.correlation_id)
        return answers

    async def remove(
        self, tenant_id: str, source_type: str, source: str, *, actor: str, trace: Trace
    ) -> SourceAnswer | None:
        """Remove a source with what was said of it; None where there is none. Its history and its guid stay."""
        keys = await self._keyring.get(tenant_id)
        found = (await self._store.find_sources(tenant_id, source_type, [source])).get(source)
        if found is None or not found.active:
            return None
        gone = sealed_source(
            keys,
            source_type=source_type,
            source=source,
            content=SourceContent(),
            nonce=self._keyring.nonce(),
            entity=found.entity_guid,
            business_unit=found.business_unit,
            active=False,
        )
        (answer,) = await self._store.put_sources(tenant_id, [gone], actor=actor, correlation_id=trace.correlation_id)
        return answer if answer.changed else None  # else somebody else removed it since

    async def _units(self, tenant_id: str, sources: Iterable[CheckedSource]) -> Collection[UUID | None]:
        """Return those of the business units that are named that there are."""
        named = {one.business_unit for one in sources if one.business_unit is not None}
        return (await self._facts.find_local_forms(tenant_id, sorted(named))) if named else ()

    async def _entities(self, tenant_id: str, source_type: str, sources: Iterable[CheckedSource]) -> Mapping[str, UUID]:
        """Return the entities that sources which name one were stored with before."""
        named = [one.source for one in sources if one.entity is not None]
        found = await self._store.find_sources(tenant_id, source_type, named) if named else {}
        return {source: record.entity_guid for source, record in found.items()}


def _no_unit() -> InvalidInput:
    return InvalidInput(
        "the tenant has no such business unit",
        field="business_unit",
        hint="name one that `clarion units list` shows, or add it with `clarion units put`",
    )


def _other_entity() -> InvalidInput:
    return InvalidInput(
        "it is stored with another entity, under which its history stands",
        field="entity",
        hint="leave it out, or give the one that it has",
    )
