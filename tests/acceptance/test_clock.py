"""A machine whose wall clock is wrong: what is accepted, due and out of time goes by the store's clock alone (I-37)."""

from datetime import timedelta
from pathlib import Path

from clarion.adapters.host import HostClock
from tests.acceptance.house import House, build, is_sent, until

BACK, AHEAD = timedelta(days=-3), timedelta(days=30)
CODE = ("send", "one-time-code", "--to", "+447700900001", "--data", '{"code": "407112"}')
WAITING = ["accepted", "ensured", "waiting to be scheduled"]


def put_off() -> tuple[str, ...]:
    """A message that is to leave in a week."""
    later = f"{HostClock().now() + timedelta(days=7):%FT%TZ}"
    return ("send", "welcome", "--to", "sam@example.com", "--data", '{"name": "Sam"}', "--not-before", later)


def is_over(timeline: list[str]) -> bool:
    return is_sent(timeline) or "expired" in timeline


def test_a_code_that_was_accepted_under_a_clock_set_back_is_sent(house: House) -> None:
    code = house.ask(*CODE, off_by=BACK)["job_id"]
    with house.serving(command="work"):
        assert is_sent(until(lambda: house.timeline(code), so=is_over))


def test_on_postgresql_no_hosts_wall_clock_decides_what_is_due_or_out_of_time(
    tmp_path: Path, postgres_url: str
) -> None:
    house = build(tmp_path / "home", CLARION_STORE=postgres_url)
    later = house.ask(*put_off(), off_by=AHEAD)["job_id"]
    codes = [house.ask(*CODE, off_by=off_by)["job_id"] for off_by in (BACK, AHEAD)]
    with house.serving(command="work", off_by=AHEAD):
        for code in codes:
            assert is_sent(until(lambda: house.timeline(code), so=is_over))  # noqa: B023  (asked within the loop)
    assert house.timeline(later) == WAITING
