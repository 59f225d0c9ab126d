"""Reminder settings: for which sources, when, and whom a reminder tells. Pure.

A setting is a rule over sources of one type: a date with offsets, or a metric with a threshold. What falls due because
of it is planned by `plan`; what it says of type, recipients and business unit is read again when it is due.
"""

from calendar import isleap
from collections.abc import Sequence
from datetime import date, datetime
from enum import StrEnum
from math import isfinite
from typing import Annotated, Final, assert_never
from uuid import UUID

import msgspec

from clarion.domain.audience import Addressee, require_addressees
from clarion.domain.key import FiringPolicy
from clarion.domain.part import END, UNSEEN
from clarion.domain.source import SCOPE_CHARS_MAX, WHOLE, FieldName, FieldValue, SourceFacts, SourceType
from clarion.errors import InvalidInput

OFFSETS_MAX: Final = 20
"""Reminders about one date: more than anybody wants to get."""

EVERY: Final = "*"
"""As the scope of a threshold: every part of the source that has the metric."""

CONDITIONS_MAX: Final = 20

SETTINGS_MAX: Final = 200
"""About sources of one type, whether they are on or off."""

SETTINGS_BYTES_MAX: Final = 1024 * 1024
"""Of all settings about sources of one type, as JSON: all of them are read for each event about one."""

SETTING_BYTES_MAX: Final = 32 * 1024
"""As JSON: twenty conditions with twenty values each have room, and all settings of a type are read for each event."""

OFFSET_DAYS_MAX: Final = 3660
"""Ten years, either way."""

Scope = Annotated[str, msgspec.Meta(min_length=1, max_length=SCOPE_CHARS_MAX, pattern=rf"^(?=.*\S)[^{UNSEEN}]+{END}")]

SendTime = Annotated[str, msgspec.Meta(pattern=r"^([01]\d|2[0-3]):[0-5]\d" + END)]
"""The time of day in the business unit's zone."""

OffsetDays = Annotated[int, msgspec.Meta(ge=-OFFSET_DAYS_MAX, le=OFFSET_DAYS_MAX)]


class Operator(StrEnum):
    """How a condition compares a source's field with its values."""

    IS = "is"
    IS_NOT = "is_not"


class Condition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One condition of a filter: the field has one of these values, or none of them."""

    field: FieldName
    op: Operator = Operator.IS
    values: Annotated[tuple[FieldValue, ...], msgspec.Meta(min_length=1, max_length=CONDITIONS_MAX)]

    def holds(self, facts: SourceFacts) -> bool:
        """Tell whether a source meets it; a field that a source has not is None."""
        value = facts.content.fields.get(self.field)
        found = any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in self.values)
        return found is (self.op is Operator.IS)


class DateRule(msgspec.Struct, frozen=True, kw_only=True, tag="date", tag_field="on", forbid_unknown_fields=True):
    """So many days before a date of the source: 30 is a month before, 0 on the day, -7 a week after it.

    A yearly one falls on the day's month and day in every year; 29 February falls on the 28th in common years.
    """

    field: FieldName
    offsets: Annotated[tuple[OffsetDays, ...], msgspec.Meta(min_length=1, max_length=OFFSETS_MAX)] = (0,)
    yearly: bool = False


class Comparison(StrEnum):
    """On which side of its value a threshold is met."""

    AT_LEAST = "at_least"
    AT_MOST = "at_most"


class ThresholdRule(
    msgspec.Struct, frozen=True, kw_only=True, tag="threshold", tag_field="on", forbid_unknown_fields=True
):
    """Once a metric of the source is at a value or beyond it.

    `scope` is the part of the source that is looked at; with `*` every part is, each by itself.
    """

    metric: FieldName
    compare: Comparison = Comparison.AT_LEAST
    value: float
    scope: Scope = WHOLE
    policy: FiringPolicy = FiringPolicy.ONCE_PER_THRESHOLD

    def is_met(self, value: float) -> bool:
        """Tell whether a value of the metric meets it."""
        return value >= self.value if self.compare is Comparison.AT_LEAST else value <= self.value


Rule = DateRule | ThresholdRule


def trigger_key(rule: Rule) -> str:
    """Name what a rule looks at, as the keys of its occurrences have it."""
    return rule.field if isinstance(rule, DateRule) else rule.metric


def on_day_of(day: date, year: int) -> date:
    """Give the month and day of a date in another year; 29 February is the 28th in a common one."""
    is_leap = (day.month, day.day) == (2, 29) and not isleap(year)
    return day.replace(year=year, day=28 if is_leap else day.day)


def scopes_of(rule: ThresholdRule, facts: SourceFacts) -> tuple[str, ...]:
    """Name the parts of a source that a threshold looks at."""
    return facts.scopes(rule.metric) if rule.scope == EVERY else (rule.scope,)


def is_met(rule: ThresholdRule, facts: SourceFacts, scope: str) -> bool:
    """Tell whether a threshold is met in a part of a source; a metric that the source has not meets none."""
    value = facts.metric(rule.metric, scope)
    return value is not None and rule.is_met(value)


class ReminderSetting(msgspec.Struct, frozen=True, kw_only=True):
    """One reminder setting as an administrator writes it.

    Of a `business_unit` it is only for sources of that unit. `recipients` are whom it tells; None leaves that to the
    settings of the notification type. `inbox_only` makes the line in the inbox and nothing else. `long_runner` approves
    that its provider's long runs are tried again daily instead of being held.
    """

    guid: UUID
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    source_type: SourceType
    conditions: Annotated[tuple[Condition, ...], msgspec.Meta(max_length=CONDITIONS_MAX)] = ()
    rule: Rule
    send_time: SendTime = "09:00"
    notification_type: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    recipients: tuple[Addressee, ...] | None = None
    business_unit: UUID | None = None
    inbox_only: bool = False
    long_runner: bool = False
    active: bool = True

    def is_about(self, facts: SourceFacts) -> bool:
        """Tell whether a source is one that this setting looks at."""
        return (
            self.active
            and facts.active
            and facts.source_type == self.source_type
            and (self.business_unit is None or self.business_unit == facts.business_unit)
            and all(condition.holds(facts) for condition in self.conditions)
        )


class SettingRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A setting as it is stored. While `planned_version` is behind `version`, its sources are planned anew."""

    setting: ReminderSetting
    version: int = 1
    planned_version: int = 0
    changed_by: str
    changed_at: datetime


def require_setting(setting: ReminderSetting) -> ReminderSetting:
    """Refuse a setting that cannot be meant although its parts fit their shapes; what it names is looked up elsewhere.

    A file of TOML can hold a number that is none, which JSON cannot.
    """
    if setting.recipients is not None:
        require_addressees(setting.recipients, field="recipients")
    for place, condition in enumerate(setting.conditions):
        field = f"conditions[{place}].values"
        _require_once(condition.values, field=field)
        for number, value in enumerate(condition.values):
            if isinstance(value, float) and not isfinite(value):
                raise InvalidInput("it is no number", field=f"{field}[{number}]", hint="write a number, text or null")
    match setting.rule:
        case DateRule(offsets=offsets):
            _require_once(offsets, field="rule.offsets")
        case ThresholdRule(value=value):
            if not isfinite(value):
                raise InvalidInput("it is no number", field="rule.value", hint="write the value from which it is met")
        case _:
            assert_never(setting.rule)
    return setting


def setting_text(setting: ReminderSetting) -> str:
    """Write a setting as it is stored, or refuse one that is too long."""
    text = msgspec.json.encode(setting)
    if len(text) > SETTING_BYTES_MAX:
        raise InvalidInput(
            f"the setting is {len(text)} bytes long as JSON",
            field="conditions",
            hint=f"use shorter values, or fewer: {SETTING_BYTES_MAX} bytes is the most",
        )
    return text.decode()


def _require_once(values: Sequence[object], *, field: str) -> None:
    """Refuse what stands in a list twice; true and 1 are two values, as for a condition."""
    seen = [(type(one) is bool, one) for one in values]
    for place, one in enumerate(seen):
        if one in seen[:place]:
            raise InvalidInput(f"{one[1]!r:.40} stands there twice", field=f"{field}[{place}]", hint="write it once")
