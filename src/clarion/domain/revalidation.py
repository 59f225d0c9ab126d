"""Revalidation: whether an occurrence that has fallen due is still asked for, and as what. Pure.

Days or months lie between the plan of an occurrence and the day on which it is due, so its setting and its source are
read again then. What is no longer asked for ends with a reason of the closed list, which is an outcome and no failure.
What is asked for under the same key, but of another unit, entity or notification type, is a conflict for a person.
"""

from datetime import date

import msgspec

from clarion.domain import key
from clarion.domain.automation import INPUT_FIELDS, AutomationScheduler
from clarion.domain.fingerprint import Fingerprint
from clarion.domain.occurrence import DateTrigger, Reminder, ThresholdTrigger, Timing, occurrence_row
from clarion.domain.planning import EndReason
from clarion.domain.reminder import EVERY, DateRule, ReminderSetting, ThresholdRule, is_met, on_day_of, trigger_key
from clarion.domain.source import SourceFacts


def asked_for(was: Reminder, setting: ReminderSetting | None, facts: SourceFacts | None) -> Reminder | EndReason:
    """Say as what an occurrence is asked for by its setting and its source as they are now, or why it is not any more.

    `setting` or `facts` are None where there is none any more.
    """
    if setting is None or not setting.active:
        return EndReason.REMINDER_SETTING_INACTIVE
    if setting.source_type != was.source_type or trigger_key(setting.rule) != was.trigger_key:
        return EndReason.REMINDER_SETTING_CHANGED
    if facts is None or not setting.is_about(facts):
        return EndReason.SOURCE_NO_LONGER_VALID
    end = _why_not(setting.rule, was.trigger, facts)
    if end is not None:
        return end
    return msgspec.structs.replace(
        was,
        primary_entity=facts.entity,
        business_unit=facts.business_unit,
        notification_type=setting.notification_type,
    )


def differing_input(row: AutomationScheduler, now: Reminder) -> tuple[str, ...] | None:
    """Name the inputs that an occurrence has otherwise than its row; None where a newer program made the row's hash."""
    given = occurrence_row(now, timing=Timing(scheduled_at=row.scheduled_at), correlation_id=row.correlation_id)
    agrees = given.input_hash.agrees(Fingerprint.stored(row.input_hash.text))
    if agrees is None:
        return None
    names = tuple(name for name in INPUT_FIELDS if getattr(given, name) != getattr(row, name))
    return () if agrees else names or ("input_hash",)


def _why_not(
    rule: DateRule | ThresholdRule, trigger: DateTrigger | ThresholdTrigger, facts: SourceFacts
) -> EndReason | None:
    """Say why a rule no longer asks for what a trigger was planned for; None where it does."""
    match rule, trigger:
        case DateRule(), DateTrigger():
            return _date_why_not(rule, trigger, facts)
        case ThresholdRule(), ThresholdTrigger():
            return _threshold_why_not(rule, trigger, facts)
        case _:
            return EndReason.REMINDER_SETTING_CHANGED


def _date_why_not(rule: DateRule, trigger: DateTrigger, facts: SourceFacts) -> EndReason | None:
    if trigger.offset_days not in rule.offsets:
        return EndReason.REMINDER_SETTING_CHANGED
    day = facts.content.dates.get(rule.field)
    return None if day is not None and _falls_on(rule, day, trigger.target_date) else EndReason.SOURCE_CHANGED


def _falls_on(rule: DateRule, day: date, target: date) -> bool:
    return target == (on_day_of(day, target.year) if rule.yearly and target > day else day)


def _threshold_why_not(rule: ThresholdRule, trigger: ThresholdTrigger, facts: SourceFacts) -> EndReason | None:
    written = key.threshold_value(value=rule.value, firing_policy=rule.policy)
    was = None if trigger.value is None else key.threshold_value(value=trigger.value, firing_policy=rule.policy)
    if (rule.metric, rule.policy, written) != (trigger.metric, trigger.firing_policy, was):
        return EndReason.REMINDER_SETTING_CHANGED
    if rule.scope not in (EVERY, trigger.scope):
        return EndReason.REMINDER_SETTING_CHANGED
    return None if is_met(rule, facts, trigger.scope) else EndReason.THRESHOLD_NO_LONGER_MET
