"""Again on purpose: a completed occurrence runs once more under a number, which is compared and set, and audited."""

from typing import Any
from uuid import UUID

import msgspec
import pytest

from clarion.domain.automation import AutomationScheduler, AutomationStatus
from clarion.domain.ensured import Outcome
from clarion.domain.entity_event import HistoryKind
from clarion.testing.clock import ManualClock
from clarion.testing.factories import automation_scheduler
from clarion.testing.store import SqliteInMemory

TENANT = "acme"


class Shop:
    """A store with one occurrence, in a state that a test says."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.store = SqliteInMemory(self.clock)

    async def stand(self, key: str, status: AutomationStatus) -> None:
        """Put an occurrence into a state."""
        (row,) = [one for one in await self.rows() if one.scheduler_key == key]
        await self.store.overwrite(TENANT, msgspec.structs.replace(row, status=status))

    async def rows(self) -> list[AutomationScheduler]:
        return await self.store.rows(TENANT, AutomationScheduler)

    async def rerun(self, key: str, n: int) -> Any:
        return await self.store.rerun_occurrence(TENANT, key, n=n, actor="sam", reason="they lost it")


@pytest.fixture
async def shop() -> Shop:
    shop = Shop()
    await shop.store.ensure_automation_schedulers(TENANT, [automation_scheduler()])
    return shop


KEY = automation_scheduler().scheduler_key


async def test_a_completed_occurrence_is_due_again_now_as_an_occurrence_of_its_own(shop: Shop) -> None:
    await shop.stand(KEY, AutomationStatus.COMPLETED)
    answer = await shop.rerun(KEY, 1)
    first, again = sorted(await shop.rows(), key=lambda row: row.id or 0)
    assert (answer.outcome, answer.record) == (Outcome.CREATED, again)
    assert (again.scheduler_key, again.status) == (f"{KEY}:retry:1", AutomationStatus.PENDING)
    assert (again.scheduled_at, again.local_time) == (shop.clock.now(), None)
    assert (again.source, again.target_date, again.offset_days) == (first.source, first.target_date, first.offset_days)
    assert first.status is AutomationStatus.COMPLETED


async def test_a_double_click_is_one_re_run_told_once_in_the_audit_log_and_in_its_entitys_story(shop: Shop) -> None:
    await shop.stand(KEY, AutomationStatus.COMPLETED)
    one, two = await shop.rerun(KEY, 1), await shop.rerun(KEY, 1)
    assert (one.outcome, two.outcome, two.record) == (Outcome.CREATED, Outcome.FOUND, one.record)
    (line,) = await shop.store.list_audit(TENANT, limit=10)
    assert (line.actor, line.act, line.subject, line.reason) == ("sam", "rerun", f"occurrence {KEY}", "they lost it")
    assert msgspec.json.decode(line.details) == {"n": 1}
    (told,) = await shop.store.list_history(TENANT, UUID(one.record.primary_entity), limit=10)
    assert (told.kind, told.subject, told.text) == (
        HistoryKind.PLANNED,
        one.record.scheduler_key,
        "rerun by sam: they lost it",
    )


@pytest.mark.parametrize("status", [AutomationStatus.PENDING, AutomationStatus.FAILED, AutomationStatus.DEACTIVATED])
async def test_what_is_not_completed_is_not_run_again(shop: Shop, status: AutomationStatus) -> None:
    await shop.stand(KEY, status)
    assert await shop.rerun(KEY, 1) is None
    assert len(await shop.rows()) == 1
    assert await shop.store.list_audit(TENANT, limit=10) == []


async def test_the_next_number_waits_for_the_one_before_it_and_none_is_left_out(shop: Shop) -> None:
    await shop.stand(KEY, AutomationStatus.COMPLETED)
    assert await shop.rerun(KEY, 2) is None
    await shop.rerun(KEY, 1)
    assert await shop.rerun(KEY, 2) is None
    await shop.stand(f"{KEY}:retry:1", AutomationStatus.COMPLETED)
    assert (await shop.rerun(KEY, 2)).outcome is Outcome.CREATED
    assert len(await shop.rows()) == 3


async def test_what_nobody_planned_is_not_run_again(shop: Shop) -> None:
    other = automation_scheduler(2).scheduler_key
    assert await shop.rerun(other, 1) is None
