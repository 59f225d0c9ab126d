"""The Python client against the real API on a real port: what it says, what it repeats, and what it makes of errors."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import date, timedelta
from uuid import UUID

import msgspec
import pytest

from clarion.client import ApiError, Client, Entity, Recipient, Unreachable
from clarion.client.wire_people import PersonRequest
from clarion.client.wire_settings import SettingRequest
from clarion.client.wire_sources import SourceItem
from clarion.domain.audience import Addressee
from clarion.domain.call import Unknown
from clarion.domain.entity_event import EventStatus
from clarion.domain.identity import Channel
from clarion.domain.notification import NotificationJob
from clarion.domain.person import BusinessUnit
from clarion.errors import StoreBusy, StoreUnreachable
from clarion.ports.catalog import Role
from tests.integration.api_harness import ENTITY, ApiHarness, seeded_api
from tests.integration.api_server import serving
from tests.unit.pipeline_line import TENANT

SAM = Recipient(address="sam@example.com")
NAME = {"name": "Sam"}

UNIT = UUID(int=1)

TRIES_OF_A_RACE = 50


class Pauses:
    """Waits that are only counted."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


@asynccontextmanager
async def connected(api: ApiHarness, role: Role = Role.ADMIN) -> AsyncIterator[tuple[Client, Pauses]]:
    pauses = Pauses()
    async with (
        serving(api) as port,
        Client(f"http://127.0.0.1:{port}/", key=api.keys[TENANT, role], pause=pauses) as client,
    ):
        yield client, pauses


async def test_a_notification_is_sent_asked_about_and_found_in_its_history() -> None:
    api = await seeded_api()
    async with connected(api) as (client, _):
        about = Entity(type="child", guid=ENTITY)
        sent = await client.send("welcome", to=SAM, data=NAME, entity=about, key="signup-42")
        again = await client.send("welcome", to=[SAM], data=NAME, entity=about, key="signup-42")
        assert (again.job_id, again.repeated) == (sent.job_id, True)
        await api.line.drain()
        assert sent.message_id is not None
        told = await client.timeline(sent.message_id)
        assert told.lines[0].what == "accepted"
        shown = await client.notification(sent.job_id)
        assert (shown.status, shown.entity) == ("Done", about)
        assert [line.job_id async for line in client.history(ENTITY)] == [sent.job_id]
        assert "welcome" in [one.type for one in await client.types()]


async def test_a_long_history_is_gone_through_page_by_page() -> None:
    api = await seeded_api()
    sent = []
    async with connected(api) as (client, _):
        for _ in range(53):  # a page is 50
            sent.append((await client.send("welcome", to=Recipient(user="1"), data=NAME)).job_id)
            api.clock.advance(timedelta(seconds=1))
        assert [line.job_id async for line in client.history("user:1")] == sent[::-1]


async def test_everything_that_support_does_can_be_done() -> None:
    api = await seeded_api()
    async with connected(api) as (client, _):
        api.provider.answers = [Unknown(reason="no reply")]
        sent = await client.send("welcome", to=SAM, data=NAME, key="k")
        await api.line.drain()
        (line,) = (await client.uncertain()).items
        assert (await client.retry(line.id, version=line.version, reason="asked for")).id == line.id
        with pytest.raises(ApiError, match="conflict"):
            await client.send("welcome", to=SAM, data={"name": "Kim"}, key="k")
        cases = (await client.support_cases()).items
        (case,) = [one for one in cases if one.kind == "Conflict"]
        assert (await client.support_case(case.case_id)).kind == "Conflict"
        assert (await client.resolve(case.case_id, resolution="explained")).status == "Resolved"
        await client.switch_type("welcome", enabled=False)
        acts = [entry.act for entry in (await client.audit()).items]
        assert acts[:3] == ["disable", "resolve", "retry"]
        later = await client.send("welcome", to=SAM, data=NAME)
        assert not (await client.cancel(later.job_id)).repeated
        assert (await client.cancel(later.job_id)).repeated
        assert (await client.notification(sent.job_id)).messages[0].status == "RetryReady"


async def test_settings_are_put_shown_listed_and_cleared() -> None:
    api = await seeded_api()
    await api.memory.put_business_unit(TENANT, BusinessUnit(guid=UNIT, name="North"))
    asked = SettingRequest(recipients=(Addressee(role="teacher"),), channels=(Channel.INBOX,))
    async with connected(api) as (client, _):
        put = await client.put_setting("welcome", asked, business_unit=UNIT)
        assert (put.recipients, put.channels, put.effective.recipients_by) == (asked.recipients, asked.channels, "unit")
        assert await client.setting("welcome", business_unit=UNIT) == put
        assert (await client.setting("welcome")).effective.recipients == ()
        assert [(one.type, one.business_unit) for one in (await client.settings()).items] == [("welcome", UNIT)]
        assert (await client.clear_setting("welcome", business_unit=UNIT)).recipients is None
        assert (await client.settings()).items == ()


async def test_sources_are_put_and_events_are_told_by_ids_of_any_form() -> None:
    api = await seeded_api()
    async with connected(api) as (client, _):
        for source in ("a/b", "/a/", "a//b", "März 17%", "..a", "?#&="):
            stored = await client.put_source(
                "invoice", source, dates={"due_on": date(2026, 12, 1)}, metrics={"open": 7}
            )
            assert (stored.id, stored.version) == (source, 1)
            shown = await client.source("invoice", source)
            assert (shown.id, shown.dates, shown.metrics) == (source, {"due_on": date(2026, 12, 1)}, {"open": 7})
            assert (await client.remove_source("invoice", source)).version == 2
        for source in (".", ".."):
            with pytest.raises(ApiError):
                await client.put_source("invoice", source)
        both = await client.put_sources("class", [SourceItem(id="7b"), SourceItem(id="8a", fields={"room": "12"})])
        assert (both.changed, len((await client.sources("class")).items)) == (2, 2)
        with pytest.raises(ValueError, match="metrics holds a number"):
            await client.put_source("class", "7b", metrics={"seats": float("nan")})
        await client.put_event_mapping("member.joined", "welcome")
        assert [one.event_type for one in (await client.event_mappings()).items] == ["member.joined"]
        told = await client.tell("member.joined", key="k", source=("class", "8a"), data=NAME)
        assert (await client.tell("member.joined", key="k", source=("class", "8a"), data=NAME)).repeated
        assert (await client.event(told.event_id)).data == NAME
        listed = await client.events(entity=f"class:{told.entity}", status=EventStatus.READY)
        assert told.event_id in [one.event_id for one in listed.items]
        with pytest.raises(ApiError, match="not failed"):
            await client.retry_event(told.event_id, reason="again")
        await client.remove_event_mapping("member.joined")


async def test_a_notification_that_failed_can_be_tried_again() -> None:
    api = await seeded_api()
    async with connected(api) as (client, _):
        sent = await client.send("welcome", to=SAM, data=NAME)
        with pytest.raises(ApiError, match="conflict"):
            await client.retry_notification(sent.job_id, reason="it has not failed")
        (job,) = await api.memory.rows(TENANT, NotificationJob)
        await api.memory.overwrite(TENANT, msgspec.structs.replace(job, payload=None))
        await api.line.drain()
        assert (await client.retry_notification(sent.job_id, reason="again")).job_id == sent.job_id
        assert (await client.notification(sent.job_id)).status == "Ready"


async def test_an_error_is_the_problem_that_was_answered() -> None:
    api = await seeded_api()
    async with connected(api) as (client, pauses):
        with pytest.raises(ApiError) as refused:
            await client.send("welcome", to=SAM, key="k")
        assert (refused.value.code, refused.value.status, refused.value.problem.field) == ("invalid-input", 422, "data")
        with pytest.raises(ApiError, match="not-found"):
            await client.notification(UUID(int=7))
    assert not pauses.seconds


async def test_a_send_with_a_key_is_repeated_until_the_store_is_back_and_sends_once() -> None:
    api = await seeded_api()
    api.failing.only, api.failing.after_commit = frozenset({"ensure_notification_jobs"}), True
    async with connected(api) as (client, pauses):
        api.failing.error = StoreUnreachable("gone", hint="wait")

        async def heal(seconds: float) -> None:
            pauses.seconds.append(seconds)
            api.failing.error = None

        client.transport._pause = heal
        sent = await client.send("welcome", to=SAM, data=NAME, key="k")
    assert sent.repeated  # the first try was committed, and its answer was an error
    assert pauses.seconds == [5.0]
    await api.line.drain()
    assert len(api.provider.calls) == 1


async def test_a_send_without_a_key_is_never_repeated() -> None:
    api = await seeded_api()
    api.failing.only = frozenset({"ensure_notification_jobs"})
    async with connected(api) as (client, pauses):
        api.failing.error = StoreBusy("locked", hint="wait")
        with pytest.raises(ApiError, match="store-busy"):
            await client.send("welcome", to=SAM, data=NAME)
    assert not pauses.seconds


async def test_after_some_tries_the_last_answer_stands() -> None:
    api = await seeded_api()
    async with connected(api) as (client, pauses):
        api.failing.error = StoreBusy("locked", hint="wait")
        with pytest.raises(ApiError, match="store-busy"):
            await client.types()
    assert pauses.seconds == [1.0, 1.0, 1.0]


async def test_nobody_at_the_other_end_is_said_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    pauses = Pauses()
    async with Client(f"http://127.0.0.1:{port}", key="clarion_x", pause=pauses) as client:
        with pytest.raises(Unreachable, match=rf"127\.0\.0\.1:{port}: no connection could be made") as refused:
            await client.types()
        assert "Error" not in str(refused.value)
        assert pauses.seconds == [0.25, 0.5, 1.0]
        with pytest.raises(Unreachable):
            await client.send("welcome", to=SAM, data=NAME)
    assert len(pauses.seconds) == 3


async def test_an_answer_that_is_not_clarions_is_an_error_and_not_a_puzzle() -> None:
    async def stranger(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")  # an answer that comes before the request breaks the connection
        writer.write(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 6\r\nconnection: close\r\n\r\n<html>")
        writer.close()

    async with await asyncio.start_server(stranger, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with Client(f"http://127.0.0.1:{port}", key="clarion_x") as client:
            with pytest.raises(ApiError) as refused:
                await client.types()
    assert (refused.value.status, refused.value.code) == (502, "not-clarion")


async def test_whoever_cancels_a_request_is_heard_though_its_answer_has_just_come() -> None:
    """A soak never ended: pyreqwest loses a cancellation that meets an answer."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        replied = threading.Event()
        threading.Thread(target=_reply, args=(server, replied), daemon=True).start()
        async with Client(f"http://127.0.0.1:{server.getsockname()[1]}", key="k") as client:
            for _ in range(TRIES_OF_A_RACE):
                async with asyncio.TaskGroup() as tasks:
                    asking = tasks.create_task(client.types())
                    await asyncio.sleep(0)  # it asks
                    assert replied.wait(10)  # the loop stands still, so that the answer and the cancellation meet
                    replied.clear()
                    in_time = asking.cancel()  # now and then it was done before
                assert asking.cancelled() == in_time


def _reply(server: socket.socket, replied: threading.Event) -> None:
    """Answer every request with an empty list, each on a connection of its own."""
    for _ in range(TRIES_OF_A_RACE):
        connection, _ = server.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(b'HTTP/1.1 200 OK\r\ncontent-length: 12\r\nconnection: close\r\n\r\n{"items":[]}')
            connection.shutdown(socket.SHUT_WR)
            connection.recv(1)  # until the client has read it all
        replied.set()


async def test_a_person_whose_id_holds_slashes_gets_through_a_real_server() -> None:
    api, whom = await seeded_api(), "user:a//b/"
    async with connected(api) as (client, _):
        assert (await client.put_person(whom, PersonRequest(name="Ann"))).person == whom
        sent = await client.send("welcome", to=Recipient(user="a//b/"), data=NAME, channels=(Channel.INBOX,))
        await api.line.drain()
        assert (await client.person(whom)).name == "Ann"
        assert (await client.preferences(whom)) is not None
        assert (await client.inbox_counts(whom)).unread == 1
        assert [line.job_id async for line in client.history(whom)] == [sent.job_id]


@pytest.mark.parametrize("url", ["", "clarion.example.com", "ftp://example.com", "https://example.com/?x=1"])
def test_an_address_that_is_no_url_is_refused_at_once(url: str) -> None:
    with pytest.raises(ValueError, match="https://"):
        Client(url, key="k")


async def test_the_key_is_in_no_error() -> None:
    api = await seeded_api()
    async with connected(api, Role.VIEWER) as (client, _):
        with pytest.raises(ApiError) as refused:
            await client.send("welcome", to=SAM, data=NAME)
    assert refused.value.code == "forbidden"
    assert api.keys[TENANT, Role.VIEWER] not in f"{refused.value!r}{refused.value}"


@pytest.mark.parametrize("around", ["{}\n", " {}", "{}\r", "", "{}\u00e9"])
def test_a_key_that_no_header_can_hold_is_refused_without_being_told(around: str) -> None:
    # the commonest of them is a key that was read from its file with the line break.
    key = "clarion_0123456789abcdef_0123"
    with pytest.raises(ValueError, match="the API key") as refused:
        Client("http://127.0.0.1:8025", key=around.format(key))
    assert key not in f"{refused.value!r}{refused.value}"


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan")])
async def test_a_number_that_json_does_not_have_is_refused_and_not_made_null(number: float) -> None:
    async with Client("http://127.0.0.1:1", key="k") as client:
        for data in ({"x": number}, {"x": [{"y": number}]}):
            with pytest.raises(ValueError, match="a number that JSON does not have"):
                await client.send("welcome", to=SAM, data=data)
