"""Snapshots: one tenant as it is, whichever engine keeps it; in a store in memory the copy answers as the tenant."""

from datetime import UTC, datetime
from typing import Final

import msgspec
import pytest

from clarion.domain.address import AddressVersion
from clarion.domain.automation import AutomationScheduler, AutomationStatus
from clarion.domain.person import LocalForm
from clarion.domain.seal import Purpose
from clarion.errors import InvalidInput
from clarion.testing.clock import ManualClock
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.factories import address_version, automation_scheduler
from clarion.testing.store import SqliteInMemory

UNTIL: Final = datetime(2026, 3, 1, tzinfo=UTC)
LATER: Final = datetime(2026, 3, 2, tzinfo=UTC)
ROWS: Final = 1 + 1 + 3 + 2
"""Of the tenant `filled`: itself, its key, three addresses and two occurrences."""


async def filled(harness: StoreHarness, tenant_id: str) -> None:
    """Store a little of what is copied, and occurrences that are over or due later, which are not."""
    store = harness.store
    await store.ensure_tenant(tenant_id, {(Purpose.DATA, 1): b"\x00wrapped"})
    await store.set_tenant_form(tenant_id, LocalForm(locale="de-AT", tz_id="Europe/Vienna"), actor="sam")
    await store.ensure_address_versions(tenant_id, [address_version(n) for n in range(3)])
    rows = [automation_scheduler(n) for n in range(3)] + [automation_scheduler(3, scheduled_at=LATER)]
    over = (await store.ensure_automation_schedulers(tenant_id, rows))[0].record
    await harness.overwrite(tenant_id, msgspec.structs.replace(over, status=AutomationStatus.COMPLETED))


class SnapshotContract:
    """What is copied of a tenant, and what is not."""

    async def test_a_copy_of_one_tenant_answers_as_the_tenant_itself(self, harness: StoreHarness) -> None:
        """Other tenants, and what is over or due later, stay where they are; nothing is written there."""
        mine, theirs = harness.tenant_id, f"{harness.tenant_id}-2"
        await filled(harness, mine)
        await filled(harness, theirs)
        tables = await harness.store.copy_tenant(mine, until=UNTIL, rows_max=ROWS)
        copy = SqliteInMemory(ManualClock())
        await copy.paste_tenant(tables)
        assert await copy.find_tenant_keys(mine) == {(Purpose.DATA, 1): b"\x00wrapped"}
        assert await copy.find_local_forms(mine, []) == await harness.store.find_local_forms(mine, [])
        assert await copy.rows(mine, AddressVersion) == await harness.rows(mine, AddressVersion)
        waiting = [
            row
            for row in await harness.rows(mine, AutomationScheduler)
            if row.status is AutomationStatus.PENDING and row.scheduled_at <= UNTIL
        ]
        assert len(waiting) == 2
        assert await copy.rows(mine, AutomationScheduler) == waiting
        assert await copy.list_tenants(limit=10) == [mine]

    async def test_a_tenant_with_more_rows_than_are_to_be_held_is_refused(self, harness: StoreHarness) -> None:
        """Before any more is read."""
        await filled(harness, harness.tenant_id)
        with pytest.raises(InvalidInput, match=f"more than {ROWS - 1} rows"):
            await harness.store.copy_tenant(harness.tenant_id, until=UNTIL, rows_max=ROWS - 1)
