"""Deliberate re-runs of completed occurrences. Writes `automation_scheduler`, `entity_history` and `audit_log`."""

from typing import Final

from clarion.adapters.stores.shared import facts
from clarion.adapters.stores.shared.audit import append_audit
from clarion.adapters.stores.shared.automation import Asked, ensure_asked
from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.transaction import Transaction
from clarion.domain import act
from clarion.domain.automation import AutomationScheduler
from clarion.domain.ensured import Ensured, Outcome
from clarion.domain.key import retry_key
from clarion.domain.rerun import key_before, rerun_row

_SQL: Final = Statements("automation.sql")


async def rerun_occurrence(
    transaction: Transaction, tenant_id: str, first_key: str, *, n: int, actor: str, reason: str
) -> Ensured[AutomationScheduler] | None:
    """Ensure the n-th re-run, due now; audited. One that is there is found as it is, and nothing is written."""
    done = act.rerun(first_key, n=n, reason=reason, actor=actor)
    key = retry_key(scheduler_key=first_key, n=n)
    await transaction.lock(f"rerun {tenant_id} {first_key}")  # two at once ask for one re-run, and it is audited once
    asked = {first_key, key_before(first_key, n), key}
    rows = await transaction.fetch(
        AutomationScheduler, _SQL["read_automation_schedulers"], tenant_id=tenant_id, items=sorted(asked)
    )
    stored = {row.scheduler_key: row for row in rows}
    if key in stored:
        return Ensured(outcome=Outcome.FOUND, record=stored[key])
    now = await facts.now(transaction)
    row = rerun_row(stored.get(first_key), stored.get(key_before(first_key, n)), n=n, now=now)
    if row is None:
        return None
    asked_for = Asked(row=row, cause=done.act, text=f"{done.act} by {actor}: {reason}")
    (answer,) = await ensure_asked(transaction, tenant_id, [asked_for], at=now)
    await append_audit(transaction, tenant_id, done)
    return answer
