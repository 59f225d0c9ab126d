"""Operations on a queue that chance can put together: sends, claims, results, receipts, cancels, and time that passes.

An operation names rows, claims and jobs by small numbers, so that most of them meet others, and reads the ids that it
needs from the store that it runs on; so the same one can run on two.
"""

from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec
from hypothesis import strategies as st

from clarion.domain.call import Accepted, CallOutcome, Deferred, Misconfigured, NotCalled, Refused, Unknown
from clarion.domain.claim import FlowQuota, Gate, Settlement
from clarion.domain.guard import JobEntry
from clarion.domain.identity import Lane
from clarion.domain.outgoing import EVIDENCE_ORDER, OutgoingStatus
from clarion.domain.support import SupportCase
from clarion.domain.suppression import Cause, Signal, Suppression
from clarion.ports.track import ProviderEvent
from clarion.testing.contracts.pump import ACCOUNTS, LEASE, ROUTE, result
from clarion.testing.contracts.side import Operation, Side
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
    NotCalled(reason="no time was left", counts=False),
    NotCalled(reason="a defect", counts=False, is_defect=True),
    NotCalled(reason="cannot be merged", leads_to=OutgoingStatus.FAILED_FINAL),
    NotCalled(reason="too late", leads_to=OutgoingStatus.UNCERTAIN),
)
BROADCAST: Final = "campaign"
CATEGORY: Final = "news"
HAPPENED_AT: Final = datetime(2026, 1, 14, 8, 0, tzinfo=UTC)


class Send(msgspec.Struct, frozen=True):
    """Ensure a job's messages to some people, in this order."""

    job: int
    to: tuple[int, ...]
    in_broadcast: bool = False
    ordered: bool = True
    due_in: int = 0
    expires_in: int | None = None

    async def run(self, side: Side) -> object:
        """Ensure job, addresses and messages."""
        job = notification_job(self.job)
        versions = [address_version(n) for n in self.to]
        addresses = await side.store.ensure_address_versions(side.tenant_id, versions)
        await side.store.ensure_notification_jobs(side.tenant_id, [JobEntry(job=job)])
        now = await side.harness.now()
        items = [
            outgoing_item(
                job,
                address.record,
                broadcast=BROADCAST if self.in_broadcast else "",
                lane=Lane.NORMAL,
                order_key=guid(1 + n % 2, "order").hex if self.ordered else None,  # so that some share one
                due_at=now + timedelta(seconds=self.due_in),
                expires_at=None if self.expires_in is None else now + timedelta(seconds=self.expires_in),
                category=CATEGORY if self.job % 2 else None,
            )
            for n, address in zip(self.to, addresses, strict=True)
        ]
        return await side.store.ensure_outgoing_messages(side.tenant_id, items)


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
        side.claims += claimed
        return found, claimed


class Record(msgspec.Struct, frozen=True):
    """Record outcomes for some of the claims so far, each counted from the latest, in one set."""

    outcomes: tuple[tuple[int, int], ...]
    delay: int = 0
    final: bool = False

    async def run(self, side: Side) -> object:
        """Record them, those of which there is such a claim."""
        results = []
        for back, outcome in self.outcomes:
            place = len(side.claims) - 1 - back
            if place < 0:
                continue
            # A call comes to one thing: what is recorded again is the same, only an unknown outcome may become known.
            said = side.said.get(place, OUTCOMES[outcome])
            if not isinstance(said, Unknown):
                side.said[place] = said
            delay = timedelta(seconds=self.delay)
            results.append(result(side.claims[place], said, delay=delay, final=self.final, latency_ms=7))
        await side.store.record_outgoing(results, actor="worker")
        return len(results)


class Rescue(msgspec.Struct, frozen=True):
    """Rescue what workers left behind."""

    async def run(self, side: Side) -> object:
        """Rescue all of it."""
        return await side.store.rescue_outgoing(limit=100)


class Settle(msgspec.Struct, frozen=True):
    """Decide about every uncertain send in the same way."""

    replay: bool
    duplicate: bool
    delay: int = 0

    async def run(self, side: Side) -> object:
        """Find the uncertain sends and settle them, in the order in which they are found."""
        uncertain = await side.store.find_uncertain(accounts=ACCOUNTS, limit=100)
        settlements = [
            Settlement(
                id=one.id,
                bucket=one.bucket,
                version=one.version,
                replay=self.replay,
                counts_as_duplicate=self.replay and self.duplicate,
                reason="decided",
                delay=timedelta(seconds=self.delay),
            )
            for one in uncertain
        ]
        names = await side.names()
        return uncertain, sorted(names[one] for one in await side.store.settle_uncertain(settlements, actor="settle"))


class Receive(msgspec.Struct, frozen=True):
    """Keep events that come together, each about a row, by our key or by a provider's id.

    Each is (place, status, ours, id, signal); of two answers the one with the higher id is the later one.
    """

    events: tuple[tuple[int, int, bool, int, Signal | None], ...]

    async def run(self, side: Side) -> object:
        """Keep them, if there are rows."""
        rows = await side.rows()
        if not rows:
            return None
        events = []
        for place, status, ours, event, signal in self.events:
            row = rows[place % len(rows)]
            events.append(
                ProviderEvent(
                    account="main",
                    event_id=f"event-{event}",
                    status=EVIDENCE_ORDER[status],
                    message_id=row.message_id if ours else None,
                    recipient_key_hash=row.rk.partition("_")[0] if ours else None,
                    provider_message_id=None if ours else "p-1",
                    signal=signal,
                    happened_at=HAPPENED_AT + timedelta(seconds=event),
                    raw="{}",
                )
            )
        return await side.store.keep_events(side.tenant_id, events)


class Apply(msgspec.Struct, frozen=True):
    """Apply events that can be applied."""

    limit: int

    async def run(self, side: Side) -> object:
        """Apply as many as that."""
        return await side.store.apply_events(limit=self.limit, actor="track")


class SetGate(msgspec.Struct, frozen=True):
    """Open, pause or cancel the one broadcast."""

    gate: Gate

    async def run(self, side: Side) -> object:
        """Set its gate."""
        return await side.store.set_gate(side.tenant_id, BROADCAST, self.gate, actor="sam")


class Sweep(msgspec.Struct, frozen=True):
    """Clear away what was called off."""

    limit: int

    async def run(self, side: Side) -> object:
        """Sweep as much as that."""
        return await side.store.sweep_canceled(limit=self.limit)


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


class Resolve(msgspec.Struct, frozen=True):
    """Close a support case."""

    place: int

    async def run(self, side: Side) -> object:
        """Resolve it, if there is such a case."""
        cases = sorted(case.case_id for case in await side.harness.rows(side.tenant_id, SupportCase))
        if not cases:
            return None
        case_id = cases[self.place % len(cases)]
        return await side.store.resolve_support_case(side.tenant_id, case_id, actor="sam", resolution="mended")


class OptOut(msgspec.Struct, frozen=True):
    """Suppress a person or their address under a scope, or lift that."""

    person: int
    scope: str
    by_address: bool
    lift: bool

    async def run(self, side: Side) -> object:
        """Put or lift it."""
        of = address_version(self.person)
        subject = of.destination_index if self.by_address else of.recipient_id_hash
        if self.lift:
            return await side.store.lift_suppressions(side.tenant_id, [(subject, self.scope)], actor="sam")
        row = Suppression(subject=subject, scope=self.scope, cause=Cause.MANUAL)
        return await side.store.put_suppressions(side.tenant_id, [row], actor="sam")


class Elapse(msgspec.Struct, frozen=True):
    """Let time pass."""

    seconds: int

    async def run(self, side: Side) -> None:
        """Do nothing by itself: time passes for both sides at once."""


START: Final[tuple[Operation, ...]] = (
    Send(job=1, to=(1,)),
    Send(job=2, to=(1, 3), in_broadcast=True),
    Send(job=3, to=(4, 2), ordered=False),
)
"""Rows that wait for each other, so that the first claim finds something to rule about, and others that do not."""

_BACK: Final = st.sampled_from((0, 0, 0, 1, 2, 3))
_OUTCOME: Final = st.integers(0, len(OUTCOMES) - 1)

_EACH_ITS_OWN: Final = st.lists(st.tuples(_BACK, _OUTCOME), min_size=1, max_size=3, unique_by=lambda one: one[0]).map(
    tuple
)
_ALL_THE_SAME: Final = st.builds(
    lambda outcome, number: tuple((back, outcome) for back in range(number)), _OUTCOME, st.integers(2, 4)
)

# How often each is drawn: claims and results make the timeline, the rest is only interesting around them, and a cancel
# ends it.
_DRAWN: Final[tuple[tuple[int, st.SearchStrategy[Operation]], ...]] = (
    (
        8,
        st.builds(
            Claim, quota=st.integers(1, 4), account=st.sampled_from(("main", "main", "other")), token=st.integers(1, 2)
        ),
    ),
    (
        10,
        st.builds(
            Record,
            outcomes=st.one_of(_EACH_ITS_OWN, _ALL_THE_SAME),
            delay=st.sampled_from((0, 0, 40, 300)),
            final=st.sampled_from((False, False, False, True)),
        ),
    ),
    (
        5,
        st.builds(
            Send,
            job=st.integers(1, 4),
            to=st.lists(st.integers(1, 4), min_size=1, max_size=3, unique=True).map(tuple),
            in_broadcast=st.booleans(),
            ordered=st.booleans(),
            due_in=st.sampled_from((0, 0, 0, 45)),
            expires_in=st.sampled_from((None, None, None, 70)),
        ),
    ),
    (5, st.builds(Elapse, seconds=st.sampled_from((1, 41, 61, 61, 301)))),
    (3, st.builds(Rescue)),
    (
        3,
        st.builds(
            Settle,
            replay=st.sampled_from((True, True, False)),
            duplicate=st.booleans(),
            delay=st.sampled_from((0, 0, 30)),
        ),
    ),
    (
        3,
        st.builds(
            Receive,
            events=st.lists(
                st.tuples(
                    st.integers(0, 9),
                    st.integers(0, len(EVIDENCE_ORDER) - 1),
                    st.sampled_from((True, True, False)),
                    st.integers(1, 9),
                    st.sampled_from((None, None, None, *Signal)),
                ),
                min_size=1,
                max_size=3,
            ).map(tuple),
        ),
    ),
    (3, st.builds(Apply, limit=st.sampled_from((1, 100)))),
    (2, st.builds(Retry, place=st.integers(0, 9))),
    (1, st.builds(Resolve, place=st.integers(0, 9))),
    (2, st.builds(SetGate, gate=st.sampled_from((Gate.OPEN, Gate.OPEN, Gate.PAUSED, Gate.CANCELED)))),
    (3, st.builds(Sweep, limit=st.sampled_from((1, 100)))),
    (1, st.builds(Cancel, job=st.integers(1, 4))),
    (
        2,
        st.builds(
            OptOut,
            person=st.integers(1, 4),
            scope=st.sampled_from(("*", CATEGORY, f"{CATEGORY}:email", f"{CATEGORY}:sms")),
            by_address=st.booleans(),
            lift=st.booleans(),
        ),
    ),
)
QUEUE_OPERATIONS: Final = st.sampled_from(
    [place for place, (times, _) in enumerate(_DRAWN) for _ in range(times)]
).flatmap(lambda place: _DRAWN[place][1])
