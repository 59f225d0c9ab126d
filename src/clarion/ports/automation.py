"""The store of automation: occurrences that wait to fall due, from their plan to their hand-over.

Every method is one transaction, set-based and bounded. Keys stop duplicates; versions stop an old worker. Who waits and
who is due is judged by the store's clock.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol
from uuid import UUID

import msgspec

from clarion.domain.automation import AutomationScheduler, AutomationStatus, AutomationType
from clarion.domain.ensured import Ensured
from clarion.domain.entity_event import EntityHistory
from clarion.domain.planning import AppliedPlan, EndReason, SourcePlan, SourceStanding


class DueClaim(msgspec.Struct, frozen=True, kw_only=True):
    """An occurrence taken under a lease; the row's version is the token of the claim."""

    tenant_id: str
    row: AutomationScheduler


class DueEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a claimed occurrence ended, or why it is tried again.

    Pending means again: after `delay`, or on hold; one more retry, unless `is_retry` is false because nothing failed.
    `next` is the occurrence that follows it in a chain, ensured in the same transaction. `line` is its line in the
    entity's history.
    """

    tenant_id: str
    scheduler_key: str
    version: int
    to: AutomationStatus
    reason: EndReason | None = None
    failure_reason: str | None = None
    delay: timedelta | None = None
    is_retry: bool = True
    hold: bool = False
    dispatch_result: str | None = None
    trace_blob: str | None = None
    next: AutomationScheduler | None = None
    line: EntityHistory | None = None


class Standing(StrEnum):
    """Which occurrences a list is about."""

    WAITING = "waiting"
    DUE = "due"
    HELD = "held"
    FAILED = "failed"
    PROCESSING = "processing"
    ENDED = "ended"


class AutomationStore(Protocol):
    """Planning, claiming and finishing occurrences, and what people do with them."""

    async def find_standings_of_sources(
        self, tenant_id: str, source_type: str, sources: Collection[str], *, keys: Collection[str] = ()
    ) -> dict[str, SourceStanding]:
        """Return what is known of each of these sources' occurrences, by source; one without any has none.

        Asked before the source itself is read: a plan of what was read earlier would overtake one of what is there now.
        """
        ...

    async def apply_plans(self, tenant_id: str, plans: Sequence[SourcePlan]) -> list[AppliedPlan]:
        """Carry plans out, each whole or not at all: deactivate, then ensure, move states, write lines of history.

        A plan over another serial than the stored one is overtaken and writes nothing. A row that was claimed since it
        was read is left to its worker, which looks again whether it is still wanted; one on hold is left to a person.
        """
        ...

    async def claim_due(self, *, limit: int, lease: timedelta) -> list[DueClaim]:
        """Take occurrences that are due, whose retry time has passed and that nobody holds; tenants take turns."""
        ...

    async def finish_due(self, ends: Sequence[DueEnd]) -> set[tuple[str, str]]:
        """Move claimed occurrences on where the claim still stands; return (tenant, key) of those that moved.

        One that is held or failed opens its support case in the same transaction.
        """
        ...

    async def rescue_due(self, *, limit: int) -> int:
        """Return expired claims to Pending, one more retry, later each time and in the end on hold."""
        ...

    async def find_occurrence(self, tenant_id: str, scheduler_key: str) -> AutomationScheduler | None:
        """Return an occurrence, or None."""
        ...

    async def list_occurrences(
        self,
        tenant_id: str,
        *,
        standing: Standing,
        until: datetime | None = None,
        automation_type: AutomationType | None = None,
        after: tuple[datetime, int] | None = None,
        limit: int,
    ) -> Sequence[AutomationScheduler]:
        """Return occurrences by when they are due, behind a place; `until` leaves out what is due later."""
        ...

    async def hold_occurrence(self, tenant_id: str, scheduler_key: str, *, actor: str, reason: str) -> bool:
        """Put a pending occurrence on hold; audited; False where it is not pending or held already."""
        ...

    async def release_occurrence(self, tenant_id: str, scheduler_key: str, *, actor: str, reason: str) -> bool:
        """Let an occurrence that is on hold go on, what failed before forgiven; audited; False where it is not held.

        Whichever word of a person ends a hold resolves the case about it in the same transaction.
        """
        ...

    async def run_occurrence_now(self, tenant_id: str, scheduler_key: str, *, actor: str, reason: str) -> bool:
        """Make a pending occurrence due now, on hold or not; audited; False where it is not pending.

        A plan that comes before its claim does not take it back.
        """
        ...

    async def deactivate_occurrence(self, tenant_id: str, scheduler_key: str, *, actor: str, reason: str) -> bool:
        """Cancel a pending occurrence on a person's word, which no plan takes back; audited; False where it is over."""
        ...

    async def rerun_occurrence(
        self, tenant_id: str, first_key: str, *, n: int, actor: str, reason: str
    ) -> Ensured[AutomationScheduler] | None:
        """Ensure the n-th deliberate re-run of an occurrence, due now; audited.

        One that is there is found as it is, and nothing is written. None where the first run, or the re-run before it,
        is not completed.
        """
        ...

    async def write_history(self, tenant_id: str, lines: Sequence[EntityHistory]) -> None:
        """Write lines of entities' histories; one that is there already under its key is replaced (a replay)."""
        ...

    async def list_history(
        self,
        tenant_id: str,
        entity_guid: UUID,
        *,
        subject: str | None = None,
        after: tuple[datetime, str] | None = None,
        limit: int,
    ) -> Sequence[EntityHistory]:
        """Return lines of an entity's history, all or those about one subject, the newest first, behind a place."""
        ...
