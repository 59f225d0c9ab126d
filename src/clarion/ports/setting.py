"""The store of the settings of notification types: of a whole tenant and of its business units."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

from clarion.domain.setting import SettingChange, TypeSetting


class SettingRow(TypeSetting, frozen=True, kw_only=True):
    """A setting as it is stored, and who made it so; `unit` is None in that of the whole tenant."""

    event_type: str
    unit: UUID | None
    changed_by: str
    changed_at: datetime


class SettingStore(Protocol):
    """Changes to settings, audited, and reading what is set. What holds in the end is asked of `FactStore`."""

    async def put_setting(
        self, tenant_id: str, event_type: str, unit: UUID | None, change: SettingChange, *, actor: str
    ) -> bool:
        """Change what a tenant, or (`unit`) a business unit, says of a type; audited; False where it is so already.

        A setting that says nothing any more is there no longer.
        """
        ...

    async def set_type_enabled(self, tenant_id: str, event_type: str, *, enabled: bool, actor: str) -> bool:
        """Switch a type on or off for the whole tenant, and leave the rest of its setting as it is; as `put_setting`.

        A type that nobody has switched is on.
        """
        ...

    async def find_setting(self, tenant_id: str, event_type: str, unit: UUID | None) -> SettingRow | None:
        """Return what a tenant, or one of its business units, says of a type; None where it says nothing."""
        ...

    async def list_settings(
        self, tenant_id: str, *, after: tuple[str, str] = ("", ""), limit: int
    ) -> Sequence[SettingRow]:
        """Return a tenant's settings by type, that of the whole tenant before those of its units.

        `after` is the type and the unit, as text, behind which it starts; the unit of the whole tenant is empty.
        """
        ...
