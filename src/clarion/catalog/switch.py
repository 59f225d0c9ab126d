"""Switching notification types on and off for a tenant. Reads published templates; writes settings, audited."""

from collections.abc import Collection
from difflib import get_close_matches
from itertools import chain

import msgspec

from clarion.domain.identity import Channel, Lane
from clarion.errors import InvalidInput
from clarion.ports.catalog import CatalogStore
from clarion.ports.facts import FactStore
from clarion.ports.renderer import Bundle


class TypeLine(msgspec.Struct, frozen=True, kw_only=True):
    """One notification type of a tenant, in its latest version."""

    key: str
    title: str
    description: str
    version: int
    channels: tuple[Channel, ...]
    lane: Lane
    enabled: bool
    variables: tuple[str, ...]  # what data must have


class Types:
    """The notification types of a tenant."""

    def __init__(self, *, catalog: CatalogStore, facts: FactStore) -> None:
        """Read and change them here."""
        self._catalog = catalog
        self._facts = facts

    async def list(self, tenant_id: str) -> list[TypeLine]:
        """List the published types by key."""
        rows = await self._catalog.list_templates(tenant_id)
        disabled = await self._facts.find_disabled_types({(tenant_id, row.template_key) for row in rows})
        lines = []
        for row in rows:
            bundle = msgspec.json.decode(row.bundle, type=Bundle)
            definition = bundle.definition
            lines.append(
                TypeLine(
                    key=row.template_key,
                    title=definition.title,
                    description=definition.description,
                    version=row.version,
                    channels=definition.channels,
                    lane=definition.lane,
                    enabled=(tenant_id, row.template_key) not in disabled,
                    variables=tuple(sorted({*definition.required, *chain(*bundle.variables.values())})),
                )
            )
        return lines

    async def switch(self, tenant_id: str, key: str, *, enabled: bool, actor: str) -> bool:
        """Switch a published type on or off; False where it is so already."""
        known = [row.template_key for row in await self._catalog.list_templates(tenant_id)]
        if key not in known:
            raise unknown_type(key, known)
        return await self._catalog.set_type_enabled(tenant_id, key, enabled=enabled, actor=actor)


def unknown_type(key: str, known: Collection[str]) -> InvalidInput:
    """Make the error for a type that is not published, with the names that come near."""
    near = get_close_matches(key, sorted(known), n=3)
    if near:
        hint = f"did you mean {' or '.join(near)}?"
    elif known:
        hint = f"the published types are {', '.join(sorted(known))}"
    else:
        hint = "nothing is published yet; `clarion publish FOLDER` adds a type"
    return InvalidInput(f"there is no notification type {key!r}", field="type", hint=hint)
