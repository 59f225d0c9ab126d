"""A line with a job for many, for tests of sets in pages: making it, and looking at all that came of it."""

from typing import Any

from clarion.client.wire import Recipient, SendAnswer
from clarion.domain.recipient import FrozenRecipient
from clarion.pipeline.schedule import Schedule
from clarion.sealing.place import blob_place
from clarion.testing.clock import ManualClock
from clarion.testing.store import SqliteInMemory
from tests.unit.crowd import EVERYBODY, rows_of
from tests.unit.pipeline_line import TENANT, Line, Scripted

TO = Recipient(group=EVERYBODY)
PEOPLE = 17
PAGE, STEP, INLINE = 5, 3, 4
"""So small that a set of a few people has several pages, each with several steps, and two that are not full."""


async def open_line(store: SqliteInMemory | None = None, clock: ManualClock | None = None) -> Line:
    clock = clock or ManualClock()
    line = Line(store or SqliteInMemory(clock), clock, Scripted())
    await line.seed()
    return line


async def accepted(line: Line, **changes: Any) -> SendAnswer:
    """Accept a notification to everybody, and have it scheduled."""
    sent = await line.send(to=TO, **changes)
    await Schedule(queue=line.store, facts=line.store).step()
    return sent


async def opened(line: Line, sent: SendAnswer) -> dict[str, bytes]:
    """Open all blobs of a set."""
    keys = await line.keyring.get(TENANT)
    return {
        path.rpartition("/")[2]: blob_place(path).open(keys, sealed)
        for path, sealed in line.blobs._contents.items()
        if f"/recipients/{sent.job_id}/" in path
    }


async def frozen_of(line: Line, sent: SendAnswer) -> list[FrozenRecipient]:
    """Read a whole set through what doors read it with."""
    job = (await line.timeline(sent)).job
    found: list[FrozenRecipient] = []
    while part := await line.recipient_sets.part(
        TENANT, job, after=found[-1].recipient_id_hash if found else "", limit=4
    ):
        found += part
    return found


def made(line: Line) -> dict[str, list[tuple[Any, ...]]]:
    """Everything that came of all jobs, without ids and times."""
    store = line.store
    outgoing = "SELECT pk, rk, message_id, address_id, channel, expires_at FROM outgoing_message ORDER BY pk, rk"
    lines = "SELECT partition_key, row_key, message_id FROM user_message ORDER BY partition_key, row_key"
    jobs = "SELECT recipient_id_hash, job_key, job_id FROM recipient_job ORDER BY recipient_id_hash, job_key"
    return {"outgoing": rows_of(store, outgoing), "inbox": rows_of(store, lines), "jobs": rows_of(store, jobs)}


def status_of(line: Line) -> tuple[str, int, int, str]:
    (row,) = rows_of(line.store, "SELECT status, retry_count, rescue_count, reason FROM notification_scheduler")
    return row


async def generated(line: Line) -> None:
    """Make all rows that are to be made now, with one worker."""
    generate = line.generate()
    while await generate.step():
        pass
