"""Traces of what could not be handed over: where they lie, what they say, and that nothing depends on them."""

from pathlib import Path
from uuid import UUID

from clarion.domain import derived_id
from clarion.domain.automation import AutomationScheduler, AutomationStatus
from clarion.domain.occurrence_trace import OccurrenceTrace, TraceDecision
from clarion.errors import Conflict, StoreUnreachable
from clarion.operations.automation import Automation
from clarion.producers.due import Due
from clarion.sealing.traces import Traces
from clarion.testing.blobs import MemoryBlobs
from tests.unit.pipeline_line import TENANT
from tests.unit.test_due import Worker, drained


class Full(MemoryBlobs):
    """A blob store that takes nothing."""

    async def put_if_absent(self, path: str, content: bytes) -> bool:
        raise StoreUnreachable("the blob store is away", hint="wait")


async def last(house: Worker, worker: Due | None = None) -> tuple[AutomationScheduler, OccurrenceTrace | None]:
    """Have what is due handed over, and read the first occurrence with its trace."""
    await drained(worker or house.due())
    row, *_ = await house.rows()
    return row, None if row.trace_blob is None else await house.traces.find(TENANT, row.trace_blob)


async def test_a_failure_that_may_pass_leaves_a_sealed_trace_of_its_claim_and_the_next_one_another(
    tmp_path: Path,
) -> None:
    house = await Worker().open(tmp_path)
    house.harbour.breaks = {"load"}
    await house.plan("b1")
    row, trace = await last(house)
    guid: UUID = derived_id.row_guid(tenant_id=TENANT, row_key=row.scheduler_key)
    assert row.trace_blob == f"{TENANT}/traces/{guid}/2"
    assert trace is not None
    assert (trace.claim, trace.decision, trace.code) == (2, TraceDecision.AGAIN, "plugin-failed")
    assert (trace.setting_version, trace.source_found, trace.source_version) == (1, None, None)
    assert trace.error == row.failure_reason
    assert b"plugin" not in await house.line.blobs.get(row.trace_blob)
    await house.line.store.run_occurrence_now(TENANT, row.scheduler_key, actor="sam", reason="once more")
    again, _ = await last(house)
    assert again.trace_blob == f"{TENANT}/traces/{guid}/5"


async def test_a_hold_is_traced_and_shown_to_whoever_may_see_the_whole(tmp_path: Path) -> None:
    house = await Worker().open(tmp_path, text="{{ boat.colour }}")
    await house.plan("b1")
    row, trace = await last(house)
    assert trace is not None
    assert (trace.decision, trace.code) == (TraceDecision.HOLD, "invalid-input")
    assert (trace.setting_version, trace.source_found, trace.source_version) == (1, True, 0)
    automation = Automation(house.line.store, traces=house.traces, wake=lambda _: None)
    whole = await automation.find(TENANT, row.scheduler_key, whole=True)
    masked = await automation.find(TENANT, row.scheduler_key)
    assert whole is not None
    assert whole.diagnostics is not None
    assert (whole.diagnostics.code, whole.trace) == ("invalid-input", row.trace_blob)
    assert masked is not None
    assert masked.diagnostics is None


async def test_a_report_that_fails_for_good_is_traced_and_what_goes_well_is_not(tmp_path: Path) -> None:
    house = await Worker().open(tmp_path)
    house.answer = Conflict("another report is stored there", hint="look")
    await house.plan_report()
    _, trace = await last(house)
    assert trace is not None
    assert (trace.decision, trace.code, trace.setting_version) == (TraceDecision.FAILED, "conflict", 1)
    other = await Worker().open(tmp_path / "2")
    await other.plan("b1")
    row, _ = await last(other)
    assert (row.status, row.trace_blob) == (AutomationStatus.COMPLETED, None)


async def test_a_trace_that_cannot_be_written_or_read_takes_nothing_with_it(tmp_path: Path) -> None:
    house = await Worker().open(tmp_path)
    kept, house.traces = house.traces, Traces(blobs=Full(), keyring=house.line.keyring)
    house.harbour.breaks = {"load"}
    await house.plan("b1")
    row, _ = await last(house)
    assert (row.status, row.retry_count, row.trace_blob) == (AutomationStatus.PENDING, 1, None)
    assert "plugin" in (row.failure_reason or "")
    assert await kept.find(TENANT, f"{TENANT}/traces/gone/2") is None
    await house.line.blobs.put_if_absent(f"{TENANT}/traces/broken/2", b"no seal")
    assert await kept.find(TENANT, f"{TENANT}/traces/broken/2") is None
