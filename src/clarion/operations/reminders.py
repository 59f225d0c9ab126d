"""Reminder settings: which there are, what keeps one from telling anybody, and changing them. Changes are audited."""

from typing import Final
from uuid import UUID

from clarion.bootstrap import Platform
from clarion.catalog import reminders
from clarion.client import wire, wire_reminders
from clarion.domain.reminder import ReminderSetting, SettingRecord
from clarion.operations import page
from clarion.operations.shape import S, as_wire
from clarion.operations.wake import SETTINGS, Wake

REMINDERS: Final = "reminders"


class Reminders:
    """The reminder settings of a tenant."""

    def __init__(self, platform: Platform, *, wake: Wake) -> None:
        """Work on this platform, and wake workers."""
        self._wake = wake
        self._store = platform.store
        self._changes = reminders.Reminders(platform.store, templates=platform.templates, keyring=platform.keyring)

    async def list(self, tenant_id: str, query: wire.PageQuery) -> wire_reminders.ReminderPage:
        """List the reminder settings."""
        after = page.read_guid(REMINDERS, query.cursor)
        found = await self._store.list_reminders(tenant_id, after=after, limit=query.limit + 1)
        records, following = page.cut(REMINDERS, found, query.limit, lambda one: one.setting.guid.hex)
        items = tuple(_as(one, wire_reminders.ReminderLine) for one in records)
        return wire_reminders.ReminderPage(items=items, next_cursor=following)

    async def find(self, tenant_id: str, guid: UUID) -> wire_reminders.Reminder | None:
        """Show a reminder setting, with what keeps it from telling anybody."""
        return await self._shown(tenant_id, await self._store.find_reminder(tenant_id, guid))

    async def put(
        self, tenant_id: str, guid: UUID, request: wire_reminders.ReminderRequest, *, actor: str
    ) -> wire_reminders.Reminder | None:
        """Make a reminder setting, or replace it; what waits because of it is planned anew."""
        if await self._changes.put(tenant_id, as_wire(request, ReminderSetting, guid=guid), actor=actor):
            self._wake(SETTINGS)
        return await self.find(tenant_id, guid)

    async def switch(self, tenant_id: str, guid: UUID, *, active: bool, actor: str) -> wire_reminders.Reminder | None:
        """Switch a reminder setting on or off; what waits because of one that is off is deactivated."""
        if await self._changes.switch(tenant_id, guid, active=active, actor=actor):
            self._wake(SETTINGS)
        return await self.find(tenant_id, guid)

    async def _shown(self, tenant_id: str, record: SettingRecord | None) -> wire_reminders.Reminder | None:
        if record is None:
            return None
        warnings = await self._changes.warnings(tenant_id, record.setting)
        return _as(record, wire_reminders.Reminder, warnings=warnings)


def _as(record: SettingRecord, shape: type[S], **more: object) -> S:
    """Give a setting in its wire form, with who changed it."""
    return as_wire(
        record.setting,
        shape,
        version=record.version,
        planned=record.planned_version == record.version,
        changed_by=record.changed_by,
        changed_at=record.changed_at,
        **more,
    )
