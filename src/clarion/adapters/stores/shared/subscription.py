"""Report subscriptions: changed with their entry in the audit log, listed, claimed to have their next run planned.

Writes `report_subscription`, through `automation` the run that somebody asks for, and through `audit` `audit_log`.
"""

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec
import structlog

from clarion.adapters.stores.shared.audit import append_audit
from clarion.adapters.stores.shared.automation import Asked, ensure_asked
from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.transaction import Transaction, first
from clarion.domain import act
from clarion.domain.automation import AutomationScheduler
from clarion.domain.ensured import Ensured, Outcome
from clarion.domain.expected import require_version
from clarion.domain.report import ReportSubscription, subscription_text
from clarion.errors import ProgramTooOld
from clarion.ports.ensure import ITEMS_MAX
from clarion.ports.insights import PAGE_MAX
from clarion.ports.source import SubscriptionClaim, SubscriptionRecord

log = structlog.get_logger("clarion.stores")

_SQL: Final = Statements("subscription.sql")


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    tenant_id: str
    guid: UUID
    subscription: str
    version: int
    plan_token: int
    changed_by: str
    changed_at: datetime


async def put_subscription(
    transaction: Transaction,
    tenant_id: str,
    subscription: ReportSubscription,
    *,
    actor: str,
    expected: int | None = None,
) -> bool:
    """Store a subscription, and note that its next run is to be planned; audited; False where it is so already."""
    done = act.set_subscription(subscription, actor=actor)
    await transaction.lock(f"clarion report subscription {tenant_id} {subscription.guid}")
    if expected is not None:
        stored = await find_subscription(transaction, tenant_id, subscription.guid)
        if stored is not None and stored.subscription == subscription:
            return False
        require_version(None if stored is None else stored.version, expected, what="the report subscription")
    if not await transaction.execute(
        _SQL["put_subscription"],
        tenant_id=tenant_id,
        guid=subscription.guid,
        subscription=subscription_text(subscription),
        actor=actor,
    ):
        return False
    await append_audit(transaction, tenant_id, done)
    return True


async def find_subscription(transaction: Transaction, tenant_id: str, guid: UUID) -> SubscriptionRecord | None:
    """Return a subscription, or None."""
    row = first(await transaction.fetch(_Row, _SQL["find_subscription"], tenant_id=tenant_id, guid=guid))
    return None if row is None else _record(row)


async def list_subscriptions(
    transaction: Transaction, tenant_id: str, *, after: UUID | None = None, limit: int
) -> list[SubscriptionRecord]:
    """Return a tenant's subscriptions by guid, behind one."""
    rows = await transaction.fetch(
        _Row,
        _SQL["list_subscriptions"],
        tenant_id=tenant_id,
        after=after or UUID(int=0),
        limit=min(limit, PAGE_MAX),
    )
    return [_record(row) for row in rows]


async def run_subscription(
    transaction: Transaction, tenant_id: str, row: AutomationScheduler, *, actor: str
) -> Ensured[AutomationScheduler]:
    """Have a run that somebody asks for wait to be claimed, once for its guid; audited."""
    done = act.run_subscription(row.scheduler_key, actor=actor)
    asked = Asked(row=row, cause=done.act, text=f"{done.act} by {actor}")
    (answer,) = await ensure_asked(transaction, tenant_id, [asked], at=row.scheduled_at)
    if answer.outcome is Outcome.CREATED:
        await append_audit(transaction, tenant_id, done)
    return answer


async def claim_subscriptions(transaction: Transaction, *, limit: int, lease: timedelta) -> list[SubscriptionClaim]:
    """Take subscriptions whose next run is to be planned or looked after; one that cannot be read stays claimed."""
    rows = await transaction.fetch(_Row, _SQL["claim_subscriptions"], limit=min(limit, ITEMS_MAX), lease=lease)
    claims: list[SubscriptionClaim] = []
    for row in sorted(rows, key=lambda row: (row.tenant_id, row.guid)):
        try:
            record = _record(row)
        except ProgramTooOld:
            log.exception("a report subscription cannot be read and stays unplanned", tenant_id=row.tenant_id)
            continue
        claims.append(SubscriptionClaim(tenant_id=row.tenant_id, record=record, token=row.plan_token))
    return claims


async def finish_subscription(
    transaction: Transaction, claim: SubscriptionClaim, *, look_again: timedelta | None
) -> bool:
    """Note that a subscription is planned, and when to look after it again; False where it was changed since."""
    return bool(
        await transaction.execute(
            _SQL["finish_subscription"],
            tenant_id=claim.tenant_id,
            guid=claim.record.subscription.guid,
            token=claim.token,
            is_over=look_again is None,
            look_again=look_again or timedelta(),
        )
    )


def _record(row: _Row) -> SubscriptionRecord:
    try:
        subscription = msgspec.json.decode(row.subscription, type=ReportSubscription)
    except msgspec.ValidationError as error:
        raise ProgramTooOld(
            f"a report subscription holds what this program does not know ({error})",
            hint="a newer program wrote it: update this one",
        ) from None
    return SubscriptionRecord(
        subscription=subscription, version=row.version, changed_by=row.changed_by, changed_at=row.changed_at
    )
