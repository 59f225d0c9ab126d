"""Again on purpose: has a completed occurrence run once more, under a number of its own. Audited.

Whoever asks names the number, so that a double click is one re-run; `next_rerun` says which one is next.
"""

from clarion.domain.automation import AutomationScheduler
from clarion.domain.ensured import Ensured, Outcome
from clarion.domain.key import read_first_run, retry_key
from clarion.domain.part import KEY_MAX
from clarion.domain.rerun import RERUNS_MAX
from clarion.errors import Conflict, InvalidInput, InvalidKey
from clarion.ports.automation import AutomationStore


async def next_rerun(store: AutomationStore, tenant_id: str, scheduler_key: str) -> int:
    """Say which number the next re-run of an occurrence has, counting those that are there."""
    first = _first(scheduler_key)
    for n in range(1, RERUNS_MAX):
        if first is None or await store.find_occurrence(tenant_id, retry_key(scheduler_key=first, n=n)) is None:
            return n
    return RERUNS_MAX


async def rerun(
    store: AutomationStore, tenant_id: str, scheduler_key: str, *, n: int, actor: str, reason: str
) -> Ensured[AutomationScheduler] | None:
    """Have an occurrence run again as its n-th re-run, whichever of its runs is named; None where there is none.

    Raises Conflict where what it would follow is not completed, or n is not the next number.
    """
    if not 1 <= n <= RERUNS_MAX:
        raise InvalidInput(f"a re-run has a number from 1 to {RERUNS_MAX}", field="n", hint="name the next one")
    first = _first(scheduler_key)
    if first is None or await store.find_occurrence(tenant_id, first) is None:
        return None
    answer = await store.rerun_occurrence(tenant_id, first, n=n, actor=actor, reason=reason)
    if answer is None:
        before = "the occurrence is" if n == 1 else f"its re-run {n - 1} is"
        raise Conflict(
            f"{before} not completed, so there is nothing to run again as number {n}",
            hint=f"its next re-run is number {await next_rerun(store, tenant_id, first)}, once the last one is over",
        )
    if answer.outcome is Outcome.CONFLICT:
        raise Conflict("its re-run stands under another input", hint="its support case has what differs")
    return answer


def _first(scheduler_key: str) -> str | None:
    """Name the first run of an occurrence; None where it is no key of one."""
    try:
        return None if len(scheduler_key) > KEY_MAX else read_first_run(scheduler_key)[0]
    except InvalidKey:
        return None
