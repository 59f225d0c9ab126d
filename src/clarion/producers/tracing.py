"""Traces: what was looked at when an occurrence failed, was put on hold or is tried again, written beside its end.

A trace is for the person who looks later, so nothing waits for it for long: one that cannot be written is logged and
left out, and the occurrence ends as it would have.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec
import structlog

from clarion.domain import reply
from clarion.domain.automation import AutomationStatus
from clarion.domain.occurrence_trace import TEXT_BYTES_MAX, Look, OccurrenceTrace, TraceDecision
from clarion.errors import ClarionError
from clarion.ports.automation import DueClaim, DueEnd
from clarion.ports.clock import Clock
from clarion.sealing.traces import Traces

WRITE_SECONDS: Final = 5.0
"""For one trace. The ends of a whole batch wait for the slowest, under a lease of minutes."""

log: Final = structlog.get_logger("clarion.producers")


class Looks:
    """What was looked at so far, by the occurrence."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._looks: dict[str, Look] = {}

    def of(self, scheduler_key: str) -> Look:
        """Say what was looked at for one."""
        return self._looks.get(scheduler_key, Look())

    def note(self, claim: DueClaim, **seen: bool | int | None) -> None:
        """Add what was seen."""
        key = claim.row.scheduler_key
        self._looks[key] = msgspec.structs.replace(self.of(key), **seen)

    def note_error(self, claim: DueClaim, error: BaseException) -> None:
        """Add what was raised; of a defect only what it is, because nobody has weighed its words."""
        key, known = claim.row.scheduler_key, isinstance(error, ClarionError)
        code = error.code if isinstance(error, ClarionError) else type(error).__name__
        text = reply.storable(str(error), bytes_max=TEXT_BYTES_MAX) if known else None
        self._looks[key] = msgspec.structs.replace(self.of(key), code=code, error=text)


async def traced(ends: Sequence[DueEnd], looks: Looks, *, traces: Traces, clock: Clock) -> list[DueEnd]:
    """Write the traces of those ends that need one, and say in each where it lies."""
    return list(await asyncio.gather(*(_traced(end, looks, traces=traces, clock=clock) for end in ends)))


async def _traced(end: DueEnd, looks: Looks, *, traces: Traces, clock: Clock) -> DueEnd:
    decision = _decision(end)
    if decision is None:
        return end
    look = msgspec.structs.asdict(looks.of(end.scheduler_key))
    trace = OccurrenceTrace(claim=end.version, at=clock.now(), decision=decision, **look)
    try:
        async with asyncio.timeout(WRITE_SECONDS):
            path = await traces.write(end.tenant_id, end.scheduler_key, trace)
    except (ClarionError, OSError) as error:  # a timeout is one of the latter
        log.warning("a trace was not written", scheduler_key=end.scheduler_key, error=str(error))
        return end
    return msgspec.structs.replace(end, trace_blob=path)


def _decision(end: DueEnd) -> TraceDecision | None:
    """Say of what kind an end is; None where it is no trouble."""
    if end.to is AutomationStatus.FAILED:
        return TraceDecision.FAILED
    if end.to is not AutomationStatus.PENDING:
        return None
    if end.hold:
        return TraceDecision.HOLD
    return TraceDecision.AGAIN if end.is_retry else None
