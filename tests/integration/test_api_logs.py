"""Logs: a correlation id in every line, and nothing about anybody in any (X-22)."""

import asyncio
import io
import logging
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import structlog
from structlog.contextvars import bound_contextvars

from clarion.api import logs
from clarion.domain.call import Accepted, CallOutcome
from clarion.errors import BadConfiguration
from clarion.testing.clock import START_AT
from tests.integration.api_harness import WELCOME, seeded_api

CANARIES = ("Canary Person", "canary@example.com", "+44 7700 900123", "482913")
"""A name, an address, a number and a one-time code."""


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """Logs as a process writes them, into a buffer."""
    root, stream = logging.getLogger(), io.StringIO()
    handlers, level = root.handlers, root.level
    logs.set_up(correlation_id="start-1", json_lines=True, stream=stream)
    yield stream
    root.handlers, root.level, logs.LINES.write = handlers, level, None
    structlog.reset_defaults()


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    """Read what was logged, without the lines of the client that a test asks with."""
    read = [msgspec.json.decode(line) for line in stream.getvalue().splitlines()]
    return [line for line in read if line["logger"] != "httpx"]


def test_a_line_has_the_correlation_id_of_its_request_or_of_the_process(written: io.StringIO) -> None:
    log = structlog.get_logger("clarion.test")
    log.info("starting")
    with bound_contextvars(correlation_id="request-1"):
        log.info("working")
        logging.getLogger("some.library").warning("slow")
    assert [line["correlation_id"] for line in lines(written)] == ["start-1", "request-1", "request-1"]


async def test_what_is_logged_in_a_call_has_the_correlation_id_of_its_message(written: io.StringIO) -> None:
    """Of ours and of a library's lines; what belongs to no message has that of the process."""
    api = await seeded_api()

    async def answer() -> CallOutcome:
        structlog.get_logger("clarion.test").warning("slow")
        await asyncio.sleep(0)
        logging.getLogger("some.library").warning("slow")
        return Accepted()

    api.provider.answers = [answer, answer]
    async with api.client() as client:
        for name in ("request-1", "request-2"):
            await client.post("/v1/notifications", json=WELCOME, headers={"x-correlation-id": name})
    await api.line.drain()
    structlog.get_logger("clarion.test").info("idle")
    told = [(line["event"], line["correlation_id"]) for line in lines(written) if line["event"] != "request"]
    assert sorted(told) == [("idle", "start-1"), *[("slow", f"request-{n}") for n in (1, 1, 2, 2)]]


def test_a_field_that_nobody_vouched_for_is_masked_whatever_it_holds(written: io.StringIO) -> None:
    structlog.get_logger("clarion.test").info("sent", destination=CANARIES[1], data={"name": CANARIES[0]}, count=3)
    structlog.get_logger("clarion.test").info("not recorded", outgoing_id=7)
    line, other = lines(written)
    assert (line["destination"], line["data"], line["count"]) == ("[masked]", "[masked]", 3)
    assert other["outgoing_id"] == 7


@pytest.mark.parametrize(
    "text,shown",
    [
        ("no route for canary@example.com", "no route for [address]"),
        ("called +44 7700 900123 twice", "called [number] twice"),
        ("called (020) 7946 0958", "called ([number]"),
        ("key clarion_0123456789abcdef_00ff was refused", "key [key] was refused"),
        ("job 5e6d0d3c-6f5c-5d1e-9c1a-0d6a3b1f2a10", "job 5e6d0d3c-6f5c-5d1e-9c1a-0d6a3b1f2a10"),
        ("at 2026-03-02T08:30:00.123456Z", "at 2026-03-02T08:30:00.123456Z"),
        ("listening on 127.0.0.1:8025", "listening on 127.0.0.1:8025"),
        ("took 1234 ms", "took 1234 ms"),
        ("postgresql://me:secret@db.example.com/clarion is down", "postgresql://db.example.com/clarion is down"),
        ("postgresql://me@db/clarion is down", "postgresql://db/clarion is down"),
        ("postgresql://me:se@cret@db/clarion is down", "postgresql:[address] is down"),
    ],
)
def test_text_passes_without_what_looks_private(written: io.StringIO, text: str, shown: str) -> None:
    structlog.get_logger("clarion.test").info("told", error=text)
    assert lines(written)[0]["error"] == shown


def test_an_error_of_others_is_shown_by_its_type_and_place_and_one_of_ours_by_its_words(written: io.StringIO) -> None:
    def fail() -> None:
        raise BadConfiguration("the sender is missing", hint="set it") from KeyError(CANARIES[0])

    try:
        fail()
    except BadConfiguration:
        structlog.get_logger("clarion.test").exception("failed")
    (line,) = lines(written)
    assert "BadConfiguration: the sender is missing: set it" in line["exception"]
    assert "KeyError: [masked]" in line["exception"]
    assert "test_api_logs.py" in line["exception"]
    assert CANARIES[0] not in written.getvalue()


def test_a_library_is_quoted_without_its_values(written: io.StringIO) -> None:
    logging.getLogger("some.library").warning("cannot parse %s", CANARIES[0])
    logging.getLogger("asyncio").error("Task exception was never retrieved\nfuture: <%s>" % CANARIES[0])  # noqa: UP031, G002  (as asyncio does)
    assert CANARIES[0] not in written.getvalue()
    assert [line["event"] for line in lines(written)] == ["cannot parse %s", "Task exception was never retrieved"]


def test_a_person_at_a_terminal_gets_the_same_masks(written: io.StringIO) -> None:
    logs.set_up(correlation_id="start-1", json_lines=False, stream=written)
    structlog.get_logger("clarion.other").warning("failed", error=CANARIES[1], destination=CANARIES[1])
    assert CANARIES[1] not in written.getvalue()
    assert "start-1" in written.getvalue()


async def test_no_request_whatever_comes_of_it_leaves_a_trace_of_anybody(written: io.StringIO) -> None:
    api = await seeded_api()
    to = [{"address": CANARIES[1]}, {"address": CANARIES[2], "channel": "sms"}, {"user": CANARIES[0]}]
    child = {"name": CANARIES[0], "group": "2b"}
    data = {
        "name": CANARIES[0],
        "summary": CANARIES[3],
        "happened_at": "2026-03-02",
        "action": CANARIES[1],
        "child": child,
    }
    body = {"type": "incident", "to": to, "data": data}
    async with api.client() as client:
        assert (await client.post("/v1/notifications", json=body)).status_code == 202
        assert (await client.post("/v1/notifications", json=body | {"to": [{"address": CANARIES[0]}]})).is_error
        await client.get(f"/v1/entities/user:{CANARIES[0]}/notifications")
        await client.get(f"/{CANARIES[1]}?q={CANARIES[1]}")
        unexpected: Any = ZeroDivisionError(CANARIES[0])
        api.failing.error, api.failing.only = unexpected, frozenset({"ensure_notification_jobs"})
        assert (await client.post("/v1/notifications", json=body)).status_code == 500
    text = written.getvalue()
    assert not [canary for canary in CANARIES if canary in text]
    assert not [key for key in api.keys.values() if key in text]
    told = lines(written)
    assert [line["route"] for line in told if line["event"] == "request"].count("/v1/notifications") == 3
    assert all(line["correlation_id"] for line in told)
    assert any("ZeroDivisionError" in line.get("exception", "") for line in told)


async def test_machines_that_ask_every_few_seconds_leave_no_lines_unless_something_is_wrong(
    written: io.StringIO,
) -> None:
    api = await seeded_api()
    async with api.client(None) as client:
        for path in ("/health", "/ready", "/metrics"):
            await client.get(path)
        assert not lines(written)
        await client.post("/health")
    assert len(lines(written)) == 1


async def test_the_line_of_a_request_is_what_the_general_path_would_write(written: io.StringIO) -> None:
    """It takes a shorter one, because there is one for every request."""
    api = await seeded_api()
    quick, logs.LINES.write = logs.LINES.write, None
    async with api.client() as client:
        await client.get("/v1/types", headers={"x-correlation-id": "c-7"})
        logs.LINES.write = quick
        await client.get("/v1/types", headers={"x-correlation-id": "c-7"})
    general, short = (line for line in lines(written) if line["event"] == "request")
    assert short.keys() == general.keys()
    for timed in ("timestamp", "milliseconds"):
        assert type(short.pop(timed)) is type(general.pop(timed))
    assert short == general
    assert short["correlation_id"] == "c-7"


def test_a_field_that_nobody_vouched_for_takes_the_general_path(written: io.StringIO) -> None:
    log = structlog.get_logger("clarion.test")
    logs.LINES.tell(log, "sent", name="clarion.test", at=START_AT, destination=CANARIES[1])
    assert [line["destination"] for line in lines(written)] == ["[masked]"]
