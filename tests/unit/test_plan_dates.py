"""What the planner makes of dates, and the seed's table of what becomes of pending rows when a setting changes."""

from datetime import UTC, date, datetime, timedelta

import msgspec
import pytest

from clarion.domain.automation import AutomationStatus, CanceledBy
from clarion.domain.key import retry_key
from clarion.domain.plan import GRACE, following
from clarion.domain.reminder import Condition
from clarion.domain.wanted import Situation
from tests.unit.plan_house import CERTIFICATE, NORTH, NOW, SOUTH, VIENNA, Planned, certificate, changed, due, ended

BEFORE, ON_THE_DAY = "2026-04-01 09:00 2026-04-01T07:00Z", "2026-05-01 09:00 2026-05-01T07:00Z"
KEY = "reminder:00000000-0000-0000-0000-000000000001:certificate:c1:expires_on:{}:{}"


def test_each_offset_is_one_occurrence_at_the_send_time_where_its_unit_is() -> None:
    planned = Planned(CERTIFICATE)
    plan = planned.plan(certificate())
    assert due(plan) == [BEFORE, ON_THE_DAY]
    assert set(planned.rows) == {KEY.format("2026-05-01", 30), KEY.format("2026-05-01", 0)}
    assert plan.deactivate == () == plan.states


def test_a_negative_offset_is_after_the_date() -> None:
    assert due(Planned(changed(CERTIFICATE, offsets=(-7,))).plan(certificate())) == [
        "2026-05-08 09:00 2026-05-08T07:00Z"
    ]


def test_days_are_counted_as_dates_and_the_clocks_are_asked_last() -> None:
    planned = Planned(changed(CERTIFICATE, offsets=(35, 30), send_time="02:30"))
    # 35 days before 1 May is before the clocks go forward in Vienna on 29 March, and 33 days before is that day.
    assert due(planned.plan(certificate())) == [
        "2026-03-27 02:30 2026-03-27T01:30Z",
        "2026-04-01 02:30 2026-04-01T00:30Z",
    ]
    missing = Planned(changed(CERTIFICATE, offsets=(33,), send_time="02:30"))
    assert due(missing.plan(certificate())) == ["2026-03-29 02:30 2026-03-29T01:30Z"]  # which is 03:30 there


def test_a_second_plan_changes_nothing_and_says_what_it_left() -> None:
    planned = Planned(CERTIFICATE)
    planned.plan(certificate())
    again = planned.plan(certificate(), now=NOW + timedelta(days=3))
    assert (again.is_empty, again.unchanged) == (True, 2)


def test_what_was_due_longer_ago_than_the_grace_is_not_made() -> None:
    at = datetime(2026, 4, 1, 7, 0, tzinfo=UTC)
    assert due(Planned(CERTIFICATE).plan(certificate(), now=at + GRACE)) == [BEFORE, ON_THE_DAY]
    assert due(Planned(CERTIFICATE).plan(certificate(), now=at + GRACE + timedelta(seconds=1))) == [ON_THE_DAY]
    assert Planned(CERTIFICATE).plan(certificate(date(2016, 5, 1))).is_empty


def test_what_waits_already_stays_however_late_it_is() -> None:
    planned = Planned(CERTIFICATE)
    planned.plan(certificate())
    assert planned.plan(certificate(), now=NOW + timedelta(days=90)).unchanged == 2


def test_what_was_deactivated_long_ago_is_not_brought_back() -> None:
    planned = Planned(CERTIFICATE)
    planned.plan(certificate())
    planned.plan(None)
    assert due(planned.plan(certificate(), now=NOW + timedelta(days=35))) == [ON_THE_DAY]


@pytest.mark.parametrize("day", [date(9999, 12, 31), date(1, 1, 1)])
def test_a_date_that_means_never_is_no_occurrence(day: date) -> None:
    assert Planned(changed(CERTIFICATE, offsets=(30, 0, -30))).plan(certificate(day)).is_empty
    assert Planned(changed(CERTIFICATE, yearly=True)).plan(certificate(date(9999, 12, 31))).is_empty


def test_a_date_that_moved_moves_its_occurrences_and_back_again() -> None:
    planned = Planned(CERTIFICATE)
    planned.plan(certificate())
    moved = planned.plan(certificate(date(2026, 6, 1)))
    assert due(moved) == ["2026-05-02 09:00 2026-05-02T07:00Z", "2026-06-01 09:00 2026-06-01T07:00Z"]
    assert ended(moved) == ["SourceChanged", "SourceChanged"]
    back = planned.plan(certificate())
    assert (due(back), ended(back)) == ([BEFORE, ON_THE_DAY], ["SourceChanged", "SourceChanged"])


@pytest.mark.parametrize(
    "facts, reason",
    [
        (None, "SourceNoLongerValid"),
        (certificate(active=False), "SourceNoLongerValid"),
        (certificate(business_unit=SOUTH), "SourceNoLongerValid"),
        (certificate(None), "SourceChanged"),
    ],
)
def test_a_source_that_is_no_longer_valid_has_no_pending_occurrence(facts: object, reason: str) -> None:
    planned = Planned(changed(CERTIFICATE, business_unit=NORTH))
    planned.plan(certificate())
    plan = planned.plan(facts)  # type: ignore[arg-type]  # facts or None
    assert (ended(plan), plan.ensure) == ([reason, reason], ())


def test_a_source_that_no_longer_meets_the_filter_has_none_either() -> None:
    planned = Planned(CERTIFICATE)
    planned.plan(certificate())
    planned.settings = [changed(CERTIFICATE, conditions=(Condition(field="kind", values=("first-aid",)),))]
    assert ended(planned.plan(certificate())) == ["SourceNoLongerValid", "SourceNoLongerValid"]


# The table of what becomes of pending rows when a setting changes.


def test_row_1_another_offset_deactivates_and_recreates_in_one_plan() -> None:
    planned = Planned(CERTIFICATE)
    planned.plan(certificate())
    planned.settings = [changed(CERTIFICATE, offsets=(14, 0))]
    plan = planned.plan(certificate())
    assert due(plan) == ["2026-04-17 09:00 2026-04-17T07:00Z"]
    assert [(one.scheduler_key, one.reason) for one in plan.deactivate] == [
        (KEY.format("2026-05-01", 30), "ReminderSettingChanged")
    ]
    assert plan.unchanged == 1


def test_row_1_another_date_field_deactivates_and_recreates_in_one_plan() -> None:
    planned = Planned(CERTIFICATE)
    facts = certificate()
    facts.content.dates["renewed_on"] = date(2026, 7, 1)  # type: ignore[index]  # a dict
    planned.plan(facts)
    planned.settings = [changed(CERTIFICATE, field="renewed_on", offsets=(0,))]
    plan = planned.plan(facts)
    assert due(plan) == ["2026-07-01 09:00 2026-07-01T07:00Z"]
    assert ended(plan) == ["ReminderSettingChanged", "ReminderSettingChanged"]


def test_row_2_another_send_time_moves_the_row_under_its_key() -> None:
    planned = Planned(CERTIFICATE)
    planned.plan(certificate())
    before = set(planned.rows)
    planned.settings = [changed(CERTIFICATE, send_time="17:30")]
    plan = planned.plan(certificate())
    assert due(plan) == ["2026-04-01 17:30 2026-04-01T15:30Z", "2026-05-01 17:30 2026-05-01T15:30Z"]
    assert (plan.deactivate, set(planned.rows)) == ((), before)


def test_row_3_another_recipient_name_or_delivery_leaves_the_row_untouched() -> None:
    planned = Planned(CERTIFICATE)
    planned.plan(certificate())
    planned.settings = [changed(CERTIFICATE, name="Renamed", recipients=(), inbox_only=True, long_runner=True)]
    plan = planned.plan(certificate())
    assert (plan.is_empty, plan.unchanged) == (True, 2)


def test_row_3_another_notification_type_makes_the_row_anew_under_its_key() -> None:
    planned = Planned(changed(CERTIFICATE, offsets=(0,)))
    planned.plan(certificate())
    planned.settings = [changed(CERTIFICATE, offsets=(0,), notification_type="certificate-ends")]
    plan = planned.plan(certificate())
    assert [row.notification_type for row in plan.ensure] == ["certificate-ends"]
    assert (plan.ensure[0].scheduler_key, ended(plan)) == (KEY.format("2026-05-01", 0), ["ReminderSettingChanged"])


def test_row_4_a_deactivated_setting_deactivates_what_is_pending_and_keeps_what_is_completed() -> None:
    planned = Planned(CERTIFICATE)
    planned.plan(certificate())
    planned.mark(KEY.format("2026-05-01", 30), status=AutomationStatus.COMPLETED)
    planned.settings = [changed(CERTIFICATE, active=False)]
    plan = planned.plan(certificate())
    assert [(one.scheduler_key, one.reason) for one in plan.deactivate] == [
        (KEY.format("2026-05-01", 0), "ReminderSettingInactive")
    ]
    planned.settings = [CERTIFICATE]
    assert due(planned.plan(certificate())) == [ON_THE_DAY]


# What a plan leaves alone.


@pytest.mark.parametrize(
    "fields",
    [
        {"status": AutomationStatus.COMPLETED},
        {"status": AutomationStatus.PROCESSING},
        {"status": AutomationStatus.CANCELED, "canceled_by": CanceledBy.PERSON},
        {"status": AutomationStatus.CANCELED},
    ],
)
@pytest.mark.parametrize("unit", [NORTH, SOUTH])
def test_what_is_over_or_claimed_is_left_as_it_is_even_where_the_source_moved(fields: object, unit: object) -> None:
    planned = Planned(CERTIFICATE)
    planned.plan(certificate())
    planned.mark_all(**fields)  # type: ignore[arg-type]  # fields of a row
    plan = planned.plan(certificate(business_unit=unit))
    assert (plan.is_empty, plan.unchanged) == (True, 2)


def test_what_is_on_hold_is_a_persons_to_let_go() -> None:
    planned = Planned(CERTIFICATE)
    planned.plan(certificate())
    planned.mark_all(on_support_hold=True)
    planned.settings = [changed(CERTIFICATE, send_time="17:30")]
    assert planned.plan(certificate()).is_empty
    assert planned.plan(None).is_empty


def test_a_deliberate_rerun_is_left_alone() -> None:
    planned = Planned(changed(CERTIFICATE, offsets=(0,)))
    planned.plan(certificate())
    (row,) = planned.rows.values()
    key = retry_key(scheduler_key=row.scheduler_key, n=1)
    planned.mark(row.scheduler_key, status=AutomationStatus.COMPLETED)
    planned.rows[key] = row
    planned.mark(key, scheduler_key=key)
    assert planned.plan(None).is_empty


def test_what_a_person_made_due_now_is_not_taken_back() -> None:
    planned = Planned(CERTIFICATE)
    planned.plan(certificate())
    planned.mark_all(scheduled_at=NOW, local_time=None)
    assert planned.plan(certificate()).is_empty


@pytest.mark.parametrize("status", [AutomationStatus.FAILED, AutomationStatus.DEACTIVATED])
def test_what_failed_or_was_deactivated_is_ensured_again(status: AutomationStatus) -> None:
    planned = Planned(CERTIFICATE)
    planned.plan(certificate())
    planned.mark_all(status=status)
    assert due(planned.plan(certificate())) == [BEFORE, ON_THE_DAY]


# Units and zones.


@pytest.mark.parametrize("status", [AutomationStatus.PENDING, AutomationStatus.DEACTIVATED])
def test_a_source_that_moves_to_another_unit_keeps_its_occurrences(status: AutomationStatus) -> None:
    planned = Planned(CERTIFICATE)
    planned.plan(certificate())
    planned.mark_all(status=status)
    before = set(planned.rows)
    plan = planned.plan(certificate(business_unit=SOUTH), tz_id="America/New_York")
    assert due(plan) == ["2026-04-01 09:00 2026-04-01T13:00Z", "2026-05-01 09:00 2026-05-01T13:00Z"]
    assert ({one.scheduler_key for one in plan.deactivate}, ended(plan)) == (before, ["SourceChanged"] * 2)
    assert (set(planned.rows), {row.business_unit for row in planned.rows.values()}) == (before, {str(SOUTH)})


def test_another_zone_of_the_unit_moves_the_rows_by_their_local_fields() -> None:
    planned = Planned(CERTIFICATE)
    planned.plan(certificate())
    plan = planned.plan(certificate(), tz_id="Asia/Tokyo")
    assert due(plan) == ["2026-04-01 09:00 2026-04-01T00:00Z", "2026-05-01 09:00 2026-05-01T00:00Z"]
    assert (plan.deactivate, len(planned.rows)) == ((), 2)


def test_another_edition_of_the_zones_moves_the_rows_that_were_reckoned_by_the_one_before() -> None:
    planned = Planned(CERTIFICATE)
    planned.plan(certificate())
    planned.mark_all(tzdata_version="2019a", scheduled_at=NOW)
    assert due(planned.plan(certificate())) == [BEFORE, ON_THE_DAY]
    assert planned.plan(certificate()).is_empty


# Every year.

YEARLY = changed(CERTIFICATE, offsets=(0,), yearly=True)


def test_a_yearly_rule_asks_for_its_next_times() -> None:
    assert due(Planned(YEARLY).plan(certificate(date(1987, 5, 1)))) == [
        "2026-05-01 09:00 2026-05-01T07:00Z",
        "2027-05-01 09:00 2027-05-01T07:00Z",
    ]
    early = Planned(changed(YEARLY, offsets=(400,))).plan(certificate(date(1987, 5, 1)))
    # 2028 has a 29 February; the clocks of Vienna go forward on 28 March 2027.
    assert due(early) == ["2026-03-27 09:00 2026-03-27T08:00Z", "2027-03-28 09:00 2027-03-28T07:00Z"]


def test_a_yearly_rule_counts_from_the_date_itself() -> None:
    assert due(Planned(YEARLY).plan(certificate(date(2027, 8, 9)))) == ["2027-08-09 09:00 2027-08-09T07:00Z"]


def test_the_29th_of_february_falls_on_the_28th_in_common_years() -> None:
    planned = Planned(YEARLY)
    assert due(planned.plan(certificate(date(2024, 2, 29)))) == [
        "2027-02-28 09:00 2027-02-28T08:00Z",
        "2028-02-29 09:00 2028-02-29T08:00Z",
    ]


def test_a_yearly_one_that_is_completed_is_kept_and_the_next_ones_follow() -> None:
    planned = Planned(YEARLY)
    planned.plan(certificate(date(1987, 5, 1)))
    planned.mark(KEY.format("2026-05-01", 0), status=AutomationStatus.COMPLETED)
    plan = planned.plan(certificate(date(1987, 5, 1)), now=datetime(2026, 5, 1, 8, 0, tzinfo=UTC))
    assert (due(plan), plan.unchanged) == (["2028-05-01 09:00 2028-05-01T07:00Z"], 2)


def test_the_chain_goes_on_from_the_one_that_is_over() -> None:
    planned = Planned(YEARLY)
    facts = certificate(date(1987, 5, 1))
    planned.plan(facts)
    situation = Situation(
        source_type="certificate",
        source="c1",
        facts=facts,
        settings=[YEARLY],
        tz_id=VIENNA,
        now=datetime(2026, 5, 1, 7, 0, tzinfo=UTC),
    )
    row = following(situation, YEARLY, planned.rows[KEY.format("2026-05-01", 0)], correlation_id="c")
    assert row is not None
    assert row.scheduler_key == KEY.format("2028-05-01", 0)
    assert following(situation, changed(YEARLY, yearly=False), row, correlation_id="c") is None
    both = changed(YEARLY, offsets=(30, 0))
    planned = Planned(both)
    planned.plan(facts)
    first = planned.rows[KEY.format("2026-05-01", 30)]
    earlier = following(msgspec.structs.replace(situation, settings=[both]), both, first, correlation_id="c")
    assert earlier is not None
    assert earlier.scheduler_key == KEY.format("2028-05-01", 30)  # each offset is a chain of its own
