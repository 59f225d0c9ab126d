"""Planning of report subscriptions: the next run of each that was changed, and of each that has none any more.

A subscription that is put waits to be planned, in the transaction that puts it, so a crash loses nothing; it is claimed
under a lease, its plan is carried out whole, and after that it is looked after again now and then: a person may have
canceled a run, and the next one is planned by nobody else. Reads subscriptions and their runs; writes plans.
"""

from datetime import timedelta
from typing import Final

import structlog

from clarion.domain.planning import SourceStanding
from clarion.domain.report_run import SOURCE_TYPE, is_under_way, plan_of, planned_keys
from clarion.errors import ClarionError
from clarion.ports.automation import AutomationStore
from clarion.ports.facts import FactStore
from clarion.ports.source import SubscriptionClaim, SubscriptionStore

BATCH: Final = 20
"""Subscriptions at once; each is two statements, and a rule that is walked along for a year takes milliseconds."""

LEASE: Final = timedelta(minutes=1)

LOOK_AGAIN: Final = timedelta(hours=6)
"""As often as every reconciliation, where nothing says otherwise."""

SOON: Final = timedelta(minutes=1)
"""How long to wait for a run that is under way: whoever has it may plan behind it what was wanted before the change."""

log = structlog.get_logger("clarion.producers")


class SubscriptionPlanning:
    """The worker of changed subscriptions."""

    def __init__(
        self, *, subscriptions: SubscriptionStore, store: AutomationStore, facts: FactStore, lease: timedelta = LEASE
    ) -> None:
        """Claim from these subscriptions, and plan into this store."""
        self._subscriptions = subscriptions
        self._store = store
        self._facts = facts
        self._lease = lease

    async def step(self) -> int:
        """Plan a batch of subscriptions, each by itself; return how many were claimed."""
        claims = await self._subscriptions.claim_subscriptions(limit=BATCH, lease=self._lease)
        for claim in claims:
            try:
                await self._plan(claim)
            except ClarionError as error:
                guid = str(claim.record.subscription.guid)
                log.warning("a subscription cannot be planned", tenant_id=claim.tenant_id, guid=guid, error=str(error))
        return len(claims)

    async def _plan(self, claim: SubscriptionClaim) -> None:
        """Plan one; what was overtaken waits for the end of its lease."""
        tenant_id, subscription = claim.tenant_id, claim.record.subscription
        source, now = str(subscription.guid), await self._facts.now()
        keys = planned_keys(subscription, now=now)
        found = await self._store.find_standings_of_sources(tenant_id, SOURCE_TYPE, [source], keys=keys)
        standing = found.get(source) or SourceStanding(source_type=SOURCE_TYPE, source=source)
        plan = plan_of(subscription, standing, now=now, correlation_id=source)
        if not plan.is_empty:
            (applied,) = await self._store.apply_plans(tenant_id, [plan])
            if applied.overtaken:
                return
        again = SOON if is_under_way(standing) else LOOK_AGAIN if subscription.active else None
        await self._subscriptions.finish_subscription(claim, look_again=again)
