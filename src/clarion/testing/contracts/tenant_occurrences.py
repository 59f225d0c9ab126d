"""What a tenant has of occurrences that were held, handed over and told of, and every method about them (see there)."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import msgspec

from clarion.domain.automation import AutomationStatus
from clarion.domain.entity_event import EntityHistory, HistoryKind
from clarion.domain.planning import SourcePlan
from clarion.ports.automation import Standing
from clarion.ports.store import Store
from clarion.testing import factories as make
from clarion.testing.contracts.harness import StoreHarness

WAITS, HELD, OVER = (make.automation_scheduler(n) for n in (1, 2, 3))
WHY: Final = {"actor": "sam", "reason": "again"}
LINE: Final = EntityHistory(
    entity_guid=UUID(WAITS.primary_entity),
    kind=HistoryKind.HELD,
    subject=WAITS.scheduler_key,
    cause="claim 2",
    at=datetime(2026, 1, 20, tzinfo=UTC),
    text="on hold",
    correlation_id="request",
)
PLAN: Final = SourcePlan(
    source_type=WAITS.source_type,
    source=WAITS.source,
    serial=0,
    ensure=(WAITS,),
    cause="test",
    at=datetime(2026, 1, 20, tzinfo=UTC),
    correlation_id="request",
)

Ask = Callable[[Store, str, Any], Awaitable[Any]]

READS: Final[dict[str, Ask]] = {
    "find_occurrence": lambda store, tenant, _: store.find_occurrence(tenant, WAITS.scheduler_key),
    "find_standings_of_sources": lambda store, tenant, _: store.find_standings_of_sources(
        tenant, WAITS.source_type, [WAITS.source]
    ),
    "list_occurrences": lambda store, tenant, _: store.list_occurrences(tenant, standing=Standing.HELD, limit=5),
    "list_history": lambda store, tenant, _: store.list_history(tenant, LINE.entity_guid, limit=5),
    "list_history of a subject": lambda store, tenant, _: store.list_history(
        tenant, LINE.entity_guid, subject=LINE.subject, limit=5
    ),
}
WRITES: Final[dict[str, Ask]] = {
    "hold_occurrence": lambda store, tenant, _: store.hold_occurrence(tenant, WAITS.scheduler_key, **WHY),
    "release_occurrence": lambda store, tenant, _: store.release_occurrence(tenant, HELD.scheduler_key, **WHY),
    "run_occurrence_now": lambda store, tenant, _: store.run_occurrence_now(tenant, WAITS.scheduler_key, **WHY),
    "deactivate_occurrence": lambda store, tenant, _: store.deactivate_occurrence(tenant, WAITS.scheduler_key, **WHY),
    "rerun_occurrence": lambda store, tenant, _: _reran(store, tenant),
}
MAKES: Final[dict[str, Ask]] = {
    "apply_plans": lambda store, tenant, _: store.apply_plans(tenant, [PLAN]),
    "write_history": lambda store, tenant, _: store.write_history(
        tenant, [msgspec.structs.replace(LINE, text="otherwise")]
    ),
}


async def fill_occurrences(harness: StoreHarness, tenant_id: str) -> None:
    """Give it one occurrence that is on hold, one that is over, and a line of history."""
    await harness.store.ensure_automation_schedulers(tenant_id, [HELD, OVER])
    for row in await harness.rows(tenant_id, type(HELD)):
        if row.scheduler_key == HELD.scheduler_key:
            await harness.overwrite(tenant_id, msgspec.structs.replace(row, on_support_hold=True))
        if row.scheduler_key == OVER.scheduler_key:
            await harness.overwrite(tenant_id, msgspec.structs.replace(row, status=AutomationStatus.COMPLETED))
    await harness.store.write_history(tenant_id, [LINE])


async def _reran(store: Store, tenant_id: str) -> bool:
    return await store.rerun_occurrence(tenant_id, OVER.scheduler_key, n=1, **WHY) is not None
