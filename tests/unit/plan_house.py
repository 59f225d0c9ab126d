"""A certificate, a class and settings about them, planned by hand: each plan goes by what the one before it left."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

import msgspec

from clarion.domain import plan as planner
from clarion.domain.automation import AutomationScheduler, AutomationStatus
from clarion.domain.key import FiringPolicy
from clarion.domain.planning import SourcePlan, SourceStanding, ThresholdState
from clarion.domain.reminder import DateRule, ReminderSetting, ThresholdRule
from clarion.domain.source import SourceContent, SourceFacts
from clarion.domain.wanted import Situation

NORTH, SOUTH = UUID(int=101), UUID(int=102)
ENTITY = UUID(int=7)
NOW = datetime(2026, 3, 2, 7, 0, tzinfo=UTC)  # a Monday
VIENNA = "Europe/Vienna"

CERTIFICATE = ReminderSetting(
    guid=UUID(int=1),
    name="Certificates expire",
    source_type="certificate",
    rule=DateRule(field="expires_on", offsets=(30, 0)),
    notification_type="certificate-expires",
)
FULL = ReminderSetting(
    guid=UUID(int=2),
    name="Nearly full",
    source_type="class",
    rule=ThresholdRule(metric="booked", value=90, policy=FiringPolicy.ONCE_PER_THRESHOLD),
    notification_type="class-nearly-full",
)


def certificate(expires_on: date | None = date(2026, 5, 1), **fields: Any) -> SourceFacts:
    """Tell of a certificate."""
    content = SourceContent(dates={} if expires_on is None else {"expires_on": expires_on})
    return msgspec.structs.replace(
        SourceFacts(source_type="certificate", source="c1", entity=ENTITY, business_unit=NORTH, content=content),
        **fields,
    )


def class_(booked: float | dict[str, float] | None, **fields: Any) -> SourceFacts:
    """Tell of a class."""
    content = SourceContent(metrics={} if booked is None else {"booked": booked})
    return msgspec.structs.replace(
        SourceFacts(source_type="class", source="yoga", entity=ENTITY, business_unit=NORTH, content=content), **fields
    )


def changed(setting: ReminderSetting, **fields: Any) -> ReminderSetting:
    """Change a setting, or its rule where it has a field of that name."""
    of_rule = {name: value for name, value in fields.items() if name in setting.rule.__struct_fields__}
    rest = {name: value for name, value in fields.items() if name not in of_rule}
    return msgspec.structs.replace(setting, rule=msgspec.structs.replace(setting.rule, **of_rule), **rest)


class Planned:
    """What is stored of one source, which plans change as a store changes it."""

    def __init__(self, *settings: ReminderSetting, source: tuple[str, str] = ("certificate", "c1")) -> None:
        self.settings: Sequence[ReminderSetting] = settings
        self.source_type, self.source = source
        self.rows: dict[str, AutomationScheduler] = {}
        self.states: dict[tuple[str, ...], ThresholdState] = {}

    def plan(self, facts: SourceFacts | None, *, now: datetime = NOW, tz_id: str = VIENNA) -> SourcePlan:
        """Plan, and leave what the plan says behind."""
        situation = Situation(
            source_type=self.source_type,
            source=self.source,
            facts=facts,
            settings=self.settings,
            tz_id=tz_id,
            now=now,
        )
        keys = planner.keys_of(situation, list(self.states.values()))
        standing = SourceStanding(
            source_type=self.source_type,
            source=self.source,
            open_rows=tuple(
                row
                for key, row in self.rows.items()
                if key in keys or row.status in (AutomationStatus.PENDING, AutomationStatus.PROCESSING)
            ),
            states=tuple(self.states.values()),
        )
        plan = planner.plan(situation, standing, cause="a test", correlation_id="c")
        for one in plan.deactivate:
            self.mark(one.scheduler_key, status=AutomationStatus.DEACTIVATED)
        for row in plan.ensure:
            version = self.rows[row.scheduler_key].version + 1 if row.scheduler_key in self.rows else 1
            self.rows[row.scheduler_key] = msgspec.structs.replace(row, version=version)
        self.states |= {state.key: state for state in plan.states}
        return plan

    def mark(self, key: str, **fields: Any) -> None:
        """Say what became of an occurrence meanwhile."""
        row = self.rows[key]
        self.rows[key] = msgspec.structs.replace(row, **{"version": row.version + 1, **fields})

    def mark_all(self, **fields: Any) -> None:
        """Say that of all of them."""
        for key in self.rows:
            self.mark(key, **fields)


def due(plan: SourcePlan) -> list[str]:
    """Say what a plan ensures: local date and time, and the instant, in order."""
    rows = sorted(plan.ensure, key=lambda row: row.scheduled_at)
    return [f"{row.local_date} {row.local_time} {row.scheduled_at:%Y-%m-%dT%H:%MZ}" for row in rows]


def ended(plan: SourcePlan) -> list[str]:
    """Say why a plan deactivates what."""
    return sorted(one.reason.value for one in plan.deactivate)
