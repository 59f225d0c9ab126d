"""The law of settings: what holds where a tenant and one of its business units both say something of a type."""

from itertools import product
from uuid import UUID

import pytest
from msgspec.structs import replace

from clarion.domain.audience import Addressee
from clarion.domain.identity import Channel
from clarion.domain.setting import (
    SILENT,
    EffectiveSetting,
    Place,
    SettingChange,
    TypeSetting,
    changed,
    channels_under,
    effective,
    switched_off,
)
from clarion.domain.skip import SkipRule

EMAIL, SMS, PUSH, INBOX = Channel.EMAIL, Channel.SMS, Channel.PUSH, Channel.INBOX
TEACHERS, PARENTS = Addressee(role="teacher"), Addressee(group=UUID(int=1))

# What each of them may say of one part, and beside it what the other may say of the same.
SAID = {
    "enabled": ((None, True, False), True),
    "recipients": ((None, (), (TEACHERS,), (PARENTS, TEACHERS)), ()),
    "channels": ((None, (), (SMS,), (EMAIL, SMS)), None),
}
CASES = [
    (part, of_unit, of_tenant, usual)
    for part, (words, usual) in SAID.items()
    for of_unit, of_tenant in product(words, words)
]


@pytest.mark.parametrize("part, of_unit, of_tenant, usual", CASES)
def test_the_unit_has_the_last_word_on_each_part_then_the_tenant_then_the_type(
    part: str, of_unit: object, of_tenant: object, usual: object
) -> None:
    found = effective(replace(SILENT, **{part: of_unit}), replace(SILENT, **{part: of_tenant}))
    expected: dict[str, object] = {part: usual, f"{part}_by": None}
    if of_tenant is not None:
        expected = {part: of_tenant, f"{part}_by": Place.TENANT}
    if of_unit is not None:
        expected = {part: of_unit, f"{part}_by": Place.UNIT}
    assert found == replace(EffectiveSetting(), **expected)


def test_each_part_is_answered_for_by_itself() -> None:
    of_unit = TypeSetting(recipients=(TEACHERS,))
    of_tenant = TypeSetting(enabled=False, recipients=(PARENTS,), channels=(SMS,))
    assert effective(of_unit, of_tenant) == EffectiveSetting(
        enabled=False,
        enabled_by=Place.TENANT,
        recipients=(TEACHERS,),
        recipients_by=Place.UNIT,
        channels=(SMS,),
        channels_by=Place.TENANT,
    )
    assert effective(None, None) == effective(SILENT, SILENT) == EffectiveSetting()


@pytest.mark.parametrize(
    "of_unit, of_tenant, rule, word",
    [
        (None, None, None, ""),
        (None, False, SkipRule.TYPE_OFF, "tenant"),
        (False, None, SkipRule.SETTING, "unit"),
        (False, False, SkipRule.SETTING, "unit"),
        (False, True, SkipRule.SETTING, "unit"),
        (True, False, None, ""),
    ],
)
def test_what_is_off_says_whose_word_it_was(
    of_unit: bool | None, of_tenant: bool | None, rule: SkipRule | None, word: str
) -> None:
    setting = effective(TypeSetting(enabled=of_unit), TypeSetting(enabled=of_tenant))
    off = switched_off("invoice-overdue", setting)
    assert (None if off is None else off[0]) is rule
    if off is not None:
        assert "'invoice-overdue'" in off[1]
        assert word in off[1]


Given = tuple[tuple[Channel, ...] | None, tuple[Channel, ...], tuple[Channel, ...]]
# The channels of a setting, those of the type, those that a send asks for; then those that it goes by, and those that
# it leaves out with their rules.
CHOICES: list[tuple[Given, str, str]] = [
    ((None, (EMAIL, SMS), ()), "email sms", ""),
    ((None, (EMAIL, SMS), (SMS,)), "sms", ""),
    (((SMS, EMAIL), (EMAIL, SMS), ()), "sms email", ""),
    (((SMS,), (EMAIL, SMS, INBOX), ()), "sms", "email:setting inbox:setting"),
    (((SMS, EMAIL), (EMAIL, SMS, INBOX), (EMAIL, SMS)), "email sms", ""),
    (((SMS,), (EMAIL, SMS), (EMAIL, SMS)), "sms", "email:setting"),
    (((SMS,), (EMAIL, SMS), (EMAIL,)), "", "email:setting"),
    (((PUSH, SMS), (EMAIL, SMS), ()), "sms", "email:setting push:no_template"),
    (((PUSH,), (EMAIL,), ()), "", "email:setting push:no_template"),
    (((), (EMAIL,), ()), "", "email:setting"),
]


@pytest.mark.parametrize("place", Place)
@pytest.mark.parametrize("given, goes, left", CHOICES)
def test_the_channels_of_a_setting_restrict_and_order_those_of_the_type(
    given: Given, goes: str, left: str, place: Place
) -> None:
    of_setting, of_type, asked = given
    setting = EffectiveSetting(channels=of_setting, channels_by=place)
    channels, left_out = channels_under(setting, of_type=of_type, asked=asked)
    assert " ".join(channels) == goes
    assert " ".join(f"{one.channel}:{one.rule}" for one in left_out) == left
    for one in left_out:
        assert one.channel in one.why
        assert place.value in one.why


def test_a_change_keeps_what_it_does_not_name_and_takes_away_what_it_names_as_nothing() -> None:
    before = TypeSetting(enabled=False, recipients=(TEACHERS,), channels=(SMS,))
    for of_unit in (True, False):
        assert changed(before, SettingChange(), of_unit=of_unit) == before
        cleared = changed(before, SettingChange(recipients=None), of_unit=of_unit)
        assert cleared == TypeSetting(enabled=False, channels=(SMS,))
        assert changed(before, SettingChange(enabled=None, recipients=None, channels=None), of_unit=of_unit) == SILENT


def test_that_a_type_is_on_says_something_in_a_unit_only() -> None:
    assert changed(SILENT, SettingChange(enabled=True), of_unit=False) == SILENT
    assert changed(SILENT, SettingChange(enabled=True), of_unit=True) == TypeSetting(enabled=True)
