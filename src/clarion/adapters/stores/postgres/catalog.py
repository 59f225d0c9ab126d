"""The control plane: templates, people, groups, settings, keys, cases; acts of people are audited where they happen.

Writes `template`, `person`, `contact`, `audience_group`, `group_member`, `type_setting`, `api_key`, `support_case` and,
through `audit`, `audit_log`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final
from uuid import UUID

from clarion.adapters.stores.postgres import codec
from clarion.adapters.stores.postgres.audit import append_audit
from clarion.adapters.stores.postgres.facts import read_template
from clarion.adapters.stores.postgres.session import Overtaken
from clarion.adapters.stores.query import load
from clarion.domain import act
from clarion.domain.ensured import Ensured, Outcome
from clarion.domain.machine import Cause
from clarion.domain.support import SUPPORT_CASE
from clarion.ports.catalog import ApiKey, Person
from clarion.ports.facts import TemplateRow

if TYPE_CHECKING:
    from clarion.adapters.stores.postgres.session import Connection

_SQL: Final = load(__package__, "catalog.sql")
_read_key: Final = codec.reader(ApiKey)


async def publish_template(
    connection: "Connection", tenant_id: str, *, template_key: str, content_hash: str, bundle: str, actor: str
) -> Ensured[TemplateRow]:
    """Store a new version, audited, unless the latest one has this content; answer with the version that stands."""
    made = await connection.fetchrow(_SQL["insert_template"].sql, tenant_id, template_key, content_hash, bundle)
    row = await connection.fetchrow(_SQL["read_latest_template"].sql, tenant_id, template_key)
    if row is None or row["content_hash"] != content_hash:
        raise Overtaken  # somebody else took the number that we would have given
    template = read_template(row)
    if made is None:
        return Ensured(outcome=Outcome.FOUND, record=template)
    done = act.publish(template_key, version=template.version, content_hash=content_hash, actor=actor)
    await append_audit(connection, tenant_id, done)
    return Ensured(outcome=Outcome.CREATED, record=template)


async def list_templates(connection: "Connection", tenant_id: str) -> list[TemplateRow]:
    """Return the latest version of every template of a tenant, by key."""
    return [read_template(row) for row in await connection.fetch(_SQL["list_templates"].sql, tenant_id)]


async def put_people(connection: "Connection", tenant_id: str, people: Sequence[Person]) -> None:
    """Insert or replace people and their current contacts."""
    last = {person.recipient_id_hash: person for person in people}
    stored = [last[one] for one in sorted(last)]
    contacts = [(person.recipient_id_hash, address_id) for person in stored for address_id in person.address_ids]
    hashes = [person.recipient_id_hash for person in stored]
    await connection.execute(
        _SQL["put_people"].sql,
        tenant_id,
        hashes,
        [person.identity.domain for person in stored],
        [person.identity.id for person in stored],
        [person.profile for person in stored],
    )
    await connection.execute(_SQL["delete_contacts"].sql, tenant_id, hashes)
    await connection.execute(
        _SQL["put_contacts"].sql, tenant_id, [one for one, _ in contacts], [one for _, one in contacts]
    )


async def put_group(connection: "Connection", tenant_id: str, *, guid: UUID, name: str, members: Sequence[str]) -> None:
    """Insert or replace a group and its members, by recipient hash."""
    hashes = sorted(set(members))
    await connection.execute(_SQL["put_group"].sql, tenant_id, guid, name)
    await connection.execute(_SQL["delete_members"].sql, tenant_id, guid, hashes)
    await connection.execute(_SQL["put_members"].sql, tenant_id, guid, hashes)


async def set_type_enabled(
    connection: "Connection", tenant_id: str, event_type: str, *, enabled: bool, actor: str
) -> bool:
    """Switch a notification type on or off for the tenant; audited; False where it is so already."""
    switched = await connection.fetchrow(_SQL["set_type_enabled"].sql, tenant_id, event_type, enabled, actor)
    if switched is None:
        return False
    await append_audit(connection, tenant_id, act.switch(event_type, enabled=enabled, actor=actor))
    return True


async def put_api_key(connection: "Connection", key: ApiKey, *, actor: str) -> bool:
    """Store a new key; audited; False where its id is taken."""
    made = await connection.fetchrow(
        _SQL["put_api_key"].sql,
        key.key_id,
        key.tenant_id,
        key.secret_hash,
        key.actor,
        key.role,
        key.created_at,
        key.expires_at,
        key.revoked_at,
    )
    if made is None:
        return False
    await append_audit(connection, key.tenant_id, act.mint(key.key_id, actor=actor))
    return True


async def find_api_key(connection: "Connection", key_id: str) -> ApiKey | None:
    """Return a key by its public id, whatever its state, or None."""
    row = await connection.fetchrow(_SQL["find_api_key"].sql, key_id)
    return None if row is None else _read_key(row)


async def list_api_keys(connection: "Connection", tenant_id: str) -> list[ApiKey]:
    """Return a tenant's keys in the order of creation."""
    return [_read_key(row) for row in await connection.fetch(_SQL["list_api_keys"].sql, tenant_id)]


async def revoke_api_key(connection: "Connection", tenant_id: str, key_id: str, *, actor: str) -> bool:
    """Revoke a key from now on; audited; False where there is none to revoke."""
    revoked = await connection.fetchrow(_SQL["revoke_api_key"].sql, tenant_id, key_id)
    if revoked is None:
        return False
    await append_audit(connection, tenant_id, act.revoke(key_id, actor=actor))
    return True


async def resolve_support_case(
    connection: "Connection", tenant_id: str, case_id: UUID, *, actor: str, resolution: str
) -> bool:
    """Open → Resolved; audited with the resolution; False where the case is not open."""
    open_states = sorted(SUPPORT_CASE.sources(Cause.REQUEST))
    resolved = await connection.fetchrow(
        _SQL["resolve_support_case"].sql, tenant_id, case_id, actor, resolution, open_states
    )
    if resolved is None:
        return False
    await append_audit(connection, tenant_id, act.resolve(case_id, resolution=resolution, actor=actor))
    return True
