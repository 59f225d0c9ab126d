"""What a decision needs to know: people, groups, settings, templates. One statement a question. Writes nothing."""

from collections.abc import Collection, Sequence
from typing import Any, Final
from uuid import UUID

from clarion.adapters.stores.query import load
from clarion.adapters.stores.sqlite import codec
from clarion.adapters.stores.sqlite.session import Transaction
from clarion.domain.identity import Channel, Identity, IdentityDomain
from clarion.domain.recipient import RecipientFacts
from clarion.ports.facts import TemplateRow

_SQL: Final = load(__package__, "facts.sql")

TemplateName = tuple[str, str, int | None]


def find_recipients(transaction: Transaction, tenant_id: str, hashes: Collection[str]) -> dict[str, RecipientFacts]:
    """Return the people behind these recipient hashes, by hash; the unknown are left out."""
    people: dict[str, tuple[Any, ...]] = {}
    contacts: dict[str, list[tuple[Channel, int]]] = {}
    wanted = codec.as_json(sorted(set(hashes)))
    for person_hash, *person, channel, address_id in transaction.rows(
        _SQL["find_recipients"], tenant_id=tenant_id, hashes=wanted
    ):
        people[person_hash] = tuple(person)
        known = contacts.setdefault(person_hash, [])
        if channel is not None:
            known.append((Channel(channel), address_id))
    return {
        person_hash: RecipientFacts(
            identity=Identity(domain=IdentityDomain(domain), id=person_id),
            recipient_id_hash=person_hash,
            profile=profile,
            contacts=tuple(contacts[person_hash]),
        )
        for person_hash, (domain, person_id, profile) in people.items()
    }


def find_members(transaction: Transaction, tenant_id: str, groups: Collection[UUID]) -> dict[UUID, tuple[str, ...]]:
    """Return the recipient hashes of each group's members, sorted; an unknown group is left out."""
    members: dict[str, list[str]] = {}
    wanted = codec.as_json(sorted(set(map(str, groups))))
    for guid, member in transaction.rows(_SQL["find_members"], tenant_id=tenant_id, groups=wanted):
        known = members.setdefault(guid, [])
        if member is not None:
            known.append(member)
    return {UUID(guid): tuple(known) for guid, known in members.items()}


def find_disabled_types(transaction: Transaction, types: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
    """Of these (tenant, event type) pairs, return those that the tenant has switched off."""
    rows = transaction.rows(_SQL["find_disabled_types"], types=codec.as_json(sorted(set(types))))
    return {(tenant_id, event_type) for tenant_id, event_type in rows}


def find_templates(transaction: Transaction, wanted: Sequence[TemplateName]) -> dict[TemplateName, TemplateRow]:
    """Return templates by (tenant, key, version), the latest where the version is None."""
    names = list(dict.fromkeys(wanted))
    rows = transaction.rows(_SQL["find_templates"], wanted=codec.as_json(names))
    return {
        names[place]: TemplateRow(template_key=template_key, version=version, content_hash=content_hash, bundle=bundle)
        for place, template_key, version, content_hash, bundle in rows
    }
