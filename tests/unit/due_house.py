"""Reminders that have fallen due, over a whole line: settings, boats and whom they tell are as a test says."""

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Self
from uuid import UUID

import msgspec

from clarion.catalog.publish import Publisher
from clarion.domain.audience import Addressee
from clarion.domain.automation import AutomationStatus
from clarion.domain.fingerprint import Fingerprint
from clarion.domain.identity import Identity
from clarion.domain.inbox import UserMessage
from clarion.domain.notification import NotificationJob
from clarion.domain.occurrence import DateTrigger, Reminder, ThresholdTrigger, Timing, occurrence_row
from clarion.domain.outgoing import OutgoingMessage
from clarion.domain.recipient import Target
from clarion.domain.reminder import DateRule, ReminderSetting, SettingRecord
from clarion.domain.source import SourceContent, SourceFacts
from clarion.ports.automation import DueClaim, DueEnd
from clarion.ports.reminding import Delivery
from clarion.producers.hand_over import Reminders
from clarion.producers.plugin import Plugin
from clarion.producers.records import Records
from clarion.producers.sources import Sources
from clarion.producers.tracing import Looks
from clarion.testing.clock import ManualClock
from clarion.testing.store import SqliteInMemory
from tests.unit.pipeline_line import STAFF, TENANT, Line, Scripted
from tests.unit.plugin_house import ENTITY, HURRIED, SETTING, Boats

DUE_ON = date(2026, 1, 15)
"""The day on which the clock of tests stands."""

BY_DATE = msgspec.structs.replace(
    SETTING, rule=DateRule(field="inspected_on"), recipients=(Addressee(group=STAFF),), notification_type="boat-due"
)
SAM, KIM = Target(identity=Identity.user("1")), Target(identity=Identity.user("2"))


def boat_due(source: str = "b1", *, on: date = DUE_ON, **changes: Any) -> SourceFacts:
    """Tell of a boat that is to be looked over."""
    content = SourceContent(fields={"name": f"Boat {source}"}, dates={"inspected_on": on}, metrics={"leaks": 3})
    facts = SourceFacts(source_type="boat", source=source, entity=ENTITY, content=content)
    return msgspec.structs.replace(facts, **changes)


class Harbour(Boats):
    """Knows its boats, whom they are for and how that goes out; `breaks` are questions at which it raises."""

    long_runner = True

    def __init__(self, *boats: SourceFacts) -> None:
        super().__init__()
        self.boats = {one.source: one for one in boats or [boat_due()]}
        self.to: Sequence[Target] | None = None
        self.how = Delivery()
        self.breaks: set[str] = set()

    async def load(self, tenant_id: str, sources: Collection[str]) -> Mapping[str, SourceFacts]:
        self._break("load")
        return {one: self.boats[one] for one in sources if one in self.boats}

    async def recipients(self, tenant_id: str, facts: SourceFacts, setting: ReminderSetting) -> Sequence[Target] | None:
        self._break(facts.source)
        return self.to

    async def delivery(self, tenant_id: str, facts: SourceFacts, setting: ReminderSetting) -> Delivery:
        return self.how

    def _break(self, at: str) -> None:
        if at in self.breaks:
            raise RuntimeError("the pier is gone")


class House:
    """One worker's way of handing over, over a store in memory."""

    def __init__(self, *boats: SourceFacts, settings: Sequence[ReminderSetting] = (BY_DATE,)) -> None:
        clock = ManualClock()
        self.line = Line(SqliteInMemory(clock), clock, Scripted())
        self.harbour = Harbour(*boats)
        self.settings = list(settings)
        self.sources = Sources(Records(None, None), [Plugin("boats", self.harbour, patience=HURRIED)])  # type: ignore[arg-type]  # all are the plugin's
        self.reminders = Reminders(
            settings=self,  # type: ignore[arg-type]  # of a store this one method
            facts=self.line.store,
            jobs=self.line.store,
            sources=self.sources,
            sends=self.line.sends,
            dispatcher=self.line.dispatcher,
        )

    async def find_reminders(self, tenant_id: str, source_type: str) -> Sequence[SettingRecord]:
        at = self.line.clock.now()
        return [SettingRecord(setting=one, changed_by="test", changed_at=at) for one in self.settings]

    async def open(self, folder: Path, *, text: str = "{{ boat.name }}, {{ reminder.days }} days") -> Self:
        """Make the tenant, and publish the type of the reminders."""
        await self.line.seed(definitions=definition(folder, text=text))
        return self

    async def publish(self, folder: Path, *, text: str) -> None:
        """Publish a version of the type `boat-due`."""
        publisher = Publisher(catalog=self.line.store, renderer=self.line.renderer)
        await publisher.publish(TENANT, folder=definition(folder, text=text), actor="test")

    def claim(
        self,
        source: str = "b1",
        trigger: DateTrigger | ThresholdTrigger | None = None,
        *,
        unit: UUID | None = None,
        **changes: Any,
    ) -> DueClaim:
        """Claim an occurrence that was planned as the setting and the boat are now."""
        trigger = trigger or DateTrigger(target_date=DUE_ON, offset_days=0)
        what = Reminder(
            setting=str(self.settings[0].guid),
            source_type="boat",
            source=source,
            trigger_key="inspected_on" if isinstance(trigger, DateTrigger) else trigger.metric,
            trigger=trigger,
            primary_entity=ENTITY,
            business_unit=unit,
            notification_type=self.settings[0].notification_type,
        )
        row = occurrence_row(what, timing=Timing(scheduled_at=self.line.clock.now()), correlation_id="c")
        stored = {
            "status": AutomationStatus.PROCESSING,
            "version": 2,
            "input_hash": Fingerprint((row.input_hash.text,)),
        }
        return DueClaim(tenant_id=TENANT, row=msgspec.structs.replace(row, **{**stored, **changes}))

    async def hand_over(self, *claims: DueClaim) -> list[DueEnd]:
        """Hand over, and give the ends in the order of the claims."""
        ends = {end.scheduler_key: end for end in await self.reminders.hand_over(TENANT, "boat", claims, Looks())}
        return [ends[claim.row.scheduler_key] for claim in claims]

    async def jobs(self) -> list[NotificationJob]:
        return list(await self.line.store.rows(TENANT, NotificationJob))

    async def received(self) -> list[str]:
        """Have the stages make the rows, and say who has a line in the inbox, and by which channels messages go."""
        await self.line.queue()
        lines = await self.line.store.rows(TENANT, UserMessage)
        messages = await self.line.store.rows(TENANT, OutgoingMessage)
        return sorted([one.partition_key for one in lines] + [one.channel for one in messages])


def definition(folder: Path, *, text: str) -> Path:
    """Write the definition of the type `boat-due`."""
    (folder / "boat-due").mkdir(parents=True)
    head = 'key = "boat-due"\ntitle = "Boat due"\ncategory = "boats"\nchannels = ["sms", "inbox"]\n'
    (folder / "boat-due" / "definition.toml").write_text(head)
    (folder / "boat-due" / "sms.liquid").write_text(text)
    (folder / "boat-due" / "inbox.liquid").write_text(text)
    return folder
