"""What `make bench` holds against each other is alike: bare loops post what a drain posts, and rows are as named."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from bench import measure, merging
from bench.figure import figure, lines
from bench.raw import bare_loops
from bench.sink import Connection
from bench.stage import open_stage
from clarion.adapters.renderers import open_renderer
from clarion.domain.identity import Channel, Lane

MESSAGES = 30


class Request(NamedTuple):
    """A request as it came over the wire."""

    line: bytes
    headers: Mapping[bytes, bytes]
    body: bytes


class Listening(Connection):
    """One connection of the sink, with all that came over it."""

    def __init__(self) -> None:
        super().__init__()
        self.heard = b""

    def data_received(self, data: bytes) -> None:
        self.heard += data
        super().data_received(data)

    def close(self) -> None:
        self._transport.abort()

    def requests(self) -> Iterator[Request]:
        """Take what came apart, and forget it."""
        left, self.heard = self.heard, b""
        while left:
            head, _, left = left.partition(b"\r\n\r\n")
            line, *lines = head.split(b"\r\n")
            headers = {name.lower(): value for name, _, value in (one.partition(b": ") for one in lines)}
            length = int(headers[b"content-length"])
            yield Request(line, headers, left[:length])
            left = left[length:]


class Ear:
    """The sink, in this process."""

    def __init__(self) -> None:
        self.address = ""
        self._connections: list[Listening] = []

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Ear"]:
        server = await asyncio.get_running_loop().create_server(self._connect, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield self
        server.close()
        for connection in self._connections:
            connection.close()
        await server.wait_closed()
        await asyncio.sleep(0)  # what was closed is let go of in the next round of the loop

    def requests(self) -> list[Request]:
        """Give what came since the last time."""
        return [request for connection in self._connections for request in connection.requests()]

    def _connect(self) -> Listening:
        self._connections.append(Listening())
        return self._connections[-1]


async def test_the_bare_loops_post_what_a_drain_posts_under_the_same_headers(tmp_path: Path) -> None:
    """They posted 300 bytes beside 424. What the clients call themselves may differ."""
    store, vault = f"sqlite:///{tmp_path}/clarion.db", tmp_path / "master.key"
    async with (
        Ear().open() as sink,
        open_stage(store, vault=vault, provider=f"sandbox+http://{sink.address}") as stage,
        bare_loops(sink.address) as loops,
    ):
        await measure.enqueue(stage, await measure.bulk(stage, key="bulk", count=MESSAGES))
        open_calls, body = await measure.drain_watched(stage, count=MESSAGES, slots=8)
        drained = sink.requests()
        assert (len(drained), 1 <= open_calls <= 8) == (MESSAGES, True)
        for loop in (loops.same_client, loops.aiohttp):
            await loop(body, calls=MESSAGES, open_calls=open_calls)
            posted = sink.requests()
            assert len(posted) == MESSAGES
            assert seen(posted) == seen(drained)
            assert {one.body for one in posted} <= {one.body for one in drained}


def seen(requests: Sequence[Request]) -> set[tuple[bytes, frozenset[bytes], bytes, bytes]]:
    """Give where requests go, the names of their headers, what they accept, and how long they are."""
    return {
        (one.line, frozenset(one.headers), one.headers[b"accept-encoding"], one.headers[b"content-length"])
        for one in requests
    }


async def test_bulk_rows_are_a_campaigns_and_direct_rows_are_those_of_a_post(tmp_path: Path) -> None:
    async with open_stage(f"sqlite:///{tmp_path}/clarion.db", vault=tmp_path / "key", provider="null://") as stage:
        bulk = await measure.bulk(stage, key="bulk", count=3)
        direct = await measure.direct(stage, key="direct", count=3)
    assert ({one.lane for one in bulk}, {one.order_key for one in bulk}) == ({Lane.BULK}, {None})
    assert len({one.pk for one in bulk}) == 1
    assert {one.lane for one in direct} == {Lane.NORMAL}
    assert len({one.order_key for one in direct} - {None}) == len({one.pk for one in direct}) == 3


def test_every_line_of_the_table_has_its_limit_and_the_latency_of_the_disk_beside_it() -> None:
    """A share is the median of the rounds, each held against its own limit."""
    rounds = [{"ours": 10.0, "limit": 20.0}, {"ours": 90.0, "limit": 100.0}, {"ours": 50.0, "limit": 200.0}]
    one = figure("drain", rounds, means="", unit="messages/s", fsync_ms=1.25, limit="bare loop", store="sqlite")
    assert lines([one]) == [("drain", "sqlite", "50.0 messages/s", "bare loop", "100", "0.50", "1.25")]


def test_a_mail_is_merged_from_the_same_parts_with_as_much_in_them_as_is_said() -> None:
    renderer = open_renderer()
    bundle = merging.mail(renderer)
    assert merging.ours(renderer, bundle) == merging.Bare(bundle).render()
    assert {*bundle.parts[Channel.EMAIL]} == {"subject", "html", "text"}
    html = bundle.parts[Channel.EMAIL]["html"]
    assert len({one for one in re.findall(r"\{\{ ([\w.]+)", html) if not one.startswith("item.")}) >= 20
    assert merging.ours(renderer, bundle).html.count("Item no.") == 10
