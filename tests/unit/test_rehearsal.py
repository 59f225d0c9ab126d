"""Seeing ahead: what is listed and what is rehearsed is what then happens, and nothing is touched by either."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Self
from uuid import UUID

import msgspec
import pytest

from clarion.bootstrap import due_worker
from clarion.client.wire_rehearsal import Rehearsal, Rehearsed
from clarion.client.wire_upcoming import UpcomingLine, UpcomingQuery
from clarion.domain.audience import Addressee
from clarion.domain.automation import AutomationScheduler
from clarion.domain.due import Named
from clarion.domain.identity import Channel
from clarion.domain.inbox import UserMessage
from clarion.domain.key import FiringPolicy
from clarion.domain.outgoing import OutgoingMessage
from clarion.domain.person import LocalForm
from clarion.domain.reminder import DateRule, ReminderSetting, ThresholdRule
from clarion.domain.report import ReportSubscription
from clarion.domain.report_run import run_row
from clarion.domain.skip import SkipRule
from clarion.domain.source import SourceContent
from clarion.errors import InvalidInput
from clarion.operations import rehearsal
from clarion.operations.rehearsal import rehearse
from clarion.operations.upcoming import Upcoming
from clarion.ports.automation import Standing
from clarion.producers.planning import Ask, Planning
from clarion.sealing.sources import sealed_source
from clarion.testing.clock import ManualClock
from tests.integration.api_harness import ApiHarness
from tests.unit.due_house import definition
from tests.unit.pipeline_line import STAFF, TENANT

EVE = datetime(2026, 3, 26, 12, tzinfo=UTC)
"""Three days before the clocks go forward in Vienna, on 29 March at 02:00."""

BY_DATE = ReminderSetting(
    guid=UUID(int=1),
    name="Boats are looked over",
    source_type="boat",
    rule=DateRule(field="inspected_on", offsets=(1, 0)),
    send_time="02:30",
    notification_type="boat-due",
    recipients=(Addressee(group=STAFF),),
)
DAILY = msgspec.structs.replace(
    BY_DATE,
    guid=UUID(int=2),
    name="Leaks",
    rule=ThresholdRule(metric="leaks", value=2, policy=FiringPolicy.ONCE_PER_DAY),
    inbox_only=True,
)


class Pier:
    """An installation with boats, all in memory."""

    def __init__(self) -> None:
        self.harness = ApiHarness(clock=ManualClock(EVE))
        self.platform, self.line, self.store = self.harness.platform, self.harness.line, self.harness.memory
        self.upcoming = Upcoming(self.platform.store, self.platform.sources)

    async def open(self, folder: Path, *settings: ReminderSetting, text: str = "{{ boat.name }}") -> Self:
        """Make the tenant in Vienna, its type and these settings."""
        await self.line.seed(definitions=definition(folder, text=text))
        await self.store.set_tenant_form(TENANT, LocalForm(tz_id="Europe/Vienna"), actor="sam")
        for setting in settings:
            await self.store.put_reminder(TENANT, setting, actor="sam")
        return self

    async def put(self, source: str, *, on: date | None = None, leaks: float = 0) -> None:
        """Put a boat in, and plan it."""
        content = SourceContent(
            fields={"name": source}, dates={} if on is None else {"inspected_on": on}, metrics={"leaks": leaks}
        )
        keys = await self.line.keyring.get(TENANT)
        record = sealed_source(
            keys, source_type="boat", source=source, content=content, nonce=self.line.keyring.nonce()
        )
        await self.store.put_sources(TENANT, [record], actor="app", correlation_id="c")
        store: Any = self.store
        planning = Planning(automation=store, settings=store, facts=store, sources=self.platform.sources)
        await planning.plan_all(TENANT, "boat", [Ask(source=source, cause="test", correlation_id="c")])

    async def everything(self) -> list[str]:
        """Every row of every table, as text."""
        return sorted(self.store_dump())

    def store_dump(self) -> Sequence[str]:
        from tests.integration.sqlite_look import connection_of

        return list(connection_of(self.store).iterdump())

    async def ahead(self, days: int = 30, **query: Any) -> tuple[UpcomingLine, ...]:
        return (await self.upcoming.list(TENANT, UpcomingQuery(days=days, **query))).items

    async def live(self, days: int) -> tuple[Counter[str], Counter[Channel]]:
        """Let the days pass hour by hour with the workers at work; count what was handed over, and the messages."""
        for _ in range(days * 24 * 2):
            self.harness.clock.advance(timedelta(minutes=30))
            while await due_worker(self.platform).step():
                pass
            await self.line.queue()
        rows = await self.store.rows(TENANT, AutomationScheduler)
        until = self.harness.clock.now()
        handed = Counter(row.scheduler_key for row in rows if row.dispatch_result and row.scheduled_at <= until)
        messages = Counter(one.channel for one in await self.store.rows(TENANT, OutgoingMessage))
        messages[Channel.INBOX] = len(await self.store.rows(TENANT, UserMessage))
        return handed, messages


def handed_over(found: Rehearsal) -> list[tuple[str, str]]:
    return [
        (line.source, f"{line.due_at:%m-%d %H:%M}") for line in found.items if line.outcome is Rehearsed.HANDED_OVER
    ]


async def test_what_is_rehearsed_is_what_then_happens_and_nothing_is_touched(tmp_path: Path) -> None:
    pier = await Pier().open(tmp_path, BY_DATE, DAILY)
    await pier.put("ketch", on=date(2026, 3, 29))
    await pier.put("sloop", on=date(2026, 4, 1), leaks=3)
    before = await pier.everything()
    found = await rehearse(pier.platform, TENANT, days=7)
    assert await pier.everything() == before
    assert pier.harness.provider.calls == []
    handed, messages = await pier.live(7)
    assert Counter(line.key for line in found.items) == handed
    assert found.totals.messages == dict(messages)
    assert found.totals.occurrences == {Rehearsed.HANDED_OVER: len(found.items)}


async def test_the_clocks_of_the_days_to_come_are_part_of_it(tmp_path: Path) -> None:
    pier = await Pier().open(tmp_path, BY_DATE)
    await pier.put("ketch", on=date(2026, 3, 29))
    found = await rehearse(pier.platform, TENANT, days=7)
    # 02:30 does not exist on the 29th: it is told at 03:30 summer time.
    assert handed_over(found) == [("ketch", "03-28 01:30"), ("ketch", "03-29 01:30")]
    assert [(line.local_date, line.local_time) for line in found.items] == [
        (date(2026, 3, 28), "02:30"),
        (date(2026, 3, 29), "02:30"),
    ]
    assert found.totals.not_sent == {SkipRule.NO_ADDRESS: 2}  # Kim has no phone


async def test_what_would_be_held_is_told_with_its_reason(tmp_path: Path) -> None:
    pier = await Pier().open(tmp_path, BY_DATE, text="{{ boat.colour }}")
    await pier.put("ketch", on=date(2026, 3, 29))
    found = await rehearse(pier.platform, TENANT, days=7)
    assert found.totals.occurrences == {Rehearsed.HELD: 2}
    assert "boat.colour" in (found.items[0].failure or "")


async def test_a_daily_threshold_is_rehearsed_on_every_day(tmp_path: Path) -> None:
    pier = await Pier().open(tmp_path, DAILY)
    await pier.put("sloop", leaks=3)
    found = await rehearse(pier.platform, TENANT, days=3)
    assert [day for _, day in handed_over(found)] == ["03-26 12:00", "03-27 01:30", "03-28 01:30", "03-29 01:30"]
    assert found.totals.messages == {Channel.INBOX: 8}


async def test_a_rehearsal_says_where_it_had_to_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pier = await Pier().open(tmp_path, DAILY)
    await pier.put("sloop", leaks=3)
    with monkeypatch.context() as patched:
        patched.setattr(rehearsal, "OCCURRENCES_MAX", 1)
        found = await rehearse(pier.platform, TENANT, days=30)
    assert (found.stopped, len(found.items)) == ("more than 1 occurrences fell due", 2)
    assert found.until_at == datetime(2026, 3, 27, 1, 30, tzinfo=UTC)
    monkeypatch.setattr(rehearsal, "ROWS_MAX", 3)
    with pytest.raises(InvalidInput, match="more than 3 rows") as refused:
        await rehearse(pier.platform, TENANT, days=30)
    assert refused.value.field == "days"


async def test_what_waits_is_listed_with_when_for_whom_and_why(tmp_path: Path) -> None:
    pier = await Pier().open(tmp_path, BY_DATE, DAILY)
    await pier.put("ketch", on=date(2026, 3, 29))
    await pier.put("sloop", leaks=3)
    now, first, *_, tomorrow = await pier.ahead()
    assert (now.is_due, now.why, now.inbox_only) == (
        True,
        "leaks meets the threshold 2, every day while it is met",
        True,
    )
    assert (first.source, first.why) == ("sloop", "leaks meets the threshold 2, every day while it is met")
    assert tomorrow.source == "ketch"
    day_before = next(line for line in await pier.ahead() if line.source == "ketch")
    assert (day_before.why, day_before.local_time, day_before.zone) == (
        "1 day before inspected_on 2026-03-29",
        "02:30",
        "Europe/Vienna",
    )
    assert day_before.for_whom is not None
    assert (day_before.for_whom.named_by, day_before.for_whom.count) == (Named.SETTING, 2)
    assert day_before.setting_name == "Boats are looked over"


async def test_what_follows_within_the_days_stands_beside_what_waits(tmp_path: Path) -> None:
    pier = await Pier().open(tmp_path, DAILY)
    await pier.put("sloop", leaks=3)
    *_, tomorrow = await pier.ahead(days=5)
    assert tomorrow.due_at == datetime(2026, 3, 27, 1, 30, tzinfo=UTC)
    assert tomorrow.follows_count == 4
    assert tomorrow.follows[1] == datetime(2026, 3, 29, 1, 30, tzinfo=UTC)  # 02:30 does not exist on that day


async def test_pages_of_what_comes_are_all_of_it_once(tmp_path: Path) -> None:
    pier = await Pier().open(tmp_path, BY_DATE, DAILY)
    for n in range(4):
        await pier.put(f"b{n}", on=date(2026, 3, 29), leaks=n)
    whole = [line.key for line in await pier.ahead()]
    paged: list[str] = []
    cursor: str | None = None
    while True:
        page = await pier.upcoming.list(TENANT, UpcomingQuery(days=30, limit=3, cursor=cursor))
        paged += [line.key for line in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert paged == whole
    assert len(whole) == len(set(whole)) == 4 * 2 + 2 * 2
    with pytest.raises(InvalidInput, match="no cursor of this list"):
        await pier.upcoming.list(TENANT, UpcomingQuery(days=30, cursor="bm8"))


async def test_nobody_is_named_where_the_type_is_off(tmp_path: Path) -> None:
    pier = await Pier().open(tmp_path, BY_DATE)
    await pier.put("ketch", on=date(2026, 3, 29))
    await pier.store.set_type_enabled(TENANT, "boat-due", enabled=False, actor="sam")
    line, _ = await pier.ahead()
    assert line.off == "the notification type 'boat-due' is switched off for this tenant"
    assert await pier.store.list_occurrences(TENANT, standing=Standing.ENDED, limit=5) == []


async def test_the_runs_of_a_report_are_rehearsed_with_the_rest(tmp_path: Path) -> None:
    pier = await Pier().open(tmp_path, text="Report {{ report.lines }}")
    weekly = ReportSubscription(
        guid=UUID(int=7),
        name="Weekly",
        report="delivery-summary",
        rule="FREQ=DAILY;BYHOUR=7;BYMINUTE=0",
        tz_id="Europe/Vienna",
        notification_type="boat-due",
        recipients=(Addressee(group=STAFF),),
    )
    await pier.store.put_subscription(TENANT, weekly, actor="sam")
    timing = weekly.recurrence.after(EVE)
    assert timing is not None
    row = run_row(weekly, timing, recurring=True, correlation_id="c")
    await pier.store.ensure_automation_schedulers(TENANT, [row])
    found = await rehearse(pier.platform, TENANT, days=4)
    assert [(line.outcome, line.failure, f"{line.due_at:%m-%d %H:%M}") for line in found.items] == [
        (Rehearsed.HANDED_OVER, None, "03-27 06:00"),
        (Rehearsed.HANDED_OVER, None, "03-28 06:00"),
        (Rehearsed.HANDED_OVER, None, "03-29 05:00"),
        (Rehearsed.HANDED_OVER, None, "03-30 05:00"),
    ]
