"""Stories: what became of an entity, and of one occurrence of it, by the lines that whoever did it has written."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from clarion.client import wire, wire_story
from clarion.domain.automation import AutomationScheduler, AutomationStatus
from clarion.domain.end_reason import MEANINGS
from clarion.domain.entity_event import EntityHistory
from clarion.domain.occurrence_why import why_in_words
from clarion.domain.timeline import TimelineLine
from clarion.operations import page
from clarion.operations.automation import Automation
from clarion.operations.shape import as_wire
from clarion.operations.upcoming import Upcoming, settings_of
from clarion.ports.automation import AutomationStore
from clarion.ports.store import Store

LINES_MAX: Final = 500
"""Of an occurrence's story, the newest: it has a few, and one that is tried daily has one a day."""


class Stories:
    """The stories of a tenant's entities."""

    def __init__(self, store: Store, *, automation: Automation, upcoming: Upcoming) -> None:
        """Read this store; say how an occurrence stands and for whom it is as these do."""
        self._store = store
        self._automation = automation
        self._upcoming = upcoming

    async def of_entity(self, tenant_id: str, entity: UUID, query: wire.PageQuery) -> wire_story.StoryPage:
        """Tell what became of an entity, the newest first."""
        name = f"story {entity}"
        after = page.read_moment(name, query.cursor)
        found = await self._store.list_history(tenant_id, entity, after=after, limit=query.limit + 1)
        lines, following = page.cut(name, found, query.limit, lambda line: page.moment(line.at, line.row_key))
        return wire_story.StoryPage(items=_told(lines), next_cursor=following)

    async def of_occurrence(self, tenant_id: str, key: str, *, whole: bool = False) -> wire_story.Explained | None:
        """Explain an occurrence, with its trace where `whole`; None where there is none under this key."""
        shown = await self._automation.find(tenant_id, key, whole=whole)
        row = None if shown is None else await self._store.find_occurrence(tenant_id, key)
        if shown is None or row is None:
            return None
        settings = await settings_of(self._store, tenant_id, [row])
        setting = settings.get(row.setting)
        waits = row.status is AutomationStatus.PENDING
        means, remedy = (None, None) if shown.reason is None else MEANINGS[shown.reason]
        return wire_story.Explained(
            occurrence=shown,
            why=why_in_words(row),
            setting_name=None if setting is None else setting.name,
            for_whom=await self._upcoming.for_whom(tenant_id, row) if waits else None,
            means=means,
            remedy=remedy,
            lines=_told(await _lines_of(self._store, tenant_id, row)),
        )


async def before_the_job(store: AutomationStore, tenant_id: str, scheduler_key: str | None) -> tuple[TimelineLine, ...]:
    """Tell what comes before a notification in its timeline: the occurrence that it was handed over from, if any."""
    row = None if scheduler_key is None else await store.find_occurrence(tenant_id, scheduler_key)
    if row is None:
        return ()
    lines = [
        TimelineLine(at=line.at, what=line.kind.replace("_", " "), detail=line.text)
        for line in await _lines_of(store, tenant_id, row)
    ]
    due = TimelineLine(at=row.run_now_at or row.scheduled_at, what="due", detail=why_in_words(row))
    return tuple(sorted([due, *lines], key=lambda line: line.at))


async def _lines_of(store: AutomationStore, tenant_id: str, row: AutomationScheduler) -> Sequence[EntityHistory]:
    """Find the lines of an occurrence in the story of its entity, the oldest first."""
    entity = UUID(row.primary_entity)
    found = await store.list_history(tenant_id, entity, subject=row.scheduler_key, limit=LINES_MAX)
    return list(reversed(found))


def _told(lines: Sequence[EntityHistory]) -> tuple[wire_story.StoryLine, ...]:
    return tuple(as_wire(line, wire_story.StoryLine) for line in lines)
