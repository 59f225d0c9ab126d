"""Runs of report subscriptions: what each tells of, which one follows, and what becomes of those that were missed.

What is expected is written as a clock on the wall in Vienna shows it, which goes back on 25 October 2026 and forward on
28 March 2027.
"""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clarion.domain.automation import AutomationScheduler, AutomationStatus, CanceledBy, TriggerType
from clarion.domain.identity import Identity
from clarion.domain.occurrence import Timing
from clarion.domain.planning import EndReason, SourceStanding
from clarion.domain.report import ReportSubscription, require_subscription
from clarion.domain.report_choice import MissedRuns
from clarion.domain.report_run import (
    Period,
    following_row,
    manual_row,
    period_of,
    plan_of,
    ruled,
    run_row,
)
from clarion.errors import InvalidInput
from clarion.testing.factories import guid

VIENNA = ZoneInfo("Europe/Vienna")
WEEKLY = "FREQ=WEEKLY;BYDAY=MO;BYHOUR=8"


def at(text: str) -> datetime:
    """Read a time on a wall in Vienna."""
    return datetime.strptime(text, "%Y-%m-%d %H:%M").replace(tzinfo=VIENNA).astimezone(UTC)


def wall(instant: datetime) -> str:
    return f"{instant.astimezone(VIENNA):%Y-%m-%d %H:%M}"


def shown(period: Period | EndReason) -> tuple[str, str] | EndReason:
    return period if isinstance(period, EndReason) else (wall(period.start_at), wall(period.end_at))


def subscription(**fields: object) -> ReportSubscription:
    plain = ReportSubscription(
        guid=guid(1, "subscription"),
        name="Weekly",
        report="delivery-summary",
        rule=WEEKLY,
        tz_id="Europe/Vienna",
        notification_type="weekly-report",
    )
    return msgspec.structs.replace(plain, **fields)


def planned(said: ReportSubscription, *, after: str) -> AutomationScheduler:
    """Make the row of the first run behind a time."""
    timing = said.recurrence.after(at(after))
    assert timing is not None
    return run_row(said, timing, recurring=True, correlation_id="c")


@pytest.mark.parametrize(
    "rule, due, expected",
    [
        (WEEKLY, "2026-11-23 08:00", ("2026-11-16 08:00", "2026-11-23 08:00")),
        (WEEKLY, "2026-10-26 08:00", ("2026-10-19 08:00", "2026-10-26 08:00")),  # 169 hours
        (WEEKLY, "2027-03-29 08:00", ("2027-03-22 08:00", "2027-03-29 08:00")),  # 167 hours
        ("FREQ=HOURLY", "2026-11-19 14:00", ("2026-11-19 13:00", "2026-11-19 14:00")),
        ("0 7 1 * *", "2026-12-01 07:00", ("2026-11-01 07:00", "2026-12-01 07:00")),
        ("30 2 * * *", "2027-03-29 02:30", ("2027-03-28 03:30", "2027-03-29 02:30")),  # 02:30 was skipped
        ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=28;BYHOUR=9", "2028-02-28 09:00", ("2027-02-28 09:00", "2028-02-28 09:00")),
    ],
)
def test_a_run_tells_of_the_time_since_the_one_before(rule: str, due: str, expected: tuple[str, str]) -> None:
    assert shown(period_of(subscription(rule=rule).recurrence, at(due))) == expected


def test_the_first_run_of_all_tells_of_as_long_a_time_as_those_after_it() -> None:
    first = subscription(rule="FREQ=WEEKLY;INTERVAL=2", starts_at=at("2026-10-26 08:00"))
    assert shown(period_of(first.recurrence, at("2026-10-26 08:00"))) == ("2026-10-12 08:00", "2026-10-26 08:00")
    once = subscription(rule="FREQ=DAILY;COUNT=1", starts_at=at("2026-11-20 08:00"))
    assert shown(period_of(once.recurrence, at("2026-11-20 08:00"))) == ("2026-10-21 08:00", "2026-11-20 08:00")


@given(
    rule=st.sampled_from((WEEKLY, "FREQ=DAILY;BYHOUR=2;BYMINUTE=30", "0 3 */3 * *", "FREQ=MONTHLY;BYDAY=-1FR")),
    since=st.datetimes(datetime(2026, 1, 1), datetime(2027, 12, 1)),  # noqa: DTZ001  a zone is given next
    tz_id=st.sampled_from(("Europe/Vienna", "America/Sao_Paulo", "Australia/Lord_Howe", "Africa/Cairo")),
)
def test_periods_follow_each_other_without_a_gap_and_without_an_overlap(rule: str, since: datetime, tz_id: str) -> None:
    said = subscription(rule=rule, tz_id=tz_id)
    timing = said.recurrence.after(since.replace(tzinfo=UTC))
    assert timing is not None
    row = run_row(said, timing, recurring=True, correlation_id="c")
    for _ in range(3):
        period = ruled(said, row, now=row.scheduled_at)
        assert isinstance(period, Period)
        following = following_row(said, row, handed_until=period.end_at, now=row.scheduled_at)
        assert following is not None
        later = ruled(said, following, now=following.scheduled_at)
        assert isinstance(later, Period)
        assert (period.end_at, later.start_at) == (row.scheduled_at, row.scheduled_at)
        assert following.scheduler_key != row.scheduler_key
        row = following


def test_a_run_that_was_missed_is_caught_up_with_once_over_all_that_was_missed() -> None:
    said = subscription()
    row = planned(said, after="2026-11-01 00:00")
    now = at("2026-11-19 12:00")
    period = ruled(said, row, now=now)
    assert shown(period) == ("2026-10-26 08:00", "2026-11-16 08:00")
    assert isinstance(period, Period)
    following = following_row(said, row, handed_until=period.end_at, now=now)
    assert following is not None
    assert wall(following.scheduled_at) == "2026-11-23 08:00"


@pytest.mark.parametrize(
    "now, change, expected",
    [
        ("2026-11-02 08:59", {}, ("2026-10-26 08:00", "2026-11-02 08:00")),
        ("2026-11-02 09:01", {}, EndReason.RUN_MISSED),
        ("2026-11-02 10:30", {"retry_count": 2}, ("2026-10-26 08:00", "2026-11-02 08:00")),  # it was tried in time
        # It waited its turn.
        ("2026-11-02 10:30", {"next_retry_at": at("2026-11-02 08:05")}, ("2026-10-26 08:00", "2026-11-02 08:00")),
        ("2026-11-19 12:00", {}, EndReason.RUN_MISSED),
    ],
)
def test_a_run_that_was_missed_is_left_out_where_that_is_wanted(
    now: str, change: dict[str, object], expected: object
) -> None:
    said = subscription(missed=MissedRuns.SKIP)
    row = msgspec.structs.replace(planned(said, after="2026-11-01 00:00"), **change)
    assert shown(ruled(said, row, now=at(now))) == expected
    following = following_row(said, row, handed_until=None, now=at("2026-11-19 12:00"))
    assert following is not None
    assert wall(following.scheduled_at) == "2026-11-23 08:00"


def test_a_run_by_hand_tells_of_as_long_a_time_up_to_now_and_is_followed_by_nothing() -> None:
    said = subscription()
    row = manual_row(said, guid(1, "run"), now=at("2026-11-19 12:00"), correlation_id="c")
    assert row.trigger_type is TriggerType.MANUAL_RUN
    assert row.scheduler_key == f"report-subscription:{said.guid}:manual:{guid(1, 'run')}"
    assert shown(ruled(said, row, now=at("2026-11-19 13:00"))) == ("2026-11-12 12:00", "2026-11-19 12:00")
    assert following_row(said, row, handed_until=row.scheduled_at, now=row.scheduled_at) is None
    first = planned(said, after="2026-11-01 00:00")
    rerun = msgspec.structs.replace(first, scheduler_key=f"{first.scheduler_key}:retry:1")
    assert following_row(said, rerun, handed_until=first.scheduled_at, now=first.scheduled_at) is None


@pytest.mark.parametrize(
    "change, expected",
    [
        ({"active": False}, EndReason.SUBSCRIPTION_INACTIVE),
        ({"rule": "0 9 * * MON"}, EndReason.SUBSCRIPTION_CHANGED),
        ({"tz_id": "Europe/London"}, EndReason.SUBSCRIPTION_CHANGED),
        ({"notification_type": "another"}, EndReason.SUBSCRIPTION_CHANGED),
        ({"business_unit": guid(1, "unit")}, EndReason.SUBSCRIPTION_CHANGED),
        ({"to": (Identity.user("9"),), "parameters": {"type": "x"}}, ("2026-10-26 08:00", "2026-11-02 08:00")),
    ],
)
def test_what_a_run_is_about_is_looked_at_again_when_it_is_due(change: dict[str, object], expected: object) -> None:
    row = planned(subscription(), after="2026-11-01 00:00")
    assert shown(ruled(subscription(**change), row, now=at("2026-11-02 08:00"))) == expected


def test_a_run_that_newer_tables_of_zones_have_moved_is_still_the_same_and_comes_once() -> None:
    said = subscription()
    old = run_row(
        said,
        Timing(
            scheduled_at=at("2026-11-23 09:00"),
            local_date=at("2026-11-23 08:00").date(),
            local_time="08:00",
            tz_id="Europe/Vienna",
        ),
        recurring=True,
        correlation_id="c",
    )
    assert isinstance(ruled(said, old, now=at("2026-11-23 09:00")), Period)
    following = following_row(said, old, handed_until=at("2026-11-23 08:00"), now=at("2026-11-23 09:00"))
    assert following is not None
    assert wall(following.scheduled_at) == "2026-11-30 08:00"


NOW = at("2026-11-19 12:00")


def plan(said: ReportSubscription, *rows: AutomationScheduler) -> tuple[list[tuple[str, str]], list[str]]:
    """Say what a plan deactivates and why, and when what it ensures is due."""
    standing = SourceStanding(source_type="report-subscription", source=str(said.guid), serial=3, open_rows=rows)
    made = plan_of(said, standing, now=NOW, correlation_id="c")
    assert made.serial == 3
    by_key = {row.scheduler_key: row for row in rows}
    off = [(wall(by_key[one.scheduler_key].scheduled_at), one.reason.value) for one in made.deactivate]
    return off, [wall(one.scheduled_at) for one in made.ensure]


def test_a_plan_keeps_what_is_wanted_and_replaces_what_is_not() -> None:
    said = subscription()
    waiting = planned(said, after="2026-11-19 12:00")
    overdue = planned(said, after="2026-11-09 12:00")
    assert plan(said) == ([], ["2026-11-23 08:00"])
    assert plan(said, waiting) == ([], [])
    assert plan(said, overdue) == ([], [])  # it is caught up with, and whoever ends it plans the next
    daily = subscription(rule="0 7 * * *")
    assert plan(daily, waiting) == ([("2026-11-23 08:00", "SubscriptionChanged")], ["2026-11-20 07:00"])
    off = subscription(active=False)
    assert plan(off, waiting) == ([("2026-11-23 08:00", "SubscriptionInactive")], [])


@pytest.mark.parametrize(
    "rule, trigger",
    [
        ("FREQ=DAILY;BYHOUR=8", TriggerType.RECURRING),
        ("FREQ=DAILY;BYHOUR=8;COUNT=1", TriggerType.SCHEDULED_RUN),
    ],
)
def test_one_planned_instant_is_a_scheduled_run_and_a_rule_makes_recurring_ones(
    rule: str, trigger: TriggerType
) -> None:
    said = subscription(rule=rule, starts_at=at("2026-12-01 00:00"))
    standing = SourceStanding(source_type="report-subscription", source=str(said.guid))
    (run,) = plan_of(said, standing, now=NOW, correlation_id="c").ensure
    assert run.trigger_type is trigger


def test_a_plan_makes_a_run_anew_that_is_about_something_else() -> None:
    said = subscription()
    waiting = planned(said, after="2026-11-19 12:00")
    other = subscription(notification_type="another")
    assert plan(other, waiting) == ([("2026-11-23 08:00", "SubscriptionChanged")], ["2026-11-23 08:00"])


@pytest.mark.parametrize(
    "change, expected",
    [
        ({"status": AutomationStatus.COMPLETED}, ["2026-11-30 08:00"]),
        ({"status": AutomationStatus.CANCELED, "canceled_by": CanceledBy.PERSON}, ["2026-11-30 08:00"]),
        ({"status": AutomationStatus.CANCELED, "canceled_by": CanceledBy.SYSTEM}, ["2026-11-23 08:00"]),
        ({"status": AutomationStatus.DEACTIVATED}, ["2026-11-23 08:00"]),
        ({"status": AutomationStatus.PROCESSING}, []),
    ],
)
def test_a_plan_goes_on_behind_what_is_over(change: dict[str, object], expected: list[str]) -> None:
    said = subscription()
    row = msgspec.structs.replace(planned(said, after="2026-11-19 12:00"), **change)
    assert plan(said, row) == ([], expected)


@pytest.mark.parametrize(
    "change, field",
    [
        ({"tz_id": "Mars/Olympus"}, "tz_id"),
        ({"rule": "FREQ=MINUTELY"}, "rule"),
        ({"rule": "0 8 30 2 *"}, "rule"),
        ({"rule": "FREQ=DAILY;UNTIL=20200101"}, "rule"),
        ({"rule": "FREQ=DAILY;COUNT=3"}, "starts_at"),
        ({"starts_at": NOW, "ends_at": NOW - timedelta(days=1)}, "ends_at"),
        ({"to": (Identity.address("sam@example.com"),)}, "to[0]"),
    ],
)
def test_what_could_never_be_kept_is_refused_by_its_field(change: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        require_subscription(subscription(**change), now=NOW)
    assert refused.value.field == field
