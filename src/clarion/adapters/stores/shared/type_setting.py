"""The settings of notification types: changed with their entry in the audit log, listed, and read in sets by workers.

Writes `type_setting`, `unit_setting` and, through `audit`, `audit_log`. What holds where a tenant and a unit both say
something is in `domain.setting`.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Final, TypeVar
from uuid import UUID

import msgspec

from clarion.adapters.stores.shared.audit import append_audit
from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.transaction import Transaction, first
from clarion.domain import act
from clarion.domain.act import Act
from clarion.domain.audience import Addressee
from clarion.domain.identity import Channel
from clarion.domain.setting import SILENT, EffectiveSetting, SettingChange, TypeSetting, changed, effective
from clarion.errors import ProgramTooOld
from clarion.ports.insights import PAGE_MAX
from clarion.ports.setting import SettingRow

_SQL: Final = Statements("type_setting.sql")

T = TypeVar("T")

Asked = tuple[str, str, UUID | None]
"""A tenant, a type and a business unit or none."""


class _Row(msgspec.Struct, frozen=True):
    event_type: str
    unit_guid: UUID | None
    enabled: bool | None
    recipients: str | None
    channels: str | None
    changed_by: str
    changed_at: datetime


class _Both(msgspec.Struct, frozen=True):
    place: int
    enabled: bool | None
    recipients: str | None
    channels: str | None
    unit_enabled: bool | None
    unit_recipients: str | None
    unit_channels: str | None


async def put_setting(
    transaction: Transaction, tenant_id: str, event_type: str, unit: UUID | None, change: SettingChange, *, actor: str
) -> bool:
    """Change what a tenant, or one of its units, says of a type; audited; False where it is so already."""
    return await _change(transaction, tenant_id, event_type, unit, change, actor=actor)


async def set_type_enabled(
    transaction: Transaction, tenant_id: str, event_type: str, *, enabled: bool, actor: str
) -> bool:
    """Switch a type on or off for the tenant; audited; False where it is so already."""
    done = act.switch(event_type, enabled=enabled, actor=actor)
    return await _change(
        transaction, tenant_id, event_type, None, SettingChange(enabled=enabled), actor=actor, done=done
    )


async def find_setting(
    transaction: Transaction, tenant_id: str, event_type: str, unit: UUID | None
) -> SettingRow | None:
    """Return what a tenant, or one of its units, says of a type, or None."""
    named = {"tenant_id": tenant_id, "event_type": event_type}
    if unit is None:
        rows = await transaction.fetch(_Row, _SQL["read_type_setting"], **named)
    else:
        rows = await transaction.fetch(_Row, _SQL["read_unit_setting"], unit_guid=unit, **named)
    found = first(rows)
    return None if found is None else _read(found)


async def list_settings(
    transaction: Transaction, tenant_id: str, *, after: tuple[str, str] = ("", ""), limit: int
) -> list[SettingRow]:
    """Return a tenant's settings by type, that of the whole tenant before those of its units."""
    rows = await transaction.fetch(
        _Row,
        _SQL["list_settings"],
        tenant_id=tenant_id,
        after_type=after[0],
        after_unit=after[1],
        limit=min(limit, PAGE_MAX),
    )
    return [_read(row) for row in rows]


async def find_settings(transaction: Transaction, asked: Collection[Asked]) -> dict[Asked, EffectiveSetting]:
    """Return what holds for each of these, whether anybody has set anything or not."""
    wanted = list(dict.fromkeys(asked))
    rows = await transaction.fetch(_Both, _SQL["find_settings"], asked=wanted) if wanted else []
    return {
        wanted[row.place - 1]: effective(
            _setting(row.unit_enabled, row.unit_recipients, row.unit_channels),
            _setting(row.enabled, row.recipients, row.channels),
        )
        for row in rows
    }


async def _change(
    transaction: Transaction,
    tenant_id: str,
    event_type: str,
    unit: UUID | None,
    change: SettingChange,
    *,
    actor: str,
    done: Act | None = None,
) -> bool:
    """Merge a change into what is stored, as one act; of two who change the same at once, one waits for the other."""
    await transaction.lock(f"clarion setting {tenant_id} {event_type}")
    row = await find_setting(transaction, tenant_id, event_type, unit)
    before = SILENT if row is None else _without_author(row)
    after = changed(before, change, of_unit=unit is not None)
    if after == before:
        return False
    named = {"tenant_id": tenant_id, "event_type": event_type} | ({} if unit is None else {"unit_guid": unit})
    table = "type_setting" if unit is None else "unit_setting"
    if after == SILENT:
        await transaction.execute(_SQL[f"delete_{table}"], **named)
    else:
        await transaction.execute(
            _SQL[f"put_{table}"],
            **named,
            enabled=after.enabled,
            recipients=_text(after.recipients),
            channels=_text(after.channels),
            actor=actor,
        )
    await append_audit(transaction, tenant_id, done or act.set_setting(event_type, unit, after, actor=actor))
    return True


def _read(row: _Row) -> SettingRow:
    said = _setting(row.enabled, row.recipients, row.channels)
    return SettingRow(
        event_type=row.event_type,
        unit=row.unit_guid,
        changed_by=row.changed_by,
        changed_at=row.changed_at,
        **msgspec.structs.asdict(said),
    )


def _without_author(row: SettingRow) -> TypeSetting:
    return TypeSetting(enabled=row.enabled, recipients=row.recipients, channels=row.channels)


def _setting(enabled: bool | None, recipients: str | None, channels: str | None) -> TypeSetting:
    return TypeSetting(
        enabled=enabled,
        recipients=_list_of(Addressee, recipients),
        channels=_list_of(Channel, channels),
    )


def _list_of(kind: type[T], text: str | None) -> tuple[T, ...] | None:
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=tuple[kind, ...])  # type: ignore[valid-type]  # mypy wants it written out
    except msgspec.ValidationError:
        raise ProgramTooOld(
            f"a setting holds {text}, which this program does not know",
            hint="a newer program wrote it: update this one",
        ) from None


def _text(values: tuple[object, ...] | None) -> str | None:
    return None if values is None else msgspec.json.encode(values).decode()
