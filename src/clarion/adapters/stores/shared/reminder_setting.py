"""Reminder settings: put with the note that their sources are to be planned anew, found, and claimed for planning.

Writes `reminder_setting`, through `repair` the row by which its type of source is reconciled, and, through `audit`,
`audit_log`.
"""

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec
import structlog

from clarion.adapters.stores.shared import repair
from clarion.adapters.stores.shared.audit import append_audit
from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.transaction import Transaction, first
from clarion.domain import act
from clarion.domain.expected import require_version
from clarion.domain.local_time import TZDATA_VERSION
from clarion.domain.reminder import ReminderSetting, SettingRecord, setting_text
from clarion.errors import InvalidInput, ProgramTooOld
from clarion.ports.ensure import ITEMS_MAX
from clarion.ports.insights import PAGE_MAX
from clarion.ports.source import SettingClaim

log = structlog.get_logger("clarion.stores")

_SQL: Final = Statements("reminder_setting.sql")


class _Row(msgspec.Struct, frozen=True):
    tenant_id: str
    guid: UUID
    setting: str
    version: int
    planned_version: int
    plan_cursor: str
    plan_token: int
    changed_by: str
    changed_at: datetime


class _Key(msgspec.Struct, frozen=True):
    tenant_id: str
    guid: UUID


async def put_reminder(
    transaction: Transaction, tenant_id: str, setting: ReminderSetting, *, actor: str, expected: int | None = None
) -> bool:
    """Store a setting, and note that its sources are to be planned anew; audited; False if so already."""
    text = setting_text(setting)
    await transaction.lock(f"clarion reminder {tenant_id} {setting.guid}")
    stored = await find_reminder(transaction, tenant_id, setting.guid)
    if stored is not None and stored.setting == setting:
        return False
    require_version(None if stored is None else stored.version, expected, what="the reminder setting")
    if stored is not None and stored.setting.source_type != setting.source_type:
        raise InvalidInput(
            f"this setting is about sources of type {stored.setting.source_type!r}",
            field="source_type",
            hint="deactivate it, and make another setting about the other type",
        )
    await transaction.execute(
        _SQL["put_reminder"],
        tenant_id=tenant_id,
        guid=setting.guid,
        source_type=setting.source_type,
        setting=text,
        actor=actor,
    )
    await repair.ensure_repair(transaction, tenant_id, setting.source_type)
    await append_audit(transaction, tenant_id, act.put_reminder(setting, actor=actor))
    return True


async def find_reminder(transaction: Transaction, tenant_id: str, guid: UUID) -> SettingRecord | None:
    """Return a reminder setting, or None."""
    found = first(await transaction.fetch(_Row, _SQL["find_reminder"], tenant_id=tenant_id, guid=guid))
    return None if found is None else _record(found)


async def find_reminders(transaction: Transaction, tenant_id: str, source_type: str) -> list[SettingRecord]:
    """Return all settings about a type of source, the inactive too."""
    named = {"tenant_id": tenant_id, "source_type": source_type}
    return [_record(row) for row in await transaction.fetch(_Row, _SQL["find_reminders"], **named)]


async def list_reminders(
    transaction: Transaction, tenant_id: str, *, after: UUID | None = None, limit: int
) -> list[SettingRecord]:
    """Return a tenant's reminder settings by guid."""
    rows = await transaction.fetch(
        _Row, _SQL["list_reminders"], tenant_id=tenant_id, after=after or UUID(int=0), limit=min(limit, PAGE_MAX)
    )
    return [_record(row) for row in rows]


async def claim_settings(transaction: Transaction, *, limit: int, lease: timedelta) -> list[SettingClaim]:
    """Take settings whose sources are to be planned anew; one that cannot be read stays claimed for its lease."""
    claims: list[SettingClaim] = []
    for one in await transaction.fetch(_Key, _SQL["lock_settings_to_plan"], limit=min(limit, ITEMS_MAX)):
        (row,) = await transaction.fetch(
            _Row, _SQL["take_setting"], tenant_id=one.tenant_id, guid=one.guid, lease=lease
        )
        try:
            record = _record(row)
        except ProgramTooOld:
            log.exception("a reminder setting cannot be read and stays unplanned", tenant_id=row.tenant_id)
            continue
        claims.append(
            SettingClaim(tenant_id=row.tenant_id, record=record, cursor=row.plan_cursor, token=row.plan_token)
        )
    return claims


async def finish_setting(transaction: Transaction, claim: SettingClaim, *, cursor: str | None) -> bool:
    """Note how far the planning of a setting has come, None at its end; False where the setting changed since."""
    done = await transaction.execute(
        _SQL["finish_setting"],
        tenant_id=claim.tenant_id,
        guid=claim.record.setting.guid,
        token=claim.token,
        version=claim.record.version,
        cursor=cursor,
        tzdata_version=TZDATA_VERSION,
    )
    return done > 0


def _record(row: _Row) -> SettingRecord:
    try:
        setting = msgspec.json.decode(row.setting, type=ReminderSetting)
    except msgspec.ValidationError:
        raise ProgramTooOld(
            f"the reminder setting {row.guid} holds what this program does not know",
            hint="a newer program wrote it: update this one",
        ) from None
    return SettingRecord(
        setting=setting,
        version=row.version,
        planned_version=row.planned_version,
        changed_by=row.changed_by,
        changed_at=row.changed_at,
    )
