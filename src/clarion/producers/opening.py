"""Opening: puts together what plans, from a store and the plugins of an installation. Whoever opens it closes it."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from clarion.ports.automation import AutomationStore
from clarion.ports.facts import FactStore
from clarion.ports.source import ReminderStore
from clarion.producers.direct import DirectSends
from clarion.producers.immediate import Immediately
from clarion.producers.planning import Planning
from clarion.producers.post_processing import ForeignProcessor, PostProcessors
from clarion.producers.reminders import RemindersOfEvents
from clarion.producers.sources import Sources


class PlanningStore(ReminderStore, AutomationStore, FactStore, Protocol):
    """What planning asks of storage."""


class Automation(msgspec.Struct, frozen=True, kw_only=True):
    """Who plans sources, and who handles events."""

    planning: Planning
    processors: PostProcessors


def open_automation(
    store: PlanningStore, *, sources: Sources, sends: DirectSends, processors: Sequence[ForeignProcessor] = ()
) -> Automation:
    """Put it together over one store; `processors` are those of strangers, and end with it."""
    planning = Planning(automation=store, settings=store, facts=store, sources=sources)
    immediately = Immediately(store=store, sources=sources, sends=sends)
    reminders = RemindersOfEvents(planning=planning, immediately=immediately, sources=sources)
    return Automation(planning=planning, processors=PostProcessors([reminders], processors))
