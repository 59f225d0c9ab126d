"""The host's clock, ids and chance, and the doubles that replace them in tests."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from clarion.adapters.host import HostClock, HostIds, random_bytes
from clarion.ports.clock import Clock, Ids
from clarion.testing.clock import ManualClock, SeededIds


@pytest.mark.parametrize("clock", [HostClock(), ManualClock()])
def test_a_clock_is_aware_in_utc_and_its_seconds_never_go_back(clock: Clock) -> None:
    assert clock.now().tzinfo is UTC
    assert clock.monotonic() <= clock.monotonic()


def test_the_host_knows_what_day_it_is() -> None:
    assert HostClock().now() > datetime(2025, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("ids", [HostIds(), SeededIds()])
def test_new_guids_are_random_by_their_version_and_do_not_repeat(ids: Ids) -> None:
    guids = [ids.new_guid() for _ in range(1000)]
    assert len(set(guids)) == 1000
    assert {guid.version for guid in guids} == {4}


def test_random_bytes_are_as_many_as_asked_for_and_do_not_repeat() -> None:
    assert [len(random_bytes(length)) for length in (0, 1, 12, 32)] == [0, 1, 12, 32]
    assert random_bytes(32) != random_bytes(32)


def test_a_manual_clock_stands_until_it_is_advanced() -> None:
    clock = ManualClock(datetime(2026, 3, 29, 0, 59, 59, tzinfo=UTC))
    assert clock.now() == clock.now()
    clock.advance(timedelta(seconds=1.5))
    assert clock.now() == datetime(2026, 3, 29, 1, 0, 0, 500_000, tzinfo=UTC)
    assert clock.monotonic() == 1.5


def test_a_jump_sets_the_wall_clock_and_lets_no_time_pass() -> None:
    clock = ManualClock()
    clock.advance(timedelta(seconds=2))
    clock.jump(datetime(2020, 1, 1, 3, tzinfo=timezone(timedelta(hours=3))))
    assert clock.now() == datetime(2020, 1, 1, tzinfo=UTC)
    assert clock.now().tzinfo is UTC
    assert clock.monotonic() == 2


def test_a_manual_clock_refuses_naive_instants_and_time_that_runs_back() -> None:
    naive = datetime(2026, 1, 1)  # noqa: DTZ001  (what must be refused)
    with pytest.raises(ValueError, match="aware"):
        ManualClock(naive)
    with pytest.raises(ValueError, match="aware"):
        ManualClock().jump(naive)
    with pytest.raises(ValueError, match="jump"):
        ManualClock().advance(timedelta(seconds=-1))


def test_equal_seeds_replay_and_others_differ() -> None:
    first, second, other = SeededIds("a"), SeededIds("a"), SeededIds("b")
    assert [first.new_guid() for _ in range(3)] == [second.new_guid() for _ in range(3)]
    assert other.new_guid() != SeededIds("a").new_guid()
