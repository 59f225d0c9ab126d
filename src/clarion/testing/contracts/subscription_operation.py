"""Operations on report subscriptions that chance can put together, and the questions about them."""

from datetime import timedelta
from typing import Final

import msgspec
from hypothesis import strategies as st

from clarion.domain.report_run import manual_row
from clarion.ports.insights import BroadcastTotals
from clarion.ports.reporting import DeliveryCount
from clarion.ports.source import SubscriptionRecord
from clarion.testing.contracts.pump import LEASE
from clarion.testing.contracts.side import Side
from clarion.testing.factories import SOURCE_AT, guid, report_subscription

RULES: Final = ("0 8 * * MON", "FREQ=DAILY")
LATER: Final = timedelta(seconds=40)
EXPECTED: Final = st.sampled_from((None, None, 1, 2))


class PutSubscription(msgspec.Struct, frozen=True):
    """Say which report goes to whom, or that it does no longer."""

    n: int
    rule: str
    active: bool
    expected: int | None

    async def run(self, side: Side) -> object:
        """Put it; a version that is not the stored one is refused."""
        said = report_subscription(self.n, rule=self.rule, active=self.active)
        return await side.store.put_subscription(side.tenant_id, said, actor="kim", expected=self.expected)


class PlanSubscriptions(msgspec.Struct, frozen=True):
    """Claim what is to be planned, and finish it, for a while or for good, unless the worker is lost."""

    is_lost: bool
    for_good: bool

    async def run(self, side: Side) -> object:
        """Claim them."""
        claims = await side.store.claim_subscriptions(limit=2, lease=LEASE)
        again = None if self.for_good else LATER
        done = () if self.is_lost else [await side.store.finish_subscription(one, look_again=again) for one in claims]
        return [(one.record.subscription, one.token) for one in claims], done


class RunByHand(msgspec.Struct, frozen=True):
    """Have a report written now."""

    n: int

    async def run(self, side: Side) -> object:
        """Ask for it."""
        row = manual_row(report_subscription(self.n), guid(self.n, "run"), now=SOURCE_AT, correlation_id="request")
        return (await side.store.run_subscription(side.tenant_id, row, actor="kim")).outcome


async def subscriptions_of(side: Side) -> list[SubscriptionRecord]:
    """List them page by page; each is the one that is found by its guid."""
    rows: list[SubscriptionRecord] = []
    after = None
    while page := await side.store.list_subscriptions(side.tenant_id, after=after, limit=2):
        for one in page:
            assert await side.store.find_subscription(side.tenant_id, one.subscription.guid) == one
        rows += page
        after = page[-1].subscription.guid
    return rows


async def deliveries_of(side: Side) -> list[DeliveryCount]:
    """Count all messages, page by page."""
    counts: list[DeliveryCount] = []
    place: tuple[str, str] | None = None
    until = SOURCE_AT + timedelta(days=3650)
    while page := await side.store.count_deliveries(
        side.tenant_id, start_at=SOURCE_AT - timedelta(days=3650), end_at=until, after=place, limit=1
    ):
        counts += page
        place = page[-1].notification_type, page[-1].channel
    return counts


async def totals_of(side: Side, broadcast: str) -> BroadcastTotals:
    """Add up a broadcast."""
    return await side.store.count_broadcast(side.tenant_id, broadcast)


_N: Final = st.integers(1, 3)

SUBSCRIPTION_OPERATIONS: Final = (
    (2, st.builds(PutSubscription, n=_N, rule=st.sampled_from(RULES), active=st.booleans(), expected=EXPECTED)),
    (2, st.builds(PlanSubscriptions, is_lost=st.booleans(), for_good=st.booleans())),
    (1, st.builds(RunByHand, n=_N)),
)
