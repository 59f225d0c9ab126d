"""Sends that are stored together, over both engines."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from clarion.dispatch.request import Direct, JobRequest
from clarion.domain.ensured import Ensured, Outcome
from clarion.errors import InvalidInput
from tests.integration.dispatch_door import ENGINES, TENANT, Door, open_door
from tests.unit.dispatch_harness import direct


@pytest.fixture(params=ENGINES)
async def door(request: pytest.FixtureRequest) -> AsyncIterator[Door]:
    async with open_door(request) as opened:
        yield opened


async def test_of_sends_that_are_stored_together_each_is_answered_as_if_it_were_alone(door: Door) -> None:
    """New ones, a repeat, a conflict, and one that no column can hold, which withholds nothing but itself."""

    def named(key: str, **changes: Any) -> JobRequest:
        return direct(origin=Direct(operation="send", idempotency_key=key), **changes)

    first = await door.dispatcher.accept_notification_job(TENANT, named("old"))
    asked = [named(f"new-{number}") for number in range(20)]
    asked += [named("old"), named("old", data={"name": "Kim"}), named("bad", event_type="wel\0come"), named("new-0")]
    told = await asyncio.gather(
        *(door.dispatcher.accept_notification_job(TENANT, one) for one in asked), return_exceptions=True
    )
    *created, repeat, conflict, bad, twin = told
    assert [one.outcome for one in created if isinstance(one, Ensured)] == [Outcome.CREATED] * 20
    assert isinstance(bad, InvalidInput)
    assert isinstance(repeat, Ensured)
    assert isinstance(conflict, Ensured)
    assert isinstance(twin, Ensured)
    assert (repeat.outcome, repeat.record) == (Outcome.FOUND, first.record)
    assert (conflict.outcome, conflict.differing) == (Outcome.CONFLICT, ("payload_hash",))
    assert (twin.outcome, twin.record) == (
        Outcome.FOUND,
        created[0].record if isinstance(created[0], Ensured) else None,
    )
    for one in (first, *created):
        assert isinstance(one, Ensured)
        timeline = await door.store.find_job_timeline(TENANT, one.record.guid)
        assert timeline is not None
        assert (timeline.job, timeline.scheduler is not None) == (one.record, True)
