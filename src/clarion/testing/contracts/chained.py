"""The audit log as it is chained and read in order (X-31); that acts are in it is in `auditing`."""

from datetime import UTC, datetime
from typing import Final

import msgspec
import pytest

from clarion.domain.audit import broken_link
from clarion.ports.catalog import AuditEntry
from clarion.ports.insights import PAGE_MAX
from clarion.testing.contracts.auditing import log_of
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.contracts.support_cases import support_case
from clarion.testing.factories import TEXT

AT: Final = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)


async def resolve_cases(harness: StoreHarness, count: int) -> list[AuditEntry]:
    """Make a log of so many entries."""
    await harness.store.open_support_cases(harness.tenant_id, [support_case(n) for n in range(count)])
    for n in range(count):
        case_id = support_case(n).case_id
        assert await harness.store.resolve_support_case(harness.tenant_id, case_id, actor=f"actor-{n}", resolution=TEXT)
    return await log_of(harness)


class AuditContract:
    """The log, chained (X-31)."""

    async def test_entries_are_listed_in_order_as_they_were_written(self, harness: StoreHarness) -> None:
        """Numbered from one for each tenant, page by page."""
        theirs = f"{harness.tenant_id}-2"
        await harness.store.set_type_enabled(theirs, "code", enabled=False, actor="kim")
        log = await resolve_cases(harness, 5)
        assert [(entry.seq, entry.actor) for entry in log] == [(n + 1, f"actor-{n}") for n in range(5)]
        assert log[0] == AuditEntry(
            seq=1,
            at=log[0].at,
            actor="actor-0",
            act="resolve",
            subject=f"case {support_case(0).case_id}",
            reason=TEXT,
            details="{}",
            hash=log[0].hash,
        )
        assert list(await harness.store.list_audit(harness.tenant_id, after=2, limit=2)) == log[2:4]
        (other,) = await harness.store.list_audit(theirs)
        assert (other.seq, other.reason, other.details) == (1, None, "{}")

    async def test_the_chain_of_a_log_holds_from_any_entry_on(self, harness: StoreHarness) -> None:
        """And for its own tenant only."""
        log = await resolve_cases(harness, 3)
        assert broken_link(harness.tenant_id, log) is None
        assert broken_link(harness.tenant_id, log[1:], after=log[0]) is None
        assert broken_link(f"{harness.tenant_id}-2", log) == 1

    @pytest.mark.parametrize(
        "change",
        [{"actor": "kim"}, {"act": "view"}, {"subject": "two"}, {"reason": None}, {"details": "[]"}, {"at": AT}],
        ids=lambda change: next(iter(change)),
    )
    async def test_an_entry_that_was_changed_is_found(self, harness: StoreHarness, change: dict[str, object]) -> None:
        """Whichever field was changed in the database."""
        log = await resolve_cases(harness, 3)
        await harness.overwrite(harness.tenant_id, msgspec.structs.replace(log[1], **change))
        assert broken_link(harness.tenant_id, await log_of(harness)) == 2

    async def test_an_entry_that_was_removed_is_found(self, harness: StoreHarness) -> None:
        """In the middle of the log."""
        log = await resolve_cases(harness, 3)
        await harness.remove(harness.tenant_id, log[1])
        assert broken_link(harness.tenant_id, await log_of(harness)) == 2

    async def test_a_page_of_the_log_is_bounded(self, harness: StoreHarness) -> None:
        """However much is asked for."""
        await resolve_cases(harness, PAGE_MAX + 1)
        assert len(await harness.store.list_audit(harness.tenant_id, limit=10**6)) == PAGE_MAX
