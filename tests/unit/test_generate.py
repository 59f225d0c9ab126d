"""The second stage: rows are made for those who are known, under the claim that stands, and one bad job fails alone."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest

from clarion.adapters.renderers.renderer import LiquidRenderer
from clarion.catalog.people import ContactEntry, GroupEntry, People, PersonEntry
from clarion.catalog.publish import Publisher
from clarion.client.wire import Recipient, SendRequest
from clarion.dispatch.request import Trace
from clarion.domain.claim import StageResult
from clarion.domain.ensured import Ensured
from clarion.domain.identity import Channel, Identity
from clarion.domain.inbox import UserMessage
from clarion.domain.notification import (
    RESCUES_MAX,
    STAGE_LEASE,
    NotificationJob,
    NotificationScheduler,
    NotificationStatus,
)
from clarion.domain.outgoing import OutgoingItem, OutgoingMessage, OutgoingStatus
from clarion.domain.recipient import FrozenSet
from clarion.domain.support import SupportKind
from clarion.operations.notification import answer_of, read_request
from clarion.pipeline.generate import Generate, inbox
from clarion.pipeline.generate.plan import NOT_MERGED_FOR, TENANT_RESTS_FOR
from clarion.pipeline.generate.stage import ALONE_FOR
from clarion.pipeline.schedule import Schedule
from clarion.ports.ensure import ITEMS_MAX, WrappedKeys
from clarion.ports.renderer import Bundle, Merge, Merged
from clarion.producers.direct import origin_of
from clarion.sealing.place import payload_place
from clarion.testing.clock import ManualClock
from clarion.testing.store import SqliteInMemory
from clarion.workers.janitor import Janitor
from tests.unit.pipeline_line import DEFINITIONS, TENANT, Line, Scripted

DONE, FAILED = NotificationStatus.DONE, NotificationStatus.FAILED


async def open_line(store: SqliteInMemory, clock: ManualClock) -> Line:
    line = Line(store, clock, Scripted())
    await line.seed()
    return line


@pytest.fixture
async def line() -> Line:
    clock = ManualClock()
    return await open_line(SqliteInMemory(clock), clock)


async def status_of(line: Line, tenant_id: str, job_id: UUID) -> NotificationStatus | None:
    timeline = await line.store.find_job_timeline(tenant_id, job_id)
    return None if timeline is None or timeline.scheduler is None else timeline.scheduler.status


async def change(line: Line, job_id: UUID, **fields: object) -> None:
    """Damage a stored job."""
    (job,) = [job for job in await line.store.rows(TENANT, NotificationJob) if job.guid == job_id]
    await line.store.overwrite(TENANT, msgspec.structs.replace(job, **fields))


async def test_a_cancel_while_rows_are_made_leaves_no_line_in_any_inbox() -> None:
    """F-11: between the freeze and the rows, where the job is still held by a worker that does not know yet."""

    class Canceled(SqliteInMemory):
        async def freeze_recipients(self, tenant_id: str, sets: Sequence[FrozenSet]) -> dict[int, str]:
            for job in await self.rows(TENANT, NotificationJob):
                await self.cancel_job(TENANT, job.guid, actor="sam")
            return await super().freeze_recipients(tenant_id, sets)

    clock = ManualClock()
    line = await open_line(Canceled(clock), clock)
    sent = await line.send(to=Recipient(user="1"))
    await line.drain()
    assert await status_of(line, TENANT, sent.job_id) is NotificationStatus.CANCELED
    assert not await line.store.rows(TENANT, UserMessage)
    assert not await line.store.rows(TENANT, OutgoingMessage)


async def test_a_job_whose_keys_a_newer_program_made_is_left_to_it_and_the_others_are_made(line: Line) -> None:
    """It is put off, as often as need be; its tenant's other jobs are not."""
    newer, other = await line.send(), await line.send()
    await change(line, newer.job_id, key_version=99)
    await line.drain()
    assert await status_of(line, TENANT, newer.job_id) is NotificationStatus.READY
    assert await status_of(line, TENANT, other.job_id) is DONE
    timeline = await line.timeline(newer)
    assert timeline.scheduler is not None
    assert "keys of version 99 are unknown" in (timeline.scheduler.reason or "")


@pytest.mark.parametrize("ahead", [None, timedelta(seconds=-60), timedelta(hours=1)])
async def test_a_life_begins_when_the_message_may_go_out(line: Line, ahead: timedelta | None) -> None:
    """A code that lives five minutes and is put off by an hour lives five minutes from then on."""
    accepted_at = line.clock.now()
    sent = await line.send(
        "one-time-code",
        "+447700900001",
        data={"code": "123456"},
        not_before_at=None if ahead is None else accepted_at + ahead,
    )
    line.clock.advance(max(ahead or timedelta(), timedelta()))
    await line.drain()
    timeline = await line.timeline(sent)
    assert [row.status for row in timeline.outgoing] == [OutgoingStatus.SENT_TO_PROVIDER]


async def test_a_life_ends_after_a_time_that_was_put_off(line: Line) -> None:
    """Its life starts at that time, not when a worker finds it."""
    later_at = line.clock.now() + timedelta(hours=1)
    sent = await line.send("one-time-code", "+447700900001", data={"code": "123456"}, not_before_at=later_at)
    await line.wait(3600 + 301)
    assert [row.status for row in (await line.timeline(sent)).outgoing] == [OutgoingStatus.EXPIRED]


@pytest.mark.parametrize(
    "asked, waits, status",
    [
        (60, 61, OutgoingStatus.EXPIRED),  # shorter than the type's five minutes
        (600, 301, OutgoingStatus.SENT_TO_PROVIDER),  # longer
        (600, 601, OutgoingStatus.EXPIRED),
    ],
)
async def test_a_send_may_say_how_long_it_lives(line: Line, asked: int, waits: int, status: OutgoingStatus) -> None:
    sent = await line.send("one-time-code", "+447700900001", data={"code": "123456"}, ttl_seconds=asked)
    await line.wait(waits)
    assert [row.status for row in (await line.timeline(sent)).outgoing] == [status]


@pytest.mark.parametrize(
    "asked, channels, inbox",
    [((), [Channel.EMAIL], 1), ((Channel.EMAIL,), [Channel.EMAIL], 0), ((Channel.INBOX,), [], 1)],
)
async def test_a_send_may_take_only_some_of_the_channels(
    line: Line, asked: tuple[Channel, ...], channels: list[Channel], inbox: int
) -> None:
    sent = await line.send(to=Recipient(user="1"), channels=asked)
    await line.drain()
    timeline = await line.timeline(sent)
    assert ([row.channel for row in timeline.outgoing], len(timeline.inbox)) == (channels, inbox)


async def test_a_life_does_not_begin_in_a_time_that_was_taken_back(line: Line) -> None:
    """The store's clock was a month ahead when the code was accepted, and was set right before its row was made."""
    asked = SendRequest(type="one-time-code", to=(Recipient(address="+447700900001"),), data={"code": "123456"})
    published = await line.sends.look_up(TENANT, asked.type)
    month_ahead = published.at + timedelta(days=30)
    request = read_request(
        asked, origin=origin_of(None, line.ids), source_at=month_ahead, actor="test", trace=Trace(correlation_id="c-1")
    )
    sent = answer_of(await line.sends.send(TENANT, request, published, may_raise=True))
    await line.queue()
    await line.wait(301)
    assert [row.status for row in (await line.timeline(sent)).outgoing] == [OutgoingStatus.EXPIRED]


async def send_of(line: Line, tenant_id: str) -> UUID:
    """Accept one notification of another tenant."""
    asked = SendRequest(type="welcome", to=(Recipient(address="kim@example.com"),), data={"name": "Kim"})
    return (await line.accept(asked, tenant_id=tenant_id)).job_id


async def make_tenant(line: Line, tenant_id: str) -> None:
    await line.dispatcher.ensure_tenant(tenant_id)
    publisher = Publisher(catalog=line.store, renderer=line.renderer)
    await publisher.publish(tenant_id, folder=Path(DEFINITIONS), actor="test")


async def garbled(line: Line, job_id: UUID) -> bytes:
    """Seal what is no payload, as it would be sealed."""
    keys = await line.keyring.get(TENANT)
    return payload_place(job_id).seal(keys, b"no JSON", nonce=line.keyring.nonce())


@pytest.mark.parametrize("damage", ["cut off", "altered", "no payload", "recipients"])
async def test_a_job_that_cannot_be_opened_fails_alone_and_its_neighbours_are_made(line: Line, damage: str) -> None:
    """F-50: of its own tenant and of others, in the same step."""
    await make_tenant(line, "another")
    bad = await line.send(key="bad")
    good, other = await line.send(key="good"), await send_of(line, "another")
    (job,) = [job for job in await line.store.rows(TENANT, NotificationJob) if job.guid == bad.job_id]
    assert job.payload is not None
    match damage:
        case "cut off":
            await change(line, bad.job_id, payload=b"short")
        case "altered":
            await change(line, bad.job_id, payload=job.payload[:-1] + bytes([job.payload[-1] ^ 1]))
        case "no payload":
            await change(line, bad.job_id, payload=await garbled(line, bad.job_id))
        case _:
            await change(line, bad.job_id, recipients="{")
    await Schedule(queue=line.store, facts=line.store).step()
    assert await line.generate().step() == 3
    assert await status_of(line, TENANT, bad.job_id) is FAILED
    assert await status_of(line, TENANT, good.job_id) is DONE
    assert await status_of(line, "another", other) is DONE
    (case,) = await line.store.list_support_cases(TENANT)
    assert case.kind is SupportKind.DEAD_LETTER


class Damaged(SqliteInMemory):
    """A store that can give a tenant's keys back altered."""

    is_damaged = False

    async def find_tenant_keys(self, tenant_id: str) -> WrappedKeys | None:
        keys = await super().find_tenant_keys(tenant_id)
        if keys is None or not self.is_damaged or tenant_id != TENANT:
            return keys
        return {place: text[:-1] + b"?" for place, text in keys.items()}


async def test_a_tenant_whose_keys_cannot_be_opened_holds_up_no_other() -> None:
    """Its own jobs wait for a while: the keys may be restored."""
    clock = ManualClock()
    store = Damaged(clock)
    line = await open_line(store, clock)
    await make_tenant(line, "another")
    first, second = await line.send(), await send_of(line, "another")
    store.is_damaged = True
    worker = Line(store, clock, Scripted())
    await Schedule(queue=store, facts=store).step()
    await worker.generate().step()
    assert await status_of(line, "another", second) is DONE
    (held,) = await store.rows(TENANT, NotificationScheduler)
    assert (held.status, held.rescue_count, held.due_at) == (
        NotificationStatus.READY,
        0,
        clock.now() + TENANT_RESTS_FOR,
    )
    store.is_damaged = False
    mended = Line(store, clock, Scripted())
    await mended.wait(TENANT_RESTS_FOR.total_seconds())
    assert await status_of(line, TENANT, first.job_id) is DONE


async def test_a_failed_job_is_made_once_it_was_mended_and_retried(line: Line) -> None:
    """A job that failed because its payload was missing is sent once the payload is restored."""
    sent = await line.send()
    (job,) = await line.store.rows(TENANT, NotificationJob)
    await change(line, sent.job_id, payload=None)
    await line.drain()
    assert await status_of(line, TENANT, sent.job_id) is FAILED
    await change(line, sent.job_id, payload=job.payload)
    assert await line.store.retry_job(TENANT, sent.job_id, actor="sam", reason="the row was restored")
    await line.drain()
    assert await status_of(line, TENANT, sent.job_id) is DONE
    assert len(line.provider.calls) == 1


async def test_a_tenant_with_few_jobs_does_not_wait_for_the_rows_of_one_with_many() -> None:
    class Noting(SqliteInMemory):
        made: tuple[str, ...] = ()

        async def ensure_outgoing_messages(
            self, tenant_id: str, items: Sequence[OutgoingItem]
        ) -> list[Ensured[OutgoingMessage]]:
            self.made += (tenant_id,)
            return await super().ensure_outgoing_messages(tenant_id, items)

        async def finish_stage(self, results: Sequence[StageResult]) -> set[int]:
            if any(one.to is DONE for one in results):
                self.made += (f"{len(results)} finished",)
            return await super().finish_stage(results)

    clock = ManualClock()
    store = Noting(clock)
    line = await open_line(store, clock)
    await line.dispatcher.ensure_tenant("college")
    publisher = Publisher(catalog=store, renderer=line.renderer)
    await publisher.publish("college", folder=DEFINITIONS / "welcome", actor="test")
    asked = SendRequest(type="welcome", to=(Recipient(address="sam@example.com"),), data={"name": "Sam"})
    for tenant_id in (TENANT, TENANT, TENANT, "college"):
        await line.accept(asked, tenant_id=tenant_id)
    await line.queue()
    assert store.made == ("college", "1 finished", TENANT, "3 finished")


class Killed(BaseException):
    """What a process dies of: nothing catches it."""


class Deadly(SqliteInMemory):
    """A store in which the rows of some jobs kill whoever makes them."""

    deadly: frozenset[str] = frozenset()

    async def ensure_outgoing_messages(
        self, tenant_id: str, items: Sequence[OutgoingItem]
    ) -> list[Ensured[OutgoingMessage]]:
        if any(item.notification_job in self.deadly for item in items):
            raise Killed
        return await super().ensure_outgoing_messages(tenant_id, items)


async def test_jobs_that_kill_every_worker_take_no_neighbour_with_them() -> None:
    """F-13: those over which a worker was lost are made after the others and one at a time, so only they are lost."""
    clock = ManualClock()
    store = Deadly(clock)
    line = await open_line(store, clock)
    bad = [(await line.send(key=f"bad {n}")).job_id for n in range(2)]
    store.deadly = frozenset(job.row_key for job in await store.rows(TENANT, NotificationJob) if job.guid in bad)
    good = [(await line.send(key=f"good {n}")).job_id for n in range(2)]
    for rescues in range(1, RESCUES_MAX + 3):
        await Schedule(queue=store, facts=store).step()
        for _ in range(3):
            with suppress(Killed):
                await line.generate().step()
            clock.advance(ALONE_FOR)
        clock.advance(STAGE_LEASE)
        await Janitor(store).step()
        if rescues > 1:
            good.append((await line.send(key=f"good after {rescues} rescues")).job_id)
    await line.drain()
    assert {await status_of(line, TENANT, job_id) for job_id in bad} == {FAILED}
    assert {await status_of(line, TENANT, job_id) for job_id in good} == {DONE}
    rows = {job.guid: job for job in await store.rows(TENANT, NotificationJob)}
    rescued = {row.artifact_rk: row.rescue_count for row in await store.rows(TENANT, NotificationScheduler)}
    assert {rescued[rows[job_id].row_key] for job_id in good[2:]} == {0}


async def test_jobs_that_are_done_have_all_their_rows_though_these_are_more_than_one_set(line: Line) -> None:
    """I-28: two jobs of one step, to more people together than one transaction takes, on two channels."""
    members = [Identity.user(f"member {n}") for n in range(ITEMS_MAX // 2 + 1)]
    contacts = (ContactEntry(channel=Channel.EMAIL, destination="sam@example.com"),)
    people = People(catalog=line.store, dispatcher=line.dispatcher, keyring=line.keyring)
    entries = [PersonEntry(identity=member, name="Sam", contacts=contacts) for member in members]
    await people.put(TENANT, entries, trace=Trace(correlation_id="c-1"))
    everybody = UUID(int=1)
    await people.put_group(TENANT, GroupEntry(guid=everybody, name="Everybody", members=tuple(members)))
    sent = [await line.send(to=Recipient(group=everybody)) for _ in range(2)]
    await line.queue()
    assert [await status_of(line, TENANT, one.job_id) for one in sent] == [DONE, DONE]
    assert len(await line.store.rows(TENANT, OutgoingMessage)) == 2 * len(members)
    assert len(await line.store.rows(TENANT, UserMessage)) == 2 * len(members)


class Slow(LiquidRenderer):
    """A renderer that takes a second for a batch, and notes for how long it may."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self.clock = clock
        self.asked: list[tuple[int, float]] = []

    async def render(
        self, bundle: Bundle, channel: Channel, merges: Sequence[Merge], *, seconds_max: float, **options: Any
    ) -> list[Merged]:
        if channel is Channel.INBOX:
            self.asked.append((len(merges), seconds_max))
            self.clock.advance(timedelta(seconds=1))
        return await super().render(bundle, channel, merges, seconds_max=seconds_max - 1, **options)


async def test_where_time_is_too_short_for_all_inbox_lines_the_first_jobs_are_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And the others wait: were all put off, as many would be claimed together again, and none ever made."""
    monkeypatch.setattr(inbox, "MERGES_MAX", 2)
    clock = ManualClock()
    line = Line(SqliteInMemory(clock), clock, Scripted())
    line.renderer = slow = Slow(clock)
    await line.seed()
    sent = [await line.send(to=Recipient(user="1")) for _ in range(5)]
    await Schedule(queue=line.store, facts=line.store).step()
    short = Generate(
        queue=line.store,
        facts=line.store,
        templates=line.templates,
        renderer=slow,
        dispatcher=line.dispatcher,
        keyring=line.keyring,
        sets=line.recipient_sets,
        contents=line.contents,
        clock=clock,
        lease=timedelta(seconds=10),
    )
    await short.step()
    assert slow.asked == [(2, 2.5), (2, 1.5), (1, 0.5)]
    states = [await status_of(line, TENANT, one.job_id) for one in sent]
    assert states == [DONE, DONE, DONE, DONE, NotificationStatus.READY]
    clock.advance(NOT_MERGED_FOR)
    await short.step()
    assert await status_of(line, TENANT, sent[-1].job_id) is DONE
