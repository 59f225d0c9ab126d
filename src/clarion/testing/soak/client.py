"""The clients of a soak: they send with a key, ask again until they are answered, and remember what they were told."""

import asyncio
from collections.abc import Callable
from enum import StrEnum
from typing import Final

import msgspec

from clarion.client import wire
from clarion.client.connection import ApiError, Client, Unreachable

TYPE: Final = "notice"

CLIENTS: Final = 4
"""Requests under way at once: enough that a kill meets several in different places."""

AGAIN_EVERY: Final = 8
"""Every eighth message is asked for once more after its answer, as by a client that lost its memory of it."""

DEFERRED_EVERY: Final = 10
"""Every tenth message is one that the provider puts off at first. An acceptance counts under any claim, since it proves
that the message arrived; only other outcomes show whether results find the claim that they belong to."""

STORE_AWAY: Final = 503
"""The one refusal that is expected: the server is there and its store is not."""

PAUSE: Final = 0.1
"""Seconds until a client that was not answered asks again, beyond the tries of the client library."""


class Moment(StrEnum):
    """When something can be done to the programs."""

    ASKED = "asked"  # a request is about to leave
    TOLD = "told"  # a client has just been told that its notification was accepted
    CALLED = "called"  # a provider call has just been taken


class Promise(msgspec.Struct, kw_only=True):
    """One message from its client's side: how often it asked, and what it was told."""

    number: int
    asked: int = 0
    answers: list[wire.SendAnswer] = []
    surprises: list[str] = []

    @property
    def address(self) -> str:
        """Whom it is for; no two messages have the same. The sandbox puts a first call to `defer1` off."""
        reader = f"reader-{self.number}@example.com"
        return f"defer1+{reader}" if self.number % DEFERRED_EVERY == DEFERRED_EVERY // 2 else reader

    @property
    def says(self) -> str:
        """What its recipient is to read."""
        return f"Message {self.number}"

    @property
    def told(self) -> wire.SendAnswer | None:
        """The first answer."""
        return self.answers[0] if self.answers else None


class Clients:
    """Everybody who sends, over one shipped client."""

    def __init__(self, url: str, *, key: str) -> None:
        """Send to a server; nothing is sent yet."""
        self.promises: list[Promise] = []
        self.open_requests = 0
        self._client = Client(url, key=key)
        self._queue: asyncio.Queue[Promise] = asyncio.Queue()
        self._waiting: dict[Moment, list[Callable[[], None]]] = {Moment.ASKED: [], Moment.TOLD: []}

    def send_until(self, count: int) -> None:
        """Have messages sent until there are so many."""
        while len(self.promises) < count:
            self.promises.append(Promise(number=len(self.promises)))
            self._queue.put_nowait(self.promises[-1])

    def at_next(self, moment: Moment, do: Callable[[], None]) -> None:
        """Have something done at the next such moment, before anything else happens in this process."""
        self._waiting[moment].append(do)

    async def run(self) -> None:
        """Send what there is to send, until canceled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for _ in range(CLIENTS):
                    tasks.create_task(self._send_one_after_the_other())
        finally:
            await self._client.close()

    async def all_told(self) -> None:
        """Wait until every client was answered, or refused, which is a surprise and ends its tries."""
        await self._queue.join()

    async def _send_one_after_the_other(self) -> None:
        while True:
            promise = await self._queue.get()
            wanted = 2 if promise.number % AGAIN_EVERY == 0 else 1
            while len(promise.answers) < wanted and not promise.surprises:
                await self._ask(promise)
            self._queue.task_done()

    async def _ask(self, promise: Promise) -> None:
        """Ask for a message; the client library repeats by itself what gets no answer, and gives up after a while."""
        promise.asked += 1
        self._come(Moment.ASKED)
        self.open_requests += 1
        try:
            answer = await self._client.send(
                TYPE,
                to=wire.Recipient(address=promise.address),
                data={"text": promise.says},
                key=f"message-{promise.number}",
            )
        except Unreachable:
            await asyncio.sleep(PAUSE)
        except ApiError as error:
            if error.status != STORE_AWAY:
                promise.surprises.append(f"{promise.says}: {error.status} {error}")
            await asyncio.sleep(PAUSE)
        else:
            promise.answers.append(answer)
            self._come(Moment.TOLD)
        finally:
            self.open_requests -= 1

    def _come(self, moment: Moment) -> None:
        waiting, self._waiting[moment] = self._waiting[moment], []
        for do in waiting:
            do()
