"""The postman: how the sandbox's receipts come to the door, and what it does while they cannot."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from clarion.domain.call import Call
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.suppression import Signal
from clarion.errors import StoreUnreachable
from clarion.sandbox.postman import BATCH, Postman
from clarion.sandbox.provider import SandboxProvider, open_provider
from clarion.testing.clock import ManualClock
from clarion.testing.row import WebhookEvent
from tests.integration.api_harness import OTHER, ApiHarness
from tests.integration.api_server import serving
from tests.integration.sandbox_use import SECOND, call, waiting
from tests.unit.pipeline_line import TENANT


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def provider(tmp_path: Path, clock: ManualClock) -> AsyncIterator[SandboxProvider]:
    provider = await open_provider(f"sandbox://{tmp_path}/sandbox.db", clock=clock)
    yield provider
    await provider.close()


class Round:
    """The API on a real port, and a postman who brings it the receipts of an account."""

    def __init__(self, api: ApiHarness, provider: SandboxProvider, postman: Postman) -> None:
        self.api, self.provider, self.postman = api, provider, postman

    async def delivered(self, *calls: Call) -> None:
        """Have calls accepted, and their receipts ready to be brought."""
        for one in calls:
            await self.provider.send(one)
        self.api.clock.advance(SECOND)

    async def kept(self, tenant_id: str = TENANT) -> list[WebhookEvent]:
        return await self.api.memory.rows(tenant_id, WebhookEvent)

    async def drain(self) -> list[int]:
        """Let the postman go until nothing is left that it could bring now; return what each way did."""
        ways = []
        while await self.provider.waiting_receipts(limit=1):
            ways.append(await self.postman.step())
            assert len(ways) < 100
        return ways


@asynccontextmanager
async def going_round(
    provider: SandboxProvider, clock: ManualClock, *, account: str = "sandbox"
) -> AsyncIterator[Round]:
    api = ApiHarness(clock=clock, reporters={"sandbox": provider})
    await api.seed()
    async with serving(api) as port:
        postman = Postman(provider, account=account, url=f"http://127.0.0.1:{port}", clock=clock)
        try:
            yield Round(api, provider, postman)
        finally:
            await postman.close()


async def test_receipts_are_brought_once_each_and_wake_the_workers(
    provider: SandboxProvider, clock: ManualClock
) -> None:
    async with going_round(provider, clock) as round_:
        assert await round_.postman.step() == 0
        calls = [call(1), call(2, "bounce"), call(3, tenant_id=OTHER), call(4, "softbounce"), call(5, "stop")]
        await round_.delivered(*calls)
        name, _ = await provider.identity()
        assert await round_.drain() == [5]
        assert [(one.event_id, one.status, one.signal, one.account) for one in await round_.kept()] == [
            (f"{name}-1-delivered", OutgoingStatus.DELIVERED, None, "sandbox"),
            (f"{name}-2-bounced", OutgoingStatus.BOUNCED, None, "sandbox"),
            (f"{name}-4-bounced-soft_bounce", OutgoingStatus.BOUNCED, Signal.SOFT_BOUNCE, "sandbox"),
            (f"{name}-5-delivered-stop", OutgoingStatus.DELIVERED, Signal.STOP, "sandbox"),
        ]
        assert [one.provider_message_id for one in await round_.kept(OTHER)] == ["sandbox-3"]
        assert round_.api.wake_ups == ["events"]
        assert await round_.postman.step() == 0


async def test_a_backlog_is_brought_in_batches_oldest_first(provider: SandboxProvider, clock: ManualClock) -> None:
    async with going_round(provider, clock) as round_:
        await round_.delivered(*(call(number) for number in range(1, BATCH + 6)))
        assert await round_.drain() == [BATCH, 5]
        assert len(await round_.kept()) == BATCH + 5


async def test_an_answer_that_was_lost_costs_a_repeat_that_changes_nothing(
    provider: SandboxProvider, clock: ManualClock
) -> None:
    """As after a kill between the answer and the note that it came: the events are stored, nobody here knows."""
    async with going_round(provider, clock) as round_:
        await round_.delivered(call(1))
        round_.api.failing.error = StoreUnreachable("gone", hint="wait")
        round_.api.failing.only, round_.api.failing.after_commit = frozenset({"keep_events"}), True
        assert await round_.postman.step() == 0
        assert len(await round_.kept()) == 1
        round_.api.failing.error = None
        clock.advance(SECOND)
        assert await round_.drain() == [1]
        assert len(await round_.kept()) == 1


async def test_while_the_door_fails_it_pauses_longer_and_longer(provider: SandboxProvider, clock: ManualClock) -> None:
    async with going_round(provider, clock) as round_:
        await round_.delivered(call(1))
        round_.api.failing.error = StoreUnreachable("gone", hint="wait")
        asked = []
        for second in range(130):
            before = round_.api.metrics.written(None)
            assert await round_.postman.step() == 0
            if round_.api.metrics.written(None) != before:
                asked.append(second)
            clock.advance(SECOND)
        assert asked == [0, 1, 3, 7, 15, 31, 63, 123]
        round_.api.failing.error = None
        clock.advance(timedelta(minutes=1))
        assert await round_.drain() == [1]


async def test_a_receipt_that_is_refused_for_what_it_says_holds_up_nobody(
    provider: SandboxProvider, clock: ManualClock
) -> None:
    async with going_round(provider, clock) as round_:
        await round_.delivered(*(call(n, tenant_id="nobodys" if n in (3, 6) else TENANT) for n in range(1, 9)))
        await round_.drain()
        assert sorted(str(one.provider_message_id) for one in await round_.kept()) == [
            f"sandbox-{n}" for n in (1, 2, 4, 5, 7, 8)
        ]


async def test_an_account_that_nobody_has_keeps_its_receipts(provider: SandboxProvider, clock: ManualClock) -> None:
    async with going_round(provider, clock, account="scripted") as round_:
        await round_.delivered(call(1))
        assert await round_.postman.step() == 0
        assert await waiting(provider) == [(1, OutgoingStatus.DELIVERED)]


@pytest.mark.parametrize("reply", ["HTTP/1.1 307 Temporary Redirect\r\nlocation: /elsewhere\r\n", "HTTP/1.1 204", ""])
async def test_a_redirect_is_not_followed_and_no_reply_is_no_answer(
    provider: SandboxProvider, clock: ManualClock, reply: str
) -> None:
    asked = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        await reader.readuntil(b"\r\n\r\n")
        if reply:
            writer.write(f"{reply.rstrip()}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode())
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    postman = Postman(provider, account="sandbox", url=f"http://127.0.0.1:{port}", clock=clock)
    await provider.send(call(1))
    clock.advance(SECOND)
    taken = "204" in reply
    assert await postman.step() == int(taken)
    assert bool(await waiting(provider)) == (not taken)
    assert asked == 1
    await postman.close()
    server.close()
    await server.wait_closed()


@pytest.mark.parametrize("place", ["127.0.0.1:1", "[fe80::1%eth0]:1"])
async def test_where_nobody_can_be_reached_it_waits(provider: SandboxProvider, clock: ManualClock, place: str) -> None:
    postman = Postman(provider, account="sandbox", url=f"http://{place}", clock=clock)
    await provider.send(call(1))
    clock.advance(SECOND)
    assert await postman.step() == 0
    assert await waiting(provider) == [(1, OutgoingStatus.DELIVERED)]
    await postman.close()
