"""The control plane: templates, people, groups, settings, keys and the audit log; and the facts read from them."""

from collections.abc import Collection, Sequence
from uuid import UUID

import msgspec

from clarion.domain import act, audit
from clarion.domain.act import Act
from clarion.domain.address import AddressVersion
from clarion.domain.ensured import Ensured, Outcome
from clarion.domain.recipient import RecipientFacts
from clarion.domain.support import SUPPORT_CASE, SupportCase, SupportStatus
from clarion.ports.catalog import ApiKey, AuditEntry, Person
from clarion.ports.ensure import unknown_address
from clarion.ports.facts import TemplateRow
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
    tables: Tables, tenant_id: str, *, template_key: str, content_hash: str, bundle: str, actor: str
) -> Ensured[TemplateRow]:
    """Store a new version, audited, unless the latest one has this content; answer with the version that stands."""
    latest = _latest_templates(tables, tenant_id).get(template_key)
    if latest is not None and latest.content_hash == content_hash:
        return Ensured(outcome=Outcome.FOUND, record=latest)
    row = TemplateRow(
        template_key=template_key,
        version=latest.version + 1 if latest else 1,
        content_hash=content_hash,
        bundle=bundle,
    )
    done = act.publish(template_key, version=row.version, content_hash=content_hash, actor=actor)
    append_audit(tables, tenant_id, done)
    tables.of(tenant_id, TemplateRow)[template_key, str(row.version)] = row
    return Ensured(outcome=Outcome.CREATED, record=row)


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
    """Insert or replace people and their current contacts; refuse an address version that is not the person's own."""
    owners = {address.id: address.recipient_id_hash for address in tables.of(tenant_id, AddressVersion).values()}
    for person in people:
        for address_id in person.address_ids:
            if owners.get(address_id) != person.recipient_id_hash:
                raise unknown_address(address_id)
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


def set_type_enabled(tables: Tables, tenant_id: str, event_type: str, *, enabled: bool, actor: str) -> bool:
    """Switch a notification type on or off for the tenant; audited; False where it is so already."""
    is_on = not find_disabled_types(tables, {(tenant_id, event_type)})
    if enabled is is_on:
        return False
    append_audit(tables, tenant_id, act.switch(event_type, enabled=enabled, actor=actor))
    tables.of(tenant_id, TypeSetting)[(event_type,)] = TypeSetting(event_type=event_type, enabled=enabled)
    return True


def find_disabled_types(tables: Tables, types: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
    """Of these (tenant, event type) pairs, return those that the tenant has switched off."""
    settings = {(tenant_id, row.event_type) for tenant_id, row in tables.everywhere(TypeSetting) if not row.enabled}
    return settings & set(types)


def put_api_key(tables: Tables, key: ApiKey, *, actor: str) -> bool:
    """Store a new key; audited; False where its id is taken."""
    if find_api_key(tables, key.key_id) is not None:
        return False
    append_audit(tables, key.tenant_id, act.mint(key.key_id, actor=actor))
    stored = msgspec.structs.replace(key, created_at=key.created_at or tables.now())
    tables.of(key.tenant_id, ApiKey)[(key.key_id,)] = stored
    return True


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
    append_audit(tables, tenant_id, act.revoke(key_id, actor=actor))
    keys[(key_id,)] = msgspec.structs.replace(key, revoked_at=tables.now())
    return True


def resolve_support_case(tables: Tables, tenant_id: str, case_id: UUID, *, actor: str, resolution: str) -> bool:
    """Open → Resolved; audited with the resolution; False where the case is not open."""
    cases = tables.of(tenant_id, SupportCase)
    case = cases.get((str(case_id),))
    if case is None or not SUPPORT_CASE.may(from_=case.status, to=SupportStatus.RESOLVED):
        return False
    append_audit(tables, tenant_id, act.resolve(case_id, resolution=resolution, actor=actor))
    cases[(str(case_id),)] = msgspec.structs.replace(
        case, status=SupportStatus.RESOLVED, resolved_at=tables.now(), resolved_by=actor, resolution=resolution
    )
    return True


def append_audit(tables: Tables, tenant_id: str, act: Act) -> None:
    """Add one entry to the tenant's chain."""
    entry = msgspec.structs.asdict(act)
    log = tables.of(tenant_id, AuditEntry)
    seq, at = len(log) + 1, tables.now()
    previous = log[(str(seq - 1),)].hash if log else audit.FIRST_PREVIOUS
    chained = audit.chained_hash(previous, tenant_id=tenant_id, seq=seq, at=at, **entry)
    log[(str(seq),)] = AuditEntry(seq=seq, at=at, **entry, hash=chained)


def list_audit(tables: Tables, tenant_id: str, *, after: int, limit: int) -> list[AuditEntry]:
    """Return entries in order, starting behind `after`."""
    return [entry for entry in tables.of(tenant_id, AuditEntry).values() if entry.seq > after][:limit]


def _latest_templates(tables: Tables, tenant_id: str) -> dict[str, TemplateRow]:
    """Give the latest version of each template; versions are stored in their order."""
    rows: dict[Key, TemplateRow] = tables.of(tenant_id, TemplateRow)
    return {row.template_key: row for row in rows.values()}
