"""Settings of notification types: what a tenant and its business units say, and what holds in the end."""

import asyncio
from datetime import timedelta
from typing import Final
from uuid import UUID

from clarion.domain.audience import Addressee
from clarion.domain.identity import Channel
from clarion.domain.setting import EffectiveSetting, Place, SettingChange, TypeSetting
from clarion.ports.setting import SettingRow
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.contracts.pump import near
from clarion.testing.factories import guid

NORTH: Final = guid(1, "unit")
SOUTH: Final = guid(2, "unit")
TEACHERS: Final = Addressee(role="teacher")
EVERY_KIND: Final = (
    Addressee(group=guid(1, "group")),
    Addressee(role="Ärztin"),
    Addressee(relation="guardian"),
    Addressee(unit=True),
)


async def effective(
    harness: StoreHarness, event_type: str = "welcome", unit: UUID | None = None, *, tenant_id: str = ""
) -> EffectiveSetting:
    """Ask what holds for one type."""
    asked = (tenant_id or harness.tenant_id, event_type, unit)
    (found,) = (await harness.store.find_settings([asked])).values()
    return found


class SettingContract:
    """What administrators say of types."""

    async def put(
        self, harness: StoreHarness, change: SettingChange, *, event_type: str = "welcome", unit: UUID | None = None
    ) -> bool:
        """Change a setting."""
        return await harness.store.put_setting(harness.tenant_id, event_type, unit, change, actor="sam")

    async def test_a_type_is_on_until_it_is_switched_off(self, harness: StoreHarness) -> None:
        """For its own tenant; who switches it to what it is already has switched nothing."""
        mine, theirs = harness.tenant_id, f"{harness.tenant_id}-2"
        switch = harness.store.set_type_enabled

        async def off() -> list[str]:
            asked = [(mine, "welcome", None), (mine, "goodbye", None), (theirs, "welcome", None)]
            found = await harness.store.find_settings(asked)
            return [
                f"{tenant} {event_type}"
                for tenant, event_type, unit in asked
                if not found[tenant, event_type, unit].enabled
            ]

        assert not await switch(mine, "welcome", enabled=True, actor="sam")
        assert await off() == []
        assert await switch(mine, "welcome", enabled=False, actor="sam")
        assert await switch(mine, "unasked", enabled=False, actor="sam")
        assert not await switch(mine, "welcome", enabled=False, actor="kim")
        assert await off() == [f"{mine} welcome"]
        assert await switch(mine, "welcome", enabled=True, actor="kim")
        assert not await switch(mine, "welcome", enabled=True, actor="sam")
        assert await off() == []
        assert await harness.store.find_settings([]) == {}
        log = [(entry.actor, entry.act, entry.subject) for entry in await harness.store.list_audit(mine)]
        assert log == [
            ("sam", "disable", "type welcome"),
            ("sam", "disable", "type unasked"),
            ("kim", "enable", "type welcome"),
        ]

    async def test_a_setting_is_found_as_it_was_put(self, harness: StoreHarness) -> None:
        """With who put it and when, in the store's time."""
        said = TypeSetting(enabled=False, recipients=EVERY_KIND, channels=(Channel.SMS, Channel.EMAIL))
        change = SettingChange(enabled=said.enabled, recipients=said.recipients, channels=said.channels)
        for unit in (None, NORTH):
            await harness.elapse(timedelta(minutes=1))
            assert await self.put(harness, change, unit=unit)
            found = await harness.store.find_setting(harness.tenant_id, "welcome", unit)
            assert found is not None
            assert near(found.changed_at, await harness.now())
            assert found == SettingRow(
                event_type="welcome",
                unit=unit,
                enabled=False,
                recipients=EVERY_KIND,
                channels=(Channel.SMS, Channel.EMAIL),
                changed_by="sam",
                changed_at=found.changed_at,
            )
        assert await harness.store.find_setting(harness.tenant_id, "welcome", SOUTH) is None
        assert await harness.store.find_setting(harness.tenant_id, "goodbye", None) is None

    async def test_what_a_change_does_not_name_stays(self, harness: StoreHarness) -> None:
        """Switching a type keeps who gets it; and what is so already has no second entry in the log."""
        await self.put(harness, SettingChange(recipients=(TEACHERS,)))
        await harness.store.set_type_enabled(harness.tenant_id, "welcome", enabled=False, actor="kim")
        assert await self.put(harness, SettingChange(channels=(Channel.SMS,)))
        assert not await self.put(harness, SettingChange(enabled=False, channels=(Channel.SMS,)))
        assert await effective(harness) == EffectiveSetting(
            enabled=False,
            enabled_by=Place.TENANT,
            recipients=(TEACHERS,),
            recipients_by=Place.TENANT,
            channels=(Channel.SMS,),
            channels_by=Place.TENANT,
        )
        assert await harness.store.set_type_enabled(harness.tenant_id, "welcome", enabled=True, actor="kim")
        assert await self.put(harness, SettingChange(channels=None))
        assert await effective(harness) == EffectiveSetting(recipients=(TEACHERS,), recipients_by=Place.TENANT)
        assert len(await harness.store.list_audit(harness.tenant_id)) == 5

    async def test_what_a_unit_leaves_open_is_the_tenants(self, harness: StoreHarness) -> None:
        """For a send of that unit only, and of that tenant only."""
        await self.put(harness, SettingChange(recipients=(TEACHERS,), channels=(Channel.EMAIL,)))
        await self.put(harness, SettingChange(enabled=False, channels=(Channel.SMS,)), unit=NORTH)
        of_tenant = EffectiveSetting(
            recipients=(TEACHERS,),
            recipients_by=Place.TENANT,
            channels=(Channel.EMAIL,),
            channels_by=Place.TENANT,
        )
        assert await effective(harness, unit=NORTH) == EffectiveSetting(
            enabled=False,
            enabled_by=Place.UNIT,
            recipients=(TEACHERS,),
            recipients_by=Place.TENANT,
            channels=(Channel.SMS,),
            channels_by=Place.UNIT,
        )
        assert await effective(harness, unit=SOUTH) == await effective(harness) == of_tenant
        assert await effective(harness, "goodbye", NORTH) == EffectiveSetting()
        assert await effective(harness, unit=NORTH, tenant_id=f"{harness.tenant_id}-2") == EffectiveSetting()

    async def test_a_unit_may_have_on_what_its_tenant_has_off(self, harness: StoreHarness) -> None:
        """That a type is on says something only where it would be off otherwise."""
        await harness.store.set_type_enabled(harness.tenant_id, "welcome", enabled=False, actor="sam")
        assert await self.put(harness, SettingChange(enabled=True), unit=NORTH)
        assert (await effective(harness, unit=NORTH)).enabled
        assert not (await effective(harness)).enabled

    async def test_a_setting_that_says_nothing_any_more_is_gone(self, harness: StoreHarness) -> None:
        """And taking away what is not there is nothing done."""
        for unit in (None, NORTH):
            await self.put(harness, SettingChange(recipients=(TEACHERS,)), unit=unit)
            assert await self.put(harness, SettingChange(enabled=None, recipients=None, channels=None), unit=unit)
            assert not await self.put(harness, SettingChange(recipients=None), unit=unit)
            assert await harness.store.find_setting(harness.tenant_id, "welcome", unit) is None
        assert await harness.store.list_settings(harness.tenant_id, limit=9) == []

    async def test_settings_are_listed_by_type_the_tenants_own_first(self, harness: StoreHarness) -> None:
        """Page by page, and those of this tenant."""
        wanted = [(key, unit) for key in ("Zug", "welcome", "Ärger") for unit in (None, *sorted((NORTH, SOUTH)))]
        for event_type, unit in reversed(wanted):
            await self.put(harness, SettingChange(enabled=False), event_type=event_type, unit=unit)
        await harness.store.set_type_enabled(f"{harness.tenant_id}-2", "welcome", enabled=False, actor="kim")
        listed: list[tuple[str, UUID | None]] = []
        after = ("", "")
        while page := await harness.store.list_settings(harness.tenant_id, after=after, limit=4):
            assert len(page) <= 4
            listed += [(row.event_type, row.unit) for row in page]
            after = (page[-1].event_type, str(page[-1].unit or ""))
        assert listed == wanted

    async def test_of_two_who_change_the_same_at_once_neither_undoes_the_other(self, harness: StoreHarness) -> None:
        """Each changes another part of one setting, before there is any."""
        changes = (
            SettingChange(enabled=False),
            SettingChange(recipients=(TEACHERS,)),
            SettingChange(channels=(Channel.SMS,)),
        )
        for n in range(20):  # whether two meet is chance
            unit, event_type = (None, NORTH)[n % 2], f"type-{n}"
            puts = (self.put(harness, change, event_type=event_type, unit=unit) for change in changes)
            assert all(await asyncio.gather(*puts))
            found = await effective(harness, event_type, unit)
            assert (found.enabled, found.recipients, found.channels) == (False, (TEACHERS,), (Channel.SMS,))
