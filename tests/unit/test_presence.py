"""What a process tells of itself: heartbeats, and accounts that fail, in the log, in heartbeats and as one case."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from structlog.testing import capture_logs

from clarion.domain.call import Accepted, CallOutcome, Deferred, Misconfigured
from clarion.domain.identity import Channel
from clarion.domain.support import SupportKind, SupportStatus
from clarion.domain.worker import KEPT_FOR, LOST_AFTER, Heartbeat, served, summarise
from clarion.errors import StoreUnreachable
from clarion.testing.clock import ManualClock
from clarion.testing.store import SqliteInMemory
from clarion.workers.presence import Presence
from tests.unit.pipeline_line import TENANT, Line, Scripted

ME = UUID(int=1)
DEAD = Deferred(reason="connecting: refused")


class Counting(SqliteInMemory):
    """Counts heartbeats, and is down while a test says so."""

    heartbeats = 0
    down = False

    async def note_heartbeat(self, heartbeat: Heartbeat) -> None:
        if self.down:
            raise StoreUnreachable("the store does not answer", hint="wait")
        self.heartbeats += 1
        await super().note_heartbeat(heartbeat)


@pytest.fixture
async def line() -> Line:
    clock = ManualClock()
    line = Line(Counting(clock), clock, Scripted())
    await line.seed()
    return line


def present(line: Line, worker_id: UUID = ME) -> Presence:
    presence = Presence(
        line.store,
        clock=line.clock,
        worker_id=worker_id,
        name="host:1",
        channels=[Channel.EMAIL],
        accounts=[line.account],
    )
    line.observe = presence.observe
    return presence


async def live(line: Line, presence: Presence, seconds: int) -> None:
    """Let a process live for so long: each second its calls, then its heartbeat's step."""
    for _ in range(seconds):
        await line.wait(1)
        await presence.step()


def always(line: Line, outcome: CallOutcome) -> None:
    line.provider.answers = [outcome] * 1000


async def cases(line: Line, **query: Any) -> list[tuple[SupportKind, SupportStatus, int]]:
    found = await line.store.list_support_cases(TENANT, **query)
    return [(case.kind, case.status, case.seen_count) for case in found]


async def test_a_process_writes_one_heartbeat_in_ten_seconds(line: Line) -> None:
    presence = present(line)
    await live(line, presence, 60)
    (worker,) = await line.store.list_workers()
    assert (worker.heartbeat.name, worker.heartbeat.channels, worker.is_lost) == ("host:1", ("email",), False)
    assert isinstance(line.store, Counting)
    assert line.store.heartbeats == 6
    assert worker.started_at < worker.seen_at


async def test_a_process_that_stops_takes_its_heartbeat_back_and_one_that_is_killed_grows_old(line: Line) -> None:
    stopped, killed = present(line), present(line, UUID(int=2))
    await stopped.step()
    await killed.step()
    await stopped.end()
    (worker,) = await line.store.list_workers()
    assert worker.heartbeat.worker_id == UUID(int=2)
    assert served([worker]) == {Channel.EMAIL, Channel.INBOX}
    line.clock.advance(LOST_AFTER)
    (worker,) = await line.store.list_workers()
    assert worker.is_lost
    assert served([worker]) == {Channel.INBOX}
    assert summarise([worker]) == []


async def test_what_is_left_of_a_killed_process_is_swept(line: Line) -> None:
    await present(line).step()
    line.clock.advance(KEPT_FOR)
    await present(line, UUID(int=2)).step()
    assert [one.heartbeat.worker_id for one in await line.store.list_workers()] == [UUID(int=2)]


async def test_an_account_that_fails_is_logged_once_shown_and_one_case_and_well_again_says_so(line: Line) -> None:
    presence = present(line)
    always(line, DEAD)
    for n in range(20):
        await line.send(to=f"user-{n}@example.com")
    with capture_logs() as logs:
        await live(line, presence, 90)
    assert [(one["log_level"], one["account"], one["error"]) for one in logs] == [
        ("warning", "scripted", "connecting: refused")
    ]
    (shown,) = summarise(await line.store.list_workers())
    assert (shown.failing, shown.reason, shown.workers) == (True, "connecting: refused", 1)
    assert shown.failing_since_at is not None
    assert await cases(line) == [(SupportKind.OUTAGE, SupportStatus.OPEN, 1)]

    line.provider.answers = []
    with capture_logs() as logs:
        await line.wait(600)
        await live(line, presence, 2)
    assert [(one["event"], one["account"]) for one in logs] == [("an account is well again", "scripted")]
    assert not summarise(await line.store.list_workers())[0].failing
    (case,) = await line.store.list_support_cases(TENANT)
    assert (case.status, case.resolved_by) == (SupportStatus.RESOLVED, "workers")


async def test_a_message_that_is_alone_shows_a_dead_account_within_a_minute(line: Line) -> None:
    presence = present(line)
    always(line, DEAD)
    await line.send()
    await live(line, presence, 45)
    assert await cases(line) == [(SupportKind.OUTAGE, SupportStatus.OPEN, 1)]


async def test_two_processes_have_one_case_for_one_account(line: Line) -> None:
    first, second = present(line), present(line, UUID(int=2))
    always(line, DEAD)

    def both(*heard: Any) -> None:
        first.observe(*heard)
        second.observe(*heard)

    line.observe = both
    await line.send()
    for _ in range(60):
        await line.wait(1)
        await first.step()
        await second.step()
    assert await cases(line) == [(SupportKind.OUTAGE, SupportStatus.OPEN, 2)]
    (shown,) = summarise(await line.store.list_workers())
    assert (shown.workers, shown.failing) == (2, True)


async def test_an_account_at_fault_has_the_case_of_its_message_and_no_second_one(line: Line) -> None:
    presence = present(line)
    always(line, Misconfigured(reason="535 wrong password"))
    await line.send()
    with capture_logs() as logs:
        await live(line, presence, 5)
    assert [one["error"] for one in logs] == ["535 wrong password"]
    assert [kind for kind, _, _ in await cases(line)] == [SupportKind.MISCONFIGURATION]


async def test_a_case_that_somebody_resolved_stays_as_they_left_it(line: Line) -> None:
    presence = present(line)
    always(line, DEAD)
    await line.send()
    await live(line, presence, 45)
    (case,) = await line.store.list_support_cases(TENANT)
    await line.store.resolve_support_case(TENANT, case.case_id, actor="ada", resolution="the firewall")
    line.provider.answers = [Accepted()]
    await line.wait(600)
    await live(line, presence, 2)
    (case,) = await line.store.list_support_cases(TENANT)
    assert (case.resolved_by, case.resolution) == ("ada", "the firewall")


async def test_what_a_store_that_was_down_did_not_hear_is_told_when_it_is_back(line: Line) -> None:
    presence = present(line)
    always(line, DEAD)
    await line.send()
    await live(line, presence, 25)
    assert isinstance(line.store, Counting)
    line.store.down = True
    with capture_logs() as logs:
        await line.wait(20)
        for _ in range(3):
            with pytest.raises(StoreUnreachable):
                await presence.step()
    assert len(logs) == 1
    line.store.down = False
    line.clock.advance(timedelta(seconds=1))
    await presence.step()
    assert summarise(await line.store.list_workers())[0].failing
    assert await cases(line) == [(SupportKind.OUTAGE, SupportStatus.OPEN, 1)]


async def test_who_got_something_since_has_no_case_when_the_account_fails_for_others(line: Line) -> None:
    presence = present(line)

    def called(tenant_id: str, outcome: CallOutcome) -> None:
        message: Any = SimpleNamespace(account=line.account, tenant_id=tenant_id, correlation_id="c-1")
        presence.observe(message, outcome, 0.1)

    called(TENANT, DEAD)
    called(TENANT, Accepted())
    for _ in range(4):
        called("other", DEAD)
        line.clock.advance(timedelta(seconds=10))
    await line.dispatcher.ensure_tenant("other")
    await presence.step()
    assert await cases(line) == []
    assert len(await line.store.list_support_cases("other")) == 1


async def test_an_account_that_begins_to_fail_is_shown_before_the_next_heartbeat_is_due(line: Line) -> None:
    presence = present(line)
    message: Any = SimpleNamespace(account=line.account, tenant_id=TENANT, correlation_id="c-1")
    for _ in range(3):
        presence.observe(message, DEAD, 0.1)
    for seconds, failing in ((29, False), (1, True)):
        line.clock.advance(timedelta(seconds=seconds))
        await presence.step()
        assert [one.failing for one in summarise(await line.store.list_workers())] == [failing]
