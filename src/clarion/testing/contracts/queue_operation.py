"""Operations on a queue that chance can put together: sends, claims, results, receipts, cancels, and time that passes.

An operation names rows, claims and jobs by small numbers, so that most of them meet others, and answers in names that
are the same in every store; so the same one can run on two.
"""

from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

import msgspec
from hypothesis import strategies as st

from clarion.domain.call import Accepted, CallOutcome, Deferred, Misconfigured, NotCalled, Refused, Unknown
from clarion.domain.claim import ClaimedMessage, FlowQuota, Gate, Settlement
from clarion.domain.guard import JobEntry
from clarion.domain.identity import Lane
from clarion.domain.outgoing import EVIDENCE_ORDER, OutgoingMessage, OutgoingStatus
from clarion.ports.track import ProviderEvent
from clarion.testing.contracts.harness import StoreHarness, by_key
from clarion.testing.contracts.pump import ACCOUNTS, LEASE, ROUTE, result
from clarion.testing.factories import address_version, guid, notification_job, outgoing_item

OUTCOMES: Final[tuple[CallOutcome, ...]] = (
    Accepted(provider_message_id="p-1"),
    Accepted(),
    Deferred(reason="busy"),
    Deferred(reason="throttled", throttled=True),
    Misconfigured(reason="bad password"),
    Refused(reason="no"),
    Refused(reason="nobody", recipient_not_found=True),
    Unknown(reason="lost"),
    NotCalled(reason="not ready"),
    NotCalled(reason="cannot be merged", leads_to=OutgoingStatus.FAILED_FINAL),
    NotCalled(reason="too late", leads_to=OutgoingStatus.UNCERTAIN),
)
BROADCAST: Final = "campaign"


class Side:
    """One of the two stores: its harness, the tenant, the claims that were made on it so far and what came of each."""

    def __init__(self, harness: StoreHarness, tenant_id: str) -> None:
        """Start without claims."""
        self.harness = harness
        self.store = harness.store
        self.tenant_id = tenant_id
        self.claims: list[ClaimedMessage] = []
        self.said: dict[int, CallOutcome] = {}

    async def rows(self) -> list[OutgoingMessage]:
        """Read the tenant's rows in an order that is the same on both sides."""
        return by_key(await self.harness.rows(self.tenant_id, OutgoingMessage))

    async def names(self) -> dict[int, tuple[str, str]]:
        """Name each row by its keys instead of its id."""
        return {row.id or 0: (row.pk, row.rk) for row in await self.rows()}


class QueueOperation(Protocol):
    """Something to do to a queue."""

    async def run(self, side: Side) -> object:
        """Do it, and give what it came to."""
        ...


class Send(msgspec.Struct, frozen=True):
    """Ensure a message of a job to a person."""

    job: int
    to: int
    in_broadcast: bool
    ordered: bool
    due_in: int
    expires_in: int | None

    async def run(self, side: Side) -> object:
        """Ensure job, address and message."""
        job = notification_job(self.job)
        (address,) = await side.store.ensure_address_versions(side.tenant_id, [address_version(self.to)])
        await side.store.ensure_notification_jobs(side.tenant_id, [JobEntry(job=job)])
        now = await side.harness.now()
        item = outgoing_item(
            job,
            address.record,
            broadcast=BROADCAST if self.in_broadcast else "",
            lane=Lane.NORMAL,
            order_key=guid(self.to, "order").hex if self.ordered else None,
            due_at=now + timedelta(seconds=self.due_in),
            expires_at=None if self.expires_in is None else now + timedelta(seconds=self.expires_in),
        )
        (answer,) = await side.store.ensure_outgoing_messages(side.tenant_id, [item])
        return answer.outcome


class Claim(msgspec.Struct, frozen=True):
    """Claim of every flow that has work."""

    quota: int
    account: str
    token: int

    async def run(self, side: Side) -> object:
        """Discover and claim; remember the claims."""
        found = await side.store.discover_flows(routes=(ROUTE,), lows={})
        quotas = [
            FlowQuota(flow_id=head.flow_id, quota=self.quota, account=head.account or self.account)
            for head in found.heads
        ]
        token = guid(self.token, f"token-{len(side.claims)}")
        claimed = await side.store.claim_outgoing(quotas, token=token, lease=LEASE, actor="worker")
        claimed.sort(key=lambda one: (one.message_id, one.key_hash, one.attempt_no or 0))
        side.claims += claimed
        heads = sorted((head.lane, head.broadcast, head.account) for head in found.heads)
        return heads, found.next_due_in, [_without_ids(one) for one in claimed]


class Record(msgspec.Struct, frozen=True):
    """Record an outcome for one of the claims so far, counted from the latest."""

    back: int
    outcome: int
    delay: int
    final: bool

    async def run(self, side: Side) -> object:
        """Record it, if there is such a claim."""
        if self.back >= len(side.claims):
            return None
        place = len(side.claims) - 1 - self.back
        # A call comes to one thing: what is recorded again is the same, only an unknown outcome may become known.
        outcome = side.said.get(place, OUTCOMES[self.outcome])
        if not isinstance(outcome, Unknown):
            side.said[place] = outcome
        one = result(side.claims[place], outcome, delay=timedelta(seconds=self.delay), final=self.final)
        return [recorded.status for recorded in await side.store.record_outgoing([one], actor="worker")]


class Rescue(msgspec.Struct, frozen=True):
    """Rescue what workers left behind."""

    async def run(self, side: Side) -> object:
        """Rescue all of it."""
        return await side.store.rescue_outgoing(limit=100)


class Settle(msgspec.Struct, frozen=True):
    """Decide about every uncertain send in the same way."""

    replay: bool
    duplicate: bool

    async def run(self, side: Side) -> object:
        """Find the uncertain sends and settle them."""
        names = await side.names()
        uncertain = sorted(await side.store.find_uncertain(accounts=ACCOUNTS, limit=100), key=lambda one: names[one.id])
        settlements = [
            Settlement(
                id=one.id,
                bucket=one.bucket,
                version=one.version,
                replay=self.replay,
                counts_as_duplicate=self.replay and self.duplicate,
                reason="decided",
            )
            for one in uncertain
        ]
        settled = await side.store.settle_uncertain(settlements, actor="settle")
        return [_without_ids(one) for one in uncertain], sorted(names[one] for one in settled)


class Receive(msgspec.Struct, frozen=True):
    """Keep an event about a row, by our key or by a provider's id."""

    place: int
    status: int
    ours: bool
    event: int

    async def run(self, side: Side) -> object:
        """Keep it, if there is such a row."""
        rows = await side.rows()
        if not rows:
            return None
        row = rows[self.place % len(rows)]
        event = ProviderEvent(
            account="main",
            event_id=f"event-{self.event}",
            status=EVIDENCE_ORDER[self.status],
            message_id=row.message_id if self.ours else None,
            recipient_key_hash=row.rk.partition("_")[0] if self.ours else None,
            provider_message_id=None if self.ours else "p-1",
            happened_at=HAPPENED_AT,
            raw="{}",
        )
        return await side.store.keep_events(side.tenant_id, [event])


class Apply(msgspec.Struct, frozen=True):
    """Apply the events that can be applied."""

    async def run(self, side: Side) -> object:
        """Apply all of them."""
        return await side.store.apply_events(limit=100, actor="track")


class SetGate(msgspec.Struct, frozen=True):
    """Open, pause or cancel the one broadcast."""

    gate: Gate

    async def run(self, side: Side) -> object:
        """Set its gate."""
        return await side.store.set_gate(side.tenant_id, BROADCAST, self.gate, actor="sam")


class Sweep(msgspec.Struct, frozen=True):
    """Clear away what was called off."""

    async def run(self, side: Side) -> object:
        """Sweep all of it."""
        return await side.store.sweep_canceled(limit=100)


class Cancel(msgspec.Struct, frozen=True):
    """Call a job off."""

    job: int

    async def run(self, side: Side) -> object:
        """Cancel it."""
        return await side.store.cancel_job(side.tenant_id, notification_job(self.job).guid, actor="sam")


class Retry(msgspec.Struct, frozen=True):
    """Have a row sent again on a person's word."""

    place: int

    async def run(self, side: Side) -> object:
        """Retry it, if there is such a row."""
        rows = await side.rows()
        if not rows:
            return None
        row = rows[self.place % len(rows)]
        return await side.store.retry_outgoing(
            side.tenant_id, row.id or 0, version=row.version, actor="sam", reason="again"
        )


class Elapse(msgspec.Struct, frozen=True):
    """Let time pass, for both stores at once: they share a clock."""

    seconds: int

    async def run(self, side: Side) -> object:
        """Do nothing by itself."""
        return await side.harness.now()


HAPPENED_AT: Final = datetime(2026, 1, 14, 8, 0, tzinfo=UTC)


def _without_ids(found: msgspec.Struct) -> dict[str, object]:
    """Give what a store handed out without what it chose by itself."""
    return {name: value for name, value in msgspec.structs.asdict(found).items() if name not in ("id", "flow_id")}


# How often each is drawn: claims and results make the timeline, the rest is only interesting around them, and a cancel
# ends it.
_DRAWN: Final[tuple[tuple[int, st.SearchStrategy[QueueOperation]], ...]] = (
    (
        8,
        st.builds(
            Claim, quota=st.integers(1, 3), account=st.sampled_from(("main", "main", "other")), token=st.integers(1, 2)
        ),
    ),
    (
        10,
        st.builds(
            Record,
            back=st.sampled_from((0, 0, 0, 1, 2, 3)),
            outcome=st.integers(0, len(OUTCOMES) - 1),
            delay=st.sampled_from((0, 0, 40, 300)),
            final=st.sampled_from((False, False, False, True)),
        ),
    ),
    (
        5,
        st.builds(
            Send,
            job=st.integers(1, 4),
            to=st.integers(1, 3),
            in_broadcast=st.booleans(),
            ordered=st.sampled_from((True, True, False)),
            due_in=st.sampled_from((0, 0, 0, 45)),
            expires_in=st.sampled_from((None, None, None, 70)),
        ),
    ),
    (5, st.builds(Elapse, seconds=st.sampled_from((1, 41, 61, 61, 301)))),
    (3, st.builds(Rescue)),
    (3, st.builds(Settle, replay=st.sampled_from((True, True, False)), duplicate=st.booleans())),
    (
        3,
        st.builds(
            Receive,
            place=st.integers(0, 9),
            status=st.integers(0, len(EVIDENCE_ORDER) - 1),
            ours=st.sampled_from((True, True, False)),
            event=st.integers(1, 9),
        ),
    ),
    (2, st.builds(Apply)),
    (2, st.builds(Retry, place=st.integers(0, 9))),
    (1, st.builds(SetGate, gate=st.sampled_from((Gate.OPEN, Gate.OPEN, Gate.PAUSED, Gate.CANCELED)))),
    (1, st.builds(Sweep)),
    (1, st.builds(Cancel, job=st.integers(1, 4))),
)
QUEUE_OPERATIONS: Final = st.sampled_from(
    [place for place, (times, _) in enumerate(_DRAWN) for _ in range(times)]
).flatmap(lambda place: _DRAWN[place][1])
