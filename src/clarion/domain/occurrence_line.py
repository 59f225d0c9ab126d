"""The lines that an entity's history gets about its occurrences, in words that people read. Pure.

A line's key is its kind, the occurrence and its cause, so that the replay of a plan or a verb writes the same line.
"""

from datetime import datetime
from typing import Final
from uuid import UUID

from clarion.domain import reply
from clarion.domain.automation import AutomationScheduler
from clarion.domain.entity_event import EntityHistory, HistoryKind

_TEXT_BYTES_MAX: Final = 1000
"""A sentence or two: the whole reason of a person's act is in the audit log."""


def occurrence_line(
    row: AutomationScheduler, kind: HistoryKind, *, cause: str, at: datetime, text: str, correlation_id: str = ""
) -> EntityHistory:
    """Write one line about an occurrence."""
    return EntityHistory(
        entity_guid=UUID(row.primary_entity),
        kind=kind,
        subject=row.scheduler_key,
        cause=cause,
        at=at,
        text=reply.storable(text, bytes_max=_TEXT_BYTES_MAX),
        correlation_id=correlation_id or row.correlation_id,
    )


def due_in_words(row: AutomationScheduler) -> str:
    """Say what is due and when, in local time where it was reckoned from one."""
    if row.local_date is not None and row.local_time is not None:
        return f"{row.notification_type}, due on {row.local_date} at {row.local_time} {row.tz_id}"
    return f"{row.notification_type}, due at {row.scheduled_at:%Y-%m-%d %H:%M} UTC"
