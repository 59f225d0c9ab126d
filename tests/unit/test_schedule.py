"""Whether a job goes on: what its tenant says of the type and, for a send of a business unit, what that one says."""

from uuid import UUID

import msgspec
import pytest

from clarion.client.wire import SendAnswer
from clarion.domain.notification import NotificationScheduler, NotificationStatus, Stage
from clarion.domain.setting import SettingChange
from clarion.domain.skip import SkipRule
from clarion.domain.timeline import timeline_lines
from clarion.pipeline.schedule import Schedule
from clarion.testing.clock import ManualClock
from clarion.testing.store import SqliteInMemory
from tests.unit.pipeline_line import TENANT, Line, Scripted

NORTH, SOUTH = UUID(int=1), UUID(int=2)
OFF = (SkipRule.TYPE_OFF, "for this tenant")
BY_UNIT = (SkipRule.SETTING, "for this business unit")


@pytest.fixture
async def line() -> Line:
    clock = ManualClock()
    line = Line(SqliteInMemory(clock), clock, Scripted())
    await line.seed()
    return line


async def said(line: Line, *, enabled: bool | None, unit: UUID | None = None) -> None:
    await line.store.put_setting(TENANT, "welcome", unit, SettingChange(enabled=enabled), actor="test")


async def scheduler(line: Line, sent: SendAnswer) -> NotificationScheduler:
    row = (await line.timeline(sent)).scheduler
    assert row is not None
    return row


@pytest.mark.parametrize(
    "of_tenant, of_unit, unit, skipped",
    [
        (None, None, NORTH, None),
        (False, None, None, OFF),
        (False, None, NORTH, OFF),
        (None, False, NORTH, BY_UNIT),
        (False, True, NORTH, None),
        # What a unit says is nothing to the sends of others, or of none.
        (None, False, SOUTH, None),
        (None, False, None, None),
        (False, True, SOUTH, OFF),
    ],
)
async def test_a_job_goes_on_unless_the_setting_that_counts_says_no(
    line: Line, of_tenant: bool | None, of_unit: bool | None, unit: UUID | None, skipped: tuple[SkipRule, str] | None
) -> None:
    await said(line, enabled=of_tenant)
    await said(line, enabled=of_unit, unit=NORTH)
    sent = await line.send(business_unit=unit)
    assert await Schedule(queue=line.store, facts=line.store).step() == 1
    row = await scheduler(line, sent)
    if skipped is None:
        assert (row.status, row.stage, row.reason, row.rule) == (NotificationStatus.READY, Stage.GENERATE, None, None)
        return
    rule, words = skipped
    reason = f"the notification type 'welcome' is switched off {words}"
    assert (row.status, row.reason, row.rule) == (NotificationStatus.SKIPPED, reason, rule)
    (line_of_it,) = [one for one in timeline_lines(await line.timeline(sent)) if one.what == "skipped"]
    assert (line_of_it.detail, line_of_it.rule) == (reason, rule)


async def test_jobs_of_one_batch_are_each_judged_by_their_own_unit(line: Line) -> None:
    await said(line, enabled=False, unit=NORTH)
    units = (NORTH, None, SOUTH, NORTH)
    sent = [await line.send(business_unit=unit) for unit in units]
    assert await Schedule(queue=line.store, facts=line.store).step() == len(units)
    skipped = [(await scheduler(line, one)).status is NotificationStatus.SKIPPED for one in sent]
    assert skipped == [True, False, False, True]


async def test_what_an_older_program_skipped_and_what_was_canceled_have_a_rule_too(line: Line) -> None:
    sent = await line.send()
    row = await scheduler(line, sent)
    assert row.skipped_by is None
    older = msgspec.structs.replace(row, status=NotificationStatus.SKIPPED, reason="switched off", rule=None)
    assert older.skipped_by is SkipRule.OTHER
    assert await line.store.cancel_job(TENANT, sent.job_id, actor="test")
    assert (await scheduler(line, sent)).skipped_by is SkipRule.CANCELED


async def test_the_business_unit_is_told_with_the_job(line: Line) -> None:
    sent = await line.send(business_unit=SOUTH)
    assert (await line.timeline(sent)).job.business_unit == SOUTH
