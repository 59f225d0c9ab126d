"""A machine whose wall clock is wrong: what is accepted, due and out of time goes by the store's clock alone (I-37)."""

from datetime import timedelta
from pathlib import Path

import pytest

from clarion.adapters.host import HostClock
from tests.acceptance.house import House, build, is_sent, until

BACK, AHEAD = timedelta(days=-3), timedelta(days=30)
CODE = ("send", "one-time-code", "--to", "+447700900001", "--data", '{"code": "407112"}')
WAITING = ["accepted", "stored", "waiting to be scheduled"]


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


def test_a_command_under_a_clock_a_month_ahead_is_refused_and_changes_nothing(house: House) -> None:
    early = house.ask(*put_off())["job_id"]
    refused = house.run(*CODE, off_by=AHEAD)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "clock is 30 days ahead of the time in" in refused.stderr
    assert refused.stderr.endswith("stop all that use the store and run: clarion clock set --reason WHY\n")
    code, late = house.ask(*CODE)["job_id"], house.ask(*put_off())["job_id"]
    with house.serving(command="work"):
        assert is_sent(until(lambda: house.timeline(code), so=is_over))
    assert [house.timeline(one) for one in (early, late)] == [WAITING] * 2


def test_a_store_that_is_a_month_ahead_is_set_right_while_nobody_uses_it(house: House) -> None:
    house.ask("clock", "set", "--reason", "a typing error in a date", off_by=AHEAD)  # how it came to be ahead
    with house.serving() as served:
        warning = "the store's time is 30 days ahead of this machine's clock; `clarion clock show` shows both"
        assert served.call("GET", "/ready").json["warning"] == warning
        assert warning in served.log.read_text()
        assert warning in house.run("check").stderr
        busy = house.run("clock", "set", "--reason", "set right")
        assert (busy.returncode, "stop serve, work" in busy.stderr) == (1, True)
    before = house.ask("clock", "set", "--reason", "set right")
    assert before["ahead_seconds"] == pytest.approx(AHEAD.total_seconds(), abs=1)
    assert "they agree" in house.run("clock", "show").stdout
    last = house.ask("audit")["items"][0]
    assert (last["act"], last["subject"], last["reason"]) == ("set", "clock", "set right")
    assert house.run("clock", "set", "--reason", "again").stdout.startswith("they agreed already: it is ")
    later, code = house.ask(*put_off())["job_id"], house.ask(*CODE)["job_id"]
    with house.serving(command="work"):
        assert is_sent(until(lambda: house.timeline(code), so=is_over))
    assert house.timeline(later) == WAITING


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
    refused = house.run("clock", "set", "--reason", "set right")
    assert (refused.returncode, refused.stderr) == (
        2,
        "clarion: store: the time of this store is that of its server: set the clock of the server\n",
    )
    assert house.ask("clock", "show", off_by=AHEAD)["ahead_seconds"] == pytest.approx(-AHEAD.total_seconds(), abs=2)
