"""Due runs of report subscriptions, from the hand-over to mail and inbox; and runs that are killed on the way."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import msgspec
import pytest

from clarion.catalog.publish import Publisher
from clarion.dispatch import DeliveryDispatcher
from clarion.domain import messaging_content, report_link
from clarion.domain.automation import AutomationScheduler
from clarion.domain.content import EmailContent
from clarion.domain.due import read_result
from clarion.domain.identity import Identity
from clarion.domain.inbox import UserMessage
from clarion.domain.key import messaging_blob_path
from clarion.domain.messaging import MessagingJob
from clarion.domain.notification import NotificationJob, NotificationScheduler, NotificationStatus
from clarion.domain.outgoing import OutgoingMessage, OutgoingStatus
from clarion.domain.planning import EndReason
from clarion.domain.report import ReportSubscription
from clarion.domain.report_choice import ReportDelivery, ReportForm
from clarion.domain.report_run import manual_row, run_row
from clarion.errors import BadConfiguration, Gone, InvalidInput
from clarion.pipeline.generate import Generate, Sizes
from clarion.pipeline.schedule import Schedule
from clarion.ports.automation import DueClaim
from clarion.ports.reporting import Handed, NotHanded, ReportData, ReportFacts, ReportOutput, ReportRequest
from clarion.ports.source import SubscriptionRecord
from clarion.producers.delivery_summary import DeliverySummary
from clarion.producers.report_plugin import ReportPlugin, Reports
from clarion.producers.reports import SubscriptionRuns
from clarion.sealing.contents import MessagingContents
from clarion.testing.clock import ManualClock
from clarion.testing.factories import guid
from clarion.testing.store import SqliteInMemory
from tests.unit.pipeline_line import STAFF, TENANT, Line, Scripted

NOW: Final = datetime(2026, 11, 23, 7, 0, tzinfo=UTC)  # a Monday, 08:00 in Vienna
URL: Final = "https://clarion.example.com"
DEFINITION: Final = """
key = "weekly-report"
title = "Weekly report"
category = "reports"
channels = ["email", "inbox"]
required = ["report.lines"]

[sample]
report = { name = "Weekly", lines = 1, url = "", data = { rows = [] } }
"""
TEMPLATES: Final = {
    "definition.toml": DEFINITION,
    "email.subject.liquid": "{{ report.name }}: {{ report.lines }} lines",
    "email.text.liquid": "Report {% for row in report.data.rows %}{{ row.notification_type }} {{ row.total }} "
    "{% endfor %}{{ report.url }}",
    "email.mjml.liquid": "<mjml><mj-body><mj-section><mj-column><mj-text>{{ report.name }}</mj-text></mj-column>"
    "</mj-section></mj-body></mjml>",
    "inbox.liquid": "{{ report.name }}: {{ report.lines }}",
}


class Counted:
    """A provider that writes something else every time it is asked, so that only a kept report is the same twice."""

    report = "counted"
    forms = frozenset(ReportForm)
    parameters: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self.asked: list[ReportRequest] = []

    async def write(self, asked: ReportRequest, facts: ReportFacts, output: ReportOutput) -> ReportData:
        self.asked.append(asked)
        output.write(f"<p>{len(self.asked)}</p>")
        return ReportData(lines=len(self.asked), data={"rows": []})


class Killed(Exception):
    """What ends a worker in the middle of its work."""


class Dying:
    """Something that answers so many calls, and takes the worker with it at the next, before or after that is done."""

    def __init__(self, real: object, lives: list[int], *, is_late: bool) -> None:
        self._real, self._lives, self._is_late = real, lives, is_late

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._real, name)

        async def call(*args: object, **named: object) -> object:
            self._lives[0] -= 1
            if self._lives[0] < 0 and not self._is_late:
                raise Killed
            answer = await method(*args, **named)
            if self._lives[0] < 0:
                raise Killed
            return answer

        return call


def subscription(**fields: object) -> ReportSubscription:
    plain = ReportSubscription(
        guid=guid(1, "subscription"),
        name="Weekly",
        report="counted",
        rule="FREQ=WEEKLY;BYDAY=MO;BYHOUR=8",
        tz_id="Europe/Vienna",
        notification_type="weekly-report",
        to=(Identity.user("1"),),
    )
    return msgspec.structs.replace(plain, **fields)


def scheduled(said: ReportSubscription) -> DueClaim:
    timing = said.recurrence.after(NOW - timedelta(seconds=1))
    assert timing is not None
    return DueClaim(tenant_id=TENANT, row=run_row(said, timing, recurring=True, correlation_id="c-1"))


def by_hand(said: ReportSubscription, n: int) -> DueClaim:
    row = manual_row(said, guid(n, "run"), now=NOW, correlation_id="c-1")
    return DueClaim(tenant_id=TENANT, row=row)


def record(said: ReportSubscription) -> SubscriptionRecord:
    return SubscriptionRecord(subscription=said, version=1, changed_by="sam", changed_at=NOW)


class Town(Line):
    """The line with reports."""

    def __init__(self, *, url: str | None = URL, at: datetime = NOW) -> None:
        clock = ManualClock(at)
        self.mail = Scripted()
        super().__init__(SqliteInMemory(clock), clock, self.mail)
        self.counted, self.url = Counted(), url

    async def open(self, folder: Path) -> None:
        await self.seed()
        (folder / "weekly-report").mkdir(exist_ok=True)
        for name, text in TEMPLATES.items():
            (folder / "weekly-report" / name).write_text(text)
        await Publisher(catalog=self.store, renderer=self.renderer).publish(self.tenant_id, folder=folder, actor="test")

    def runs(self, *providers: object, **ports: Any) -> SubscriptionRuns:
        plugins = [ReportPlugin(f"p{n}", one, patience=None) for n, one in enumerate((self.counted, *providers))]
        given: dict[str, Any] = {
            "counts": self.store,
            "facts": self.store,
            "jobs": self.store,
            "sends": self.sends,
            "dispatcher": self.dispatcher,
            "contents": self.contents,
            "keyring": self.keyring,
        }
        return SubscriptionRuns(reports=Reports(plugins), public_url=self.url, **(given | ports))

    async def rows(self, kind: Any) -> list[Any]:
        return await self.store.rows(TENANT, kind)


@pytest.fixture
async def town(tmp_path: Path) -> Town:
    town = Town()
    await town.open(tmp_path)
    return town


async def test_a_due_run_becomes_mail_and_a_line_in_the_inbox_and_is_followed_by_the_next(town: Town) -> None:
    await town.send("welcome", key="before")
    await town.drain()
    town.mail.calls.clear()
    said = subscription(report="delivery-summary")
    town.clock.advance(timedelta(days=7))
    claim = scheduled(msgspec.structs.replace(said, starts_at=NOW + timedelta(days=7)))
    handed = await town.runs(DeliverySummary()).run(claim, record(said), now=await town.store.now())
    assert isinstance(handed, Handed)
    assert handed.next is not None
    assert handed.next.scheduled_at == NOW + timedelta(days=14)
    await town.drain()
    (call,) = town.mail.calls
    assert isinstance(call.content, EmailContent)
    assert (call.content.subject, call.content.text.split()) == ("Weekly: 1 lines", ["Report", "welcome", "1"])
    result = read_result(handed.dispatch_result)
    assert result is not None
    assert result.messaging_job is not None
    for known in (result.job, result.messaging_job):
        timeline = await town.store.find_job_timeline(TENANT, known or UUID(int=0))
        assert timeline is not None
        assert timeline.scheduler is not None
        assert timeline.scheduler.status is NotificationStatus.DONE
        assert [row.status for row in timeline.outgoing] == [OutgoingStatus.SENT_TO_PROVIDER]
        assert [row.pk for row in timeline.outgoing] == [str(result.messaging_job)]
        assert len(timeline.inbox) == 1
        assert {row.message_id for _, row in timeline.inbox} == {row.message_id for row in timeline.outgoing}


async def test_a_run_that_is_asked_for_again_hands_the_same_over_and_nothing_more(town: Town) -> None:
    said = subscription(to=(), recipients=(), delivery=ReportDelivery.LINK)
    said = msgspec.structs.replace(said, to=(Identity.group(STAFF),), recipients=None)
    claim = scheduled(said)
    first = await town.runs().run(claim, record(said), now=NOW)
    await town.drain()
    off = record(msgspec.structs.replace(said, to=(Identity.user("2"),), report="gone"))
    assert await town.runs().run(claim, off, now=NOW + timedelta(days=1)) == msgspec.structs.replace(
        first, dispatch_result=first.dispatch_result if isinstance(first, Handed) else ""
    )
    await town.drain()
    assert len(town.mail.calls) == 1
    assert len(town.counted.asked) == 1


@pytest.mark.parametrize("is_late", [False, True])
async def test_a_run_that_is_killed_at_any_call_is_handed_over_once_with_the_first_report(
    town: Town, is_late: bool
) -> None:
    said = subscription()
    finished = 0
    for lives in range(40):
        claim, left = by_hand(said, lives + 1), [lives]
        store: Any = Dying(town.store, left, is_late=is_late)
        blobs: Any = Dying(town.blobs, left, is_late=is_late)
        ports = {
            "counts": store,
            "facts": store,
            "jobs": store,
            "dispatcher": DeliveryDispatcher(store=store, blobs=blobs, keyring=town.keyring),
            "contents": MessagingContents(blobs=blobs, keyring=town.keyring),
        }
        try:
            await town.runs(**ports).run(claim, record(said), now=NOW)
        except Killed:
            asked = len(town.counted.asked)
            assert isinstance(await town.runs().run(claim, record(said), now=NOW), Handed)
            assert len(town.counted.asked) - asked <= 1
        else:
            finished += 1
        if finished:
            break
    assert lives > 5
    await town.drain()
    number = lives + 1
    assert len(await town.rows(MessagingJob)) == len(await town.rows(NotificationJob)) == number
    assert len(await town.rows(OutgoingMessage)) == len(await town.rows(UserMessage)) == len(town.mail.calls) == number


async def test_a_report_that_was_written_is_told_of_by_the_templates_that_it_was_written_for(
    town: Town, tmp_path: Path
) -> None:
    said, dies = subscription(), Dying(town.dispatcher, [0], is_late=True)
    before = (await town.sends.look_up(TENANT, "weekly-report")).version
    with pytest.raises(Killed):
        await town.runs(dispatcher=dies).run(scheduled(said), record(said), now=NOW)
    (tmp_path / "weekly-report" / "inbox.liquid").write_text("Another: {{ report.name }}")
    publisher = Publisher(catalog=town.store, renderer=town.renderer)
    await publisher.publish(TENANT, folder=tmp_path / "weekly-report", actor="test")
    town.clock.advance(timedelta(minutes=5))
    assert (await town.sends.look_up(TENANT, "weekly-report")).version != before
    assert isinstance(await town.runs().run(scheduled(said), record(said), now=NOW), Handed)
    (told,), (held,) = await town.rows(NotificationJob), await town.rows(MessagingJob)
    assert (told.template_version, held.template_version) == (before, before)


async def test_a_report_for_many_is_made_step_by_step_and_counts_no_retry(town: Town) -> None:
    said = subscription(to=(Identity.group(STAFF),))
    assert isinstance(await town.runs().run(scheduled(said), record(said), now=NOW), Handed)
    await Schedule(queue=town.store, facts=town.store).step()
    generate = Generate(
        queue=town.store,
        facts=town.store,
        templates=town.templates,
        renderer=town.renderer,
        dispatcher=town.dispatcher,
        keyring=town.keyring,
        sets=town.recipient_sets,
        contents=town.contents,
        clock=town.clock,
        sizes=Sizes(inline=1, page=1, step=1),
    )
    steps = 0
    while await generate.step():
        steps += 1
    await town.drain()
    (pending,) = await town.rows(NotificationScheduler)
    (job,) = await town.rows(MessagingJob)
    assert steps > 3
    assert (pending.status, pending.retry_count, pending.rescue_count) == (NotificationStatus.DONE, 0, 0)
    assert len(await town.rows(UserMessage)) == 2
    assert [row.pk for row in await town.rows(OutgoingMessage)] == [str(job.guid)]
    assert len(town.mail.calls) == 1


async def test_a_content_that_is_not_the_one_of_its_job_is_never_sent(town: Town) -> None:
    said = subscription()
    assert isinstance(await town.runs().run(scheduled(said), record(said), now=NOW), Handed)
    (job,) = await town.rows(MessagingJob)
    await town.store.overwrite(TENANT, msgspec.structs.replace(job, content_hash=job.content_hash.of("other")))
    await town.drain()
    (row,) = await town.rows(OutgoingMessage)
    assert (row.status, town.mail.calls) == (OutgoingStatus.RETRY_READY, [])


async def test_a_report_by_link_is_opened_by_its_own_token_until_it_ends(town: Town) -> None:
    said = subscription(delivery=ReportDelivery.LINK)
    await town.runs().run(scheduled(said), record(said), now=NOW)
    await town.drain()
    (call,) = town.mail.calls
    assert isinstance(call.content, EmailContent)
    token = call.content.text.split(f"{URL}{report_link.PATH}")[1].strip()
    keys = await town.keyring.get(TENANT)
    (job,) = await town.rows(MessagingJob)
    assert report_link.read_token(keys, token, now=NOW + timedelta(days=13)) == job.guid
    stored = await town.contents.find(TENANT, job.guid)
    assert stored is not None
    assert messaging_content.read_report(stored).output == "<p>1</p>"
    assert b"<p>1</p>" not in await town.blobs.get(messaging_blob_path(tenant_id=TENANT, messaging_job_guid=job.guid))
    with pytest.raises(Gone):
        report_link.read_token(keys, token, now=NOW + report_link.LASTS)
    await town.dispatcher.ensure_tenant("other")
    stranger = await town.keyring.get("other")
    forged = (token[:-4] + "AAAA", token[:40], report_link.make_token(stranger, job.guid, until=NOW), "")
    words = set()
    for one in forged:
        with pytest.raises(InvalidInput) as refused:
            report_link.read_token(keys, one, now=NOW)
        words.add(str(refused.value))
    assert len(words) == 1


@pytest.mark.parametrize(
    "change, expected",
    [
        ({"to": ()}, EndReason.NO_RECIPIENTS),
        ({"to": (), "recipients": ()}, EndReason.NO_RECIPIENTS),
        ({"to": (Identity.group(guid(9, "group")),)}, EndReason.NO_RECIPIENTS),
        ({"active": False}, EndReason.SUBSCRIPTION_INACTIVE),
    ],
)
async def test_nothing_is_written_for_nobody(town: Town, change: Mapping[str, object], expected: EndReason) -> None:
    said = subscription()
    found = await town.runs().run(scheduled(said), record(msgspec.structs.replace(said, **change)), now=NOW)
    assert isinstance(found, NotHanded)
    assert (found.reason, town.counted.asked) == (expected, [])


async def test_a_type_that_is_off_gets_no_report_and_the_next_run_is_planned(town: Town) -> None:
    await town.store.set_type_enabled(TENANT, "weekly-report", enabled=False, actor="sam")
    said = subscription()
    found = await town.runs().run(scheduled(said), record(said), now=NOW)
    assert isinstance(found, NotHanded)
    assert found.reason is EndReason.NOTIFICATION_TYPE_OFF
    assert found.next is not None
    assert found.next.scheduled_at == NOW + timedelta(days=7)


async def test_what_cannot_be_written_now_is_told_and_leaves_nothing_behind(town: Town) -> None:
    for said, error, town.url in (
        (subscription(report="gone"), BadConfiguration, URL),
        (subscription(delivery=ReportDelivery.LINK), BadConfiguration, None),
        (subscription(notification_type="unpublished"), InvalidInput, URL),
    ):
        with pytest.raises(error):
            await town.runs().run(scheduled(said), record(said), now=NOW)
    assert await town.rows(MessagingJob) == await town.rows(AutomationScheduler) == []
