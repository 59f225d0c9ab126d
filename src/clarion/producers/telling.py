"""What templates read of a source: the one place that says under which names.

A template reads a source under the name of its type, `{{ invoice.number }}`, with underscores for hyphens: its id, and
its fields, dates and metrics by their names, where two of one name are the field rather than the date rather than the
metric. A type whose name templates read otherwise is left out. What a reminder is about stands under `reminder`. Pure.
"""

import msgspec

from clarion.domain.automation import AutomationScheduler
from clarion.domain.definition import RESERVED, Definition
from clarion.domain.reminder import ReminderSetting
from clarion.domain.source import SourceFacts


def data_of(facts: SourceFacts, definition: Definition) -> dict[str, object]:
    """Give a source as the templates of a type read it, in the types of JSON."""
    name, content = facts.source_type.replace("-", "_"), facts.content
    if name in RESERVED or name in definition.links:
        return {}
    told: dict[str, object] = msgspec.to_builtins(
        {name: {"id": facts.source, **content.metrics, **content.dates, **content.fields}}
    )
    return told


def reminder_of(row: AutomationScheduler, setting: ReminderSetting, facts: SourceFacts) -> dict[str, object]:
    """Give what a reminder is about: its date and how many days before it this is, or its metric and its value now."""
    told: dict[str, object] = {"setting": setting.name}
    if row.target_date is not None:
        told |= {"date": row.target_date.isoformat(), "days": row.offset_days}
    if row.metric is not None and row.scope is not None:
        value = facts.metric(row.metric, row.scope)
        told |= {"metric": row.metric, "scope": row.scope, "value": value, "threshold": row.threshold_value}
    return told
