"""The second stage waits for no slow tenant: what it is at work on goes on beside its next steps."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from clarion.adapters.renderers.renderer import LiquidRenderer
from clarion.client.wire import SendAnswer
from clarion.domain.claim import StageResult
from clarion.domain.notification import NotificationScheduler, NotificationStatus, Stage
from clarion.errors import StoreUnreachable
from clarion.pipeline.generate import Generate, underway
from clarion.pipeline.generate.stage import ALONE_FOR
from clarion.pipeline.schedule import Schedule
from clarion.ports.renderer import Bundle, NotMerged
from clarion.testing.clock import ManualClock
from clarion.testing.store import SqliteInMemory
from tests.unit.pipeline_line import TENANT, Line, Scripted

DONE, PROCESSING, READY = NotificationStatus.DONE, NotificationStatus.PROCESSING, NotificationStatus.READY


class Held(LiquidRenderer):
    """A renderer that looks at the data of some tenants' jobs only when it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.slow: frozenset[str] = frozenset({TENANT})
        self.go = asyncio.Event()
        self.asked: list[tuple[str, int]] = []

    async def find_missing(
        self, bundle: Bundle, data: Sequence[Mapping[str, object]], *, tenant_id: str, **options: Any
    ) -> list[tuple[str, ...] | NotMerged]:
        self.asked.append((tenant_id, len(data)))
        if tenant_id in self.slow:
            await self.go.wait()
        return await super().find_missing(bundle, data, tenant_id=tenant_id, **options)


class Model:
    """A stage, and what was accepted for it."""

    def __init__(self, store: SqliteInMemory, clock: ManualClock) -> None:
        self.renderer = Held()
        self.lines = {
            tenant_id: Line(store, clock, Scripted(), renderer=self.renderer, tenant_id=tenant_id)
            for tenant_id in (TENANT, "college", "museum")
        }
        self.store, self.clock, self.schedule = store, clock, Schedule(queue=store, facts=store)
        self.stage: Generate = self.lines[TENANT].generate()

    async def send(self, tenant_id: str = TENANT) -> SendAnswer:
        """Accept a job and bring it to the stage."""
        sent = await self.lines[tenant_id].send()
        while await self.schedule.step():
            pass
        return sent

    async def status(self, sent: SendAnswer, tenant_id: str = TENANT) -> NotificationStatus:
        timeline = await self.lines[tenant_id].timeline(sent)
        assert timeline.scheduler is not None
        return timeline.scheduler.status

    async def drain(self) -> None:
        while await self.stage.step():
            pass


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is not done at once is slow."""
    monkeypatch.setattr(underway, "PATIENCE", 0.001)


@pytest.fixture
async def model() -> Model:
    clock = ManualClock()
    found = Model(SqliteInMemory(clock), clock)
    for line in found.lines.values():
        await line.seed()
    return found


async def test_jobs_of_other_tenants_are_made_while_one_is_slow(model: Model) -> None:
    """In the same step, in the next and in the one after; the slow tenant's next job waits for those before it."""
    first = await model.send()
    assert await model.stage.step()
    second = await model.send()
    for tenant_id in ("college", "museum", "college"):
        sent = await model.send(tenant_id)
        await model.stage.step()
        assert await model.status(sent, tenant_id) is DONE
    assert [await model.status(first), await model.status(second)] == [PROCESSING, READY]
    assert await model.stage.step(), "what is at work is work: whoever drains the stage goes on"
    model.renderer.go.set()
    await model.drain()
    assert [await model.status(first), await model.status(second)] == [DONE, DONE]
    assert model.renderer.asked.count((TENANT, 1)) == 2, "each was looked at once"


async def test_no_more_is_taken_than_is_held_at_once(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clarion.pipeline.generate.stage.JOBS_MAX", 2)
    for _ in range(3):
        await model.send()
    await model.stage.step()
    assert model.renderer.asked == [(TENANT, 2)]
    sent = await model.send("college")
    await model.stage.step()
    assert await model.status(sent, "college") is READY
    model.renderer.go.set()
    await model.drain()
    assert await model.status(sent, "college") is DONE


async def test_a_stage_that_stops_takes_nothing_more_and_ends_what_it_is_at(model: Model) -> None:
    first = await model.send()
    await model.stage.step()
    model.stage.stop()
    second = await model.send("college")
    assert await model.stage.step(), "it is not idle"
    model.renderer.go.set()
    await model.drain()
    assert model.stage.idle
    assert (await model.status(first), await model.status(second, "college")) == (DONE, READY)


async def test_jobs_over_which_a_worker_was_lost_are_never_made_beside_each_other(model: Model) -> None:
    """F-13: where the first is slow, the second waits, of whichever tenant it is; a job of no such past does not."""
    suspects = [(await model.send(), TENANT), (await model.send("college"), "college")]
    for _, tenant_id in suspects:
        (row,) = await model.store.rows(tenant_id, NotificationScheduler)
        await model.store.overwrite(tenant_id, msgspec.structs.replace(row, rescue_count=1))
    await model.stage.step()
    assert model.renderer.asked == [(TENANT, 1)]
    model.clock.advance(ALONE_FOR)
    other = await model.send("museum")
    await model.stage.step()
    assert await model.status(other, "museum") is DONE
    assert model.renderer.asked == [(TENANT, 1), ("museum", 1)]
    model.renderer.go.set()
    for _ in range(3):
        model.clock.advance(2 * ALONE_FOR)
        await model.drain()
    assert [await model.status(sent, tenant_id) for sent, tenant_id in suspects] == [DONE, DONE]


async def test_what_goes_wrong_with_one_tenant_is_told_after_the_others_are_made() -> None:
    """Its jobs come back when their lease runs out; those of the others would otherwise have to, too."""

    class Failing(SqliteInMemory):
        async def finish_stage(self, results: Sequence[StageResult]) -> set[int]:
            if len(results) == 1 and results[0].stage is Stage.GENERATE and results[0].to is DONE:
                raise StoreUnreachable("it is away", hint="wait")
            return await super().finish_stage(results)

    clock = ManualClock()
    model = Model(Failing(clock), clock)
    model.renderer.slow = frozenset()
    for line in model.lines.values():
        await line.seed()
    failing = await model.send("college")
    made = [await model.send(), await model.send()]
    with pytest.raises(StoreUnreachable):
        await model.stage.step()
    assert await model.status(failing, "college") is PROCESSING
    assert [await model.status(one) for one in made] == [DONE, DONE]
    await model.drain()
    assert model.stage.idle
