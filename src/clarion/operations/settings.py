"""Settings of notification types: what is set where, what holds, and changing it. Changes are audited."""

from collections.abc import Sequence
from uuid import UUID

from clarion.bootstrap import Platform
from clarion.catalog.settings import TypeSettings, require_unit
from clarion.client import wire, wire_settings
from clarion.domain.identity import Channel
from clarion.domain.setting import SILENT, EffectiveSetting, SettingChange, channels_under
from clarion.operations import page
from clarion.operations.shape import as_wire
from clarion.ports.setting import SettingRow

NAME = "settings"


class Settings:
    """The settings of a tenant and of its business units."""

    def __init__(self, platform: Platform) -> None:
        """Work on this platform."""
        self._store = platform.store
        self._templates = platform.templates
        store = platform.store
        self._changes = TypeSettings(settings=store, facts=store, groups=store, templates=platform.templates)

    async def list(self, tenant_id: str, query: wire.PageQuery) -> wire_settings.SettingPage:
        """List everything that is set, by type."""
        event_type, _, unit = page.read(NAME, query.cursor, start="").rpartition(" ")
        found = await self._store.list_settings(tenant_id, after=(event_type, unit), limit=query.limit + 1)
        rows, following = page.cut(NAME, found, query.limit, lambda row: f"{row.event_type} {row.unit or ''}")
        return wire_settings.SettingPage(items=tuple(map(_line, rows)), next_cursor=following)

    async def find(self, tenant_id: str, name: str, unit: UUID | None) -> wire_settings.Setting | None:
        """Show what is set of a type in one place and what holds there; None where the type is not published."""
        (published,) = await self._templates.latest([(tenant_id, name)])
        if published.bundle is None:
            return None
        await require_unit(self._store, tenant_id, unit)
        asked = (tenant_id, name, unit)
        row = await self._store.find_setting(*asked)
        holds = (await self._store.find_settings([asked]))[asked]
        said = row or SILENT
        return wire_settings.Setting(
            type=name,
            business_unit=unit,
            enabled=said.enabled,
            recipients=said.recipients,
            channels=said.channels,
            changed_by=None if row is None else row.changed_by,
            changed_at=None if row is None else row.changed_at,
            effective=_effective(holds, published.bundle.definition.channels),
        )

    async def change(
        self, tenant_id: str, name: str, unit: UUID | None, change: SettingChange, *, actor: str
    ) -> wire_settings.Setting | None:
        """Change what is set of a type in one place, and show it; None where the type is not published."""
        if await self._changes.change(tenant_id, name, unit, change, actor=actor) is None:
            return None
        return await self.find(tenant_id, name, unit)


def whole(asked: wire_settings.SettingRequest) -> SettingChange:
    """Make the change that a whole new setting is."""
    return SettingChange(enabled=asked.enabled, recipients=asked.recipients, channels=asked.channels)


NOTHING = whole(wire_settings.SettingRequest())
"""The change after which nothing is set any more."""


def _line(row: SettingRow) -> wire_settings.SettingLine:
    return as_wire(row, wire_settings.SettingLine, type=row.event_type, business_unit=row.unit)


def _effective(setting: EffectiveSetting, of_type: Sequence[Channel]) -> wire_settings.Effective:
    channels, left_out = channels_under(setting, of_type=of_type)
    skipped = tuple(wire.Skipped(channel=one.channel, reason=one.why, rule=one.rule) for one in left_out)
    return as_wire(setting, wire_settings.Effective, channels=channels, left_out=skipped)
