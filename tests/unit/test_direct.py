"""The door for direct notifications: what is refused there, whoever calls."""

import asyncio
import re
import threading
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from clarion.adapters.renderers.renderer import LiquidRenderer
from clarion.catalog.publish import Publisher
from clarion.client.wire import Entity, Recipient, SendRequest
from clarion.domain.definition import Definition
from clarion.domain.ensured import Ensured
from clarion.domain.guard import JobEntry
from clarion.domain.hint import Hints
from clarion.domain.identity import Channel, Lane
from clarion.domain.notification import NotificationJob, NotificationScheduler
from clarion.errors import Conflict, Forbidden, InvalidInput, TooManyAtOnce
from clarion.ports.facts import Latest
from clarion.ports.renderer import Bundle
from clarion.producers import merge_check
from clarion.producers.direct import HORIZON
from clarion.producers.merge_check import MergeChecks
from clarion.testing.clock import START_AT, ManualClock
from clarion.testing.store import SqliteInMemory
from tests.unit.pipeline_line import TENANT, Line, Scripted


@pytest.fixture
async def line() -> Line:
    clock = ManualClock()
    line = Line(SqliteInMemory(clock), clock, Scripted())
    await line.seed()
    return line


@pytest.mark.parametrize(
    "not_before_at,says",
    [
        (START_AT + HORIZON + timedelta(microseconds=1), "it is too far ahead"),
        (START_AT.replace(tzinfo=None), "it has no zone"),
    ],
)
async def test_a_time_that_cannot_be_kept_is_refused_and_nothing_is_stored(
    line: Line, not_before_at: datetime, says: str
) -> None:
    with pytest.raises(InvalidInput, match=says) as refused:
        await line.send(not_before_at=not_before_at)
    assert refused.value.field == "not_before_at"
    assert not await line.store.rows(TENANT, NotificationScheduler)


@pytest.mark.parametrize("ahead", [-HORIZON, timedelta(), HORIZON])
async def test_a_year_ahead_and_any_time_that_has_passed_are_accepted(line: Line, ahead: timedelta) -> None:
    sent = await line.send(not_before_at=line.clock.now() + ahead)
    assert await line.store.find_job_timeline(TENANT, sent.job_id) is not None


@pytest.mark.parametrize(
    "given, field, says",
    [
        (
            {"channels": (Channel.EMAIL, Channel.PUSH)},
            "channels[1]",
            "'welcome' is not sent by push: it is sent by email, inbox; name some of these, or leave channels out",
        ),
        ({"channels": (Channel.EMAIL, Channel.EMAIL)}, "channels[1]", "email is named twice: name each channel once"),
        (
            {"channels": (Channel.INBOX,)},
            "to[0]",
            "it is an address for email, and channels names only inbox: give an address for inbox, or add email to",
        ),
        (
            {"locale": "klingon"},
            "locale",
            "'klingon' is no locale: write a language, and a region if it matters, such as de",
        ),
        ({"locale": "de-AT-1996"}, "locale", "'de-AT-1996' is no locale"),
        ({"ttl_seconds": 0}, "ttl_seconds", "it is too small: use 1 or more"),
        ({"ttl_seconds": 2592001}, "ttl_seconds", "it is too large: use 2592000 or less"),
        ({"hints": Hints(region="x" * 201)}, "hints.region", "it is too long: use 200 characters or less"),
        ({"hints": Hints(tags=("t",) * 11)}, "hints.tags", "it has too many entries: use 10 or less"),
        ({"hints": Hints(tags=("t", "a\r\nBcc: b@example.com"))}, "hints.tags[1]", "holds a control character"),
        ({"hints": Hints(from_="a\u2028b")}, "hints.from", "holds a control character"),
    ],
    ids=str,
)
async def test_what_holds_for_one_send_is_refused_by_name_where_it_makes_no_sense(
    line: Line, given: dict[str, Any], field: str, says: str
) -> None:
    with pytest.raises(InvalidInput, match=re.escape(says)) as refused:
        await line.send(**given)
    assert refused.value.field == field
    assert not await line.store.rows(TENANT, NotificationScheduler)


async def test_hints_that_say_nothing_are_no_hints(line: Line) -> None:
    await line.send(key="k")
    assert (await line.send(key="k", hints=Hints())).repeated


FAR_EAST = timezone(timedelta(hours=14))
PASSED_AT = (datetime(1, 1, 1, tzinfo=FAR_EAST), START_AT - timedelta(days=1), START_AT)


@pytest.mark.parametrize("passed_at", PASSED_AT)
async def test_a_time_that_has_passed_means_now(line: Line, passed_at: datetime) -> None:
    """Also one that no engine could store: it stops no stage (F-50)."""
    first = await line.send(not_before_at=passed_at, key="k")
    (pending,) = await line.store.rows(TENANT, NotificationScheduler)
    assert pending.due_at == START_AT
    assert (await line.send(not_before_at=passed_at, key="k")).job_id == first.job_id
    await line.drain()
    assert len(line.provider.calls) == 1


async def test_a_repeat_after_its_time_has_come_is_the_same_notification(line: Line) -> None:
    due_at = START_AT + timedelta(hours=1)
    first = await line.send(not_before_at=due_at, key="k")
    await line.wait(7200)
    again = await line.send(not_before_at=due_at.astimezone(FAR_EAST), key="k")
    assert (again.job_id, again.repeated) == (first.job_id, True)


@pytest.mark.parametrize(
    "change, says",
    [
        ({"lane": Lane.HIGH}, "lane or not_before_at"),
        ({"lane": None}, "lane or not_before_at"),
        ({"not_before_at": START_AT + timedelta(hours=2)}, "lane or not_before_at"),
        ({"not_before_at": None}, "lane or not_before_at"),
        ({"data": {"name": "Kim", "month": "May", "items": []}}, "data.name"),
        ({"data": {"name": "Kim"}}, "data.items, data.month, data.name"),
        ({"data": {"name": "Sam", "month": "May", "items": [], "a@b.example": 1}}, "data.…"),
        ({"to": "kim@example.com"}, "recipients"),
        ({"entity": Entity(type="staff", guid=UUID(int=1))}, "entity"),
        ({"type_": "newsletter"}, "type"),
        ({"ttl_seconds": 61}, "ttl_seconds"),
        ({"ttl_seconds": None}, "ttl_seconds"),
        ({"locale": "de"}, "locale"),
        ({"channels": ()}, "channels"),
        ({"business_unit": UUID(int=3)}, "business_unit"),
        ({"hints": None}, "hints"),
        ({"hints": Hints(region="us", from_="office")}, "hints.from, hints.region"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
async def test_a_conflict_says_in_what_the_two_differ(line: Line, change: dict[str, Any], says: str) -> None:
    given: dict[str, Any] = {
        "key": "k",
        "lane": Lane.NORMAL,
        "not_before_at": START_AT + timedelta(hours=1),
        "entity": Entity(type="child", guid=UUID(int=1)),
        "data": {"name": "Sam", "month": "May", "items": []},
        "ttl_seconds": 60,
        "locale": "de-AT",
        "channels": (Channel.EMAIL,),
        "business_unit": UUID(int=2),
        "hints": Hints(region="eu"),
    }
    await line.send(**given)
    again = await line.send(**given | {"locale": "DE_at"})
    assert again.repeated, "another spelling of a locale is no other request"
    with pytest.raises(Conflict) as refused:
        await line.send(**given | change)
    assert refused.value.message == f"the key was used before for something else (it differs in {says})"


async def test_a_conflict_names_ten_fields_and_counts_the_rest(line: Line) -> None:
    await line.send(key="k")
    with pytest.raises(Conflict) as refused:
        await line.send(key="k", data={"name": "Sam"} | {f"n{n:02}": n for n in range(12)})
    assert "data.n00, " in refused.value.message
    assert refused.value.message.endswith("data.n09 and 2 more)")


async def publish(
    line: Line, folder: Path, *, text: str, channels: tuple[str, ...] = ("sms",), lane: str = "high"
) -> None:
    """Publish a version of the type `ping`."""
    (folder / "ping").mkdir(parents=True)
    head = f'key = "ping"\ntitle = "Ping"\ncategory = "security"\nlane = "{lane}"\n'
    (folder / "ping" / "definition.toml").write_text(f"{head}channels = {list(channels)}\n")
    for channel in channels:
        (folder / "ping" / f"{channel}.liquid").write_text(text)
    await Publisher(catalog=line.store, renderer=line.renderer).publish(TENANT, folder=folder, actor="test")


@pytest.mark.parametrize(
    "after",
    [{"text": "hello {{ name }}, {{ more }}"}, {"text": "hello", "channels": ("chat",)}],
    ids=["data", "channel"],
)
async def test_a_repeat_is_answered_though_the_present_template_would_refuse_it(
    line: Line, tmp_path: Path, after: dict[str, Any]
) -> None:
    """F-03: a caller that lost the answer gets it, whatever was published since; a new key is refused."""
    given: dict[str, Any] = {"type_": "ping", "to": Recipient(address="+447700900001", channel=Channel.SMS)}
    await publish(line, tmp_path / "1", text="hello {{ name }}")
    first = await line.send(**given, key="k")
    await publish(line, tmp_path / "2", **after)
    again = await line.send(**given, key="k")
    assert (again.job_id, again.repeated) == (first.job_id, True)
    with pytest.raises(Conflict):
        await line.send(**given, key="k", data={"name": "Kim"})
    for key in ("other", None):
        with pytest.raises(InvalidInput):
            await line.send(**given, key=key)


async def asked_in(line: Line, lane: Lane, *, may_raise: bool, key: str | None = None) -> UUID:
    """Send the type `ping`, whose own lane is high, in another."""
    asked = SendRequest(type="ping", to=(Recipient(address="+447700900001"),), data={"name": "Sam"}, lane=lane)
    return (await line.accept(asked, key=key, may_raise=may_raise)).job_id


async def test_a_lane_above_the_types_own_is_for_those_who_may_raise_it(line: Line, tmp_path: Path) -> None:
    await publish(line, tmp_path, text="hello")
    with pytest.raises(Forbidden) as refused:
        await asked_in(line, Lane.CRITICAL, may_raise=False)
    assert not await line.store.rows(TENANT, NotificationScheduler)
    assert str(refused.value) == (
        "the notification type 'ping' is sent in the high lane, and this key may not raise it to critical: leave lane "
        "out, name one that is no more urgent, or use a key with the role urgent-sender or admin"
    )
    for lane in (Lane.HIGH, Lane.NORMAL, Lane.BULK):
        await asked_in(line, lane, may_raise=False)
    await asked_in(line, Lane.CRITICAL, may_raise=True)
    assert [row.lane for row in await line.store.rows(TENANT, NotificationScheduler)] == [
        *(Lane.HIGH, Lane.NORMAL, Lane.BULK, Lane.CRITICAL)
    ]


async def test_a_repeat_is_answered_though_the_type_has_a_less_urgent_lane_by_now(line: Line, tmp_path: Path) -> None:
    """F-03: what was no raise when it was first asked for is answered, and nothing new may come of it."""
    await publish(line, tmp_path / "1", text="hello", lane="critical")
    first = await asked_in(line, Lane.CRITICAL, may_raise=False, key="k")
    await publish(line, tmp_path / "2", text="hello", lane="bulk")
    assert await asked_in(line, Lane.CRITICAL, may_raise=False, key="k") == first
    with pytest.raises(Conflict):
        await asked_in(line, Lane.HIGH, may_raise=False, key="k")
    with pytest.raises(Forbidden):
        await asked_in(line, Lane.CRITICAL, may_raise=False, key="other")
    assert len(await line.store.rows(TENANT, NotificationScheduler)) == 1


@pytest.mark.parametrize(
    "text, data, says",
    [
        (
            "due {{ at | date: '%Y' }}",
            {"at": "soon"},
            "data: it cannot be merged: sms text: date takes an ISO 8601 date",
        ),
        (
            "{% for i in (1..9999) %}{{ s }}{% endfor %}",
            {"s": "a"},
            "data: it cannot be merged: sms text: the template",
        ),
    ],
    ids=["a date that is none", "too much work"],
)
async def test_data_that_cannot_be_merged_is_refused_at_the_door_and_nothing_is_stored(
    line: Line, tmp_path: Path, text: str, data: dict[str, object], says: str
) -> None:
    await publish(line, tmp_path, text=text)
    with pytest.raises(InvalidInput) as refused:
        await line.send(type_="ping", to=Recipient(address="+447700900001", channel=Channel.SMS), data=data)
    assert str(refused.value).startswith(says)
    assert not await line.store.rows(TENANT, NotificationScheduler)


class Gated(LiquidRenderer):
    """Notes whose data is checked by somebody who takes his time, and where, and keeps him until the gate is open."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.entered = threading.Event(), threading.Event()
        self.checked: list[tuple[object, bool]] = []  # and whether in the thread of the event loop
        self.loop_thread = threading.get_ident()

    def check(
        self,
        bundle: Bundle,
        data: Mapping[str, object],
        *,
        entity: Mapping[str, object] = {},
        briefly: bool = False,
    ) -> bool:
        if not briefly:
            self.checked.append((data["name"], threading.get_ident() == self.loop_thread))
            self.entered.set()
            assert self.gate.wait(5), "the event loop was held up, and did not come to open the gate"
        return super().check(bundle, data, entity=entity, briefly=briefly)


async def test_a_heavy_check_keeps_nobody_waiting(tmp_path: Path) -> None:
    clock, renderer = ManualClock(), Gated()
    line = Line(SqliteInMemory(clock), clock, Scripted(), renderer=renderer)
    await line.seed()
    await publish(line, tmp_path, text="{% for i in (1..500) %}{{ name }}{% endfor %}")
    async with asyncio.TaskGroup() as tasks:
        to = Recipient(address="+447700900001", channel=Channel.SMS)
        heavy = tasks.create_task(line.send(type_="ping", to=to))
        await asyncio.get_running_loop().run_in_executor(None, renderer.entered.wait, 5)
        await line.send()  # a light one is not behind it
        assert not heavy.done()
        renderer.gate.set()
    assert [in_loop for _, in_loop in renderer.checked] == [False]


async def test_a_tenant_with_many_heavy_checks_delays_its_own_alone() -> None:
    renderer = Gated()
    checks = MergeChecks(renderer)
    definition = Definition(key="ping", title="Ping", channels=(Channel.SMS,))
    bundle = renderer.compile(definition, {"sms.liquid": "{% for i in (1..500) %}{{ name }}{% endfor %}"})
    async with asyncio.TaskGroup() as tasks:
        for tenant_id, name in (("a", "a1"), ("a", "a2"), ("a", "a3"), ("b", "b1")):
            tasks.create_task(checks.check(tenant_id, bundle, {"name": name}, entity={}))
        await asyncio.get_running_loop().run_in_executor(None, renderer.entered.wait, 5)
        renderer.gate.set()
    assert [name for name, _ in renderer.checked] == ["a1", "b1", "a2", "a3"]


@pytest.mark.parametrize("wait", [5.0, 0.01], ids=["the line is full", "the line takes too long"])
async def test_a_tenant_cannot_fill_the_door_with_heavy_checks(monkeypatch: pytest.MonkeyPatch, wait: float) -> None:
    """Each that waits is an open request, of which there are so many for all tenants together."""
    monkeypatch.setattr(merge_check, "LINE_MAX", 3)
    monkeypatch.setattr(merge_check, "WAIT_MAX", wait)
    renderer = Gated()
    checks = MergeChecks(renderer)
    definition = Definition(key="ping", title="Ping", channels=(Channel.SMS,))
    bundle = renderer.compile(definition, {"sms.liquid": "{% for i in (1..500) %}{{ name }}{% endfor %}"})

    async def told(tenant_id: str, name: str) -> type[Exception] | None:
        try:
            await checks.check(tenant_id, bundle, {"name": name}, entity={})
        except TooManyAtOnce:
            return TooManyAtOnce
        return None

    async with asyncio.TaskGroup() as tasks:
        asked = [tasks.create_task(told("a", f"a{number}")) for number in range(5)]
        await asyncio.get_running_loop().run_in_executor(None, renderer.entered.wait, 5)
        other = tasks.create_task(told("b", "b"))
        await asyncio.wait(asked, timeout=0.1)
        renderer.gate.set()
    let_in = 3 if wait == 5 else 1
    assert [one.result() for one in asked] == [None] * let_in + [TooManyAtOnce] * (5 - let_in)
    assert other.result() is None
    assert {name for name, _ in renderer.checked} == {"b", *(f"a{number}" for number in range(let_in))}


class Counting(SqliteInMemory):
    """A store that notes how much it was asked at once."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock)
        self.looked: list[int] = []
        self.stored: list[int] = []

    async def find_latest_versions(self, wanted: Collection[tuple[str, str]]) -> Latest:
        self.looked.append(len(wanted))
        return await super().find_latest_versions(wanted)

    async def ensure_notification_jobs(
        self, tenant_id: str, items: Sequence[JobEntry], /
    ) -> list[Ensured[NotificationJob]]:
        self.stored.append(len(items))
        return await super().ensure_notification_jobs(tenant_id, items)


async def test_what_is_sent_at_the_same_time_takes_one_look_and_one_transaction() -> None:
    clock = ManualClock()
    store = Counting(clock)
    line = Line(store, clock, Scripted())
    await line.seed()
    await line.send(key="alone")
    assert (store.looked, store.stored) == ([1], [1]), "nobody waits for company"
    sent = await asyncio.gather(*(line.send(key=f"k{number}") for number in range(50)))
    assert (store.looked[1:], store.stored[1:]) == ([50], [50])
    assert len({one.job_id for one in sent}) == 50
    assert len(await store.rows(TENANT, NotificationScheduler)) == 51


async def test_a_type_that_was_just_published_holds_for_the_next_send(line: Line, tmp_path: Path) -> None:
    """Nothing that is held in memory is older than the request."""
    with pytest.raises(InvalidInput, match="no notification type"):
        await line.send("ping", "+447700900001")
    for version in (1, 2, 3):
        await publish(line, tmp_path / str(version), text=f"hello {version}")
        sent = await line.send("ping", "+447700900001")
        timeline = await line.store.find_job_timeline(TENANT, sent.job_id)
        assert timeline is not None
        assert timeline.job.template_version == version
