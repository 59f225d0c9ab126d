"""Gauges: how much work waits, how old it is, and what wants a person."""

from datetime import timedelta
from typing import Final

import msgspec

from clarion.domain.automation import AutomationStatus
from clarion.domain.call import Accepted, Unknown
from clarion.ports.insights import Gauge
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.contracts.pump import Pump
from clarion.testing.contracts.stages import claim, make_pending
from clarion.testing.contracts.support_cases import support_case
from clarion.testing.factories import (
    automation_scheduler,
    messaging_job,
    scheduler_of_content,
)

MINUTE: Final = timedelta(minutes=1)
NOTHING: Final = Gauge(
    stages_waiting=0,
    oldest_stage_seconds=0.0,
    outgoing_waiting=0,
    oldest_outgoing_seconds=0.0,
    sending=0,
    uncertain=0,
    occurrences_due=0,
    oldest_occurrence_seconds=0.0,
    occurrences_held=0,
    occurrences_failed=0,
    open_support_cases=0,
)


class GaugeContract:
    """How much work waits."""

    async def test_an_empty_store_has_nothing_to_do(self, harness: StoreHarness) -> None:
        """Every count is zero."""
        assert await harness.store.measure() == NOTHING

    async def test_work_that_waits_is_counted_and_its_age_told(self, harness: StoreHarness) -> None:
        """Of all tenants; what is not due yet does not wait, what is claimed does not either."""
        pump = Pump(harness)
        now = await harness.now()
        await make_pending(harness, 1)
        await make_pending(harness, 2, tenant_id=f"{harness.tenant_id}-2")
        await make_pending(harness, 3, due_at=now + MINUTE * 60)
        await pump.message(4)
        await pump.message(5, due_at=now + MINUTE * 60)
        await harness.elapse(MINUTE)
        gauge = await harness.store.measure()
        assert (gauge.stages_waiting, gauge.outgoing_waiting) == (2, 1)
        assert 60 <= gauge.oldest_stage_seconds < 90
        assert 60 <= gauge.oldest_outgoing_seconds < 90
        await claim(harness)
        await pump.claim()
        assert await harness.store.measure() == msgspec.structs.replace(NOTHING, sending=1)

    async def test_rows_in_flight_uncertain_rows_and_open_cases_are_counted(self, harness: StoreHarness) -> None:
        """Resolved cases are not."""
        pump = Pump(harness)
        await pump.campaign(3)
        first, second, _ = await pump.claim()
        await pump.record(Unknown(reason="lost"), first)
        await pump.record(Accepted(), second)
        cases = [support_case(1), support_case(2)]
        await harness.store.open_support_cases(harness.tenant_id, cases)
        await harness.store.resolve_support_case(harness.tenant_id, cases[0].case_id, actor="sam", resolution="mended")
        assert await harness.store.measure() == msgspec.structs.replace(
            NOTHING, sending=1, uncertain=1, open_support_cases=1
        )

    async def test_occurrences_are_counted_as_they_stand_and_their_lateness_told(self, harness: StoreHarness) -> None:
        """Of all tenants; one on hold is not due, one that waits for its retry is due when that is."""
        now = await harness.now() - MINUTE
        for tenant_id in (harness.tenant_id, f"{harness.tenant_id}-2"):
            rows = [
                automation_scheduler(1, scheduled_at=now),
                automation_scheduler(2, scheduled_at=now + MINUTE * 60),
                automation_scheduler(3, scheduled_at=now, on_support_hold=True),
                automation_scheduler(4, scheduled_at=now, status=AutomationStatus.FAILED),
                automation_scheduler(5, scheduled_at=now, next_retry_at=now + MINUTE * 60),
                automation_scheduler(6, scheduled_at=now, status=AutomationStatus.COMPLETED),
            ]
            await harness.store.ensure_automation_schedulers(tenant_id, rows)
        gauge = await harness.store.measure()
        assert (gauge.occurrences_due, gauge.occurrences_held, gauge.occurrences_failed) == (2, 2, 2)
        assert 60 <= gauge.oldest_occurrence_seconds < 90

    async def test_a_pending_row_without_a_job_of_ours_is_no_surprise(self, harness: StoreHarness) -> None:
        """It waits for a worker of another kind; the gauge may count it, and does not fail over it."""
        await harness.store.ensure_messaging_jobs(harness.tenant_id, [messaging_job(1)])
        await harness.store.ensure_notification_schedulers(harness.tenant_id, [scheduler_of_content(messaging_job(1))])
        assert (await harness.store.measure()).stages_waiting in (0, 1)
