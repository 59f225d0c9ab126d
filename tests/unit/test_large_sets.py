"""Sets in pages: frozen once, whoever dies while they are made, and each recipient gets each message once."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from clarion.adapters.stores.shared.queue import cancel
from clarion.client.wire import Recipient, SendAnswer
from clarion.domain import recipient
from clarion.domain.notification import RESCUES_MAX, STAGE_LEASE, NotificationStatus
from clarion.domain.recipient import Manifest
from clarion.errors import StoreUnreachable
from clarion.pipeline.generate import pages, underway, whom
from clarion.pipeline.generate.plan import TENANT_RESTS_FOR
from clarion.pipeline.schedule import Schedule
from clarion.sealing.recipients import RecipientSets
from clarion.testing.blobs import MemoryBlobs
from clarion.testing.clock import ManualClock
from clarion.testing.store import SqliteInMemory
from clarion.workers.janitor import Janitor
from tests.integration.sqlite_look import connection_of
from tests.unit.crowd import Killed, Mortal, gather, hash_of, join, leave, rows_of
from tests.unit.large_set import (
    INLINE,
    PAGE,
    PEOPLE,
    STEP,
    TO,
    accepted,
    frozen_of,
    generated,
    made,
    open_line,
    opened,
    status_of,
)
from tests.unit.pipeline_line import TENANT, Line, Scripted

OTHERS = UUID("6f1c2c7e-0000-4000-8000-0000000000ff")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make everything large that has more than a handful of people."""
    monkeypatch.setattr(pages, "PAGE_SIZE", PAGE)
    monkeypatch.setattr(pages, "STEP_SIZE", STEP)
    monkeypatch.setattr(whom, "INLINE_MAX", INLINE)
    monkeypatch.setattr(underway, "PATIENCE", 60)  # so that no step ends before its work


class MortalBlobs(MemoryBlobs):
    """Blobs whose caller dies with that of its store."""

    def __init__(self, store: Mortal) -> None:
        super().__init__()
        self._store = store

    async def put_if_absent(self, path: str, content: bytes) -> bool:
        self._store.moment()
        put = await super().put_if_absent(path, content)
        self._store.moment()
        return put

    async def find(self, path: str) -> bytes | None:
        self._store.moment()
        return await super().find(path)


async def undisturbed() -> tuple[Line, SendAnswer]:
    """Make a large set without any trouble."""
    line = await open_line()
    gather(line.store, range(PEOPLE))
    sent = await accepted(line)
    await generated(line)
    return line, sent


async def test_a_large_set_lies_in_pages_and_everybody_gets_everything_once() -> None:
    line, sent = await undisturbed()
    everybody = sorted(hash_of(n) for n in range(PEOPLE))
    frozen = await frozen_of(line, sent)
    assert [one.recipient_id_hash for one in frozen] == everybody
    blobs = await opened(line, sent)
    assert sorted(blobs) == ["0", "1", "2", "3", "manifest"]
    stored = [one for page in range(4) for one in recipient.decode(blobs[str(page)])]
    assert stored == frozen
    assert [len(recipient.decode(blobs[str(page)])) for page in range(4)] == [PAGE, PAGE, PAGE, 2]
    text = (await line.timeline(sent)).job.recipients
    assert text is not None
    assert text.encode() == blobs["manifest"]
    manifest = recipient.read(text)
    assert isinstance(manifest, Manifest)
    assert manifest.pages == tuple(everybody[place] for place in (4, 9, 14, 16))
    assert manifest.totals == recipient.totals_of(frozen)
    without = len([n for n in range(PEOPLE) if n % 10 == 0])
    all_made = made(line)
    assert len(all_made["outgoing"]) == PEOPLE - without
    assert len({row[1] for row in all_made["outgoing"]}) == PEOPLE - without
    assert sorted(row[0] for row in all_made["inbox"]) == sorted(f"user:c{n}" for n in range(PEOPLE))
    assert [row[0] for row in all_made["jobs"]] == everybody
    assert status_of(line) == ("Done", 0, 0, f"{PEOPLE} recipients, {2 * PEOPLE - without} messages, {without} skipped")


@pytest.mark.parametrize("number", [INLINE, INLINE + 1, PAGE, PAGE + 1, 2 * PAGE, 3 * STEP])
async def test_sets_end_where_their_people_end(number: int) -> None:
    """Just at the largest set that stands in its row, and just at the end of a page or of a step."""
    line = await open_line()
    gather(line.store, range(number))
    sent = await accepted(line)
    await generated(line)
    assert [one.recipient_id_hash for one in await frozen_of(line, sent)] == sorted(map(hash_of, range(number)))
    assert (len(made(line)["jobs"]), len(made(line)["inbox"])) == (number, number)
    pages_of = len([name for name in await opened(line, sent) if name != "manifest"])
    assert pages_of == (0 if number <= INLINE else -(-number // PAGE))
    assert status_of(line)[0] == "Done"


async def test_those_who_are_named_stand_among_those_of_groups_each_once() -> None:
    """A person, who is in the group too, and a bare address."""
    line = await open_line()
    gather(line.store, range(PEOPLE))
    sent = await line.send(to=TO, also=(Recipient(user="1"), Recipient(address="bo@example.com"), Recipient(user="x")))
    await line.queue()
    frozen = await frozen_of(line, sent)
    hashes = [one.recipient_id_hash for one in frozen]
    assert hashes == sorted(set(hashes))
    assert len(hashes) == PEOPLE + 3
    named = {one.person_id for one in frozen if one.recipient_id_hash not in {hash_of(n) for n in range(PEOPLE)}}
    assert named == {"1", "x", None}
    assert len(made(line)["outgoing"]) == PEOPLE - 2 + 2


async def mortal_copy(line: Line) -> tuple[Line, Mortal]:
    """Copy a line as it stands, with a worker that can die."""
    clock = ManualClock()
    store = Mortal(clock)
    connection_of(line.store).backup(connection_of(store))
    copy = Line(store, clock, Scripted(), renderer=line.renderer)
    copy.blobs = MortalBlobs(store)
    copy.recipient_sets = RecipientSets(blobs=copy.blobs, keyring=copy.keyring)
    return copy, store


async def lives_until(line: Line, store: Mortal, moment: int | None) -> int | None:
    """Work until a moment, or until nothing is left to do; return how many moments that took, None for a death."""
    store.die_at(moment)
    try:
        await generated(line)
    except Killed:
        return None
    finally:
        asked = store.asked
        store.die_at(None)
    return asked


async def taken_over(line: Line) -> None:
    """Have another worker go on after the lease of the one that died."""
    line.clock.advance(STAGE_LEASE * 1.1)
    await Janitor(line.store).step()
    await generated(line)


async def test_a_worker_may_die_at_any_moment_and_the_set_is_the_same() -> None:
    """Before every statement, after every transaction, and before and after every blob."""
    line = await open_line()
    gather(line.store, range(PEOPLE))
    sent = await accepted(line)
    calm, store = await mortal_copy(line)
    moments = await lives_until(calm, store, None)
    assert moments is not None
    assert moments > 100
    wanted, blobs, text = made(calm), await opened(calm, sent), (await calm.timeline(sent)).job.recipients
    assert len(wanted["inbox"]) == PEOPLE
    for moment in range(1, moments + 1):
        again, store = await mortal_copy(line)
        assert await lives_until(again, store, moment) is None
        await taken_over(again)
        assert (await opened(again, sent), (await again.timeline(sent)).job.recipients) == (blobs, text), moment
        assert made(again) == wanted, moment
        assert status_of(again)[0] == "Done", moment


async def test_a_job_is_finished_however_many_workers_die_over_it() -> None:
    """One after the other, each a little later in its life than a step takes; more than are forgiven to poison."""
    line = await open_line()
    gather(line.store, range(PEOPLE))
    sent = await accepted(line)
    calm, store = await mortal_copy(line)
    await lives_until(calm, store, None)
    again, store = await mortal_copy(line)
    deaths = 0
    while await lives_until(again, store, 28) is None:
        deaths += 1
        again.clock.advance(STAGE_LEASE * 1.1)
        await Janitor(again.store).step()
    assert deaths > RESCUES_MAX
    assert (made(again), await opened(again, sent)) == (made(calm), await opened(calm, sent))
    assert status_of(again)[0] == "Done"


async def test_what_becomes_of_a_group_while_its_set_is_written_is_seen_behind_the_last_page_only() -> None:
    """And nothing of it once the set is frozen: the frozen set stands (I-06)."""
    line = await open_line()
    gather(line.store, range(PEOPLE))
    gather(line.store, range(100, 140), group=OTHERS)
    order = sorted(range(PEOPLE), key=hash_of)
    sent = await accepted(line)
    for _ in range(2):  # that it is large, and its first page
        await line.generate().step()
    (first,) = [hash_of(n) for n in order[PAGE - 1 : PAGE]]
    early = next(n for n in range(100, 140) if hash_of(n) < first)
    late = next(n for n in range(100, 140) if hash_of(n) > first)
    leave(line.store, [order[0], order[-1]])
    join(line.store, [early, late])
    for _ in range(3):  # the other pages and the manifest
        await line.generate().step()
    expected = sorted([*(hash_of(n) for n in order[:-1]), hash_of(late)])
    assert [one.recipient_id_hash for one in await frozen_of(line, sent)] == expected
    leave(line.store, order[:-1])
    await generated(line)
    assert [row[0] for row in made(line)["jobs"]] == expected
    assert len(made(line)["inbox"]) == PEOPLE


async def test_a_page_that_a_lost_worker_has_stored_counts_whatever_became_of_the_group() -> None:
    """It was stored, and nobody noted that: the next worker reads it, though it would find nobody any more."""
    line = await open_line()
    gather(line.store, range(PEOPLE))
    sent = await accepted(line)
    await line.generate().step()
    (cursor,) = rows_of(line.store, "SELECT cursor FROM notification_scheduler")[0]
    await line.generate().step()
    connection_of(line.store).execute("UPDATE notification_scheduler SET cursor = ?", (cursor,))
    leave(line.store, range(PEOPLE))
    await generated(line)
    assert [one.recipient_id_hash for one in await frozen_of(line, sent)] == sorted(map(hash_of, range(PEOPLE)))[:PAGE]
    assert len(made(line)["inbox"]) == PAGE


async def test_a_set_that_was_large_once_lies_in_pages_whatever_becomes_of_its_group() -> None:
    line = await open_line()
    gather(line.store, range(PEOPLE))
    sent = await accepted(line)
    await line.generate().step()
    leave(line.store, range(PEOPLE - 2))
    await generated(line)
    assert sorted(await opened(line, sent)) == ["0", "manifest"]
    assert len(made(line)["jobs"]) == 2
    assert status_of(line)[0] == "Done"


async def test_pages_without_anybody_come_to_an_empty_set() -> None:
    line = await open_line()
    gather(line.store, range(PEOPLE))
    sent = await accepted(line)
    await line.generate().step()
    leave(line.store, range(PEOPLE))
    await generated(line)
    assert sorted(await opened(line, sent)) == ["manifest"]
    assert status_of(line)[::3] == ("Done", "0 recipients, 0 messages")


@pytest.mark.parametrize("steps", range(1, 11))
async def test_no_row_is_made_after_a_cancel(steps: int) -> None:
    """At whichever step of the eleven it comes."""
    line = await open_line()
    gather(line.store, range(PEOPLE))
    sent = await accepted(line)
    for _ in range(steps):
        await line.generate().step()
    before = made(line)
    assert await line.store.cancel_job(TENANT, sent.job_id, actor="sam")
    await generated(line)
    assert made(line) == before
    assert status_of(line)[0] == "Canceled"


async def test_a_cancel_of_many_rows_takes_several_transactions_and_is_one_act(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever is lost in the middle cancels again, and that is an act of its own."""
    monkeypatch.setattr(cancel, "ROWS_MAX", 4)
    line = await open_line()
    gather(line.store, range(PEOPLE))
    sent = await accepted(line)
    await generated(line)
    copy, store = await mortal_copy(line)
    store.die_at(None)
    assert await store.cancel_job(TENANT, sent.job_id, actor="sam")
    canceled = rows_of(
        store, "SELECT status, count(*), min(cancel_at) IS NOT NULL FROM outgoing_message GROUP BY status"
    )
    assert canceled == [("Canceled", len(made(copy)["outgoing"]), 1)]
    assert [entry.act for entry in await store.list_audit(TENANT)][-1] == "cancel"
    acts, moments = len(await store.list_audit(TENANT)), store.asked
    assert not await store.cancel_job(TENANT, sent.job_id, actor="sam")
    assert len(await store.list_audit(TENANT)) == acts
    again, store = await mortal_copy(line)
    store.die_at(moments // 2)
    with pytest.raises(Killed):
        await store.cancel_job(TENANT, sent.job_id, actor="sam")
    store.die_at(None)
    (left,) = rows_of(store, "SELECT count(*) FROM outgoing_message WHERE status <> 'Canceled'")
    assert 0 < left[0] < len(made(again)["outgoing"])
    assert await store.cancel_job(TENANT, sent.job_id, actor="sam")
    assert rows_of(store, "SELECT DISTINCT status FROM outgoing_message") == [("Canceled",)]


@pytest.mark.parametrize("asked", ["freeze_recipients", "note_recipients", "ensure_user_messages"])
async def test_no_message_is_made_after_a_cancel_in_the_middle_of_a_step(
    asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F-11: the worker that is at it does not know yet."""
    line = await open_line()
    gather(line.store, range(PEOPLE))
    sent = await accepted(line)
    ask = getattr(SqliteInMemory, asked)

    async def canceled(store: SqliteInMemory, *given: Any, **named: Any) -> Any:
        await store.cancel_job(TENANT, sent.job_id, actor="sam")
        return await ask(store, *given, **named)

    monkeypatch.setattr(SqliteInMemory, asked, canceled)
    await generated(line)
    assert (made(line)["inbox"], made(line)["outgoing"]) == ([], [])
    assert status_of(line)[0] == "Canceled"


async def test_a_page_that_cannot_be_stored_puts_the_job_off_and_no_row_is_made() -> None:
    """F-18: the blob store is down, and nothing refers to what is not there."""

    class Down(MemoryBlobs):
        down = True

        async def put_if_absent(self, path: str, content: bytes) -> bool:
            if self.down:
                raise StoreUnreachable("the blob store does not answer", hint="start it")
            return await super().put_if_absent(path, content)

    line = await open_line()
    line.blobs = blobs = Down()
    line.recipient_sets = RecipientSets(blobs=blobs, keyring=line.keyring)
    gather(line.store, range(PEOPLE))
    sent = await accepted(line)
    await generated(line)
    assert status_of(line) == ("Ready", 0, 0, "the blob store does not answer: start it")
    assert made(line) == {"outgoing": [], "inbox": [], "jobs": []}
    blobs.down = False
    line.clock.advance(TENANT_RESTS_FOR)
    await generated(line)
    assert len(await frozen_of(line, sent)) == PEOPLE
    assert status_of(line)[0] == "Done"


async def test_large_jobs_take_turns_and_come_after_small_ones() -> None:
    """A step has so much time for them; those that it does not come to wait and lose nothing."""

    class Ticking(ManualClock):
        def monotonic(self) -> float:
            self.advance(timedelta(seconds=0.4))
            return super().monotonic()

    clock = Ticking()
    line = await open_line(clock=clock)
    gather(line.store, range(PEOPLE))
    large = [await accepted(line) for _ in range(4)]
    await line.generate().step()
    small = await line.send(to=Recipient(user="1"))
    await Schedule(queue=line.store, facts=line.store).step()
    await line.generate().step()
    timeline = await line.timeline(small)
    assert timeline.scheduler is not None
    assert timeline.scheduler.status is NotificationStatus.DONE
    pages_of = [len(await opened(line, sent)) for sent in large]
    assert 0 < sum(pages_of) < len(large)
    await generated(line)
    assert len(made(line)["jobs"]) == len(large) * PEOPLE + 1
