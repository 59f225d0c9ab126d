"""Notification types: which there are, what they need, and switching them on and off. Switching is audited."""

import msgspec

from clarion.client import wire_types
from clarion.operations.publishing import variables_of
from clarion.ports.catalog import CatalogStore
from clarion.ports.facts import FactStore
from clarion.ports.renderer import Bundle
from clarion.ports.setting import SettingStore


class Types:
    """The notification types of a tenant."""

    def __init__(self, *, catalog: CatalogStore, settings: SettingStore, facts: FactStore) -> None:
        """Read types from `catalog`, and whether they are on from `facts`; switch them in `settings`."""
        self._catalog = catalog
        self._settings = settings
        self._facts = facts

    async def list(self, tenant_id: str) -> wire_types.TypeList:
        """List every published notification type, by name, with what its `data` must have."""
        rows = await self._catalog.list_templates(tenant_id)
        settings = await self._facts.find_settings([(tenant_id, row.template_key, None) for row in rows])
        items = []
        for row in rows:
            bundle = msgspec.json.decode(row.bundle, type=Bundle)
            definition = bundle.definition
            items.append(
                wire_types.NotificationType(
                    type=row.template_key,
                    version=row.version,
                    title=definition.title,
                    description=definition.description,
                    channels=definition.channels,
                    lane=definition.lane,
                    enabled=settings[tenant_id, row.template_key, None].enabled,
                    variables=variables_of(bundle),
                    quarantined=row.quarantined,
                )
            )
        return wire_types.TypeList(items=tuple(items))

    async def switch(self, tenant_id: str, name: str, *, enabled: bool, actor: str) -> bool | None:
        """Switch a type on or off; False where it is so already, None where it is not published."""
        if name not in {row.template_key for row in await self._catalog.list_templates(tenant_id)}:
            return None
        return await self._settings.set_type_enabled(tenant_id, name, enabled=enabled, actor=actor)
