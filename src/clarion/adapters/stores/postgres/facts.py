"""What decisions need to know, read in sets: people, groups, settings, templates. Reads only."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final
from uuid import UUID

from clarion.adapters.stores.postgres import codec
from clarion.adapters.stores.query import load
from clarion.domain.identity import Channel, Identity, IdentityDomain
from clarion.domain.recipient import RecipientFacts
from clarion.ports.facts import TemplateRow

if TYPE_CHECKING:
    from clarion.adapters.stores.postgres.session import Connection

_SQL: Final = load(__package__, "facts.sql")
read_template: Final = codec.reader(TemplateRow)


async def find_recipients(
    connection: "Connection", tenant_id: str, hashes: Collection[str]
) -> dict[str, RecipientFacts]:
    """Return the people behind these recipient hashes, by hash."""
    rows = await connection.fetch(_SQL["find_recipients"].sql, tenant_id, sorted(set(hashes)))
    return {
        row["recipient_id_hash"]: RecipientFacts(
            identity=Identity(domain=codec.member(IdentityDomain, row["domain"]), id=row["person_id"]),
            recipient_id_hash=row["recipient_id_hash"],
            profile=row["profile"],
            contacts=tuple(
                (codec.member(Channel, channel), address_id)
                for channel, address_id in zip(row["channels"], row["address_ids"], strict=True)
            ),
        )
        for row in rows
    }


async def find_members(
    connection: "Connection", tenant_id: str, groups: Collection[UUID]
) -> dict[UUID, tuple[str, ...]]:
    """Return the recipient hashes of each group's members, sorted."""
    rows = await connection.fetch(_SQL["find_members"].sql, tenant_id, sorted(set(groups)))
    return {row["guid"]: tuple(row["members"]) for row in rows}


async def find_disabled_types(connection: "Connection", types: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
    """Of these (tenant, event type) pairs, return those that the tenant has switched off."""
    pairs = sorted(set(types))
    rows = await connection.fetch(
        _SQL["find_disabled_types"].sql, [tenant_id for tenant_id, _ in pairs], [name for _, name in pairs]
    )
    return {(row["tenant_id"], row["event_type"]) for row in rows}


async def find_templates(
    connection: "Connection", wanted: Sequence[tuple[str, str, int | None]]
) -> dict[tuple[str, str, int | None], TemplateRow]:
    """Return templates by tenant, key and version, the latest where the version is None."""
    asked = list(dict.fromkeys(wanted))
    rows = await connection.fetch(
        _SQL["find_templates"].sql,
        [tenant_id for tenant_id, _, _ in asked],
        [template_key for _, template_key, _ in asked],
        [version for _, _, version in asked],
    )
    return {asked[row["place"] - 1]: read_template(row) for row in rows}
