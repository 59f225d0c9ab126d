"""Wanted occurrences: what the reminder settings ask for at one source, as it is now. Pure.

Dates are reckoned as local dates, and turned into instants at the end (`local_time`). A threshold that is met is due at
once. What becomes of occurrences that are there already is decided by `plan`.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Final, assert_never

import msgspec

from clarion.domain.key import FiringPolicy
from clarion.domain.local_time import local_date, time_of_day
from clarion.domain.occurrence import DateTrigger, Reminder, ThresholdTrigger, Timing
from clarion.domain.planning import ThresholdState
from clarion.domain.reminder import (
    DateRule,
    ReminderSetting,
    ThresholdRule,
    is_met,
    on_day_of,
    scopes_of,
    trigger_key,
)
from clarion.domain.source import SourceFacts
from clarion.errors import InvalidInput

YEARLY_AHEAD: Final = timedelta(days=731)
"""Two years: the next time of a yearly reminder and the one after it wait already, so that it goes on even where a
person cancels the next one."""

YEARLY_BEHIND: Final = timedelta(days=366)
"""The last time of a yearly reminder, which may still be waiting to be told."""

_DAY: Final = timedelta(days=1)


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan goes by: one source as it is now, None where it is not there, and all settings about its type.

    `tz_id` is the zone of the source's business unit.
    """

    source_type: str
    source: str
    facts: SourceFacts | None
    settings: Sequence[ReminderSetting]
    tz_id: str
    now: datetime

    @property
    def today(self) -> date:
        """Tell which day it is where the source is."""
        return local_date(self.now, self.tz_id)

    def watched(self, setting: ReminderSetting) -> SourceFacts | None:
        """Give the source if a setting looks at it."""
        return self.facts if self.facts is not None and setting.is_about(self.facts) else None


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """One occurrence that a setting asks for, and when it is due; `waiting` where one that waits already is due later.

    A daily one that is met for the first time is told at once. On later days its row waits for the time of day.
    """

    what: Reminder
    timing: Timing
    waiting: Timing | None = None


def wanted(
    situation: Situation, setting: ReminderSetting, states: Mapping[tuple[str, ...], ThresholdState]
) -> Iterator[Wanted]:
    """List what one setting asks for; `states` are those of thresholds as they are after looking at the source."""
    facts = situation.watched(setting)
    if facts is None:
        return
    match setting.rule:
        case DateRule() as rule:
            yield from _by_date(situation, setting, rule, facts)
        case ThresholdRule() as rule:
            yield from _by_threshold(situation, setting, rule, facts, states)
        case _:
            assert_never(setting.rule)


def state_key(setting: ReminderSetting, rule: ThresholdRule, facts: SourceFacts, scope: str) -> tuple[str, ...]:
    """Name the last truth of a threshold in a part of a source."""
    return (str(setting.guid), facts.source_type, facts.source, rule.metric, scope)


def _by_date(situation: Situation, setting: ReminderSetting, rule: DateRule, facts: SourceFacts) -> Iterator[Wanted]:
    day = facts.content.dates.get(rule.field)
    if day is None:
        return
    at = time_of_day(setting.send_time)
    for offset in dict.fromkeys(rule.offsets):
        for target in _anniversaries(day, offset=offset, today=situation.today) if rule.yearly else (day,):
            try:
                timing = Timing.at_local(target - timedelta(days=offset), at, situation.tz_id)
            except (InvalidInput, OverflowError):
                continue  # outside of the calendar: some write the year 9999 for never
            trigger = DateTrigger(target_date=target, offset_days=offset)
            yield Wanted(what=_reminder(setting, facts, trigger), timing=timing)


def _anniversaries(day: date, *, offset: int, today: date) -> Iterator[date]:
    """List the dates whose reminders are due within the window of a yearly rule, from the day itself on."""
    first = max(day, today - YEARLY_BEHIND + timedelta(days=offset))
    last = today + YEARLY_AHEAD + timedelta(days=offset)
    for year in range(first.year, last.year + 1):
        target = on_day_of(day, year)
        if first <= target <= last:
            yield target


def _by_threshold(
    situation: Situation,
    setting: ReminderSetting,
    rule: ThresholdRule,
    facts: SourceFacts,
    states: Mapping[tuple[str, ...], ThresholdState],
) -> Iterator[Wanted]:
    at_once = Timing.at_once(situation.now, situation.tz_id)
    for scope in scopes_of(rule, facts):
        if not is_met(rule, facts, scope):
            continue
        trigger = ThresholdTrigger(
            metric=rule.metric,
            value=None if rule.policy is FiringPolicy.ONCE_PER_SOURCE else rule.value,
            firing_policy=rule.policy,
            scope=scope,
        )
        match rule.policy:
            case FiringPolicy.ONCE_PER_SOURCE | FiringPolicy.ONCE_PER_THRESHOLD:
                yield Wanted(what=_reminder(setting, facts, trigger), timing=at_once)
            case FiringPolicy.FALSE_TO_TRUE:
                edge_no = states[state_key(setting, rule, facts, scope)].edge_no
                edge = msgspec.structs.replace(trigger, edge_no=edge_no)
                yield Wanted(what=_reminder(setting, facts, edge), timing=at_once)
            case FiringPolicy.ONCE_PER_DAY:
                # Today's and tomorrow's: it goes on while nobody touches the source.
                for day in (situation.today, situation.today + _DAY):
                    timing = Timing.at_local(day, time_of_day(setting.send_time), situation.tz_id)
                    daily = msgspec.structs.replace(trigger, local_date=day)
                    yield Wanted(
                        what=_reminder(setting, facts, daily),
                        timing=at_once if day == situation.today else timing,
                        waiting=timing,
                    )
            case _:
                assert_never(rule.policy)


def _reminder(setting: ReminderSetting, facts: SourceFacts, trigger: DateTrigger | ThresholdTrigger) -> Reminder:
    return Reminder(
        setting=str(setting.guid),
        source_type=facts.source_type,
        source=facts.source,
        trigger_key=trigger_key(setting.rule),
        trigger=trigger,
        primary_entity=facts.entity,
        business_unit=facts.business_unit,
        notification_type=setting.notification_type,
    )
