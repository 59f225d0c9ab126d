"""Settings of a notification type: whether it is on, who gets it where a send names nobody, and by which channels.

An administrator says so for the whole tenant, and for single business units. What a unit leaves open is the tenant's,
and what both leave open the type itself decides: it is on, nobody gets it, and it goes by all of its channels. A unit
answers for each of the three by itself. Pure: rows are read and written by `ports.setting`.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

from clarion.domain.audience import Addressee
from clarion.domain.identity import Channel
from clarion.domain.skip import SkipRule


class Place(StrEnum):
    """Whose setting decided."""

    TENANT = "tenant"
    UNIT = "unit"


PLACE_IN_WORDS: Final = {Place.TENANT: "tenant", Place.UNIT: "business unit"}
"""For people; where no setting decided it is the notification type itself."""


class TypeSetting(msgspec.Struct, frozen=True, kw_only=True):
    """What a tenant, or one of its business units, says of a type; None says nothing."""

    enabled: bool | None = None
    recipients: tuple[Addressee, ...] | None = None
    channels: tuple[Channel, ...] | None = None


SILENT: Final = TypeSetting()
"""What somebody says who says nothing: there is no row of it."""


class SettingChange(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be said from now on; what is not set stays as it is, and None takes it away."""

    enabled: bool | msgspec.UnsetType | None = msgspec.UNSET
    recipients: tuple[Addressee, ...] | msgspec.UnsetType | None = msgspec.UNSET
    channels: tuple[Channel, ...] | msgspec.UnsetType | None = msgspec.UNSET


class EffectiveSetting(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for a type in a business unit, or in no unit; `…_by` says whose setting it is, None the type's own.

    `recipients` is empty where nobody is named, and `channels` is None where all those of the type are meant.
    """

    enabled: bool = True
    enabled_by: Place | None = None
    recipients: tuple[Addressee, ...] = ()
    recipients_by: Place | None = None
    channels: tuple[Channel, ...] | None = None
    channels_by: Place | None = None


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """A channel by which a notification does not go to anybody, whatever is known of them."""

    channel: Channel
    rule: SkipRule
    why: str


def changed(before: TypeSetting, change: SettingChange, *, of_unit: bool) -> TypeSetting:
    """Say what a setting is after a change.

    That a type is on says nothing in the setting of a whole tenant, because it is so anyway; a unit may have something
    on that the tenant has switched off.
    """
    given = {name: value for name, value in msgspec.structs.asdict(change).items() if value is not msgspec.UNSET}
    after = msgspec.structs.replace(before, **given)
    return after if of_unit or not after.enabled else msgspec.structs.replace(after, enabled=None)


def effective(unit_row: TypeSetting | None, tenant_row: TypeSetting | None) -> EffectiveSetting:
    """Say what holds: of each of the three the unit's word or, where it has none, the tenant's."""
    said = [(Place.UNIT, unit_row or SILENT), (Place.TENANT, tenant_row or SILENT)]
    enabled, enabled_by = next(((one.enabled, by) for by, one in said if one.enabled is not None), (True, None))
    recipients, named_by = next(((one.recipients, by) for by, one in said if one.recipients is not None), ((), None))
    channels, channels_by = next(((one.channels, by) for by, one in said if one.channels is not None), (None, None))
    return EffectiveSetting(
        enabled=enabled,
        enabled_by=enabled_by,
        recipients=recipients,
        recipients_by=named_by,
        channels=channels,
        channels_by=channels_by,
    )


def switched_off(event_type: str, setting: EffectiveSetting) -> tuple[SkipRule, str] | None:
    """Say by which rule a notification of the type goes to nobody at all, and why; None where it is on."""
    if setting.enabled:
        return None
    place = setting.enabled_by or Place.TENANT
    rule = SkipRule.SETTING if place is Place.UNIT else SkipRule.TYPE_OFF
    return rule, f"the notification type {event_type!r} is switched off for this {PLACE_IN_WORDS[place]}"


def channels_under(
    setting: EffectiveSetting, *, of_type: Sequence[Channel], asked: Sequence[Channel] = ()
) -> tuple[tuple[Channel, ...], tuple[LeftOut, ...]]:
    """Say by which channels a notification goes, in the order in which they are tried, and which it leaves out and why.

    `of_type` are those of its definition, and `asked` those that the send asks for, if it asks for any: it chooses
    among those that the setting allows, and has them in its own order. A channel of the setting that the definition has
    no longer is left out too.
    """
    if setting.channels is None:
        return tuple(asked or of_type), ()
    allowed = [channel for channel in setting.channels if channel in of_type]
    whose = PLACE_IN_WORDS[setting.channels_by or Place.TENANT]
    left_out = [
        LeftOut(channel=channel, rule=SkipRule.SETTING, why=f"the {whose}'s setting leaves {channel} out")
        for channel in (asked or of_type)
        if channel in of_type and channel not in allowed
    ]
    left_out += [
        LeftOut(
            channel=channel,
            rule=SkipRule.NO_TEMPLATE,
            why=f"the {whose}'s setting names {channel}, which the notification type does not go by any more",
        )
        for channel in setting.channels
        if channel not in of_type
    ]
    chosen = [channel for channel in asked if channel in allowed] if asked else allowed
    return tuple(chosen), tuple(left_out)
