"""The law of plans: whoever plans, in whatever order, how often and in which zone, arrives at the same keys.

The keys are spelled out here once more, from the design and not by the functions of the program.
"""

from datetime import UTC, date, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from clarion.domain.automation import AutomationStatus
from clarion.domain.key import FiringPolicy
from clarion.domain.reminder import DateRule, ReminderSetting, ThresholdRule
from clarion.domain.source import SourceContent, SourceFacts
from tests.unit.plan_house import CERTIFICATE, FULL, NORTH, SOUTH, Planned, changed, class_

NOW = datetime(2026, 3, 2, 7, 0, tzinfo=UTC)
ZONES = st.sampled_from(["Europe/Vienna", "Asia/Tokyo", "America/New_York", "Pacific/Apia", "Africa/Cairo", "UTC"])
OFFSETS = st.lists(st.integers(-400, 400), min_size=1, max_size=4, unique=True).map(tuple)
TIMES = st.sampled_from(["00:00", "02:30", "09:00", "23:59"])


def spelled(setting: ReminderSetting, facts: SourceFacts) -> set[str]:
    """Write the keys of a rule that is asked for in time."""
    start = f"reminder:{setting.guid}:{facts.source_type}:{facts.source}"
    match setting.rule:
        case DateRule(field=field, offsets=offsets):
            day = facts.content.dates[field]
            return {f"{start}:{field}:{day}:{offset}" for offset in offsets}
        case ThresholdRule(metric=metric, policy=policy):
            if policy is FiringPolicy.ONCE_PER_SOURCE:
                return {f"{start}:{metric}:threshold:{metric}:any:OncePerSource:all"}
            return {f"{start}:{metric}:threshold:{metric}:90:OncePerThreshold:all"}


@st.composite
def wishes(draw: st.DrawFn) -> tuple[ReminderSetting, SourceFacts]:
    """Draw a setting and a source that it asks for, all of whose occurrences are ahead."""
    unit = draw(st.sampled_from([NORTH, SOUTH, None]))
    if draw(st.booleans()):
        policy = draw(st.sampled_from([FiringPolicy.ONCE_PER_SOURCE, FiringPolicy.ONCE_PER_THRESHOLD]))
        return changed(FULL, policy=policy), class_(draw(st.integers(90, 99)), business_unit=unit)
    day = draw(st.dates(date(2027, 6, 1), date(2040, 1, 1)))
    setting = changed(CERTIFICATE, offsets=draw(OFFSETS), send_time=draw(TIMES))
    content = SourceContent(dates={"expires_on": day})
    return setting, SourceFacts(
        source_type="certificate", source="c1", entity=NORTH, business_unit=unit, content=content
    )


@settings(max_examples=150, deadline=None)
@given(wishes(), st.lists(st.tuples(st.integers(0, 40), ZONES, TIMES, st.booleans()), min_size=1, max_size=6))
def test_event_retry_repair_and_changed_setting_arrive_at_the_same_keys(
    wish: tuple[ReminderSetting, SourceFacts], looks: list[tuple[int, str, str, bool]]
) -> None:
    setting, facts = wish
    planned = Planned(setting, source=(facts.source_type, facts.source))
    for hours, zone, send_time, is_there in looks:
        planned.settings = [changed(setting, send_time=send_time)]
        planned.plan(facts if is_there else None, now=NOW + timedelta(hours=hours), tz_id=zone)
    plan = planned.plan(facts, now=NOW + timedelta(hours=41))
    waiting = {key for key, row in planned.rows.items() if row.status is AutomationStatus.PENDING}
    assert waiting == set(planned.rows) == spelled(setting, facts)
    again = planned.plan(facts, now=NOW + timedelta(hours=42))
    assert (again.is_empty, again.unchanged) == (True, len(plan.ensure) + plan.unchanged)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 200), st.booleans(), st.booleans()), min_size=1, max_size=12),
    st.sampled_from(FiringPolicy),
    ZONES,
)
def test_at_most_as_many_fire_as_the_policy_says(
    looks: list[tuple[int, bool, bool]], policy: FiringPolicy, zone: str
) -> None:
    planned = Planned(changed(FULL, policy=policy), source=("class", "yoga"))
    fired = edges = 0
    was_met = False
    days: set[date] = set()
    now = NOW
    for minutes, is_met, is_told in looks:
        now += timedelta(minutes=minutes)
        planned.plan(class_(95 if is_met else 10), now=now, tz_id=zone)
        edges += is_met and not was_met
        was_met = is_met
        for key, row in list(planned.rows.items()):
            if is_told and row.status is AutomationStatus.PENDING and row.scheduled_at <= now:
                planned.mark(key, status=AutomationStatus.COMPLETED)
                fired += 1
                days.add(row.local_date or date.min)
    match policy:
        case FiringPolicy.ONCE_PER_SOURCE | FiringPolicy.ONCE_PER_THRESHOLD:
            assert fired <= 1
        case FiringPolicy.ONCE_PER_DAY:
            assert fired == len(days)
        case FiringPolicy.FALSE_TO_TRUE:
            assert fired <= edges
    waiting = [row for row in planned.rows.values() if row.status is AutomationStatus.PENDING]
    assert was_met or not waiting
