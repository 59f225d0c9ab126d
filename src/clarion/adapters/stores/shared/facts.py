"""What decisions need to know, in sets: time, people, groups, templates. One statement each. Reads only."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.transaction import Transaction
from clarion.domain.identity import Channel
from clarion.domain.person import Contact, LocalForm, Person, PersonRow, PersonVersion
from clarion.ports.facts import Latest, TemplateRow

_SQL: Final = Statements("facts.sql")

TemplateName = tuple[str, str, int | None]


class _Now(msgspec.Struct, frozen=True):
    now: datetime


class _Contact(PersonRow, frozen=True, kw_only=True):
    channel: Channel | None
    address_id: int | None
    verified: bool | None
    retired_at: datetime | None
    destination_index: str | None


class _Form(LocalForm, frozen=True, kw_only=True):
    guid: UUID | None


class _Member(msgspec.Struct, frozen=True):
    guid: UUID
    recipient_id_hash: str | None


class _Template(TemplateRow, frozen=True, kw_only=True):
    place: int


class _Version(msgspec.Struct, frozen=True, kw_only=True):
    at: datetime
    tenant_id: str
    template_key: str
    version: int | None
    quarantined: bool


async def now(transaction: Transaction) -> datetime:
    """Return the store's present time."""
    (row,) = await transaction.fetch(_Now, _SQL["read_now"])
    return row.now


async def find_recipients(transaction: Transaction, tenant_id: str, hashes: Collection[str]) -> dict[str, Person]:
    """Return the people behind these recipient hashes, by hash; the unknown are left out."""
    people: dict[str, list[_Contact]] = {}
    wanted = sorted(set(hashes))
    for row in await transaction.fetch(_Contact, _SQL["find_recipients"], tenant_id=tenant_id, hashes=wanted):
        people.setdefault(row.recipient_id_hash, []).append(row)
    return {
        person_hash: Person(
            **{name: getattr(rows[0], name) for name in PersonRow.__struct_fields__},
            contacts=_contacts(rows),
        )
        for person_hash, rows in people.items()
    }


def _contacts(rows: Sequence[_Contact]) -> tuple[Contact, ...]:
    """Read one person's contacts, by channel and address version."""
    found = [
        Contact(
            channel=row.channel,
            address_id=row.address_id or 0,
            destination_index=row.destination_index or "",
            verified=bool(row.verified),
            retired_at=row.retired_at,
        )
        for row in rows
        if row.channel is not None
    ]
    return tuple(sorted(found, key=lambda one: (one.channel, one.address_id)))


async def find_person_versions(
    transaction: Transaction, tenant_id: str, ids: Collection[int]
) -> dict[int, PersonVersion]:
    """Return these versions of profiles, sealed, by id; the unknown are left out."""
    wanted = sorted(set(ids))
    rows = await transaction.fetch(PersonVersion, _SQL["find_person_versions"], tenant_id=tenant_id, ids=wanted)
    return {row.id: row for row in rows if row.id is not None}


async def find_local_forms(
    transaction: Transaction, tenant_id: str, units: Collection[UUID]
) -> dict[UUID | None, LocalForm]:
    """Return the language and zone of a tenant, under None, and of these business units; the unknown are left out."""
    rows = await transaction.fetch(_Form, _SQL["find_local_forms"], tenant_id=tenant_id, units=sorted(set(units)))
    return {row.guid: LocalForm(locale=row.locale, tz_id=row.tz_id) for row in rows}


async def find_members(
    transaction: Transaction, tenant_id: str, groups: Collection[UUID]
) -> dict[UUID, tuple[str, ...]]:
    """Return the recipient hashes of each group's members, sorted; an unknown group is left out."""
    members: dict[UUID, list[str]] = {}
    wanted = sorted(set(groups))
    for row in await transaction.fetch(_Member, _SQL["find_members"], tenant_id=tenant_id, groups=wanted):
        known = members.setdefault(row.guid, [])
        if row.recipient_id_hash is not None:
            known.append(row.recipient_id_hash)
    return {guid: tuple(sorted(known)) for guid, known in members.items()}


async def find_templates(transaction: Transaction, wanted: Sequence[TemplateName]) -> dict[TemplateName, TemplateRow]:
    """Return templates by (tenant, key, version), the latest where the version is None."""
    names = list(dict.fromkeys(wanted))
    rows = await transaction.fetch(_Template, _SQL["find_templates"], wanted=names)
    return {
        names[row.place - 1]: TemplateRow(
            template_key=row.template_key,
            version=row.version,
            content_hash=row.content_hash,
            bundle=row.bundle,
            quarantined=row.quarantined,
        )
        for row in rows
    }


async def find_latest_versions(transaction: Transaction, wanted: Collection[tuple[str, str]]) -> Latest:
    """Return the latest version of these (tenant, key) templates, and the store's time."""
    names = list(dict.fromkeys(wanted))
    if not names:
        return Latest(at=await now(transaction), versions={})
    rows = await transaction.fetch(_Version, _SQL["find_latest_versions"], wanted=names)
    versions = {(row.tenant_id, row.template_key): row.version for row in rows if row.version is not None}
    quarantined = frozenset((row.tenant_id, row.template_key) for row in rows if row.quarantined)
    return Latest(at=rows[0].at, versions=versions, quarantined=quarantined)
