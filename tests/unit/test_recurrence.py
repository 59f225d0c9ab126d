"""Recurrences: what python-dateutil says of the same rule, what a wall clock shows, and what is refused.

The code under test walks a rule along at the end of the calendar; here it is walked along in its own years.
"""

from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
from dateutil.rrule import rrulestr
from hypothesis import given
from hypothesis import strategies as st

from clarion.adapters.host import HostClock
from clarion.domain.local_time import zone_of
from clarion.domain.recurrence import Recurrence, require_due
from clarion.errors import InvalidInput

NOW = datetime(2026, 11, 19, 12, 0, tzinfo=UTC)
VIENNA = "Europe/Vienna"
STARTS = datetime(2024, 2, 29, 7, 30, tzinfo=UTC)  # a Thursday; 08:30 in Vienna


def times(rule: str, number: int, *, after: datetime = NOW, tz_id: str = VIENNA, **given: datetime | None) -> list[str]:
    """Say what a clock on the wall shows at the next times."""
    recurrence = Recurrence.read(rule, tz_id=tz_id, **given)
    shown: list[str] = []
    while len(shown) < number and (due := recurrence.after(after)) is not None:
        after = due.scheduled_at
        shown.append(f"{after.astimezone(zone_of(tz_id)):%a %Y-%m-%d %H:%M}")
    return shown


@pytest.mark.parametrize(
    "rule, expected",
    [
        ("FREQ=WEEKLY;BYDAY=MO;BYHOUR=8", ["Mon 2026-11-23 08:00", "Mon 2026-11-30 08:00"]),
        ("rrule:freq=weekly;byday=mo;byhour=8", ["Mon 2026-11-23 08:00", "Mon 2026-11-30 08:00"]),
        ("FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17", ["Fri 2026-11-27 17:00", "Fri 2026-12-25 17:00"]),
        ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29", ["Tue 2028-02-29 09:00", "Sun 2032-02-29 09:00"]),
        ("FREQ=HOURLY", ["Thu 2026-11-19 14:00", "Thu 2026-11-19 15:00"]),
        ("FREQ=DAILY;UNTIL=20261121", ["Fri 2026-11-20 09:00", "Sat 2026-11-21 09:00"]),
        ("FREQ=DAILY;UNTIL=20261120T080000Z", ["Fri 2026-11-20 09:00"]),
        ("FREQ=DAILY;UNTIL=20261121T080000", ["Fri 2026-11-20 09:00"]),
        ("0 8 * * MON", ["Mon 2026-11-23 08:00", "Mon 2026-11-30 08:00"]),
        ("15 8-16/4 * * *", ["Thu 2026-11-19 16:15", "Fri 2026-11-20 08:15"]),
        ("0 9 13 * FRI", ["Fri 2026-11-20 09:00", "Fri 2026-11-27 09:00", "Fri 2026-12-04 09:00"]),
        ("0 9 1,15 jan *", ["Fri 2027-01-01 09:00", "Fri 2027-01-15 09:00"]),
        ("0 9 * * 0", ["Sun 2026-11-22 09:00"]),
        ("0 9 * * 7", ["Sun 2026-11-22 09:00"]),
        ("0 9 */2 * MON", ["Mon 2026-11-23 09:00", "Mon 2026-12-07 09:00"]),
    ],
)
def test_a_rule_is_due_when_its_reader_would_say(rule: str, expected: list[str]) -> None:
    assert times(rule, len(expected)) == expected


@pytest.mark.parametrize(
    "rule, after, expected",
    [
        ("30 2 * * *", "2026-03-28T12:00+00:00", ["Sun 2026-03-29 03:30", "Mon 2026-03-30 02:30"]),
        ("30 2 * * *", "2026-03-29T01:10+00:00", ["Sun 2026-03-29 03:30", "Mon 2026-03-30 02:30"]),
        ("30 2 * * *", "2026-10-24T12:00+00:00", ["Sun 2026-10-25 02:30", "Mon 2026-10-26 02:30"]),
        ("30 * * * *", "2026-03-29T00:00+00:00", ["Sun 2026-03-29 01:30", "Sun 2026-03-29 03:30"]),
    ],
)
def test_a_time_that_is_skipped_is_due_later_and_one_that_is_shown_twice_is_due_once(
    rule: str, after: str, expected: list[str]
) -> None:
    assert times(rule, 2, after=datetime.fromisoformat(after)) == expected


def test_the_day_that_samoa_left_out_is_due_on_the_next_one() -> None:
    """What 30 December came to is 31 December, which is due anyway: one run, not two."""
    after = datetime(2011, 12, 29, 20, 0, tzinfo=UTC)
    shown = times("0 9 * * *", 2, after=after, tz_id="Pacific/Apia")
    assert shown == ["Sat 2011-12-31 09:00", "Sun 2012-01-01 09:00"]


def test_a_rule_counts_its_runs_from_where_it_begins() -> None:
    assert times("FREQ=DAILY;COUNT=3", 9, after=STARTS, starts_at=STARTS) == [
        "Fri 2024-03-01 08:30",
        "Sat 2024-03-02 08:30",
    ]
    assert times("FREQ=DAILY;COUNT=3", 9, after=STARTS - timedelta(days=9), starts_at=STARTS)[0] == (
        "Thu 2024-02-29 08:30"
    )


def test_nothing_is_due_before_a_subscription_begins_or_after_it_ends() -> None:
    ends_at = datetime(2024, 3, 2, 7, 30, tzinfo=UTC)
    assert times("FREQ=DAILY", 9, after=STARTS - timedelta(days=99), starts_at=STARTS, ends_at=ends_at) == [
        "Thu 2024-02-29 08:30",
        "Fri 2024-03-01 08:30",
        "Sat 2024-03-02 08:30",
    ]


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=DAILY;INTERVAL=3",
        "FREQ=HOURLY;INTERVAL=7",
        "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU",
        "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU;WKST=SU",
        "FREQ=MONTHLY;INTERVAL=5;BYDAY=2MO,-1SU",
        "FREQ=MONTHLY;BYMONTHDAY=31",
        "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
        "FREQ=MONTHLY;INTERVAL=2",
        "FREQ=YEARLY",
        "FREQ=YEARLY;INTERVAL=3;BYMONTH=1,6;BYMONTHDAY=-2",
        "FREQ=YEARLY;BYWEEKNO=1,53;BYDAY=MO",
        "FREQ=YEARLY;BYYEARDAY=60,-1;BYHOUR=0,23",
        "FREQ=WEEKLY",
    ],
)
@given(days=st.integers(min_value=0, max_value=7000))
def test_a_rule_is_walked_along_as_python_dateutil_walks_it_in_its_own_years(rule: str, days: int) -> None:
    begins = datetime(2024, 2, 29, 8, 30)  # noqa: DTZ001  in UTC there is nothing to convert
    since = begins + timedelta(days=days)
    direct = islice((one for one in rrulestr(rule, dtstart=begins) if one > since), 3)
    expected = [one.replace(tzinfo=UTC) for one in direct]
    recurrence = Recurrence.read(rule, tz_id="UTC", starts_at=begins.replace(tzinfo=UTC))
    found: list[datetime] = []
    at = since.replace(tzinfo=UTC)
    while len(found) < 3 and (due := recurrence.after(at)) is not None:
        at = due.scheduled_at
        found.append(at)
    assert found == expected


REFUSED = [
    ("hello", "it is neither an RRULE nor five fields of cron"),
    ("FREQ=NOW", "it does not say how often"),
    ("BYDAY=MO", "it does not say how often"),
    ("FREQ=DAILY;FREQ=DAILY", "'FREQ=DAILY' is no part of an RRULE, or is there twice"),
    ("FREQ=DAILY;", "'' is no part of an RRULE, or is there twice"),
    ("FREQ=MINUTELY;INTERVAL=90", "it is due more often than once an hour"),
    ("FREQ=HOURLY;BYMINUTE=0,30", "it is due more often than once an hour"),
    ("FREQ=DAILY;BYEASTER=0", "'BYEASTER' is no part of an RRULE that can be used"),
    ("FREQ=DAILY;BYHOUR=24", "'24' is none of BYHOUR"),
    ("FREQ=DAILY;BYHOUR=-1", "'-1' is none of BYHOUR"),
    ("FREQ=MONTHLY;BYMONTHDAY=0", "'0' is none of BYMONTHDAY"),
    ("FREQ=MONTHLY;BYDAY=XX", "'XX' is none of BYDAY"),
    ("FREQ=WEEKLY;BYDAY=2MO", "'2MO' needs a month or a year to count in"),
    ("FREQ=DAILY;COUNT=1001", "COUNT=1001 cannot be"),
    ("FREQ=DAILY;INTERVAL=0", "INTERVAL=0 cannot be"),
    ("FREQ=DAILY;COUNT=2;UNTIL=20270101", "it has both COUNT and UNTIL"),
    ("FREQ=DAILY;UNTIL=20270231", "UNTIL=20270231 is no date"),
    ("FREQ=DAILY;WKST=XX", "WKST=XX is no day"),
    ("FREQ=HOURLY;BYSETPOS=5", "an hour has one time, of which none can be chosen"),
    ("DTSTART=20260101;FREQ=DAILY", "a rule does not say when it begins"),
    ("* * * * *", "'*' is not one minute of the hour"),
    ("*/30 * * * *", "'*/30' is not one minute of the hour"),
    ("0 24 * * *", "'24' is no hour"),
    ("0 8 0 * *", "'0' is no day of the month"),
    ("0 8 * 13 *", "'13' is no month"),
    ("0 8 * * FRI-MON", "'FRI-MON' is no day of the week"),
    ("0 8 * * MONDAY", "'MONDAY' is no day of the week"),
    ("0 8/0 * * *", "'8/0' is no hour"),
]


@pytest.mark.parametrize("rule, message", REFUSED)
def test_a_rule_that_cannot_be_meant_is_refused_with_the_piece_that_is_wrong(rule: str, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Recurrence.read(rule, tz_id=VIENNA, starts_at=STARTS)
    assert (refused.value.field, refused.value.message) == ("rule", message)


def test_an_unknown_zone_is_refused_by_name() -> None:
    with pytest.raises(InvalidInput) as refused:
        Recurrence.read("0 8 * * *", tz_id="Europe/Wien")
    assert (refused.value.field, refused.value.message) == ("tz_id", "'Europe/Wien' is no time zone")


@pytest.mark.parametrize("rule", ["FREQ=DAILY;COUNT=3", "FREQ=WEEKLY;INTERVAL=2"])
def test_a_rule_that_counts_says_from_when(rule: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Recurrence.read(rule, tz_id=VIENNA)
    assert refused.value.field == "starts_at"


@pytest.mark.parametrize(
    "rule",
    [
        "0 0 30 2 *",
        "0 0 31 4,6,9,11 *",
        "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=HOURLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=HOURLY;INTERVAL=2;BYHOUR=3;BYMONTHDAY=31",
        "FREQ=YEARLY;BYWEEKNO=10;BYMONTH=12",
        "FREQ=MONTHLY;BYDAY=MO;BYSETPOS=6",
        "FREQ=MONTHLY;INTERVAL=12;BYMONTH=3",
        "FREQ=DAILY;UNTIL=20200101",
    ],
)
def test_a_rule_that_is_never_due_is_refused_at_once(rule: str) -> None:
    """X-33: python-dateutil by itself looks until the year 9999; the bound leaves room for a busy machine."""
    clock = HostClock()
    begun = clock.monotonic()
    with pytest.raises(InvalidInput) as refused:
        require_due(Recurrence.read(rule, tz_id="UTC", starts_at=datetime(2024, 1, 1, tzinfo=UTC)), now=NOW)
    assert (refused.value.field, refused.value.message) == ("rule", "it is never due")
    assert clock.monotonic() - begun < 1


def test_a_rule_that_goes_beyond_the_year_9999_where_it_is_walked_along_is_never_due() -> None:
    """It was a defect: python-dateutil raises there what it raises for a rule that cannot be meant."""
    rule = "FREQ=WEEKLY;BYMONTHDAY=1;BYYEARDAY=-366;BYDAY=SA;COUNT=100"
    starts_at = datetime(1970, 1, 2, 3, 0, tzinfo=UTC)
    assert Recurrence.read(rule, tz_id="UTC", starts_at=starts_at).after(NOW) is None


@pytest.mark.parametrize("rule", ["30 2 * * *", "FREQ=HOURLY;BYMONTHDAY=25", "FREQ=DAILY;UNTIL=20261026", "0 8 29 2 *"])
def test_the_last_time_is_the_one_that_the_next_one_follows(rule: str) -> None:
    recurrence = Recurrence.read(rule, tz_id=VIENNA, starts_at=STARTS)
    for at in (datetime(2024, 10, 27, 1, 30, tzinfo=UTC), datetime(2026, 3, 30, tzinfo=UTC), NOW):
        last, due = None, recurrence.after(at - timedelta(days=400))
        while due is not None and due.scheduled_at < at:
            last, due = due, recurrence.after(due.scheduled_at)
        assert recurrence.before(at) == last


def test_a_rule_whose_last_time_has_passed_says_so() -> None:
    with pytest.raises(InvalidInput) as refused:
        require_due(Recurrence.read("FREQ=DAILY;COUNT=3", tz_id=VIENNA, starts_at=STARTS), now=NOW)
    assert refused.value.message == "it is never due again: its last time has passed"


def test_the_local_time_of_a_rule_stays_what_it_says_where_the_clocks_skip_it() -> None:
    due = Recurrence.read("30 2 * * *", tz_id=VIENNA).after(datetime(2026, 3, 28, 12, 0, tzinfo=UTC))
    assert due is not None
    assert (str(due.local_date), due.local_time, due.tz_id) == ("2026-03-29", "02:30", VIENNA)
    assert due.scheduled_at == datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
