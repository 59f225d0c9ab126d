"""The whole line with merges made in processes of their own: whatever happens to those, no message is lost or ended."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from uuid import UUID

import msgspec
import pytest

from clarion.adapters.blobs import open_blobs
from clarion.adapters.host import random_bytes
from clarion.adapters.renderers import open_renderer, pool
from clarion.adapters.renderers.language import HTML, TEXT
from clarion.adapters.renderers.pool import PoolRenderer
from clarion.bootstrap import Platform, Settings
from clarion.catalog.people import GroupEntry, People, PersonEntry
from clarion.catalog.quarantine import Quarantine
from clarion.client.wire import Recipient
from clarion.domain.backoff import MISCONFIGURED_FOR, NOT_CALLED_MAX
from clarion.domain.definition import Definition
from clarion.domain.identity import Channel, Identity, Lane
from clarion.domain.inbox import UserMessage
from clarion.domain.notification import NotificationScheduler, NotificationStatus, Stage
from clarion.domain.outgoing import OutgoingMessage, OutgoingStatus
from clarion.domain.support import SupportCase, SupportStatus
from clarion.errors import InvalidInput
from clarion.pipeline.generate import inbox
from clarion.ports.catalog import NewTemplate
from clarion.ports.renderer import Bundle
from clarion.producers.opening import open_automation
from clarion.producers.records import Records
from clarion.producers.registration import report_plugins
from clarion.producers.report_plugin import Reports
from clarion.producers.sources import Sources
from clarion.testing.clock import ManualClock
from clarion.testing.row import QueueEntry
from clarion.testing.store import SqliteInMemory
from clarion.workers.supervisor import Supervisor
from clarion.workers.timings import Timings
from clarion.workers.wake_up import Topic, WakeUp
from tests.integration.planted_child import install
from tests.integration.test_renderer_pool import PLANTED, open_writer
from tests.unit.pipeline_line import TENANT, TRACE, Line, Scripted

PHONE = "+4477009000{:02}"


@pytest.fixture(autouse=True)
def plant() -> Iterator[None]:
    install()
    yield
    del TEXT.filters["plant"], HTML.filters["plant"]


@pytest.fixture
async def line() -> AsyncIterator[Line]:
    clock = ManualClock()
    store = SqliteInMemory(clock)

    def stored(tenant_id: str, bundle: Bundle) -> None:
        opened.templates.note_quarantine(tenant_id, bundle)  # as the program does; the line makes the library

    quarantine = Quarantine(store, stored=stored)
    renderer = PoolRenderer(processes=2, module=PLANTED, quarantined=quarantine.hear)
    opened = Line(store, clock, Scripted(), renderer=renderer, slots=40)
    await opened.seed()
    await publish(opened, TENANT, "planted", "{{ x | plant }}")
    yield opened
    await renderer.close()
    await quarantine.close()


async def publish(
    line: Line, tenant_id: str, key: str, template: str, *, channel: Channel = Channel.SMS, **fields: object
) -> None:
    definition = Definition(key=key, title="A", channels=(channel,), **fields)  # type: ignore[arg-type]
    bundle = open_renderer().compile(definition, {f"{channel}.liquid": template})
    row = NewTemplate(template_key=key, content_hash=bundle.content_hash, bundle=msgspec.json.encode(bundle).decode())
    await line.store.publish_templates(tenant_id, [row], actor="test")


async def states(line: Line) -> set[OutgoingStatus]:
    return {row.status for row in await line.store.rows(TENANT, OutgoingMessage)}


async def test_a_killed_process_loses_no_message_and_ends_none(line: Line, tmp_path: Path) -> None:
    """In the middle of a batch of twenty, which is merged again: each is called once, and none is blamed."""
    place = tmp_path / "place"
    place.write_text("0")
    for number in range(20):
        await line.send("planted", PHONE.format(number), data={"x": f"read:{place}" if number == 9 else number})
    await line.queue()
    place.unlink()
    os.mkfifo(place)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(line.wait(1))
        pipe = await asyncio.get_running_loop().run_in_executor(None, open_writer, place)
        place.unlink()
        place.write_text("0")
        assert isinstance(line.renderer, PoolRenderer)
        for pid in line.renderer.pids:
            os.kill(pid, signal.SIGKILL)
        os.close(pipe)
    await line.wait(1)
    assert sorted(call.destination for call in line.provider.calls) == [PHONE.format(number) for number in range(20)]
    assert await states(line) == {OutgoingStatus.SENT_TO_PROVIDER}
    assert {row.not_called for row in await line.store.rows(TENANT, QueueEntry)} == {0}


async def test_messages_of_a_quarantined_version_wait_and_are_sent_once_its_case_is_resolved(
    line: Line, tmp_path: Path
) -> None:
    place = tmp_path / "place"
    place.write_text("1")
    sent = await line.send("planted", PHONE.format(1), data={"x": f"read:{place}"})
    await line.queue()
    place.write_text("die")
    for _ in range(2 * NOT_CALLED_MAX):
        await line.wait(1)
    (row,) = (await line.timeline(sent)).outgoing
    assert row.status is OutgoingStatus.RETRY_READY
    assert row.reason is not None
    assert row.reason.startswith("its template version is quarantined")
    assert not line.provider.calls
    assert {entry.not_called for entry in await line.store.rows(TENANT, QueueEntry)} == {0}
    (case,) = await line.store.list_support_cases(TENANT, status=SupportStatus.OPEN)
    assert (case.record, case.record_key, case.seen_count) == ("Template", '["planted","1"]', 1)
    with pytest.raises(InvalidInput, match="version 1 of the notification type 'planted' is quarantined"):
        await line.send("planted", PHONE.format(2), data={"x": 1})
    await line.send("welcome", "kim@example.com")
    await line.drain()
    assert [call.destination for call in line.provider.calls] == ["kim@example.com"]

    place.write_text("1")
    await line.store.resolve_support_case(TENANT, case.case_id, actor="sam", resolution="it was the machine")
    other = Line(line.store, line.clock, line.provider, renderer=open_renderer())  # a process that was just started
    for _ in range(3):
        await other.wait(MISCONFIGURED_FOR.total_seconds())
    assert [call.destination for call in line.provider.calls] == ["kim@example.com", PHONE.format(1)]


async def test_a_resolved_case_counts_soon_in_the_process_that_quarantined_too(
    line: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its pool forgets in a minute, here at once; until the case is resolved it is the store that holds it back."""
    monkeypatch.setattr(pool, "FORBIDDEN_FOR", 0.0)
    place = tmp_path / "place"
    place.write_text("1")
    await line.send("planted", PHONE.format(1), data={"x": f"read:{place}"})
    await line.queue()
    place.write_text("die")
    cases: Sequence[SupportCase] = ()
    while not cases:
        await line.wait(1)
        cases = await line.store.list_support_cases(TENANT, status=SupportStatus.OPEN)
    assert isinstance(line.renderer, PoolRenderer)
    processes = line.renderer.pids
    for _ in range(5):
        await line.wait(MISCONFIGURED_FOR.total_seconds())
    assert line.renderer.pids == processes, "nobody tried, so none has ended"
    place.write_text("1")
    await line.store.resolve_support_case(TENANT, cases[0].case_id, actor="sam", resolution="it was the machine")
    for _ in range(3):
        await line.wait(MISCONFIGURED_FOR.total_seconds())
    assert [call.destination for call in line.provider.calls] == [PHONE.format(1)]


async def test_more_inbox_lines_are_made_than_may_wait_at_once(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of several jobs, each reader's own: the pool is asked for no more of them than it has room for."""
    assert inbox.MERGES_MAX <= pool.WAITING_MAX
    monkeypatch.setattr(inbox, "MERGES_MAX", 5)
    monkeypatch.setattr(pool, "WAITING_MAX", 8)
    await publish(line, TENANT, "note", "For {{ recipient.name }}\n{{ x }}", channel=Channel.INBOX)
    readers = [PersonEntry(identity=Identity.user(f"reader {n}"), name=f"Reader {n}") for n in range(12)]
    people = People(catalog=line.store, dispatcher=line.dispatcher, keyring=line.keyring)
    await people.put(TENANT, readers, trace=TRACE)
    group = GroupEntry(guid=UUID(int=1), name="All", members=tuple(one.identity for one in readers))
    await people.put_group(TENANT, group)
    for number in range(3):
        await line.send("note", Recipient(group=group.guid), data={"x": number})
    await line.queue()
    assert len(await line.store.rows(TENANT, UserMessage)) == 3 * len(readers)


async def test_another_tenants_code_leaves_while_a_template_hangs(line: Line, tmp_path: Path) -> None:
    """The pump does not wait for the merges of one flow: the code is called while those are being made."""
    place = tmp_path / "place"
    place.write_text("0")
    other = Line(line.store, line.clock, line.provider, renderer=line.renderer, tenant_id="other")
    await other.dispatcher.ensure_tenant("other")
    await publish(line, "other", "code", "{{ x }}", lane=Lane.CRITICAL)
    await other.send("code", PHONE.format(98), data={"x": "000000"})
    await line.drain()
    await line.wait(1)
    assert len(line.provider.calls) == 1, "what the code's call needs is in memory"
    for number in range(30):
        await line.send("planted", PHONE.format(number), data={"x": f"read:{place}"})
    await line.queue()
    place.unlink()
    os.mkfifo(place)
    pump = line.pumps[1]
    pump.hint()
    async with asyncio.timeout(10):  # it does not wait for what it has claimed
        await pump.step()
    pipe = await asyncio.get_running_loop().run_in_executor(None, open_writer, place)  # the first of them hangs now
    await other.send("code", PHONE.format(99), data={"x": "123456"})
    await line.queue()
    while len(line.provider.calls) == 1:
        pump.hint()
        await pump.step()
        await asyncio.sleep(0)
    assert [call.destination for call in line.provider.calls] == [PHONE.format(98), PHONE.format(99)]
    place.unlink()
    place.write_text("0")
    os.write(pipe, b"0")
    os.close(pipe)
    await line.drain()
    await line.wait(1)
    assert len({call.destination for call in line.provider.calls}) == len(line.provider.calls) == 32


async def test_a_hundred_heavy_jobs_of_one_tenant_keep_no_code_of_another_waiting(line: Line) -> None:
    """Through all stages at once, as the program runs them: the heavy jobs came first, and into the more urgent lane.

    In order, not in time: codes are asked for one after the other, each when the one before it was called, and all of
    them are called while heavy jobs are being made.
    """
    heavy = "Heavy\n{% for i in (1..1000) %}{{ i | plus: 1 | times: 2 | minus: i }}{% endfor %}{{ x }}"
    await publish(line, TENANT, "heavy", heavy, channel=Channel.INBOX, lane=Lane.CRITICAL)
    other = Line(line.store, line.clock, line.provider, renderer=line.renderer, tenant_id="other")
    await other.dispatcher.ensure_tenant("other")
    await publish(line, "other", "code", "{{ x }}", lane=Lane.NORMAL)
    wake_up, called = WakeUp(), asyncio.Event()
    supervisor = Supervisor(
        platform_of(line),
        wake_up=wake_up,
        channels=(Channel.SMS,),
        timings=Timings(poll=60),  # the heavy jobs are found together, when the workers are woken
        observe=lambda *_: called.set(),
    )

    async def wait_for(destination: str) -> None:
        while destination not in {call.destination for call in line.provider.calls}:
            called.clear()
            await called.wait()

    await other.send("code", PHONE.format(90), data={"x": 0})
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(supervisor.run())
        await wait_for(PHONE.format(90))  # what the codes need is in memory, and the processes are there
        for number in range(100):
            await line.send("heavy", Recipient(user="1"), data={"x": number})
        wake_up.wake(Topic.STAGES)
        for number in range(91, 94):
            await other.send("code", PHONE.format(number), data={"x": number})
            wake_up.wake(Topic.STAGES)
            await wait_for(PHONE.format(number))
            assert NotificationStatus.PROCESSING in await heavy_jobs(line)
        supervisor.stop()
    await line.drain()
    assert len(await line.store.rows(TENANT, UserMessage)) == 100


async def heavy_jobs(line: Line) -> set[NotificationStatus]:
    """Say how far generate is with the heavy jobs."""
    rows = await line.store.rows(TENANT, NotificationScheduler)
    return {row.status for row in rows if row.stage is Stage.GENERATE}


def platform_of(line: Line) -> Platform:
    """Make the platform of a line, for the program's own workers."""
    sources = Sources(Records(line.store, line.keyring))
    return Platform(
        settings=Settings(store="memory://", blobs="memory://", vault="memory://", providers={"*": "null://"}),
        store=line.store,
        blobs=open_blobs("memory://"),
        keyring=line.keyring,
        dispatcher=line.dispatcher,
        recipient_sets=line.recipient_sets,
        contents=line.contents,
        templates=line.templates,
        renderer=line.renderer,
        accounts={Channel.SMS: line.account},
        providers={line.account: line.provider},
        sends=line.sends,
        reports=Reports(report_plugins({})),
        sources=sources,
        automation=open_automation(line.store, sources=sources, sends=line.sends),
        clock=line.clock,
        ids=line.ids,
        randomness=random_bytes,
    )
