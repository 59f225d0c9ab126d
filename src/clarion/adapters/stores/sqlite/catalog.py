"""The control plane: templates, people, groups, settings, keys and resolutions.

Writes the tables of those names; what a person does is audited by the same transaction.
"""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

import msgspec

from clarion.adapters.stores.query import load
from clarion.adapters.stores.sqlite import codec
from clarion.adapters.stores.sqlite.audit import append_audit
from clarion.adapters.stores.sqlite.session import Transaction
from clarion.domain import act
from clarion.domain.ensured import Ensured, Outcome
from clarion.ports.catalog import ApiKey, Person
from clarion.ports.ensure import bounded, unknown_address
from clarion.ports.facts import TemplateRow

_SQL: Final = load(__package__, "catalog.sql")


def publish_template(
    transaction: Transaction, tenant_id: str, *, template_key: str, content_hash: str, bundle: str, actor: str
) -> Ensured[TemplateRow]:
    """Store a new version, audited, unless the latest one has this content; answer with the version that stands."""
    latest = transaction.records(
        TemplateRow, _SQL["read_latest_template"], tenant_id=tenant_id, template_key=template_key
    )
    if latest and latest[0].content_hash == content_hash:
        return Ensured(outcome=Outcome.FOUND, record=latest[0])
    row = TemplateRow(
        template_key=template_key,
        version=latest[0].version + 1 if latest else 1,
        content_hash=content_hash,
        bundle=bundle,
    )
    transaction.rows(_SQL["insert_template"], tenant_id=tenant_id, **msgspec.structs.asdict(row))
    done = act.publish(template_key, version=row.version, content_hash=content_hash, actor=actor)
    append_audit(transaction, tenant_id, done)
    return Ensured(outcome=Outcome.CREATED, record=row)


def list_templates(transaction: Transaction, tenant_id: str) -> list[TemplateRow]:
    """Return the latest version of every template of a tenant, by key."""
    return transaction.records(TemplateRow, _SQL["list_templates"], tenant_id=tenant_id)


def put_people(transaction: Transaction, tenant_id: str, people: Sequence[Person]) -> None:
    """Insert or replace people and their current contacts."""
    given = codec.as_json(
        [
            {
                "recipient_id_hash": person.recipient_id_hash,
                "domain": person.identity.domain,
                "person_id": person.identity.id,
                "profile": person.profile,
            }
            for person in bounded(people)
        ]
    )
    contacts = [(person.recipient_id_hash, one) for person in people for one in dict.fromkeys(person.address_ids)]
    transaction.rows(_SQL["put_people"], tenant_id=tenant_id, people=given)
    transaction.rows(_SQL["delete_contacts"], tenant_id=tenant_id, people=given)
    rows = transaction.rows(_SQL["insert_contacts"], tenant_id=tenant_id, contacts=codec.as_json(contacts))
    made = {address_id for (address_id,) in rows}
    for _, address_id in contacts:
        if address_id not in made:
            raise unknown_address(address_id)


def put_group(transaction: Transaction, tenant_id: str, *, guid: UUID, name: str, members: Sequence[str]) -> None:
    """Insert or replace a group and its members, by recipient hash."""
    transaction.rows(_SQL["put_group"], tenant_id=tenant_id, guid=str(guid), name=name)
    transaction.rows(_SQL["delete_members"], tenant_id=tenant_id, guid=str(guid))
    transaction.rows(_SQL["insert_members"], tenant_id=tenant_id, guid=str(guid), members=codec.as_json(members))


def set_type_enabled(transaction: Transaction, tenant_id: str, event_type: str, *, enabled: bool, actor: str) -> bool:
    """Switch a notification type on or off for the tenant; audited; False where it is so already."""
    switched = transaction.rows(
        _SQL["set_type_enabled"], tenant_id=tenant_id, event_type=event_type, enabled=enabled, actor=actor
    )
    if switched:
        append_audit(transaction, tenant_id, act.switch(event_type, enabled=enabled, actor=actor))
    return bool(switched)


def put_api_key(transaction: Transaction, key: ApiKey, *, actor: str) -> bool:
    """Store a new key; audited; False where its id is taken."""
    made = transaction.rows(_SQL["insert_api_key"], items=codec.parameter([key]))
    if made:
        append_audit(transaction, key.tenant_id, act.mint(key.key_id, actor=actor))
    return bool(made)


def find_api_key(transaction: Transaction, key_id: str) -> ApiKey | None:
    """Return a key by its public id, whatever its state, or None."""
    found = transaction.records(ApiKey, _SQL["find_api_key"], key_id=key_id)
    return found[0] if found else None


def list_api_keys(transaction: Transaction, tenant_id: str) -> list[ApiKey]:
    """Return a tenant's keys in the order of creation."""
    return transaction.records(ApiKey, _SQL["list_api_keys"], tenant_id=tenant_id)


def revoke_api_key(transaction: Transaction, tenant_id: str, key_id: str, *, actor: str) -> bool:
    """Revoke a key from now on; audited; False where there is none to revoke."""
    revoked = transaction.rows(_SQL["revoke_api_key"], tenant_id=tenant_id, key_id=key_id)
    if revoked:
        append_audit(transaction, tenant_id, act.revoke(key_id, actor=actor))
    return bool(revoked)


def resolve_support_case(
    transaction: Transaction, tenant_id: str, case_id: UUID, *, actor: str, resolution: str
) -> bool:
    """Open → Resolved; audited with the resolution; False where the case is not open."""
    resolved = transaction.rows(
        _SQL["resolve_support_case"], tenant_id=tenant_id, case_id=str(case_id), actor=actor, resolution=resolution
    )
    if resolved:
        append_audit(transaction, tenant_id, act.resolve(case_id, resolution=resolution, actor=actor))
    return bool(resolved)
