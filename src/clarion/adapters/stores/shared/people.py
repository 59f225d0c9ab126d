"""People with their contacts and attributes.

Writes `person`, `contact`, `person_attribute` and `attribute`; a person who is removed also leaves
`group_member`, `unit_member`, `role_holder` and `entity_relation`.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec

from clarion.adapters.stores.shared import facts
from clarion.adapters.stores.shared.audit import append_audit
from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.transaction import Overtaken, Transaction
from clarion.domain import act
from clarion.domain.attribute import Attribute
from clarion.domain.person import Person, StoredPerson
from clarion.ports.ensure import bounded, unknown_address, unknown_profile

_SQL: Final = Statements("people.sql")

_LEFT: Final = (
    "remove_contacts",
    "remove_attribute_values",
    "remove_group_memberships",
    "remove_unit_memberships",
    "remove_roles_of_people",
    "remove_relations_of_people",
)
"""What goes with a person."""

NO_ATTRIBUTES: Final[Mapping[str, Mapping[str, str]]] = {}


class _Hash(msgspec.Struct, frozen=True):
    recipient_id_hash: str


class _Id(msgspec.Struct, frozen=True):
    id: int


class _Value(msgspec.Struct, frozen=True):
    recipient_id_hash: str
    name: str
    value: str


async def put_people(
    transaction: Transaction,
    tenant_id: str,
    people: Sequence[Person],
    *,
    attributes: Mapping[str, Mapping[str, str]] = NO_ATTRIBUTES,
    seen: Mapping[str, StoredPerson] | None = None,
    actor: str | None = None,
) -> list[str] | None:
    """Insert or replace people as a whole, unless one of them is not any more as they were seen."""
    stored = {one.recipient_id_hash: one for one in bounded(people)}
    if not stored:
        return []
    if seen is not None and not await _hold_as_seen(transaction, tenant_id, sorted(stored), seen):
        return None
    contacts = [
        (one.recipient_id_hash, at.channel, at.address_id, at.verified, at.retired_at)
        for one in stored.values()
        for at in {at.address_id: at for at in one.contacts}.values()
    ]
    values = [(one, name, value) for one in stored for name, value in attributes.get(one, {}).items()]
    rows = list(stored.values())
    await _require_own(transaction, tenant_id, rows, [contact[:3] for contact in contacts])
    changed: set[str] = set()
    if seen is not None and (fresh := [one for one in rows if one.recipient_id_hash not in seen]):
        made = await transaction.fetch(_Hash, _SQL["insert_people"], tenant_id=tenant_id, people=fresh)
        if len(made) < len(fresh):
            raise Overtaken  # somebody else has just made one of them; next time it is seen
        changed |= {one.recipient_id_hash for one in made}
    hashes = sorted(stored)
    kept = [(contact[0], contact[2]) for contact in contacts]
    named = [value[:2] for value in values]
    for written in (
        await transaction.fetch(_Hash, _SQL["put_people"], tenant_id=tenant_id, people=rows),
        await transaction.fetch(_Hash, _SQL["delete_contacts"], tenant_id=tenant_id, hashes=hashes, contacts=kept),
        await transaction.fetch(_Hash, _SQL["put_contacts"], tenant_id=tenant_id, contacts=contacts),
        await transaction.fetch(
            _Hash, _SQL["delete_attribute_values"], tenant_id=tenant_id, hashes=hashes, given=named
        ),
        await transaction.fetch(_Hash, _SQL["put_attribute_values"], tenant_id=tenant_id, given=values),
    ):
        changed |= {one.recipient_id_hash for one in written}
    if actor is not None and changed:
        await append_audit(transaction, tenant_id, act.put_people(sorted(changed), actor=actor))
    return sorted(changed)


async def find_people(transaction: Transaction, tenant_id: str, hashes: Collection[str]) -> dict[str, StoredPerson]:
    """Return people with all that is known of them, by hash."""
    people = await facts.find_recipients(transaction, tenant_id, hashes)
    values: dict[str, dict[str, str]] = {}
    if people:
        for row in await transaction.fetch(
            _Value, _SQL["find_attribute_values"], tenant_id=tenant_id, hashes=sorted(people)
        ):
            values.setdefault(row.recipient_id_hash, {})[row.name] = row.value
    return {one: StoredPerson(person=person, attributes=values.get(one, {})) for one, person in people.items()}


async def list_people(transaction: Transaction, tenant_id: str, *, after: str = "", limit: int) -> list[str]:
    """Return the hashes of a tenant's people behind one, sorted."""
    rows = await transaction.fetch(_Hash, _SQL["list_people"], tenant_id=tenant_id, after=after, limit=limit)
    return [row.recipient_id_hash for row in rows]


async def retire_contacts(transaction: Transaction, places: Sequence[tuple[int, int]]) -> None:
    """Say that nothing goes any more to where these outgoing rows went, each by its bucket and id."""
    await transaction.execute(_SQL["retire_contacts"], rows=places)


async def remove_people(
    transaction: Transaction, tenant_id: str, hashes: Collection[str], *, actor: str | None = None
) -> list[str]:
    """Remove people with all that they are part of; return those who were there."""
    asked = sorted(set(hashes))
    rows = await transaction.fetch(_Hash, _SQL["remove_people"], tenant_id=tenant_id, hashes=bounded(asked))
    removed = sorted(row.recipient_id_hash for row in rows)
    for name in _LEFT:
        await transaction.execute(_SQL[name], tenant_id=tenant_id, hashes=asked)
    if actor is not None and removed:
        await append_audit(transaction, tenant_id, act.remove_people(removed, actor=actor))
    return removed


async def declare_attribute(
    transaction: Transaction, tenant_id: str, attribute: Attribute, *, actor: str
) -> tuple[Attribute, bool]:
    """Declare an attribute, audited, unless its name is taken; return the one that stands, and whether it is new."""
    made = await transaction.fetch(
        Attribute, _SQL["declare_attribute"], tenant_id=tenant_id, name=attribute.name, kind=attribute.kind
    )
    if made:
        await append_audit(transaction, tenant_id, act.declare(attribute.name, kind=attribute.kind, actor=actor))
        return made[0], True
    declared = await list_attributes(transaction, tenant_id)
    return next(one for one in declared if one.name == attribute.name), False


async def list_attributes(transaction: Transaction, tenant_id: str) -> list[Attribute]:
    """Return the attributes that a tenant has declared, by name."""
    return await transaction.fetch(Attribute, _SQL["list_attributes"], tenant_id=tenant_id)


async def _hold_as_seen(
    transaction: Transaction, tenant_id: str, hashes: Sequence[str], seen: Mapping[str, StoredPerson]
) -> bool:
    """Keep others from changing people until the transaction ends; tell whether they are as they were seen."""
    await transaction.fetch(_Hash, _SQL["lock_people"], tenant_id=tenant_id, hashes=hashes)
    found = await find_people(transaction, tenant_id, hashes)
    return all(found.get(one) == seen.get(one) for one in hashes)


async def _require_own(
    transaction: Transaction,
    tenant_id: str,
    people: Sequence[Person],
    contacts: Sequence[tuple[str, str, int]],
) -> None:
    """Refuse a version of a profile or an address that is not the person's own, or not of that channel."""
    for profile in await transaction.fetch(_Id, _SQL["find_strange_profiles"], tenant_id=tenant_id, people=people):
        raise unknown_profile(profile.id)
    for address in await transaction.fetch(_Id, _SQL["find_strange_addresses"], tenant_id=tenant_id, contacts=contacts):
        raise unknown_address(address.id)
