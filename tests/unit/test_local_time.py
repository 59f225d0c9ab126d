"""Local time against laws that only read the clock on the wall: forward, from instants to what a zone shows then.

`to_utc` goes from local time to an instant. Here every transition is taken from the bytes of the tables themselves, and
what must come of times around it is said by what the zone shows at instants.
"""

import re
import struct
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from hashlib import sha256
from importlib import resources
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clarion.domain.local_time import (
    TZDATA_VERSION,
    local_date,
    require_zone,
    time_of_day,
    to_local,
    to_utc,
    zone_names,
    zone_of,
)
from clarion.errors import InvalidInput

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST, LAST = 0, int(datetime(2041, 1, 1, tzinfo=UTC).timestamp())
WEEK = 7 * 24 * 3600
DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)


def at(seconds: int) -> datetime:
    return EPOCH + timedelta(seconds=seconds)


def shown(instant: datetime, tz_id: str) -> datetime:
    """What a clock on the wall shows at an instant, with no zone to it."""
    return instant.astimezone(zone_of(tz_id)).replace(tzinfo=None, fold=0)


def ahead(seconds: int, tz_id: str) -> timedelta:
    """By how much a zone is ahead of UTC at an instant."""
    return shown(at(seconds), tz_id) - at(seconds).replace(tzinfo=None)


def meant(local: datetime, tz_id: str) -> datetime:
    return to_utc(local.date(), local.time(), tz_id)


def table(tz_id: str) -> bytes:
    return resources.files("tzdata.zoneinfo").joinpath(*tz_id.split("/")).read_bytes()


def written_transitions(data: bytes) -> list[int]:
    """Read the instants of a TZif file (RFC 8536): its second half, which counts in 64 bits."""
    counts = struct.unpack(">6l", data[20:44])
    second = 44 + counts[3] * 5 + counts[4] * 6 + counts[5] + counts[2] * 8 + counts[1] + counts[0]
    number = struct.unpack(">6l", data[second + 20 : second + 44])[3]
    return list(struct.unpack(f">{number}q", data[second + 44 : second + 44 + 8 * number]))


def transitions(tz_id: str) -> list[int]:
    """Give the instants, 1970 to 2040, at which a zone's clocks are set; those after the last written one are found."""
    written = [one for one in written_transitions(table(tz_id)) if FIRST <= one < LAST]
    after = max(written, default=FIRST)
    weeks = [*range(after, LAST, WEEK), LAST]
    offsets = [ahead(one, tz_id) for one in weeks]
    found = [
        first_that_differs(early, late, tz_id)
        for (early, late), (was, now) in zip(pairwise(weeks), pairwise(offsets), strict=True)
        if was != now
    ]
    return [one for one in (*written, *found) if ahead(one - 1, tz_id) != ahead(one, tz_id)]


def first_that_differs(early: int, late: int, tz_id: str) -> int:
    """Find the second between two instants from which on a zone is ahead by as much as at the later one."""
    before = ahead(early, tz_id)
    while late - early > 1:
        middle = (early + late) // 2
        early, late = (middle, late) if ahead(middle, tz_id) == before else (early, middle)
    return late


def different_zones() -> Iterator[str]:
    """Name every zone but those that are another name for one that was there already."""
    seen: set[bytes] = set()
    for name in sorted(zone_names()):
        content = sha256(table(name)).digest()
        if content not in seen:
            seen.add(content)
            yield name


def check_around(transition: int, tz_id: str) -> None:
    """The whole law of one transition; `step` is by how much the clocks are set."""
    moment = at(transition)
    before, after = ahead(transition - 1, tz_id), ahead(transition, tz_id)
    step = abs(after - before)
    inside = (timedelta(), step - SECOND)
    shows_before, shows_after = moment.replace(tzinfo=None) + before, moment.replace(tzinfo=None) + after
    where = f"{tz_id} at {moment}"
    assert meant(min(shows_before, shows_after) - SECOND, tz_id) == moment - (
        SECOND if after > before else step + SECOND
    ), where
    if after > before:
        for into in inside:  # these times are never shown; each is moved forward by the step
            assert meant(shows_before + into, tz_id) == moment + into, where
            assert shown(moment + into, tz_id) == shows_before + into + step, where
        assert meant(shows_after, tz_id) == moment, where
    else:
        for into in inside:  # these are shown twice; the first time is meant
            assert meant(shows_after + into, tz_id) == moment - step + into, where
            assert shown(moment + into, tz_id) == shown(moment - step + into, tz_id), where
        assert meant(shows_before, tz_id) == moment + step, where


def test_the_law_holds_at_every_transition_of_every_zone_from_1970_to_2040() -> None:
    checked = 0
    for tz_id in different_zones():
        for transition in transitions(tz_id):
            check_around(transition, tz_id)
            checked += 1
    assert checked > 15_000, "the search for transitions is broken"


@given(
    tz_id=st.sampled_from(sorted(zone_names())),
    instant=st.datetimes(datetime(1971, 1, 1), datetime(9000, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001  bounds
)
def test_what_a_clock_shows_is_turned_back_into_that_instant_or_into_the_first_that_showed_it(
    tz_id: str, instant: datetime
) -> None:
    back = meant(shown(instant, tz_id), tz_id)
    assert back <= instant
    assert shown(back, tz_id) == shown(instant, tz_id)
    assert to_local(instant, tz_id) == instant
    assert local_date(instant, tz_id) == shown(instant, tz_id).date()


@given(
    tz_id=st.sampled_from(sorted(zone_names())),
    local=st.datetimes(datetime(1971, 1, 1), datetime(2040, 12, 31)),  # noqa: DTZ001  a local time has no zone
)
def test_a_local_time_is_met_exactly_or_moved_to_where_the_clocks_were_set(tz_id: str, local: datetime) -> None:
    late = shown(meant(local, tz_id), tz_id) - local
    assert timedelta() <= late <= DAY
    if late:
        before, after = (meant(local, tz_id) - DAY, meant(local, tz_id) + DAY)
        assert shown(after, tz_id) - shown(before, tz_id) > 2 * DAY, "it was moved where nothing was set forward"


@pytest.mark.parametrize(
    "tz_id, day, written, instant, shows",
    [
        # The clocks go forward: an hour, at midnight, by half an hour, by a day.
        ("Europe/London", "2026-03-29", "01:30", "2026-03-29T01:30+00:00", "2026-03-29T02:30"),
        ("Europe/London", "2026-03-29", "02:00", "2026-03-29T01:00+00:00", "2026-03-29T02:00"),
        ("Africa/Cairo", "2026-04-24", "00:00", "2026-04-23T22:00+00:00", "2026-04-24T01:00"),
        ("America/Sao_Paulo", "2018-11-04", "00:30", "2018-11-04T03:30+00:00", "2018-11-04T01:30"),
        ("Australia/Lord_Howe", "2026-10-04", "02:15", "2026-10-03T15:45+00:00", "2026-10-04T02:45"),
        ("Pacific/Apia", "2011-12-30", "09:00", "2011-12-30T19:00+00:00", "2011-12-31T09:00"),
        # They go back: the first of the two.
        ("Europe/London", "2026-10-25", "01:30", "2026-10-25T00:30+00:00", "2026-10-25T01:30"),
        ("Australia/Lord_Howe", "2026-04-05", "01:45", "2026-04-04T14:45+00:00", "2026-04-05T01:45"),
        ("America/Sao_Paulo", "2018-02-17", "23:30", "2018-02-18T01:30+00:00", "2018-02-17T23:30"),
        ("Pacific/Kwajalein", "2026-02-28", "09:00", "2026-02-27T21:00+00:00", "2026-02-28T09:00"),
    ],
)
def test_known_days_come_out_as_almanacs_have_them(
    tz_id: str, day: str, written: str, instant: str, shows: str
) -> None:
    found = to_utc(date.fromisoformat(day), time_of_day(written), tz_id)
    assert found == datetime.fromisoformat(instant)
    assert found.utcoffset() == timedelta(), "an instant is given in UTC"
    assert shown(found, tz_id) == datetime.fromisoformat(shows)


@pytest.mark.parametrize("tz_id", ["Europe/Wien", "", "localtime", "../zones", "europe/vienna", "x" * 500])
def test_a_zone_that_there_is_not_is_refused_by_name(tz_id: str) -> None:
    with pytest.raises(InvalidInput, match="is no time zone: write its name, such as Europe/Vienna or UTC") as refused:
        require_zone(tz_id, field="zone")
    assert refused.value.field == "zone"
    with pytest.raises(InvalidInput, match="is no time zone"):
        to_utc(date(2026, 1, 1), time(9), tz_id)


@pytest.mark.parametrize("day", [date.min, date.max, date(1969, 12, 30), date(9999, 6, 1)])
def test_a_date_that_no_record_can_hold_is_refused(day: date) -> None:
    for tz_id in ("Pacific/Kiritimati", "Etc/GMT+12"):
        with pytest.raises(InvalidInput, match="outside of the"):
            to_utc(day, time(9), tz_id)


def test_the_edition_of_the_tables_is_named_as_their_publisher_does() -> None:
    assert re.fullmatch(r"20\d\d[a-z]", TZDATA_VERSION)
    assert {"Europe/Vienna", "UTC"} <= zone_names()
