"""Published notifications, ready to render: loaded in sets before work is claimed, held in memory while it is done."""

from collections.abc import Collection
from typing import Protocol

from clarion.ports.renderer import Bundle

TemplateName = tuple[str, str, int | None]
"""Tenant, template key, version; None for the latest version."""


class Templates(Protocol):
    """Bundles by name."""

    async def load(self, wanted: Collection[TemplateName]) -> dict[TemplateName, tuple[int, Bundle]]:
        """Return version and bundle of those that exist, from memory or from the store."""
        ...

    def held(self, tenant_id: str, template_key: str, version: int) -> Bundle | None:
        """Return a bundle that is in memory already; no I/O."""
        ...
