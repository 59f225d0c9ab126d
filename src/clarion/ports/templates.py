"""Published notifications, ready to render: loaded in sets before work is claimed, held in memory while it is done."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

import msgspec

from clarion.ports.renderer import Bundle

TemplateName = tuple[str, str, int | None]
"""Tenant, template key, version; None for the latest version."""


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """The latest version of a notification type at a moment of the store's; None where there is no such type."""

    at: datetime
    version: int | None = None
    bundle: Bundle | None = None
    quarantined: bool = False


class Templates(Protocol):
    """Bundles by name."""

    async def load(
        self, wanted: Collection[TemplateName], *, also_quarantined: bool = False
    ) -> dict[TemplateName, tuple[int, Bundle]]:
        """Return version and bundle of those that exist, from memory or from the store.

        Those that are quarantined are left out, unless the caller asks for them to read their definitions.
        """
        ...

    def is_quarantined(self, name: TemplateName) -> bool:
        """Tell whether a template was quarantined when it was last asked for; no I/O."""
        ...

    def held(self, tenant_id: str, template_key: str, version: int) -> Bundle | None:
        """Return a bundle that is in memory already and not quarantined; no I/O."""
        ...

    async def latest(self, wanted: Sequence[tuple[str, str]]) -> list[Published]:
        """Say what is published under these (tenant, key) names, in the order asked, and what time it is."""
        ...
