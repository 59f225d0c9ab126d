"""One-time codes along the whole line: sent, then erased, and nowhere to be found after that (X-23)."""

import itertools

import msgspec
import pytest

from clarion.domain.call import Deferred, Refused, Unknown
from clarion.domain.notification import NotificationJob, NotificationStatus
from clarion.domain.one_time_code import CodeStanding, is_spent
from clarion.domain.outgoing import OutgoingStatus
from clarion.errors import Conflict
from clarion.ports.renderer import QUARANTINED
from clarion.testing.clock import ManualClock
from clarion.testing.store import SqliteInMemory
from tests.unit.pipeline_line import TENANT, Line, Scripted

CODE = "407 112"
PHONE = "+447700900001"


@pytest.fixture
async def line() -> Line:
    clock = ManualClock()
    line = Line(SqliteInMemory(clock), clock, Scripted())
    await line.seed()
    return line


async def payloads(line: Line) -> list[bool]:
    """Tell of each job whether its data is there."""
    return [job.payload is not None for job in await line.store.rows(TENANT, NotificationJob)]


def held(line: Line) -> str:
    """Write down all that the pumps hold between two claims."""
    return repr([vars(preparation) for preparation in line.preparations])


def test_only_a_job_that_is_over_with_messages_that_are_over_is_spent() -> None:
    over = {
        NotificationStatus.DONE,
        NotificationStatus.SKIPPED,
        NotificationStatus.FAILED,
        NotificationStatus.CANCELED,
    }
    for work, waiting, undecided in itertools.product([*NotificationStatus, None], (0, 1, 2), (0, 1, 2)):
        standing = CodeStanding(1, work, waiting, undecided)
        assert is_spent(standing) == (work in over and (waiting, undecided) == (0, 0))


async def test_a_code_is_sent_and_then_its_data_is_gone_from_store_and_memory(line: Line) -> None:
    sent = await line.send("one-time-code", PHONE, data={"code": CODE})
    await line.send("welcome", data={"name": "Somebody else"})
    await line.drain()
    said = [repr(call.content) for call in line.provider.calls]
    assert sum(CODE in one for one in said) == 1
    assert sorted(await payloads(line)) == [False, True], "of the other type it is kept"
    assert CODE not in held(line)
    assert "Somebody else" in held(line), "what is held of another type shows that this looks at the right place"
    timeline = await line.timeline(sent)
    assert [row.status for row in timeline.outgoing] == [OutgoingStatus.SENT_TO_PROVIDER]
    assert "generated" in [one.what for one in await line.told(sent)]


async def test_a_code_whose_template_is_quarantined_ends_with_its_life_and_is_erased(line: Line) -> None:
    """It waits while somebody may mend the template, and no longer: it would lie in the store for ever."""
    sent = await line.send("one-time-code", PHONE, data={"code": CODE})
    other = await line.send("welcome", data={"name": "Somebody else"})
    for row in await line.store.list_templates(TENANT):
        assert await line.store.quarantine_template(TENANT, row.template_key, row.content_hash)
    worker = Line(line.store, line.clock, line.provider)  # a process that hears of it when it first asks
    await worker.wait(0)
    assert await payloads(line) == [True, True]
    await worker.wait(299)
    pending = (await line.timeline(sent)).scheduler
    assert pending is not None
    assert (pending.status, pending.reason) == (NotificationStatus.READY, QUARANTINED)
    await worker.wait(1)
    pending = (await line.timeline(sent)).scheduler
    assert pending is not None
    assert (pending.status, pending.reason) == (
        NotificationStatus.FAILED,
        f"its time ran out while it waited: {QUARANTINED}",
    )
    assert await payloads(line) == [False, True]
    await worker.wait(86_400)
    pending = (await line.timeline(other)).scheduler
    assert pending is not None
    assert pending.status is NotificationStatus.READY, "what lives for ever waits as long as it has to"


async def test_a_code_that_is_put_off_by_its_provider_keeps_its_data_for_the_retry(line: Line) -> None:
    line.provider.answers = [Deferred(reason="busy")]
    await line.send("one-time-code", PHONE, data={"code": CODE})
    await line.drain()
    assert await payloads(line) == [True]
    await line.wait(10)
    assert len(line.provider.calls) == 2
    assert line.provider.calls[0].content == line.provider.calls[1].content
    assert await payloads(line) == [False]


@pytest.mark.parametrize("answer", [Refused(reason="no"), Unknown(reason="lost")])
async def test_a_code_that_failed_or_that_nobody_knows_of_is_erased_in_the_end(
    line: Line, answer: Refused | Unknown
) -> None:
    line.provider.answers = [answer, answer]
    await line.send("one-time-code", PHONE, data={"code": CODE})
    await line.drain()
    await line.wait(301)
    await line.drain()  # the janitor looks after the claim that found it out of time
    assert await payloads(line) == [False]
    assert CODE not in held(line)


async def test_a_code_that_was_canceled_or_came_too_late_is_erased(line: Line) -> None:
    canceled = await line.send("one-time-code", PHONE, data={"code": CODE})
    await line.queue()
    assert await line.store.cancel_job(TENANT, canceled.job_id, actor="sam")
    await line.send("one-time-code", PHONE, data={"code": "2"}, ttl_seconds=1)
    await line.queue()
    await line.wait(2)
    assert (await payloads(line), line.provider.calls) == ([False, False], [])


async def test_a_repeat_is_answered_and_another_code_under_its_key_is_refused_after_it_was_erased(line: Line) -> None:
    first = await line.send("one-time-code", PHONE, data={"code": CODE}, key="k")
    await line.drain()
    again = await line.send("one-time-code", PHONE, data={"code": CODE}, key="k")
    assert (again.repeated, again.job_id) == (True, first.job_id)
    with pytest.raises(Conflict, match="differs in what was erased since: it was a one-time code"):
        await line.send("one-time-code", PHONE, data={"code": "407 113"}, key="k")
    await line.drain()
    assert len(line.provider.calls) == 1


async def test_a_message_whose_data_was_erased_is_not_called_without_it(line: Line) -> None:
    """Nothing leads to this; should it happen, no mail without its code leaves."""
    sent = await line.send("one-time-code", PHONE, data={"code": CODE})
    await line.queue()
    (job,) = await line.store.rows(TENANT, NotificationJob)
    await line.store.overwrite(TENANT, msgspec.structs.replace(job, payload=None))
    await line.drain()
    (row,) = (await line.timeline(sent)).outgoing
    assert (row.status, row.reason) == (
        OutgoingStatus.FAILED_FINAL,
        "it was a one-time code, and its data was erased when it was over",
    )
    assert line.provider.calls == []
