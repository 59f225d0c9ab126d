"""What the planner makes of metrics: the four firing policies, scopes, and the state that moves with the rows."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from clarion.domain.automation import AutomationStatus
from clarion.domain.key import FiringPolicy
from clarion.domain.plan import following
from clarion.domain.planning import SourcePlan
from clarion.domain.reminder import Comparison, ReminderSetting
from clarion.domain.wanted import Situation
from tests.unit.plan_house import FULL, NOW, SOUTH, VIENNA, Planned, changed, class_, ended

DAY = timedelta(days=1)
KEY = "reminder:00000000-0000-0000-0000-000000000002:class:yoga:booked:threshold:booked:{}"
SOURCE = ("class", "yoga")


def of_class(policy: FiringPolicy = FiringPolicy.ONCE_PER_THRESHOLD, **fields: Any) -> Planned:
    return Planned(setting(policy, **fields), source=SOURCE)


def setting(policy: FiringPolicy, **fields: Any) -> ReminderSetting:
    return changed(FULL, policy=policy, **fields)


def keys(plan: SourcePlan) -> list[str]:
    return sorted(row.scheduler_key for row in plan.ensure)


def moved(plan: SourcePlan) -> list[tuple[str, bool, int]]:
    return [(one.scope, one.met, one.edge_no) for one in plan.states]


@pytest.mark.parametrize(
    "compare, booked, is_met",
    [
        (Comparison.AT_LEAST, 89.9, False),
        (Comparison.AT_LEAST, 90, True),
        (Comparison.AT_LEAST, 97, True),
        (Comparison.AT_MOST, 90.1, False),
        (Comparison.AT_MOST, 90, True),
        (Comparison.AT_MOST, -3, True),
    ],
)
def test_a_threshold_is_met_at_its_value_and_beyond_and_due_at_once(
    compare: Comparison, booked: float, is_met: bool
) -> None:
    plan = of_class(compare=compare).plan(class_(booked))
    assert keys(plan) == ([KEY.format("90:OncePerThreshold:all")] if is_met else [])
    assert [row.scheduled_at for row in plan.ensure] == [NOW] * is_met
    assert moved(plan) == ([("all", True, 1)] if is_met else [])


@pytest.mark.parametrize("booked", [None, {"spring": 95.0}])
def test_a_metric_that_the_source_has_not_meets_no_threshold(booked: Any) -> None:
    assert of_class().plan(class_(booked)).is_empty
    assert of_class(compare=Comparison.AT_MOST).plan(class_(booked)).is_empty


def test_what_is_met_still_is_left_alone() -> None:
    planned = of_class()
    planned.plan(class_(95))
    again = planned.plan(class_(97), now=NOW + 3 * DAY)
    assert (again.is_empty, again.unchanged) == (True, 1)


@pytest.mark.parametrize("policy", FiringPolicy)
def test_no_longer_met_deactivates_the_pending_row_and_moves_the_state_in_one_plan(policy: FiringPolicy) -> None:
    planned = of_class(policy)
    planned.plan(class_(95))
    plan = planned.plan(class_(80))
    assert set(ended(plan)) == {"ThresholdNoLongerMet"}
    assert ({one.scheduler_key for one in plan.deactivate}, plan.ensure) == (set(planned.rows), ())
    assert moved(plan) == [("all", False, 1)]
    assert planned.plan(class_(80)).is_empty


@pytest.mark.parametrize("facts", [None, class_(95, active=False), class_(None)])
def test_a_source_that_is_gone_meets_nothing_any_more(facts: Any) -> None:
    planned = of_class()
    planned.plan(class_(95))
    plan = planned.plan(facts)
    assert (len(plan.deactivate), moved(plan)) == (1, [("all", False, 1)])


@pytest.mark.parametrize(
    "policy, value",
    [
        (FiringPolicy.ONCE_PER_SOURCE, "any:OncePerSource:all"),
        (FiringPolicy.ONCE_PER_THRESHOLD, "90:OncePerThreshold:all"),
    ],
)
def test_once_means_once_however_often_it_is_met_again(policy: FiringPolicy, value: str) -> None:
    planned = of_class(policy)
    planned.plan(class_(95))
    planned.plan(class_(80))
    assert keys(planned.plan(class_(95))) == [KEY.format(value)]  # it told nobody yet
    planned.mark_all(status=AutomationStatus.COMPLETED)
    planned.plan(class_(80))
    again = planned.plan(class_(95), now=NOW + 9 * DAY)
    assert (keys(again), moved(again)) == ([], [("all", True, 3)])


def test_false_to_true_fires_at_each_edge_and_not_between() -> None:
    planned = of_class(FiringPolicy.FALSE_TO_TRUE)
    assert keys(planned.plan(class_(95))) == [KEY.format("90:FalseToTrue:all:1")]
    planned.mark_all(status=AutomationStatus.COMPLETED)
    assert planned.plan(class_(99), now=NOW + DAY).is_empty
    planned.plan(class_(80), now=NOW + 2 * DAY)
    assert keys(planned.plan(class_(95), now=NOW + 3 * DAY)) == [KEY.format("90:FalseToTrue:all:2")]


def test_once_per_day_fires_at_once_and_tomorrow_at_the_time_of_day_while_it_holds() -> None:
    planned = of_class(FiringPolicy.ONCE_PER_DAY, send_time="08:30")
    first = planned.plan(class_(95))
    assert [(row.scheduler_key, f"{row.scheduled_at:%dT%H:%MZ}") for row in first.ensure] == [
        (KEY.format("90:OncePerDay:all:2026-03-02"), "02T07:00Z"),
        (KEY.format("90:OncePerDay:all:2026-03-03"), "03T07:30Z"),
    ]
    planned.mark(KEY.format("90:OncePerDay:all:2026-03-02"), status=AutomationStatus.COMPLETED)
    # Early on the next day: its row waits for its time of day still, and is not made due by a look at the source.
    second = planned.plan(class_(96), now=NOW + DAY)
    assert (keys(second), second.deactivate) == ([KEY.format("90:OncePerDay:all:2026-03-04")], ())


def test_once_per_day_knows_the_day_of_the_unit() -> None:
    at = datetime(2026, 3, 2, 23, 30, tzinfo=UTC)
    plan = of_class(FiringPolicy.ONCE_PER_DAY).plan(class_(95), now=at, tz_id="Asia/Tokyo")
    assert keys(plan)[0].endswith(":2026-03-03")


def test_the_row_of_a_day_that_is_over_is_not_told_on_the_next_beside_its_own() -> None:
    planned = of_class(FiringPolicy.ONCE_PER_DAY)
    planned.plan(class_(95))
    plan = planned.plan(class_(95), now=NOW + 3 * DAY)
    assert (ended(plan), len(plan.ensure)) == (["RunMissed", "RunMissed"], 2)


def test_a_daily_one_is_followed_by_the_next_days() -> None:
    daily = setting(FiringPolicy.ONCE_PER_DAY)
    planned = Planned(daily, source=SOURCE)
    planned.plan(class_(95))
    for facts, expected in ((class_(95), KEY.format("90:OncePerDay:all:2026-03-04")), (class_(80), None)):
        situation = Situation(
            source_type="class", source="yoga", facts=facts, settings=[daily], tz_id=VIENNA, now=NOW + DAY
        )
        row = planned.rows[KEY.format("90:OncePerDay:all:2026-03-03")]
        found = following(situation, daily, row, correlation_id="c")
        assert (found and found.scheduler_key) == expected
        edge = setting(FiringPolicy.FALSE_TO_TRUE)
        assert following(situation, edge, row, correlation_id="c") is None


# Scopes.


def test_a_threshold_looks_at_its_scope_only() -> None:
    plan = of_class(scope="spring").plan(class_({"spring": 95.0, "autumn": 99.0}))
    assert keys(plan) == [KEY.format("90:OncePerThreshold:spring")]


def test_with_a_star_every_scope_is_planned_by_itself() -> None:
    planned = of_class(FiringPolicy.FALSE_TO_TRUE, scope="*")
    plan = planned.plan(class_({"spring": 95.0, "autumn": 50.0}))
    assert (keys(plan), moved(plan)) == ([KEY.format("90:FalseToTrue:spring:1")], [("spring", True, 1)])
    plan = planned.plan(class_({"autumn": 95.0}))
    assert keys(plan) == [KEY.format("90:FalseToTrue:autumn:1")]
    assert (ended(plan), sorted(moved(plan))) == (["ThresholdNoLongerMet"], [("autumn", True, 1), ("spring", False, 1)])
    assert keys(of_class(scope="*").plan(class_(95))) == [KEY.format("90:OncePerThreshold:all")]


# When the setting changes.


def test_row_1_another_threshold_deactivates_and_recreates_in_one_plan() -> None:
    planned = of_class()
    planned.plan(class_(95))
    planned.settings = [changed(FULL, value=80)]
    plan = planned.plan(class_(95))
    assert (keys(plan), ended(plan)) == ([KEY.format("80:OncePerThreshold:all")], ["ReminderSettingChanged"])
    assert plan.states == ()


def test_row_1_another_policy_metric_or_scope_does_too() -> None:
    for fields in ({"policy": FiringPolicy.FALSE_TO_TRUE}, {"metric": "waiting"}, {"scope": "spring"}):
        planned = of_class()
        planned.plan(class_(95))
        planned.settings = [changed(FULL, **fields)]
        assert ended(planned.plan(class_(95))) == ["ReminderSettingChanged"], fields


def test_row_2_another_send_time_moves_only_what_waits_for_it() -> None:
    planned = of_class(FiringPolicy.ONCE_PER_DAY)
    planned.plan(class_(95))
    planned.settings = [setting(FiringPolicy.ONCE_PER_DAY, send_time="18:00")]
    plan = planned.plan(class_(95))
    assert [f"{row.scheduled_at:%dT%H:%MZ}" for row in plan.ensure] == ["03T17:00Z"]


def test_row_4_a_deactivated_setting_looks_at_nothing() -> None:
    planned = of_class(FiringPolicy.FALSE_TO_TRUE)
    planned.plan(class_(95))
    planned.settings = [setting(FiringPolicy.FALSE_TO_TRUE, active=False)]
    plan = planned.plan(class_(80))
    assert (ended(plan), plan.states) == (["ReminderSettingInactive"], ())
    planned.settings = [setting(FiringPolicy.FALSE_TO_TRUE)]
    assert keys(planned.plan(class_(95))) == [KEY.format("90:FalseToTrue:all:1")]  # which told nobody yet


def test_a_class_that_moves_to_another_unit_keeps_its_row_and_its_time() -> None:
    planned = of_class()
    planned.plan(class_(95))
    plan = planned.plan(class_(95, business_unit=SOUTH), now=NOW + DAY)
    assert (keys(plan), ended(plan)) == ([KEY.format("90:OncePerThreshold:all")], ["SourceChanged"])
    assert [row.scheduled_at for row in plan.ensure] == [NOW]
