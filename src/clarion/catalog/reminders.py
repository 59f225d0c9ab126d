"""Changes to reminder settings: what they name is looked up before anything is stored, so that one is put whole or not.

A notification type and a business unit must be there. What may come later is told of instead: a group, holders of a
role, sources of the type.
"""

from collections.abc import Collection
from difflib import get_close_matches
from typing import Final, assert_never
from uuid import UUID

import msgspec

from clarion.catalog.settings import require_unit
from clarion.domain.audience import HELD_EVERYWHERE, Addressee
from clarion.domain.definition import Definition
from clarion.domain.identity import Channel
from clarion.domain.reminder import (
    SETTINGS_BYTES_MAX,
    SETTINGS_MAX,
    DateRule,
    ReminderSetting,
    ThresholdRule,
    require_setting,
    setting_text,
)
from clarion.errors import InvalidInput
from clarion.ports.store import Store
from clarion.ports.templates import Templates
from clarion.sealing.keyring import Keyring
from clarion.sealing.sources import opened_source

ROLES_LOOKED_AT: Final = 200
"""In which one is looked for that comes near: more words than a tenant has for roles."""

SOURCES_LOOKED_AT: Final = 20
"""Sources in which a date or a metric is looked for: where none of them has it, it is likely misspelt."""


class Reminders:
    """Checks reminder settings, and stores them."""

    def __init__(self, store: Store, *, templates: Templates, keyring: Keyring) -> None:
        """Store here what the published `templates` and the store allow; open sources by these keys."""
        self._store = store
        self._keyring = keyring
        self._templates = templates

    async def put(self, tenant_id: str, setting: ReminderSetting, *, actor: str, expected: int | None = None) -> bool:
        """Store a setting, audited; False where it is so already. Raises InvalidInput where it cannot be meant."""
        require_setting(setting)
        definition = await definition_of(self._store, self._templates, tenant_id, setting.notification_type)
        if setting.inbox_only and Channel.INBOX not in definition.channels:
            raise InvalidInput(
                f"the notification type {setting.notification_type!r} has no inbox",
                field="inbox_only",
                hint=f"it goes by {', '.join(definition.channels)}; leave it out, or add inbox to the definition",
            )
        await require_unit(self._store, tenant_id, setting.business_unit)
        await self._require_room(tenant_id, setting)
        return await self._store.put_reminder(tenant_id, setting, actor=actor, expected=expected)

    async def _require_room(self, tenant_id: str, setting: ReminderSetting) -> None:
        """Refuse one setting too many: whoever plans a source reads all that are about sources of its type."""
        found = await self._store.find_reminders(tenant_id, setting.source_type)
        settings = [setting, *(one.setting for one in found if one.setting.guid != setting.guid)]
        size = sum(len(setting_text(one)) for one in settings)
        if len(settings) > SETTINGS_MAX or size > SETTINGS_BYTES_MAX:
            raise InvalidInput(
                f"there would be {len(settings)} settings about sources of type {setting.source_type!r}, {size} bytes",
                field="source_type",
                hint=f"put it under the guid of one that is not needed any more: {SETTINGS_MAX} settings and "
                f"{SETTINGS_BYTES_MAX} bytes as JSON are the most",
            )

    async def switch(self, tenant_id: str, guid: UUID, *, active: bool, actor: str) -> bool:
        """Switch a setting on or off, audited; False where there is none or it is so already.

        One that is off is not looked at again. Raises Conflict where somebody changes it at the same moment.
        """
        record = await self._store.find_reminder(tenant_id, guid)
        if record is None or record.setting.active is active:
            return False
        setting = msgspec.structs.replace(record.setting, active=active)
        put = self.put if active else self._store.put_reminder
        return await put(tenant_id, setting, actor=actor, expected=record.version)

    async def warnings(self, tenant_id: str, setting: ReminderSetting) -> tuple[str, ...]:
        """Say what keeps a setting from telling anybody as things stand."""
        if not setting.active:
            return ()
        asked = (tenant_id, setting.notification_type, setting.business_unit)
        of_type = (await self._store.find_settings([asked]))[asked]
        found = [] if of_type.enabled else [f"the notification type {setting.notification_type!r} is off"]
        if setting.recipients is None and not of_type.recipients:
            found.append("it names nobody, and no setting of its notification type does")
        about = [await self._about_addressee(tenant_id, one) for one in setting.recipients or ()]
        return (*found, *filter(None, about), *await self._about_sources(tenant_id, setting))

    async def _about_addressee(self, tenant_id: str, one: Addressee) -> str | None:
        """Say it of a group that is not there, and of a role that nobody holds."""
        if one.group is not None and await self._store.find_group(tenant_id, one.group) is None:
            return f"the tenant has no group {one.group}: as things stand nobody is told there"
        if one.role is not None and not await self._is_held(tenant_id, one.role):
            others = {one.role for one in await self._store.list_roles(tenant_id, limit=ROLES_LOOKED_AT)}
            return f"nobody holds the role {one.role!r} yet{_near(one.role, others)}"
        return None

    async def _is_held(self, tenant_id: str, role: str) -> bool:
        """Tell whether anybody holds a role, in the whole tenant or in a business unit."""
        if await self._store.list_holders(tenant_id, role, unit=None, limit=1):
            return True
        behind = await self._store.list_roles(tenant_id, after=(role, HELD_EVERYWHERE), limit=1)
        return bool(behind) and behind[0].role == role

    async def _about_sources(self, tenant_id: str, setting: ReminderSetting) -> tuple[str, ...]:
        """Say it where no source of the type is there, or none of the first ones has the date or the metric."""
        first = await self._store.list_sources(tenant_id, setting.source_type, limit=SOURCES_LOOKED_AT)
        if not first:
            return (f"no source of type {setting.source_type!r} is stored yet; a plugin may provide them",)
        match setting.rule:
            case DateRule(field=asked):
                what, names = "date", {name for one in first for name, _ in one.days}
            case ThresholdRule(metric=asked):
                keys = await self._keyring.get(tenant_id)
                what, names = "metric", {name for one in first for name in opened_source(keys, one).content.metrics}
            case _:
                assert_never(setting.rule)
        if asked in names:
            return ()
        return (f"none of the first {len(first)} sources has the {what} {asked!r}{_near(asked, names)}",)


async def definition_of(store: Store, templates: Templates, tenant_id: str, event_type: str) -> Definition:
    """Give the definition of a published type, or refuse one that is not there and name those that come near."""
    (published,) = await templates.latest([(tenant_id, event_type)])
    if published.bundle is not None:
        return published.bundle.definition
    names = sorted(one.template_key for one in await store.list_templates(tenant_id))
    near = get_close_matches(event_type, names, n=3)
    raise InvalidInput(
        f"there is no notification type {event_type!r:.80}",
        field="notification_type",
        hint=f"did you mean {' or '.join(near)}?" if near else "publish it first, or name one that is published",
    )


def _near(word: str, words: Collection[str]) -> str:
    """Ask for those that come near to a word that may be misspelt."""
    near = get_close_matches(word, sorted(words), n=2)
    return f": did you mean {' or '.join(near)}?" if near else ""
