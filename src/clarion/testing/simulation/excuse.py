"""Excuses: why nothing was written down of a claim before its lease ended, as far as the weather knows.

A worker that holds a claim makes its call, waits for the reply, and writes the outcome down, again and again if the
store fails. So between the claim and the end of its lease every moment must be accounted for: the call was open, or
something stood in the way of the worker. What stood in its way is known exactly, because whoever made it go wrong has
noted it in the process: a crash, a pause, a stall of the very task, a store error that this task got. Any time that is
left over is time in which a sound worker would have written the outcome down.
"""

from collections.abc import Iterator
from typing import Final

from clarion.domain.call import Unknown
from clarion.testing.simulation.option import Fault
from clarion.testing.simulation.scene import Claim
from clarion.testing.simulation.truth import CALL_SECONDS
from clarion.testing.simulation.weather import at_call

LEASE_SECONDS: Final = 60.0
"""How long a claim holds."""

AFTER_ERROR: Final = 1.0
"""Seconds that a worker waits after a store error before it goes on."""

AT_ONCE: Final = 2.5
"""Seconds within which a worker that nothing stands in the way of writes an outcome down: it rests a second at most,
and lets outcomes wait for each other for far less."""


def of_lease(claim: Claim, *, now: float) -> str | None:
    """Say what is wrong where nothing was written down of a claim until its lease ended; None if that is explained."""
    if is_unheard(claim):
        return None
    end = min(now, claim.at + LEASE_SECONDS)
    free = claim.at
    for since, until in sorted(_hindrances(claim, end)):
        if since - free > AT_ONCE:
            break
        free = max(free, until)
    if end - free <= AT_ONCE:
        return None
    return f"nothing stood in the way of {claim.process} from {free:.3f} s on, and it wrote no outcome down"


def of_unknown(claim: Claim) -> str | None:
    """Say what is wrong where a worker writes down that an outcome is unknown; None if its reply was really lost."""
    call = claim.call
    if call is not None and call.heard:
        return f"the provider had answered {type(call.reply).__name__}"
    if call is not None and (call.is_broken or isinstance(call.reply, Unknown)):
        return None
    waited = (claim.ended_at or 0.0) - (claim.begun_at or 0.0)
    return None if waited >= CALL_SECONDS - 0.01 else f"its worker waited only {waited:.3f} s for a reply"


def is_unheard(claim: Claim) -> bool:
    """Tell whether its worker never learned of a claim, because the reply of the store was lost."""
    lost = at_call(Fault.STORE_REPLY_LOST, "claim_outgoing")
    troubles = claim.process.troubles if claim.process else []
    return any((one.what, one.since) == (lost, claim.at) and one.task is claim.task for one in troubles)


def was_held_up(claim: Claim, *, since: float) -> bool:
    """Tell whether something stood in the way of a claim's worker since then."""
    return any(until >= since for _, until in _troubles(claim))


def _hindrances(claim: Claim, end: float) -> Iterator[tuple[float, float]]:
    """List when a worker could not write an outcome down: while its call was open, and while something was wrong."""
    if claim.begun_at is not None:
        ended_at = claim.ended_at if claim.ended_at is not None else end
        yield claim.begun_at, min(ended_at, claim.begun_at + CALL_SECONDS)
    for since, until in _troubles(claim):
        yield since, until + AFTER_ERROR


def _troubles(claim: Claim) -> Iterator[tuple[float, float]]:
    """List what stood in the way of a claim's worker: of its whole process, its pump, or its own call."""
    for one in claim.process.troubles if claim.process else []:
        if one.until >= claim.at and (one.task is None or one.task in (claim.task, claim.call_task)):
            yield one.since, one.until
