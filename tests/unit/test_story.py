"""Stories: one occurrence explained, an entity's lines, and what comes before a notification in its timeline."""

from datetime import date, timedelta
from pathlib import Path

import pytest

from clarion.bootstrap import due_worker
from clarion.client.wire import PageQuery
from clarion.domain.due import DueOutcome
from clarion.domain.planning import EndReason
from clarion.errors import InvalidInput
from clarion.operations import Operations
from tests.unit.pipeline_line import TENANT
from tests.unit.test_rehearsal import BY_DATE, Pier


class Told(Pier):
    """A pier whose stories are asked for."""

    async def stories(self) -> Operations:
        return Operations(self.platform, wake=lambda _: None)

    async def work(self) -> None:
        while await due_worker(self.platform).step():
            pass
        await self.line.queue()


async def test_an_occurrence_is_explained_from_its_plan_to_its_notification(tmp_path: Path) -> None:
    pier = await Told().open(tmp_path, BY_DATE)
    await pier.put("ketch", on=date(2026, 3, 29))
    operations = await pier.stories()
    key = (await pier.ahead())[0].key
    waits = await operations.stories.of_occurrence(TENANT, key)
    assert waits is not None
    assert (waits.why, waits.setting_name) == ("1 day before inspected_on 2026-03-29", "Boats are looked over")
    assert waits.for_whom is not None
    assert waits.for_whom.count == 2
    assert [line.kind for line in waits.lines] == ["planned"]
    pier.harness.clock.advance(timedelta(days=2))
    await pier.work()
    over = await operations.stories.of_occurrence(TENANT, key)
    assert over is not None
    assert (over.occurrence.outcome, over.for_whom) == (DueOutcome.HANDED_OVER, None)
    assert [line.kind for line in over.lines] == ["planned", "handed_over"]
    assert over.occurrence.job_id is not None
    timeline = await operations.notifications.find_timeline(TENANT, over.occurrence.job_id, whole=True)
    assert timeline is not None
    assert [line.what for line in timeline.lines][:4] == ["planned", "due", "handed over", "accepted"]
    assert timeline.lines[1].detail == "1 day before inspected_on 2026-03-29"


async def test_why_nobody_was_told_is_said_with_what_to_do(tmp_path: Path) -> None:
    pier = await Told().open(tmp_path, BY_DATE)
    await pier.put("ketch", on=date(2026, 3, 29))
    await pier.store.set_type_enabled(TENANT, "boat-due", enabled=False, actor="sam")
    key = (await pier.ahead())[0].key
    pier.harness.clock.advance(timedelta(days=2))
    await pier.work()
    found = await (await pier.stories()).stories.of_occurrence(TENANT, key)
    assert found is not None
    assert found.occurrence.reason is EndReason.NOTIFICATION_TYPE_OFF
    assert found.means == "its notification type was off when it was due"
    assert found.remedy is not None


async def test_the_story_of_an_entity_is_told_in_pages_the_newest_first(tmp_path: Path) -> None:
    pier = await Told().open(tmp_path, BY_DATE)
    await pier.put("ketch", on=date(2026, 3, 29))
    stories = (await pier.stories()).stories
    shown = await stories.of_occurrence(TENANT, (await pier.ahead())[0].key)
    assert shown is not None
    entity = shown.occurrence.entity
    whole = await stories.of_entity(TENANT, entity, PageQuery(limit=10))
    first = await stories.of_entity(TENANT, entity, PageQuery(limit=1))
    second = await stories.of_entity(TENANT, entity, PageQuery(limit=1, cursor=first.next_cursor))
    assert (*first.items, *second.items) == whole.items
    assert len(whole.items) == 2
    with pytest.raises(InvalidInput, match="no cursor of this list"):
        await stories.of_entity(TENANT, entity, PageQuery(limit=1, cursor="bm8"))


async def test_what_is_no_occurrence_has_no_story(tmp_path: Path) -> None:
    pier = await Told().open(tmp_path, BY_DATE)
    stories = (await pier.stories()).stories
    assert await stories.of_occurrence(TENANT, "reminder:nothing") is None
