"""What stands in for your application's database in these examples, rows in memory; and an event to try them with.

In a provider of yours, `load` is a query by ids and `scan` one query of a page; everything else here falls away.
"""

from collections.abc import Collection, Mapping
from datetime import UTC, date, datetime
from uuid import NAMESPACE_URL, UUID, uuid5

from clarion.domain.entity_event import EntityEvent
from clarion.domain.source import SourceContent, SourceFacts
from clarion.ports.reminding import ScanPage
from clarion.ports.source import SourceScan


class Table:
    """Sources of one type, each with the time of its last change."""

    def __init__(self, source_type: str) -> None:
        """Hold nothing yet."""
        self._source_type = source_type
        self._rows: dict[str, tuple[datetime, SourceFacts]] = {}

    def put(
        self,
        source: str,
        *,
        changed_at: datetime = datetime(2026, 1, 1, tzinfo=UTC),
        fields: Mapping[str, str | bool | int | float | None] = {},
        dates: Mapping[str, date] = {},
        metrics: Mapping[str, float] = {},
    ) -> None:
        """Insert or replace a row."""
        facts = SourceFacts(
            source_type=self._source_type,
            source=source,
            entity=self.entity(source),
            content=SourceContent(fields=fields, dates=dates, metrics=metrics),
        )
        self._rows[source] = (changed_at, facts)

    def entity(self, source: str) -> UUID:
        """Give the guid of a source, the same one at every call: its history stands under it."""
        return uuid5(NAMESPACE_URL, f"https://garage.example.com/{self._source_type}/{source}")

    def load(self, sources: Collection[str]) -> dict[str, SourceFacts]:
        """Give these sources; one that is not there is left out."""
        return {one: self._rows[one][1] for one in sources if one in self._rows}

    def scan(self, asked: SourceScan) -> ScanPage:
        """Give a page by id: what changed since the watermark, and what has a date in the window."""
        found = [
            (source, facts)
            for source, (changed_at, facts) in sorted(self._rows.items())
            if source > asked.after and _is_asked_for(asked, changed_at, facts)
        ]
        page = found[: asked.limit]
        return ScanPage(facts=[facts for _, facts in page], cursor=page[-1][0] if len(found) > asked.limit else None)


def _is_asked_for(asked: SourceScan, changed_at: datetime, facts: SourceFacts) -> bool:
    if asked.units is not None and facts.business_unit not in asked.units:
        return False
    if asked.changed_since is None and asked.due_from is None:
        return True
    if asked.changed_since is not None and changed_at >= asked.changed_since:
        return True
    if asked.due_from is None or asked.due_until is None:
        return False
    return any(asked.due_from <= day <= asked.due_until for day in facts.content.dates.values())


def event(event_type: str) -> EntityEvent:
    """Make an event as Clarion shows it."""
    return EntityEvent(
        partition_key="team",
        row_key="1",
        event_guid=UUID(int=1),
        event_type=event_type,
        entity_type="team",
        entity_guid=UUID(int=2),
        occurred_at=datetime(2027, 1, 4, 8, tzinfo=UTC),
        data_hash="",
        correlation_id="example",
    )
