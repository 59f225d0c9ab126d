"""What plans, over a store in memory: sources put in, settings stored, events handled, all stepped by hand."""

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any
from uuid import UUID

from clarion.domain.automation import AutomationScheduler, AutomationStatus
from clarion.domain.entity_event import EntityEvent, EntityHistory, EventStatus
from clarion.domain.reminder import DateRule, ReminderSetting
from clarion.domain.source import SourceContent
from clarion.producers.handling import Handling
from clarion.producers.opening import open_automation
from clarion.producers.plugin import Plugin
from clarion.producers.post_processing import ForeignProcessor
from clarion.producers.reconciliation import Reconciliation
from clarion.producers.records import Records
from clarion.producers.replanning import Replanning
from clarion.producers.sources import Sources
from clarion.sealing.sources import sealed_source
from clarion.testing.clock import ManualClock
from clarion.testing.store import SqliteInMemory
from clarion.workers.janitor import Janitor
from tests.unit.pipeline_line import TENANT, Line, Scripted

DUE_ON = date(2026, 5, 1)
INVOICES = ReminderSetting(
    guid=UUID(int=1),
    name="Invoices are due",
    source_type="invoice",
    rule=DateRule(field="due_on", offsets=(7, 0)),
    notification_type="welcome",
)


class House:
    """One process that plans."""

    def __init__(
        self,
        *plugins: Plugin,
        processors: Sequence[ForeignProcessor] = (),
        store: SqliteInMemory | None = None,
        clock: ManualClock | None = None,
    ) -> None:
        self.clock = clock or ManualClock()
        self.store = store or SqliteInMemory(self.clock)
        self.line = Line(self.store, self.clock, Scripted())
        self.sources = Sources(Records(self.store, self.line.keyring), plugins)
        self.automation = open_automation(
            self.store, sources=self.sources, sends=self.line.sends, processors=processors
        )
        self.planning = self.automation.planning
        self.handling = Handling(
            store=self.store,
            automation=self.store,
            keyring=self.line.keyring,
            processors=self.automation.processors,
        )
        self.replanning = Replanning(store=self.store, planning=self.planning, sources=self.sources)
        self.reconciliation = Reconciliation(
            store=self.store, planning=self.planning, sources=self.sources, clock=self.clock
        )

    async def open(self) -> "House":
        """Make the tenant and its notifications."""
        await self.line.seed()
        return self

    async def close(self) -> None:
        """End what plugins run in."""
        await self.automation.processors.close()
        await self.sources.close()

    async def put(
        self,
        *sources: str,
        due_on: date | None = DUE_ON,
        metrics: dict[str, float] | None = None,
        unit: UUID | None = None,
        active: bool = True,
    ) -> None:
        """Put invoices in, as an application does."""
        keys = await self.line.keyring.get(TENANT)
        content = SourceContent(dates={} if due_on is None else {"due_on": due_on}, metrics=metrics or {})
        records = [
            sealed_source(
                keys,
                source_type="invoice",
                source=source,
                content=content,
                nonce=self.line.keyring.nonce(),
                business_unit=unit,
                active=active,
            )
            for source in sources
        ]
        await self.store.put_sources(TENANT, records, actor="app", correlation_id="request")

    async def remind(self, setting: ReminderSetting = INVOICES) -> None:
        """Store a reminder setting."""
        await self.store.put_reminder(TENANT, setting, actor="admin")

    async def handle(self) -> None:
        """Handle events until none waits."""
        while await self.handling.step():
            pass

    async def drain(self) -> None:
        """Do everything that plans until nothing is left to do."""
        while sum([await step() for step in (self.handling.step, self.replanning.step, self.reconciliation.step)]):
            pass

    async def pass_time(self, by: timedelta) -> None:
        """Let time pass, and bring back what was left behind."""
        self.clock.advance(by)
        await Janitor(self.store).step()

    async def rows(self) -> list[AutomationScheduler]:
        """Return all occurrences by their keys."""
        found: Any = await self.store.rows(TENANT, AutomationScheduler)
        return sorted(found, key=lambda row: row.scheduler_key)

    async def pending(self) -> list[str]:
        """Say what waits: source, date and offset."""
        return [
            f"{row.source} {row.target_date} {row.offset_days}"
            for row in await self.rows()
            if row.status is AutomationStatus.PENDING
        ]

    async def events(self, status: EventStatus | None = None) -> list[EntityEvent]:
        """Return the events in a state."""
        return list(await self.store.list_events(TENANT, status=status, limit=100))

    async def history(self, entity: UUID) -> list[EntityHistory]:
        """Return the lines of an entity, the oldest first."""
        return list(await self.store.list_history(TENANT, entity, limit=100))[::-1]
