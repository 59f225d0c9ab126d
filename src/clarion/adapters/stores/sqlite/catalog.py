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
from clarion.ports.catalog import ApiKey, Person
from clarion.ports.ensure import bounded, unknown_address
from clarion.ports.facts import TemplateRow

_SQL: Final = load(__package__, "catalog.sql")


def publish_template(
    transaction: Transaction, tenant_id: str, *, template_key: str, content_hash: str, bundle: str
) -> TemplateRow:
    """Store a new version unless the latest one has this content; return the version that stands."""
    latest = transaction.records(
        TemplateRow, _SQL["read_latest_template"], tenant_id=tenant_id, template_key=template_key
    )
    if latest and latest[0].content_hash == content_hash:
        return latest[0]
    row = TemplateRow(
        template_key=template_key,
        version=latest[0].version + 1 if latest else 1,
        content_hash=content_hash,
        bundle=bundle,
    )
    transaction.rows(_SQL["insert_template"], tenant_id=tenant_id, **msgspec.structs.asdict(row))
    return row


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


def set_type_enabled(transaction: Transaction, tenant_id: str, event_type: str, *, enabled: bool, actor: str) -> None:
    """Switch a notification type on or off for the tenant; audited."""
    transaction.rows(_SQL["set_type_enabled"], tenant_id=tenant_id, event_type=event_type, enabled=enabled, actor=actor)
    act = "enable" if enabled else "disable"
    append_audit(transaction, tenant_id, actor=actor, act=act, subject=f"type {event_type}")


def put_api_key(transaction: Transaction, key: ApiKey, *, actor: str) -> None:
    """Store a new key; audited."""
    transaction.rows(_SQL["insert_api_key"], items=codec.parameter([key]))
    append_audit(transaction, key.tenant_id, actor=actor, act="mint", subject=f"key {key.key_id}")


def find_api_key(transaction: Transaction, key_id: str) -> ApiKey | None:
    """Return a key by its public id, whatever its state, or None."""
    found = transaction.records(ApiKey, _SQL["find_api_key"], key_id=key_id)
    return found[0] if found else None


def list_api_keys(transaction: Transaction, tenant_id: str) -> list[ApiKey]:
    """Return a tenant's keys in the order of creation."""
    return transaction.records(ApiKey, _SQL["list_api_keys"], tenant_id=tenant_id)


def revoke_api_key(transaction: Transaction, tenant_id: str, key_id: str, *, actor: str) -> bool:
    """Revoke a key from now on; audited; False where there is none to revoke."""
    if not transaction.rows(_SQL["revoke_api_key"], tenant_id=tenant_id, key_id=key_id):
        return False
    append_audit(transaction, tenant_id, actor=actor, act="revoke", subject=f"key {key_id}")
    return True


def resolve_support_case(
    transaction: Transaction, tenant_id: str, case_id: UUID, *, actor: str, resolution: str
) -> bool:
    """Open → Resolved; audited; False where the case is not open."""
    resolved = transaction.rows(
        _SQL["resolve_support_case"], tenant_id=tenant_id, case_id=str(case_id), actor=actor, resolution=resolution
    )
    if resolved:
        append_audit(transaction, tenant_id, actor=actor, act="resolve", subject=f"case {case_id}", reason=resolution)
    return bool(resolved)
