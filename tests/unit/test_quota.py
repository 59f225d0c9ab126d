"""Quotas: the rule, and the meter that counts in memory and tells the store once a second."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from clarion.catalog.quota import Meter
from clarion.domain.quota import Amount, Limits, Shortage, Usage, left_of_day, shortage
from clarion.errors import QuotaExceeded, StoreUnreachable
from clarion.ports.catalog import Used
from clarion.testing.clock import ManualClock
from clarion.testing.store import SqliteInMemory

TENANT, KEY = "school", "key-of-the-school"


@pytest.mark.parametrize(
    "used, asked, short",
    [
        (Amount(requests=9), Amount(requests=1), None),
        (Amount(requests=10), Amount(requests=1), Shortage(what="requests", limit=10, left=0)),
        (Amount(requests=12), Amount(requests=1), Shortage(what="requests", limit=10, left=0)),
        (Amount(recipients=97), Amount(notifications=1, recipients=3), None),
        (Amount(recipients=97), Amount(notifications=1, recipients=4), Shortage(what="recipients", limit=100, left=3)),
        (Amount(requests=10, recipients=100), Amount(notifications=1), None),
        (Amount(notifications=10**9), Amount(notifications=1), None),
    ],
)
def test_there_is_room_up_to_the_limit_and_only_what_is_asked_for_counts(
    used: Amount, asked: Amount, short: Shortage | None
) -> None:
    assert shortage(Limits(requests=10, recipients=100), used=used, asked=asked) == short


def test_a_day_ends_at_midnight_utc() -> None:
    assert left_of_day(datetime(2026, 3, 1, 23, 59, tzinfo=UTC)) == timedelta(minutes=1)
    assert left_of_day(datetime(2026, 3, 1, tzinfo=UTC)) == timedelta(days=1)
    paris = datetime.fromisoformat("2026-03-01T00:30+01:00")
    assert left_of_day(paris) == timedelta(minutes=30)


class Counted(SqliteInMemory):
    """Counts what is asked of it, and is down while a test says so."""

    asked = 0
    down = False

    async def count_usage(self, uses: Sequence[Used]) -> list[Usage]:
        if self.down:
            raise StoreUnreachable("it does not answer", hint="wait")
        self.asked += 1
        return await super().count_usage(uses)

    async def list_usage(self, tenant_id: str) -> list[Usage]:
        self.asked += 1
        return await super().list_usage(tenant_id)


class Door:
    """Processes over one store, and what gets through each of them."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.store = Counted(self.clock)
        self.meters = [Meter(self.store, clock=self.clock) for _ in range(2)]

    async def limit(self, key: str = "", **limits: int) -> None:
        await self.store.set_quota(TENANT, key, Limits(**limits), actor="ada")

    async def requests(self, count: int, *, process: int = 0, key: str = KEY) -> int:
        """Ask so often; return how many were let through."""
        through = 0
        for _ in range(count):
            try:
                await self.meters[process].count_request(TENANT, key)
            except QuotaExceeded:
                continue
            through += 1
        return through

    def send(self, *, recipients: int = 1, process: int = 0, accepted: bool = True) -> bool:
        """Send once; return whether there was room."""
        meter = self.meters[process]
        if meter.find_shortage(TENANT, KEY, recipients=recipients) is not None:
            return False
        with meter.accepting(TENANT, KEY, recipients=recipients) as counted:
            counted.append(accepted)
        return True

    async def used(self, key: str = KEY) -> Amount:
        for meter in self.meters:
            await meter.tell()
        found = {one.key_id: one.used for one in await self.store.list_usage(TENANT)}
        return found.get(key, Amount())


@pytest.fixture
def door() -> Door:
    return Door()


async def test_without_a_quota_nothing_is_refused_and_everything_is_counted(door: Door) -> None:
    assert await door.requests(500) == 500
    assert door.send(recipients=7)
    assert await door.used() == Amount(requests=500, notifications=1, recipients=7)
    assert await door.used(key="") == await door.used()


async def test_a_request_costs_no_round_trip_once_its_key_is_known(door: Door) -> None:
    await door.requests(1000)
    assert door.store.asked == 1
    await door.meters[0].tell()
    assert door.store.asked == 2
    await door.meters[0].tell()
    assert door.store.asked == 2, "nothing new is nothing to tell"


@pytest.mark.parametrize("key", [KEY, ""])
async def test_one_process_lets_through_exactly_what_the_quota_allows(door: Door, key: str) -> None:
    await door.limit(key, requests=10)
    assert await door.requests(25) == 10
    assert await door.used() == Amount(requests=10), "what was refused does not count"


async def test_a_quota_of_a_key_is_that_keys_alone_and_a_tenants_is_for_all_of_its_keys(door: Door) -> None:
    await door.limit(KEY, requests=3)
    await door.limit("", requests=8)
    assert await door.requests(10) == 3
    assert await door.requests(10, key="another-key") == 5


async def test_what_other_processes_counted_is_known_a_second_later(door: Door) -> None:
    await door.limit(KEY, requests=10)
    assert await door.requests(6, process=0) == 6
    await door.meters[0].tell()
    assert await door.requests(6, process=1) == 4, "read at the first request with the key"
    assert await door.requests(6, process=0) == 4, "not told yet: this much is let through too many"
    await door.meters[1].tell()
    await door.meters[0].tell()
    assert await door.requests(6, process=0) == await door.requests(6, process=1) == 0


async def test_sends_are_refused_by_recipients_and_say_what_is_left_and_when_it_opens(door: Door) -> None:
    await door.limit(KEY, recipients=10)
    await door.requests(1)
    assert door.send(recipients=8)
    assert not door.send(recipients=3)
    assert door.send(recipients=2)
    error = door.meters[0].find_shortage(TENANT, KEY, recipients=3)
    assert error is not None
    assert error.retry_after == timedelta(hours=12)  # the clock stands at noon
    assert str(error) == (
        "the key's quota of 10 recipients a day is used up: it opens again at midnight UTC, in 12 hours; whoever runs "
        "this installation can raise it"
    )


async def test_what_was_not_accepted_or_accepted_before_does_not_count(door: Door) -> None:
    await door.limit(KEY, notifications=1)
    await door.requests(1)
    for _ in range(3):
        assert door.send(accepted=False)
    with pytest.raises(ZeroDivisionError), door.meters[0].accepting(TENANT, KEY, recipients=1):
        raise ZeroDivisionError
    assert door.send()
    assert not door.send()
    assert await door.used() == Amount(requests=1, notifications=1, recipients=1)


async def test_sends_that_are_being_accepted_take_room_already(door: Door) -> None:
    await door.limit(KEY, notifications=1)
    await door.requests(1)
    with door.meters[0].accepting(TENANT, KEY, recipients=1):
        assert not door.send()
    assert door.send()


async def test_a_new_day_starts_the_counts_again_also_before_the_store_was_told(door: Door) -> None:
    await door.limit(KEY, requests=5)
    assert await door.requests(9) == 5
    assert door.send(recipients=3)
    await door.meters[0].tell()
    door.clock.advance(timedelta(hours=12) - timedelta(seconds=1))
    assert await door.requests(1) == 0
    door.clock.advance(timedelta(seconds=1))
    assert await door.requests(9) == 5
    assert door.send(recipients=2)
    assert await door.used() == Amount(requests=5, notifications=1, recipients=2)


async def test_a_quota_that_is_changed_holds_from_the_next_second_on(door: Door) -> None:
    assert await door.requests(5) == 5
    await door.limit(KEY, requests=7)
    await door.meters[0].tell()
    assert await door.requests(5) == 2
    await door.store.set_quota(TENANT, KEY, Limits(), actor="ada")
    door.send()
    await door.meters[0].tell()
    assert await door.requests(5) == 5


@pytest.mark.parametrize("key", [KEY, ""])
async def test_a_used_up_quota_of_requests_that_is_raised_opens_within_a_second(door: Door, key: str) -> None:
    await door.limit(key, requests=5)
    assert await door.requests(9) == 5
    await door.meters[0].tell()
    assert await door.requests(9) == 0
    await door.limit(key, requests=7)
    await door.meters[0].tell()
    assert await door.requests(9) == 2
    assert await door.used() == Amount(requests=7), "asking anew counts nothing"


async def test_what_a_store_that_was_down_did_not_hear_is_counted_when_it_is_back(door: Door) -> None:
    await door.limit(KEY, requests=10)
    assert await door.requests(4) == 4
    door.store.down = True
    with pytest.raises(StoreUnreachable):
        await door.meters[0].tell()
    assert await door.requests(9) == 6, "judged by what is known"
    door.store.down = False
    assert await door.used() == Amount(requests=10)


async def test_what_is_on_its_way_to_the_store_counts_already(door: Door) -> None:
    await door.limit(KEY, requests=5)
    assert await door.requests(5) == 5
    through: list[int] = []

    async def asked_meanwhile(uses: Sequence[Used]) -> list[Usage]:
        through.append(await door.requests(3))
        return await Counted.count_usage(door.store, uses)

    door.store.count_usage = asked_meanwhile  # type: ignore[method-assign]
    await door.meters[0].tell()
    assert through == [0]
