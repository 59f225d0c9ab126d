"""The planner: what is to become of one source's occurrences, from what it is now and what is there already. Pure.

An event, its retry, a changed setting and a repair all come here, so whoever plans last arrives at the same rows under
the same keys. What is wanted is decided in `wanted`; here it is compared with what the store knows:

- missing: ensured, unless it was due longer ago than `GRACE`
- Pending as it is wanted: left alone; with another time: moved, under the same key
- Pending with another input under its key, such as another business unit: made anew under it
- Failed, Deactivated or canceled by the system: ensured again, unless it was due longer ago than `GRACE`
- Completed, claimed by a worker, or canceled by a person: left as it is
- Pending and no longer wanted: deactivated, with the reason; on hold, it is a person's to let go
- a deliberate re-run: left alone, and looked at again when it is due
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Final, assert_never

import msgspec

from clarion.domain.automation import TIMING_FIELDS, AutomationScheduler, AutomationStatus, reactivates
from clarion.domain.key import FiringPolicy, read_first_run
from clarion.domain.occurrence import DateTrigger, Reminder, ThresholdTrigger, Timing, occurrence_key, occurrence_row
from clarion.domain.planning import Deactivation, EndReason, SourcePlan, SourceStanding, ThresholdState
from clarion.domain.reminder import DateRule, ReminderSetting, ThresholdRule, is_met, scopes_of
from clarion.domain.revalidation import asked_for
from clarion.domain.stored_occurrence import occurrence_of
from clarion.domain.wanted import Situation, Wanted, state_key, wanted

GRACE: Final = timedelta(days=1)
"""What was due longer ago than this is not made any more. An event that was lost over night is repaired within it, and
whoever brings in ten years of old records reminds nobody of them."""

States = Mapping[tuple[str, ...], ThresholdState]


def keys_of(situation: Situation, states: Collection[ThresholdState]) -> frozenset[str]:
    """Name the occurrences that are wanted now, whose rows a plan must know whatever their state."""
    after = _states_after(situation, states)
    return frozenset(
        occurrence_key(one.what)
        for one in _all_wanted(situation, after)
        if one.timing.scheduled_at >= situation.now - GRACE
    )


def plan(situation: Situation, standing: SourceStanding, *, cause: str, correlation_id: str) -> SourcePlan:
    """Decide what becomes of a source's occurrences; `cause` names why in the lines of history.

    `standing` has the rows of `keys_of` beside those that are open.
    """
    after = _states_after(situation, standing.states)
    asked = {occurrence_key(one.what): one for one in _all_wanted(situation, after)}
    found = {row.scheduler_key: row for row in standing.open_rows}
    ensure, deactivate, unchanged = [], [], 0
    for key, one in asked.items():
        row = occurrence_row(one.what, timing=_timing(one, found.get(key)), correlation_id=correlation_id)
        made = _made(row, found.get(key), situation)
        if made is None:
            unchanged += key in found
            continue
        ensure.append(made)
        if key in found and made.input_hash.agrees(found[key].input_hash) is False:
            deactivate.append(_ended(found[key], _reason_of_another_input(made, found[key])))
    settings = {str(one.guid): one for one in situation.settings}
    deactivate += [
        _ended(row, _reason(situation, settings.get(row.setting), row))
        for row in standing.open_rows
        if row.scheduler_key not in asked and _may_be_ended(row)
    ]
    before = {one.key: one for one in standing.states}
    return SourcePlan(
        source_type=situation.source_type,
        source=situation.source,
        serial=standing.serial,
        deactivate=tuple(deactivate),
        ensure=tuple(ensure),
        states=tuple(state for key, state in after.items() if state != before.get(key, _unmet(state))),
        unchanged=unchanged,
        cause=cause,
        at=situation.now,
        correlation_id=correlation_id,
    )


def following(
    situation: Situation, setting: ReminderSetting, row: AutomationScheduler, *, correlation_id: str
) -> AutomationScheduler | None:
    """Give the occurrence that keeps a chain going when one of it is over: a yearly one's, or that of another day.

    None where the setting asks for no chain, or for nothing later.
    """
    if not _is_chain(setting):
        return None
    later = [
        one
        for one in wanted(situation, setting, {})
        if _link(one.what) == (row.trigger_key, row.offset_days, row.scope)
        and one.timing.scheduled_at > row.scheduled_at
    ]
    if not later:
        return None
    last = max(later, key=lambda one: one.timing.scheduled_at)
    return occurrence_row(last.what, timing=last.timing, correlation_id=correlation_id)


def _is_chain(setting: ReminderSetting) -> bool:
    match setting.rule:
        case DateRule(yearly=yearly):
            return yearly
        case ThresholdRule(policy=policy):
            return policy is FiringPolicy.ONCE_PER_DAY
        case _:
            assert_never(setting.rule)


def _link(what: Reminder) -> tuple[str, int | None, str | None]:
    """Say which chain an occurrence belongs to."""
    match what.trigger:
        case DateTrigger(offset_days=offset_days):
            return what.trigger_key, offset_days, None
        case ThresholdTrigger(scope=scope):
            return what.trigger_key, None, scope
        case _:
            assert_never(what.trigger)


def _all_wanted(situation: Situation, states: States) -> Sequence[Wanted]:
    return [one for setting in situation.settings for one in wanted(situation, setting, states)]


def _made(
    row: AutomationScheduler, found: AutomationScheduler | None, situation: Situation
) -> AutomationScheduler | None:
    """Give the row to ensure for an occurrence that is wanted; None where what is there is left as it is."""
    is_late = row.scheduled_at < situation.now - GRACE
    if found is None or reactivates(found.status, canceled_by=found.canceled_by):
        return None if is_late or (found is not None and _is_newer(row, found)) else row
    if found.status is not AutomationStatus.PENDING or _is_newer(row, found):
        return None
    has_moved = any(getattr(row, name) != getattr(found, name) for name in TIMING_FIELDS)
    is_the_same = row.input_hash.agrees(found.input_hash)
    return None if is_the_same and (found.on_support_hold or not has_moved) else row


def _timing(one: Wanted, found: AutomationScheduler | None) -> Timing:
    """Say when an occurrence is due, which is as before where it waits and no time of day moves it."""
    if found is None or found.status is not AutomationStatus.PENDING:
        return one.timing
    if found.local_time is None:  # due at once, or made so by a person
        return Timing(**{name: getattr(found, name) for name in TIMING_FIELDS})
    return one.waiting or one.timing


def _is_newer(row: AutomationScheduler, found: AutomationScheduler) -> bool:
    """Tell whether a newer program made a row, to which it is left."""
    return row.input_hash.agrees(found.input_hash) is None


def _may_be_ended(row: AutomationScheduler) -> bool:
    is_rerun = read_first_run(row.scheduler_key)[1] is not None
    return row.status is AutomationStatus.PENDING and not row.on_support_hold and not is_rerun


def _ended(row: AutomationScheduler, reason: EndReason) -> Deactivation:
    return Deactivation(scheduler_key=row.scheduler_key, version=row.version, reason=reason)


def _reason_of_another_input(row: AutomationScheduler, found: AutomationScheduler) -> EndReason:
    """Say why an occurrence is made anew under its key."""
    of_setting = row.notification_type != found.notification_type
    return EndReason.REMINDER_SETTING_CHANGED if of_setting else EndReason.SOURCE_CHANGED


def _reason(situation: Situation, setting: ReminderSetting | None, row: AutomationScheduler) -> EndReason:
    """Say why an occurrence is not wanted any more."""
    if setting is None:
        return EndReason.REMINDER_SETTING_CHANGED  # settings are never removed: it is about another type of source now
    what, _ = occurrence_of(row)
    asked = asked_for(what, setting, situation.facts) if isinstance(what, Reminder) else None
    # What is asked for still, but not now, is of a day or a year that is over: the next one says the same.
    return asked if isinstance(asked, EndReason) else EndReason.RUN_MISSED


def _states_after(situation: Situation, states: Collection[ThresholdState]) -> States:
    """Look at every threshold; a setting that is not active looks at nothing, and its states stay as they were."""
    after = {one.key: one for one in states}
    for setting in situation.settings:
        if setting.active:
            for state in _looked_at(situation, setting, after):
                after[state.key] = state
    return after


def _looked_at(situation: Situation, setting: ReminderSetting, before: States) -> Sequence[ThresholdState]:
    """Say what each state of one setting is now: where it has just become true, the edge has the next number."""
    found: dict[tuple[str, ...], ThresholdState] = {}
    facts = situation.watched(setting)
    rule = setting.rule
    if facts is not None and isinstance(rule, ThresholdRule):
        for scope in scopes_of(rule, facts):
            key = state_key(setting, rule, facts, scope)
            state = before.get(key) or _new_state(key)
            met = is_met(rule, facts, scope)
            edge_no = state.edge_no + (met and not state.met)
            found[key] = msgspec.structs.replace(state, met=met, edge_no=edge_no)
    guid = str(setting.guid)
    for key, state in before.items():
        if state.setting == guid and key not in found:  # the source, the metric or the part is not looked at any more
            found[key] = msgspec.structs.replace(state, met=False)
    return list(found.values())


def _new_state(key: tuple[str, ...]) -> ThresholdState:
    setting, source_type, source, metric, scope = key
    return ThresholdState(setting=setting, source_type=source_type, source=source, metric=metric, scope=scope)


def _unmet(state: ThresholdState) -> ThresholdState:
    """Give the state that a threshold has before it was ever met, which is not stored."""
    return _new_state(state.key)
