"""A provider for tests that is whatever a test makes of it, and the facts that it tells."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from clarion.domain.entity_event import EntityEvent
from clarion.domain.reminder import DateRule, ReminderSetting
from clarion.domain.source import SourceContent, SourceFacts
from clarion.ports.reminding import ScanBounds, ScanPage
from clarion.ports.source import SourceScan
from clarion.producers.apart import Patience

ENTITY = UUID("11111111-1111-5111-8111-111111111111")

HURRIED = Patience(answer_max=timedelta(milliseconds=60), give_up_max=timedelta(milliseconds=60), stuck_max=2)
"""For plugins that are to be given up."""

SETTING = ReminderSetting(
    guid=UUID("22222222-2222-5222-8222-222222222222"),
    name="Boats are looked over",
    source_type="boat",
    rule=DateRule(field="inspected_on"),
    notification_type="boat-due",
)


def boat(source: str = "b1", **fields: str) -> SourceFacts:
    """Tell of a boat."""
    return SourceFacts(source_type="boat", source=source, entity=ENTITY, content=SourceContent(fields=fields))


def event(
    event_type: str = "boat.moored", *, source_type: str | None = "boat", source: str | None = "b1"
) -> EntityEvent:
    """Tell that something happened to a boat."""
    return EntityEvent(
        partition_key="p",
        row_key="r",
        event_guid=UUID("33333333-3333-5333-8333-333333333333"),
        event_type=event_type,
        entity_type="boat",
        entity_guid=ENTITY,
        occurred_at=datetime(2026, 5, 1, 8, tzinfo=UTC),
        source_type=source_type,
        source=source,
        data_hash="h",
        correlation_id="c",
    )


class Boats:
    """Tells of every boat that it is asked for, unless it is given something else to do first."""

    source_type = "boat"
    bounds = ScanBounds()

    def __init__(self, load: Callable[[], Awaitable[object]] | None = None, *, page: object = None) -> None:
        self._load = load
        self._page = page

    async def load(self, tenant_id: str, sources: Collection[str]) -> Mapping[str, SourceFacts]:
        if self._load is not None:
            return await self._load()  # type: ignore[return-value]  # rubbish on purpose
        await asyncio.sleep(0)
        return {source: boat(source) for source in sources}

    async def scan(self, tenant_id: str, scan: SourceScan) -> ScanPage:
        return self._page  # type: ignore[return-value]  # rubbish on purpose


class Everything(Boats):
    """Has all of the contracts, and answers what it was given."""

    event_types = frozenset({"boat.moored"})

    def __init__(self, answer: object) -> None:
        super().__init__()
        self._answer: Any = answer

    async def touched(self, *_: object) -> Any:
        return self._answer

    async def immediate(self, *_: object) -> Any:
        return self._answer

    async def recipients(self, *_: object) -> Any:
        return self._answer

    async def delivery(self, *_: object) -> Any:
        return self._answer
