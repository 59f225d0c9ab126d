"""Wall clocks that jump, or are wrong when a process starts: nobody's lease, no due time and no end of a life moves.

The same history is run twice on two files, once with every wall clock right and once with jumps between its steps; each
step must give the same answer, and the same rows must be left (I-37).
"""

import asyncio
import shutil
import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta
from itertools import count
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from clarion.adapters.stores.sqlite import SqliteStore
from clarion.domain.claim import FlowQuota
from clarion.domain.guard import JobEntry
from clarion.errors import ClockLeap
from clarion.testing import factories
from clarion.testing.clock import ManualClock
from tests.integration.sqlite_look import connection_of
from tests.integration.sqlite_machine import Machine

TENANT = factories.TENANT
DAY = timedelta(days=1)
LEASE = timedelta(seconds=30)
ROUTE = "email:default"

PROCESSES = st.integers(min_value=0, max_value=1)
OFF_BY = st.sampled_from([DAY, -DAY, -3 * DAY, 30 * DAY])
SECONDS = st.sampled_from([1, 10, 29, 31, 45])

STEPS = st.one_of(
    st.tuples(st.just("accept"), PROCESSES),
    st.tuples(st.just("put off"), PROCESSES),
    st.tuples(st.just("claim"), PROCESSES),
    st.tuples(st.just("rescue"), PROCESSES),
    st.tuples(st.just("elapse"), SECONDS),
    st.tuples(st.just("jump"), PROCESSES, OFF_BY),
    st.tuples(st.just("restart"), PROCESSES, OFF_BY),
)
Step = tuple[str, int] | tuple[str, int, timedelta]


class History:
    """Two processes of one machine, step by step."""

    def __init__(self, machine: Machine, *, jumps: bool) -> None:
        self._machine = machine
        self._jumps = jumps
        self._numbers, self._tokens = count(1), count(1)
        self._clocks: list[ManualClock] = []
        self._stores: list[SqliteStore] = []
        self.answers: list[object] = []

    async def run(self, steps: Sequence[Step]) -> None:
        for _ in range(2):
            clock, store = await self._open(timedelta())
            self._clocks.append(clock)
            self._stores.append(store)
        await self._accept(self._stores[0])
        for step in steps:
            await self._step(step)
        for store in self._stores:
            await store.close()

    def rows(self) -> list[tuple[object, ...]]:
        """What is stored of messages and of what happened to them."""
        with closing(sqlite3.connect(self._machine.path)) as connection:
            return [
                row
                for table in ("outgoing_message", "transition", "delivery_attempt")
                for row in connection.execute(f"SELECT * FROM {table} ORDER BY rowid")  # noqa: S608  (names above)
            ]

    async def _step(self, step: Step) -> None:
        match step:
            case ("elapse", int(seconds)):
                self._machine.elapse(timedelta(seconds=seconds))
            case ("jump", int(place), timedelta() as off_by):
                self._clocks[place].jump(self._machine.true_at + (off_by if self._jumps else timedelta()))
            case ("restart", int(place), timedelta() as off_by):
                await self._stores[place].close()
                try:
                    opened = await self._open(off_by if self._jumps else timedelta())
                except ClockLeap:  # it says so and does nothing; somebody sets the clock right
                    opened = await self._open(timedelta())
                self._clocks[place], self._stores[place] = opened
            case ("accept", int(place)):
                await self._accept(self._stores[place])
            case ("put off", int(place)):
                await self._accept(self._stores[place], put_off=timedelta(seconds=20))
            case ("claim", int(place)):
                self.answers.append(await self._claim(self._stores[place]))
            case ("rescue", int(place)):
                self.answers.append(await self._stores[place].rescue_outgoing(limit=10))
            case _:
                raise AssertionError(f"there is no step {step}")

    async def _open(self, off_by: timedelta) -> tuple[ManualClock, SqliteStore]:
        clock = self._machine.clock(off_by=off_by)
        store = await self._machine.open_with(clock)
        connection_of(store).execute("PRAGMA synchronous = OFF")  # these rows need not outlive a power cut
        return clock, store

    async def _accept(self, store: SqliteStore, *, put_off: timedelta | None = None) -> None:
        """Accept a message that lives for 40 seconds, at the time that a door would ask for."""
        number, now = next(self._numbers), await store.now()
        job = factories.notification_job(number, source_at=now)
        (parent,) = await store.ensure_notification_jobs(TENANT, [JobEntry(job=job)])
        (address,) = await store.ensure_address_versions(TENANT, [factories.address_version(number)])
        due_at = None if put_off is None else now + put_off
        item = factories.outgoing_item(
            parent.record, address.record, due_at=due_at, expires_at=(due_at or now) + timedelta(seconds=40)
        )
        await store.ensure_outgoing_messages(TENANT, [item])

    async def _claim(self, store: SqliteStore) -> list[int]:
        found = await store.discover_flows(routes=(ROUTE,), lows={})
        quotas = [FlowQuota(flow_id=head.flow_id, quota=9, account="main") for head in found.heads]
        token = factories.guid(next(self._tokens), "token")
        claimed = await store.claim_outgoing(quotas, token=token, lease=LEASE, actor="worker")
        return sorted(one.id for one in claimed)


async def histories(template: Path, folder: Path, steps: Sequence[Step]) -> list[History]:
    both = []
    for jumps in (False, True):
        path = Path(shutil.copy(template, folder / f"{jumps}.db"))
        history = History(Machine(path), jumps=jumps)
        await history.run(steps)
        both.append(history)
    return both


@given(steps=st.lists(STEPS, min_size=3, max_size=14))
@example(steps=[("claim", 0), ("restart", 1, DAY), ("rescue", 1)])
@example(steps=[("put off", 0), ("restart", 1, DAY), ("claim", 1)])
@example(steps=[("restart", 1, -3 * DAY), ("accept", 1), ("claim", 0)])
@example(steps=[("restart", 1, 30 * DAY), ("accept", 1), ("put off", 0), ("claim", 0)])
@example(steps=[("claim", 0), ("jump", 0, 30 * DAY), ("elapse", 31), ("rescue", 0)])
@settings(max_examples=25, deadline=None)
def test_no_jump_of_any_wall_clock_changes_an_owner_a_due_time_or_a_life(
    sqlite_template: Path, steps: Sequence[Step]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        right, jumped = asyncio.run(histories(sqlite_template, Path(folder), steps))
        assert jumped.answers == right.answers
        assert jumped.rows() == right.rows()


def test_the_history_sees_leases_due_times_and_lives(sqlite_template: Path, tmp_path: Path) -> None:
    """What the property compares is not empty."""
    steps: list[Step] = [("claim", 0), ("elapse", 31), ("rescue", 1), ("put off", 1), ("elapse", 45), ("claim", 0)]
    right, _ = asyncio.run(histories(sqlite_template, tmp_path, [*steps, ("accept", 0), ("elapse", 45), ("claim", 1)]))
    assert right.answers == [[1], 1, [2], []]
    assert {"Uncertain", "Sending", "Expired"} <= {value for row in right.rows() for value in row}
