"""Ten thousand people of one group: what a step costs does not grow with them, in statements and in memory."""

import gc
import tracemalloc
from collections import Counter
from pathlib import Path

import pytest

from clarion.adapters.blobs import open_blobs
from clarion.client.wire import Recipient
from clarion.domain import recipient
from clarion.domain.recipient import INLINE_MAX, PAGE_SIZE, Manifest
from clarion.pipeline.generate import pages, underway, whom
from clarion.pipeline.schedule import Schedule
from clarion.sealing.recipients import RecipientSets
from clarion.testing.clock import ManualClock
from clarion.testing.store import SqliteInMemory
from tests.integration.sqlite_look import counted
from tests.unit.crowd import EVERYBODY, gather, hash_of, rows_of
from tests.unit.large_set import generated
from tests.unit.pipeline_line import Line, Scripted

STATEMENTS_MAX = 60
"""Of one step: a page asks about its people and their addresses by the thousand; rows are stored by the thousand."""


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no step end before its work."""
    monkeypatch.setattr(underway, "PATIENCE", 60)


async def prepared(people: int, folder: Path) -> Line:
    """Accept a notification to so many people; its pages will lie in files."""
    clock = ManualClock()
    line = Line(SqliteInMemory(clock), clock, Scripted())
    line.recipient_sets = RecipientSets(blobs=open_blobs(f"file://{folder}"), keyring=line.keyring)
    await line.seed()
    gather(line.store, range(people))
    await line.send(to=Recipient(group=EVERYBODY))
    await Schedule(queue=line.store, facts=line.store).step()
    return line


async def test_ten_thousand_people_get_it_once_in_steps_of_few_statements(tmp_path: Path) -> None:
    people = 10_500
    line = await prepared(people, tmp_path)
    generate, steps = line.generate(), []
    while True:
        with counted(line.store) as statements:
            if not await generate.step():
                break
        steps.append(len(statements.methods) + len(statements.shared))
    assert len(steps) == 1 + 3 + 11
    assert max(steps) < STATEMENTS_MAX, steps
    everybody = sorted(hash_of(n) for n in range(people))
    (text,) = rows_of(line.store, "SELECT recipients FROM notification_job")[0]
    manifest = recipient.read(text)
    assert isinstance(manifest, Manifest)
    assert manifest.pages == (everybody[PAGE_SIZE - 1], everybody[2 * PAGE_SIZE - 1], everybody[-1])
    assert manifest.totals.recipients == people
    assert [
        one for (one,) in rows_of(line.store, "SELECT recipient_id_hash FROM recipient_job ORDER BY 1")
    ] == everybody
    inboxes = Counter(one for (one,) in rows_of(line.store, "SELECT partition_key FROM user_message"))
    assert inboxes == {f"user:c{n}": 1 for n in range(people)}
    sent = Counter(one for (one,) in rows_of(line.store, "SELECT address_id FROM outgoing_message"))
    assert set(sent.values()) == {1}
    assert len(sent) == manifest.totals.outgoing == people - -(-people // 10)
    assert rows_of(line.store, "SELECT status, retry_count FROM notification_scheduler") == [("Done", 0)]


async def peak_of(people: int, folder: Path) -> int:
    """Say how much Python held at most while rows were made for so many people."""
    line = await prepared(people, folder)
    generate = line.generate()
    tracemalloc.start()
    try:
        while await generate.step():
            gc.collect()  # what nobody holds any more
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert rows_of(line.store, "SELECT count(*) FROM recipient_job") == [(people,)]
    return peak


async def test_six_pages_take_no_more_memory_than_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages and steps have a tenth of their size, because tracing takes five times as long."""
    size = PAGE_SIZE // 10
    monkeypatch.setattr(pages, "PAGE_SIZE", size)
    monkeypatch.setattr(pages, "STEP_SIZE", pages.STEP_SIZE // 10)
    monkeypatch.setattr(whom, "INLINE_MAX", INLINE_MAX // 10)
    line = await prepared(3 * size, tmp_path / "first")  # what is made once and kept: plans, ids that were read
    await generated(line)
    few, many = await peak_of(2 * size, tmp_path / "few"), await peak_of(6 * size, tmp_path / "many")
    assert many < few * 1.2, (few, many)


@pytest.mark.parametrize("people", [INLINE_MAX, INLINE_MAX + 1])
async def test_a_set_stands_in_its_row_up_to_a_thousand(people: int, tmp_path: Path) -> None:
    line = await prepared(people, tmp_path)
    await generated(line)
    (text,) = rows_of(line.store, "SELECT recipients FROM notification_job")[0]
    assert isinstance(recipient.read(text), Manifest) is (people > INLINE_MAX)
    assert recipient.how_many(text) == people
    assert rows_of(line.store, "SELECT count(*) FROM recipient_job") == [(people,)]
