"""Events at the door: what an application tells, once for its id or key, refused while its teller can still mend it.

An event is accepted when it is stored; workers handle it. It leads to what the table of mappings says, so that one of
an unmapped type, or one whose notification lacks data, is refused here already. Told again it is found as it was, by
whatever then holds; another one under the same id is a conflict. Reads sources and mappings; writes events.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec

from clarion.dispatch.request import Trace
from clarion.domain import derived_id, entity_event, key
from clarion.domain.comparison import differing_names
from clarion.domain.ensured import Ensured, Outcome
from clarion.domain.entity_event import EntityEvent, EventData
from clarion.domain.group import check_thing
from clarion.domain.instant import require_storable
from clarion.domain.seal import TenantKeys
from clarion.domain.source import check_id, check_type
from clarion.errors import CallerError, Conflict, InvalidInput, InvalidKey, SealBroken
from clarion.ports.facts import FactStore
from clarion.ports.source import EventStore
from clarion.producers.immediate import Immediately
from clarion.producers.sources import Sources
from clarion.sealing.keyring import Keyring
from clarion.sealing.sources import opened_event_data, sealed_event_data

AHEAD_MAX: Final = timedelta(days=1)
"""How far ahead of the store's clock an event may have happened: the clocks of its tellers may be wrong."""

IN_WORDS: Final = {
    "event_type": "type",
    "entity_type": "entity",
    "entity_guid": "entity",
    "source_type": "source",
    "data_hash": "data",
}
"""What callers call the fields in which two events under one id can differ."""

NAMES_MAX: Final = 10
"""Differing fields that an error names."""


class Telling(msgspec.Struct, frozen=True, kw_only=True):
    """What an application tells: under an id of its own or under a key, exactly one of them.

    Without an entity it happened to the entity of its source. `entity` and `source` are a type and a guid or id.
    """

    event_type: str
    event_guid: UUID | None = None
    key: str | None = None
    entity: tuple[str, UUID] | None = None
    entity_data: Mapping[str, object] = {}
    source: tuple[str, str] | None = None
    data: Mapping[str, object] = {}
    occurred_at: datetime | None = None
    business_unit: UUID | None = None
    actor: str
    trace: Trace


class Events:
    """The door for events."""

    def __init__(
        self, *, store: EventStore, facts: FactStore, sources: Sources, immediately: Immediately, keyring: Keyring
    ) -> None:
        """Store events here; ask these about sources, the time, and what an event leads to."""
        self._store = store
        self._facts = facts
        self._sources = sources
        self._immediately = immediately
        self._keyring = keyring

    async def tell(self, tenant_id: str, telling: Telling) -> Ensured[EntityEvent]:
        """Accept an event, once for its id or key; raise Conflict or InvalidInput where it cannot be."""
        keys = await self._keyring.get(tenant_id)
        entity_event.check_type(telling.event_type, field="type")
        guid = _guid(tenant_id, telling)
        known = await self._store.find_event(tenant_id, guid)
        event, told = await self._event(keys, guid, telling, known)
        try:
            await self._immediately.check(tenant_id, event, told)
        except CallerError:
            if known is None:
                raise  # what was accepted before was accepted, whatever its type leads to now
        (answer,) = await self._store.ensure_events(tenant_id, [event])
        if answer.outcome is Outcome.CONFLICT:
            raise self._conflict(keys, told, answer)
        return answer

    async def is_known(self, tenant_id: str, *, event_guid: UUID | None, key: str | None) -> bool:
        """Tell whether an event was told before under this id or key."""
        if (event_guid is None) == (key is None):
            return False
        guid = event_guid or derived_id.told_event(tenant_id=tenant_id, key=key or "")
        return await self._store.find_event(tenant_id, guid) is not None

    async def _event(
        self, keys: TenantKeys, guid: UUID, telling: Telling, known: EntityEvent | None
    ) -> tuple[EntityEvent, EventData]:
        """Make the event; what its teller left open is as it was when the event was told first."""
        source_type, source = _source(telling)
        entity_type, entity_guid = telling.entity or await self._entity_of(keys, source_type, source, known)
        check_thing(entity_type, field="entity.type")
        now = await self._facts.now()
        given_at = None if telling.occurred_at is None else _instant(telling.occurred_at, now)
        told = EventData(data=telling.data, entity=telling.entity_data, occurred_at=given_at)
        occurred_at = given_at or (now if known is None else known.occurred_at)
        try:
            data, data_hash = sealed_event_data(keys, guid, told, nonce=self._keyring.nonce())
        except InvalidInput as error:
            raise InvalidInput(error.message, field="data", hint=error.hint) from None
        event = EntityEvent(
            partition_key=_partition(entity_type, entity_guid),
            row_key=key.entity_event_rk(occurred_at=occurred_at, event_guid=guid),
            event_guid=guid,
            event_type=telling.event_type,
            entity_type=entity_type,
            entity_guid=entity_guid,
            occurred_at=occurred_at,
            source_type=source_type,
            source=source,
            business_unit=telling.business_unit,
            data=None if told == EventData() else data,
            data_hash=data_hash,
            actor=telling.actor,
            correlation_id=telling.trace.correlation_id,
            traceparent=telling.trace.traceparent,
        )
        return event, told

    async def _entity_of(
        self, keys: TenantKeys, source_type: str | None, source: str | None, known: EntityEvent | None
    ) -> tuple[str, UUID]:
        """Say which entity an event happened to that names only its source."""
        if source_type is None or source is None:
            raise InvalidInput(
                "it happened to nothing", field="entity", hint="name the entity, or the source that it tells of"
            )
        if known is not None and (known.source_type, known.source) == (source_type, source):
            return known.entity_type, known.entity_guid
        if source_type in self._sources.provided:
            raise InvalidInput(
                f"a plugin provides sources of type {source_type}, and knows their entities",
                field="entity",
                hint="name the entity too",
            )
        found = (await self._sources.load(keys.tenant_id, source_type, [source])).get(source)
        derived = derived_id.source_entity(tenant_id=keys.tenant_id, source_type=source_type, source=source)
        return source_type, derived if found is None else found.entity

    def _conflict(self, keys: TenantKeys, told: EventData, answer: Ensured[EntityEvent]) -> Conflict:
        """Say in what an event differs from the first one under its id: the names of what differs, never a value."""
        names = list(dict.fromkeys(IN_WORDS.get(name, name.replace("_", " ")) for name in answer.differing))
        if "data" in names:
            names[names.index("data") : names.index("data") + 1] = _differing_data(keys, told, answer.record)
        said = ", ".join(names[:NAMES_MAX]) + (f" and {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX else "")
        return Conflict(
            f"another event was told under this id or key before (it differs in {said})",
            hint=f"give each event an id of its own; support case {answer.case_id} keeps that this happened",
        )


def _guid(tenant_id: str, telling: Telling) -> UUID:
    """Name an event by its teller's id or key; whoever gives neither could tell it twice without knowing."""
    if (telling.event_guid is None) == (telling.key is None):
        given = "neither an id nor a key" if telling.key is None else "both an id and a key"
        raise InvalidInput(
            f"it has {given}",
            field="id",
            hint="give the event a guid of yours as its id, or name it by an Idempotency-Key (--key): told again under "
            "the same one, it is the same event",
        )
    return telling.event_guid or derived_id.told_event(tenant_id=tenant_id, key=telling.key or "")


def _source(telling: Telling) -> tuple[str | None, str | None]:
    if telling.source is None:
        return None, None
    source_type, source = telling.source
    return check_type(source_type, field="source.type"), check_id(source, field="source.id")


def _instant(at: datetime, now: datetime) -> datetime:
    """Refuse a time at which nothing can have happened yet."""
    require_storable(at, field="occurred_at")
    if at - now > AHEAD_MAX:
        raise InvalidInput("it is still to come", field="occurred_at", hint="tell of an event when it has happened")
    return at.astimezone(UTC)


def _partition(entity_type: str, entity_guid: UUID) -> str:
    try:
        return key.entity_event_pk(entity_type=entity_type, entity_guid=entity_guid)
    except InvalidKey as error:
        raise InvalidInput(error.message, field="entity.type", hint=error.hint) from None


def _differing_data(keys: TenantKeys, told: EventData, found: EntityEvent) -> list[str]:
    """Name what of an event's data differs; `data` where nobody can tell any more."""
    try:
        before = opened_event_data(keys, found)
    except SealBroken:
        return ["data"]
    names = [
        *differing_names(told.data, before.data, path="data"),
        *differing_names(told.entity, before.entity, path="entity.data"),
        *(["occurred_at"] if told.occurred_at != before.occurred_at else []),
    ]
    return names or ["data"]
