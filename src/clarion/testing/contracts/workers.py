"""The heartbeats of processes, and the routes on which messages wait: what is read to say what runs."""

from datetime import timedelta
from uuid import UUID

import msgspec

from clarion.domain.worker import KEPT_FOR, LOST_AFTER, AccountState, Heartbeat, Worker
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.contracts.pump import Pump
from clarion.testing.factories import guid

MINUTE = timedelta(minutes=1)


def heartbeat(n: int, tenant_id: str, **fields: object) -> Heartbeat:
    """Make what a process of this test says of itself; the table is shared with other tests."""
    said = Heartbeat(
        worker_id=guid(n, f"worker-{tenant_id}"),
        name=f"{tenant_id}:{n}",
        program="0.1.0",
        channels=("email", "a channel of a newer program"),
        accounts=(
            AccountState(account="smtp-example.com"),
            AccountState(
                account="other", failing=True, failures=7, failing_seconds=90, called_seconds=2, reason="Ärger"
            ),
        ),
    )
    return msgspec.structs.replace(said, **fields)


async def workers(harness: StoreHarness) -> dict[UUID, Worker]:
    """Read the heartbeats of this test's processes."""
    found = await harness.store.list_workers()
    return {one.heartbeat.worker_id: one for one in found if one.heartbeat.name.startswith(f"{harness.tenant_id}:")}


class WorkerContract:
    """Processes and what they say of themselves."""

    async def test_a_heartbeat_is_read_as_it_was_written(self, harness: StoreHarness) -> None:
        """Times are the store's."""
        said = heartbeat(1, harness.tenant_id)
        await harness.store.note_heartbeat(said)
        (found,) = (await workers(harness)).values()
        assert found.heartbeat == said
        assert found.started_at == found.seen_at <= found.now
        assert not found.is_lost

    async def test_a_later_heartbeat_takes_the_place_of_the_one_before(self, harness: StoreHarness) -> None:
        """When the process started stays."""
        await harness.store.note_heartbeat(heartbeat(1, harness.tenant_id))
        await harness.elapse(LOST_AFTER)
        (found,) = (await workers(harness)).values()
        assert found.is_lost
        later = heartbeat(1, harness.tenant_id, channels=("sms",), accounts=())
        await harness.store.note_heartbeat(later)
        (found,) = (await workers(harness)).values()
        assert (found.heartbeat, found.is_lost) == (later, False)
        assert found.seen_at - found.started_at >= LOST_AFTER

    async def test_a_process_that_ends_is_forgotten_and_no_other(self, harness: StoreHarness) -> None:
        """Ending twice does no harm."""
        for n in (1, 2):
            await harness.store.note_heartbeat(heartbeat(n, harness.tenant_id))
        for _ in range(2):
            await harness.store.end_worker(heartbeat(1, harness.tenant_id).worker_id)
        assert [one.heartbeat.name for one in (await workers(harness)).values()] == [f"{harness.tenant_id}:2"]

    async def test_a_heartbeat_sweeps_those_that_were_lost_long_ago(self, harness: StoreHarness) -> None:
        """One that is late is not swept."""
        await harness.store.note_heartbeat(heartbeat(1, harness.tenant_id))
        await harness.elapse(KEPT_FOR / 2)
        await harness.store.note_heartbeat(heartbeat(2, harness.tenant_id))
        await harness.elapse(KEPT_FOR / 2)
        await harness.store.note_heartbeat(heartbeat(3, harness.tenant_id))
        assert {one.heartbeat.name[-1] for one in (await workers(harness)).values()} == {"2", "3"}

    async def test_a_route_on_which_something_is_due_tells_for_how_long(self, harness: StoreHarness) -> None:
        """What is not due yet does not wait."""
        assert await harness.store.measure_routes() == []
        pump = Pump(harness)
        await pump.message(1, due_at=await harness.now() + 60 * MINUTE)
        assert await harness.store.measure_routes() == []
        await pump.message(2)
        await pump.message(3)
        await harness.elapse(MINUTE)
        (found,) = await harness.store.measure_routes()
        assert 60 <= found.oldest_seconds < 90
