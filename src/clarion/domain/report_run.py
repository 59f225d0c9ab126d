"""Runs of report subscriptions: what a run tells of, which one follows it, and what becomes of one that is late. Pure.

A subscription's rule parts time into periods: one begins at each instant that the rule plans. The run that is due then
is named by that instant and tells of the period before. One run of a subscription is pending at a time, and whoever
ends it plans the next, so that no instant is left out and none comes twice.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec

from clarion.domain.automation import AutomationScheduler, AutomationStatus, CanceledBy, TriggerType
from clarion.domain.key import read_first_run, report_scheduled_key
from clarion.domain.local_time import time_of_day, to_local, to_utc
from clarion.domain.occurrence import ReportRun, Timing, occurrence_row
from clarion.domain.planning import Deactivation, EndReason, SourcePlan, SourceStanding
from clarion.domain.recurrence import LOOK_BACK, Recurrence
from clarion.domain.report import ReportSubscription
from clarion.domain.report_choice import MissedRuns
from clarion.domain.stored_occurrence import occurrence_of

SOURCE_TYPE: Final = "report-subscription"
"""The source type of every run; its source is the subscription's guid."""

GRACE: Final = timedelta(hours=1)
"""So late a run is not missed yet: a rule is due once an hour at most, and a worker may have been started anew."""

ONCE_PERIOD: Final = timedelta(days=30)
"""What a run tells of whose rule has no other time: it does not say how long its periods are."""

AHEAD_MAX: Final = 5
"""Planned instants that are looked at for one whose run is not over: a person may have canceled the first few."""


class Period(msgspec.Struct, frozen=True, kw_only=True):
    """What a run tells of: from `start_at` on and up to before `end_at`."""

    start_at: datetime
    end_at: datetime


def run_row(
    subscription: ReportSubscription, timing: Timing, *, recurring: bool, correlation_id: str
) -> AutomationScheduler:
    """Make the row of the run that its rule plans for a time."""
    what = ReportRun(
        subscription=subscription.guid,
        period_start_at=timing.scheduled_at,
        recurring=recurring,
        business_unit=subscription.business_unit,
        notification_type=subscription.notification_type,
    )
    return occurrence_row(what, timing=timing, correlation_id=correlation_id)


def manual_row(
    subscription: ReportSubscription, run: UUID, *, now: datetime, correlation_id: str
) -> AutomationScheduler:
    """Make the row of a run that somebody asks for now; it tells of as long a time as a planned one, up to now."""
    what = ReportRun(
        subscription=subscription.guid,
        manual_run=run,
        business_unit=subscription.business_unit,
        notification_type=subscription.notification_type,
    )
    return occurrence_row(what, timing=Timing.at_once(now, subscription.tz_id), correlation_id=correlation_id)


def following_row(
    subscription: ReportSubscription, row: AutomationScheduler, *, handed_until: datetime | None, now: datetime
) -> AutomationScheduler | None:
    """Make the row that follows a run in its chain; None where there is none, or it is none of the chain.

    `handed_until` is where the period ended that was told of; the next run is the first planned behind that. Nothing
    was told where it is None, as of a run that failed: then it is the first that is still to come.
    """
    if not subscription.active or not _is_of_chain(row):
        return None
    recurrence = subscription.recurrence
    # The time zone database may have moved the run since it was named: its local time must not come twice.
    timing = recurrence.after(max(now if handed_until is None else handed_until, row.scheduled_at))
    if timing is None:
        return None
    return run_row(subscription, timing, recurring=not recurrence.is_once, correlation_id=row.correlation_id)


def ruled(subscription: ReportSubscription, row: AutomationScheduler, *, now: datetime) -> Period | EndReason:
    """Rule a run that has fallen due: what it tells of, or why nobody is told."""
    if not subscription.active:
        return EndReason.SUBSCRIPTION_INACTIVE
    run, rerun = occurrence_of(row)
    if not isinstance(run, ReportRun) or not _is_the_same(subscription, row):
        return EndReason.SUBSCRIPTION_CHANGED
    recurrence = subscription.recurrence
    if run.period_start_at is None:
        return Period(start_at=_as_long_before(recurrence, row.scheduled_at), end_at=row.scheduled_at)
    planned_at = run.period_start_at
    if rerun is not None:
        return period_of(recurrence, planned_at)
    if not _is_planned(recurrence, row, planned_at):
        return EndReason.SUBSCRIPTION_CHANGED
    last = recurrence.before(now + timedelta(microseconds=1))
    covered = planned_at if last is None else max(planned_at, last.scheduled_at)
    period = period_of(recurrence, planned_at)
    match subscription.missed:
        case MissedRuns.SKIP:
            return EndReason.RUN_MISSED if _is_missed(row, is_overtaken=covered > planned_at, now=now) else period
        case MissedRuns.CATCH_UP_ONCE:
            return Period(start_at=max(period.start_at, covered - LOOK_BACK), end_at=covered)


def period_of(recurrence: Recurrence, planned_at: datetime) -> Period:
    """Say what the run tells of that is planned for an instant: the time since the instant before."""
    previous = recurrence.before(planned_at)
    start_at = _as_long_before(recurrence, planned_at) if previous is None else previous.scheduled_at
    return Period(start_at=max(start_at, planned_at - LOOK_BACK), end_at=planned_at)


def planned_keys(subscription: ReportSubscription, *, now: datetime) -> tuple[str, ...]:
    """Name the runs that may be planned next, which a plan has to know of."""
    return tuple(
        report_scheduled_key(subscription_guid=subscription.guid, period_start_at=one.scheduled_at)
        for one in _ahead(subscription, now=now)
    )


def plan_of(
    subscription: ReportSubscription, standing: SourceStanding, *, now: datetime, correlation_id: str
) -> SourcePlan:
    """Say what becomes of a subscription's runs: what it no longer wants is deactivated, its next run is ensured.

    A run that is under way is left to its worker, which plans the next one; so is one that is due and still wanted.
    """
    rows = {row.scheduler_key: row for row in standing.open_rows}
    waiting = [row for row in rows.values() if row.status is AutomationStatus.PENDING]
    kept = [row for row in waiting if subscription.active and _is_wanted(subscription, row)]
    wanted = _next_wanted(subscription, rows, kept=kept, now=now, correlation_id=correlation_id)
    reason = EndReason.SUBSCRIPTION_CHANGED if subscription.active else EndReason.SUBSCRIPTION_INACTIVE
    unwanted = [row for row in waiting if row not in kept]
    unwanted += [row for one in wanted if (row := rows.get(one.scheduler_key)) and _is_remade(one, row)]
    return SourcePlan(
        source_type=SOURCE_TYPE,
        source=str(subscription.guid),
        serial=standing.serial,
        deactivate=tuple(
            Deactivation(scheduler_key=row.scheduler_key, version=row.version, reason=reason)
            for row in {row.scheduler_key: row for row in unwanted}.values()
        ),
        ensure=tuple(wanted),
        cause=SOURCE_TYPE,
        at=now,
        correlation_id=correlation_id,
    )


def is_under_way(standing: SourceStanding) -> bool:
    """Tell whether a worker has one of a subscription's runs; what it plans behind it may be what was wanted before."""
    return any(row.status is AutomationStatus.PROCESSING for row in standing.open_rows)


def _next_wanted(
    subscription: ReportSubscription,
    rows: dict[str, AutomationScheduler],
    *,
    kept: Sequence[AutomationScheduler],
    now: datetime,
    correlation_id: str,
) -> list[AutomationScheduler]:
    """Make the row of the next run, unless one of the chain is there or under way."""
    chain = [row for row in kept if row.trigger_type is not TriggerType.MANUAL_RUN]
    running = [row for row in rows.values() if row.status is AutomationStatus.PROCESSING and _is_of_chain(row)]
    if not subscription.active or chain or running:
        return []
    recurring = not subscription.recurrence.is_once
    for timing in _ahead(subscription, now=now):
        row = run_row(subscription, timing, recurring=recurring, correlation_id=correlation_id)
        if not _is_over(rows.get(row.scheduler_key)):
            return [row]
    return []


def _ahead(subscription: ReportSubscription, *, now: datetime) -> list[Timing]:
    if not subscription.active:
        return []
    recurrence, found = subscription.recurrence, list[Timing]()
    while len(found) < AHEAD_MAX and (timing := recurrence.after(found[-1].scheduled_at if found else now)) is not None:
        found.append(timing)
    return found


def _is_wanted(subscription: ReportSubscription, row: AutomationScheduler) -> bool:
    """Tell whether a pending run is still what the subscription says; one that was asked for by hand is in any case."""
    if not _is_the_same(subscription, row):
        return False
    run, rerun = occurrence_of(row)
    planned_at = run.period_start_at if isinstance(run, ReportRun) else None
    return planned_at is None or rerun is not None or _is_planned(subscription.recurrence, row, planned_at)


def _is_of_chain(row: AutomationScheduler) -> bool:
    """Tell whether a run was planned by the rule; by its key, so that one that cannot be read has a next one too."""
    return row.trigger_type is not TriggerType.MANUAL_RUN and read_first_run(row.scheduler_key)[1] is None


def _is_the_same(subscription: ReportSubscription, row: AutomationScheduler) -> bool:
    """Tell whether a row is about what the subscription is about now: its type and its unit are part of its hash."""
    unit = None if subscription.business_unit is None else str(subscription.business_unit)
    return (row.notification_type, row.business_unit) == (subscription.notification_type, unit)


def _is_planned(recurrence: Recurrence, row: AutomationScheduler, planned_at: datetime) -> bool:
    """Tell whether the rule plans the instant that a row is named by, or the local time that it came from.

    They are no longer the same where the time zone database has changed since.
    """
    if recurrence.tz_id != row.tz_id or row.local_date is None or row.local_time is None:
        return False
    local_at = to_utc(row.local_date, time_of_day(row.local_time), row.tz_id)
    return any(
        (timing := recurrence.after(at - timedelta(microseconds=1))) is not None and timing.scheduled_at == at
        for at in (planned_at, local_at)
    )


def _is_missed(row: AutomationScheduler, *, is_overtaken: bool, now: datetime) -> bool:
    """Tell whether nothing worked when a run was due; one that failed or waited its turn was taken up in time."""
    taken_up = row.retry_count > 0 or row.next_retry_at is not None
    return not taken_up and (is_overtaken or now - row.scheduled_at > GRACE)


def _is_over(row: AutomationScheduler | None) -> bool:
    """Tell whether a run is over for good, so that an ensure would not bring it back."""
    if row is None:
        return False
    by_person = row.status is AutomationStatus.CANCELED and row.canceled_by is not CanceledBy.SYSTEM
    return row.status is AutomationStatus.COMPLETED or by_person


def _is_remade(wanted: AutomationScheduler, row: AutomationScheduler) -> bool:
    return wanted.input_hash.text != row.input_hash.text


def _as_long_before(recurrence: Recurrence, at: datetime) -> datetime:
    """Go back from an instant by as long as a period is, counted as a clock on the wall shows it."""
    length, around = ONCE_PERIOD, _two_times(recurrence, at)
    if around is not None:
        first, second = (to_local(one, recurrence.tz_id).replace(tzinfo=None) for one in around)
        length = second - first
    local = to_local(at, recurrence.tz_id).replace(tzinfo=None) - length
    return max(to_utc(local.date(), local.time(), recurrence.tz_id), at - LOOK_BACK)


def _two_times(recurrence: Recurrence, at: datetime) -> Collection[datetime] | None:
    """Give two times of a rule that follow each other, the last two before an instant or the next two."""
    last = recurrence.before(at + timedelta(microseconds=1))
    earlier = None if last is None else recurrence.before(last.scheduled_at)
    if last is not None and earlier is not None:
        return earlier.scheduled_at, last.scheduled_at
    first = last or recurrence.after(at)
    second = None if first is None else recurrence.after(first.scheduled_at)
    return None if first is None or second is None else (first.scheduled_at, second.scheduled_at)
