"""What a tenant and its business units say of notification types: whether one is on, who gets it, by which channels.

Everything that is named is looked up before anything is stored, so that a setting is put as a whole or not at all. A
role and a relation are words: that nobody holds one yet is no mistake.
"""

from collections.abc import Sequence
from uuid import UUID

import msgspec

from clarion.domain.audience import Addressee, require_addressees
from clarion.domain.identity import Channel
from clarion.domain.setting import SettingChange
from clarion.errors import InvalidInput
from clarion.ports.facts import FactStore
from clarion.ports.group import GroupStore
from clarion.ports.setting import SettingStore
from clarion.ports.templates import Templates


class TypeSettings:
    """Changes settings of notification types."""

    def __init__(self, *, settings: SettingStore, facts: FactStore, groups: GroupStore, templates: Templates) -> None:
        """Store in `settings` what `facts`, `groups` and the published `templates` allow."""
        self._settings = settings
        self._facts = facts
        self._groups = groups
        self._templates = templates

    async def change(
        self, tenant_id: str, event_type: str, unit: UUID | None, change: SettingChange, *, actor: str
    ) -> bool | None:
        """Change the setting of the whole tenant or of a business unit; audited.

        False where it is so already, None where the type is not published. Raises InvalidInput, and changes nothing,
        where it names what there is not.
        """
        (published,) = await self._templates.latest([(tenant_id, event_type)])
        if published.bundle is None:
            return None
        await require_unit(self._facts, tenant_id, unit)
        if change.recipients is not msgspec.UNSET and change.recipients is not None:
            await self._check_recipients(tenant_id, change.recipients)
        if change.channels is not msgspec.UNSET and change.channels is not None:
            _check_channels(event_type, change.channels, published.bundle.definition.channels)
        return await self._settings.put_setting(tenant_id, event_type, unit, change, actor=actor)

    async def _check_recipients(self, tenant_id: str, recipients: Sequence[Addressee]) -> None:
        """Refuse addressees that are too many, none, named twice, or groups that there are not."""
        require_addressees(recipients, field="recipients")
        for place, one in enumerate(recipients):
            if one.group is not None and await self._groups.find_group(tenant_id, one.group) is None:
                raise InvalidInput(
                    f"the tenant has no group {one.group}",
                    field=f"recipients[{place}].group",
                    hint="name one that `clarion groups list` shows, or add it first",
                )


async def require_unit(facts: FactStore, tenant_id: str, unit: UUID | None) -> None:
    """Refuse a business unit that the tenant does not have; naming none costs no look-up."""
    if unit is not None and unit not in await facts.find_local_forms(tenant_id, [unit]):
        raise InvalidInput(
            "the tenant has no such business unit",
            field="business_unit",
            hint="name one that `clarion units list` shows, or add it with `clarion units put`",
        )


def _check_channels(event_type: str, channels: Sequence[Channel], of_type: Sequence[Channel]) -> None:
    """Refuse channels that the type does not have, and one that is named twice."""
    goes = f"it goes by {', '.join(of_type)}"
    if not channels:
        raise InvalidInput("it names none", field="channels", hint=f"{goes}; leave it out for all of them")
    for place, channel in enumerate(channels):
        if channel not in of_type:
            raise InvalidInput(
                f"the notification type {event_type!r} is not sent by {channel}",
                field=f"channels[{place}]",
                hint=f"{goes}; name some of these, or add the channel to the definition",
            )
        if channel in channels[:place]:
            raise InvalidInput(f"{channel} is named twice", field=f"channels[{place}]", hint="name each channel once")
