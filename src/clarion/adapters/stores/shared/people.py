"""People with their contacts.

Writes `person` and `contact`.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.transaction import Transaction
from clarion.domain.person import Person
from clarion.ports.ensure import bounded, unknown_address, unknown_profile

_SQL: Final = Statements("people.sql")


class _Profile(msgspec.Struct, frozen=True):
    recipient_id_hash: str
    person_version_id: int | None


class _Contact(msgspec.Struct, frozen=True):
    recipient_id_hash: str
    address_id: int


async def put_people(transaction: Transaction, tenant_id: str, people: Sequence[Person]) -> None:
    """Insert or replace people and their current contacts; refuse a version that is not the person's own."""
    stored = {one.recipient_id_hash: one for one in bounded(people)}
    if not stored:
        return
    contacts = [
        (one.recipient_id_hash, at.channel, at.address_id, at.verified, at.retired_at)
        for one in stored.values()
        for at in {at.address_id: at for at in one.contacts}.values()
    ]
    put = await transaction.fetch(_Profile, _SQL["put_people"], tenant_id=tenant_id, people=list(stored.values()))
    for row in put:
        asked = stored[row.recipient_id_hash].person_version_id
        if asked is not None and row.person_version_id is None:
            raise unknown_profile(asked)
    await transaction.execute(_SQL["delete_contacts"], tenant_id=tenant_id, hashes=sorted(stored))
    made = await transaction.fetch(_Contact, _SQL["insert_contacts"], tenant_id=tenant_id, contacts=contacts)
    known = {(row.recipient_id_hash, row.address_id) for row in made}
    for person_hash, _, address_id, _, _ in contacts:
        if (person_hash, address_id) not in known:
            raise unknown_address(address_id)
