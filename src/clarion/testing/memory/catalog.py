"""The control plane: templates, people, groups, settings, keys and the audit log; and the facts read from them."""

from collections.abc import Collection, Sequence
from uuid import UUID

import msgspec

from clarion.domain import audit
from clarion.domain.address import AddressVersion
from clarion.domain.support import SUPPORT_CASE, SupportCase, SupportStatus
from clarion.ports.catalog import ApiKey, AuditEntry, Person
from clarion.ports.facts import RecipientFacts, TemplateRow
from clarion.testing.memory.record import Key
from clarion.testing.memory.tables import Tables


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """A group as it is stored."""

    guid: UUID
    name: str
    members: tuple[str, ...]


class TypeSetting(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a tenant wants a notification type."""

    event_type: str
    enabled: bool


def publish_template(
    tables: Tables, tenant_id: str, *, template_key: str, content_hash: str, bundle: str
) -> TemplateRow:
    """Store a new version unless the latest one has this content; return the version that stands."""
    latest = _latest_templates(tables, tenant_id).get(template_key)
    if latest is not None and latest.content_hash == content_hash:
        return latest
    row = TemplateRow(
        template_key=template_key,
        version=latest.version + 1 if latest else 1,
        content_hash=content_hash,
        bundle=bundle,
    )
    tables.of(tenant_id, TemplateRow)[template_key, str(row.version)] = row
    return row


def list_templates(tables: Tables, tenant_id: str) -> list[TemplateRow]:
    """Return the latest version of every template of a tenant, by key."""
    latest = _latest_templates(tables, tenant_id)
    return [latest[key] for key in sorted(latest)]


def find_templates(
    tables: Tables, wanted: Sequence[tuple[str, str, int | None]]
) -> dict[tuple[str, str, int | None], TemplateRow]:
    """Return templates by tenant, key and version, the latest where the version is None."""
    found: dict[tuple[str, str, int | None], TemplateRow] = {}
    for tenant_id, key, version in wanted:
        if version is None:
            row = _latest_templates(tables, tenant_id).get(key)
        else:
            row = tables.of(tenant_id, TemplateRow).get((key, str(version)))
        if row is not None:
            found[tenant_id, key, version] = row
    return found


def put_people(tables: Tables, tenant_id: str, people: Sequence[Person]) -> None:
    """Insert or replace people and their current contacts."""
    for person in people:
        tables.of(tenant_id, Person)[(person.recipient_id_hash,)] = person


def find_recipients(tables: Tables, tenant_id: str, hashes: Collection[str]) -> dict[str, RecipientFacts]:
    """Return the people behind these recipient hashes, by hash."""
    channels = {address.id: address.channel for address in tables.of(tenant_id, AddressVersion).values()}
    return {
        person.recipient_id_hash: RecipientFacts(
            identity=person.identity,
            recipient_id_hash=person.recipient_id_hash,
            profile=person.profile,
            contacts=tuple(sorted((channels[one], one) for one in person.address_ids)),
        )
        for person in tables.of(tenant_id, Person).values()
        if person.recipient_id_hash in hashes
    }


def put_group(tables: Tables, tenant_id: str, *, guid: UUID, name: str, members: Sequence[str]) -> None:
    """Insert or replace a group and its members."""
    group = Group(guid=guid, name=name, members=tuple(sorted(set(members))))
    tables.of(tenant_id, Group)[(str(guid),)] = group


def find_members(tables: Tables, tenant_id: str, groups: Collection[UUID]) -> dict[UUID, tuple[str, ...]]:
    """Return the recipient hashes of each group's members, sorted."""
    return {group.guid: group.members for group in tables.of(tenant_id, Group).values() if group.guid in groups}


def set_type_enabled(tables: Tables, tenant_id: str, event_type: str, *, enabled: bool, actor: str) -> None:
    """Switch a notification type on or off for the tenant; audited."""
    tables.of(tenant_id, TypeSetting)[(event_type,)] = TypeSetting(event_type=event_type, enabled=enabled)
    append_audit(tables, tenant_id, actor=actor, act="enable" if enabled else "disable", subject=f"type {event_type}")


def find_disabled_types(tables: Tables, types: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
    """Of these (tenant, event type) pairs, return those that the tenant has switched off."""
    settings = {(tenant_id, row.event_type) for tenant_id, row in tables.everywhere(TypeSetting) if not row.enabled}
    return settings & set(types)


def put_api_key(tables: Tables, key: ApiKey, *, actor: str) -> None:
    """Store a new key; audited."""
    stored = msgspec.structs.replace(key, created_at=key.created_at or tables.now())
    tables.of(key.tenant_id, ApiKey)[(key.key_id,)] = stored
    append_audit(tables, key.tenant_id, actor=actor, act="mint", subject=f"key {key.key_id}")


def find_api_key(tables: Tables, key_id: str) -> ApiKey | None:
    """Return a key by its public id, whatever its state, or None."""
    return next((key for _, key in tables.everywhere(ApiKey) if key.key_id == key_id), None)


def list_api_keys(tables: Tables, tenant_id: str) -> list[ApiKey]:
    """Return a tenant's keys in the order of creation."""
    return list(tables.of(tenant_id, ApiKey).values())


def revoke_api_key(tables: Tables, tenant_id: str, key_id: str, *, actor: str) -> bool:
    """Revoke a key from now on; audited; False where there is none to revoke."""
    keys = tables.of(tenant_id, ApiKey)
    key = keys.get((key_id,))
    if key is None or key.revoked_at is not None:
        return False
    keys[(key_id,)] = msgspec.structs.replace(key, revoked_at=tables.now())
    append_audit(tables, tenant_id, actor=actor, act="revoke", subject=f"key {key_id}")
    return True


def resolve_support_case(tables: Tables, tenant_id: str, case_id: UUID, *, actor: str, resolution: str) -> bool:
    """Open → Resolved; audited; False where the case is not open."""
    cases = tables.of(tenant_id, SupportCase)
    case = cases.get((str(case_id),))
    if case is None or not SUPPORT_CASE.may(from_=case.status, to=SupportStatus.RESOLVED):
        return False
    cases[(str(case_id),)] = msgspec.structs.replace(case, status=SupportStatus.RESOLVED)
    append_audit(tables, tenant_id, actor=actor, act="resolve", subject=f"case {case_id}", reason=resolution)
    return True


def append_audit(
    tables: Tables,
    tenant_id: str,
    *,
    actor: str,
    act: str,
    subject: str,
    reason: str | None = None,
    details: str = "{}",
) -> None:
    """Add one entry to the tenant's chain."""
    log = tables.of(tenant_id, AuditEntry)
    seq, at = len(log) + 1, tables.now()
    previous = log[(str(seq - 1),)].hash if log else audit.FIRST_PREVIOUS
    chained = audit.chained_hash(
        previous,
        tenant_id=tenant_id,
        seq=seq,
        at=at,
        actor=actor,
        act=act,
        subject=subject,
        reason=reason,
        details=details,
    )
    log[(str(seq),)] = AuditEntry(
        seq=seq, at=at, actor=actor, act=act, subject=subject, reason=reason, details=details, hash=chained
    )


def list_audit(tables: Tables, tenant_id: str, *, after: int, limit: int) -> list[AuditEntry]:
    """Return entries in order, starting behind `after`."""
    return [entry for entry in tables.of(tenant_id, AuditEntry).values() if entry.seq > after][:limit]


def _latest_templates(tables: Tables, tenant_id: str) -> dict[str, TemplateRow]:
    """Give the latest version of each template; versions are stored in their order."""
    rows: dict[Key, TemplateRow] = tables.of(tenant_id, TemplateRow)
    return {row.template_key: row for row in rows.values()}
