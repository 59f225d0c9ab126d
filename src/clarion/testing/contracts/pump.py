"""A worker that a test moves by hand: it makes messages, claims and records them, and looks at what is stored.

After everything it does, it holds the store to what is true at every commit: states, due times and leases agree,
every change of state has left its line, and the counters of a broadcast are the sum of its rows.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import count
from typing import Final
from uuid import UUID

import msgspec

from clarion.domain.address import AddressVersion
from clarion.domain.call import CallOutcome
from clarion.domain.claim import CallResult, ClaimedMessage, FlowHead, FlowQuota, LowMark
from clarion.domain.guard import JobEntry
from clarion.domain.messaging import MessagingJob
from clarion.domain.notification import NotificationJob
from clarion.domain.outgoing import DUE, LEASED, OUTGOING_MESSAGE, OutgoingMessage, OutgoingStatus
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.factories import address_version, guid, messaging_job, notification_job, outgoing_item
from clarion.testing.row import DeliveryAttempt, FlowCount, QueueEntry, Transition

LEASE: Final = timedelta(seconds=60)
ROUTE: Final = "email:default"
ACCOUNT: Final = "main"
ACCOUNTS: Final = (ACCOUNT, "other", "mail-1", "mail-2")
BROADCAST: Final = "a broadcast"
"""What makes a row's states count: a test that gives it to its pump holds the counters to every step."""

ORDER_KEY: Final = "0123456789abcdef" * 2
PAYLOAD: Final = b"sealed \x00 payload"

_TOKENS: Final = count(1)


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """A row as it is stored, with all that happened to it."""

    message: OutgoingMessage
    entry: QueueEntry
    lines: list[Transition]
    attempts: list[DeliveryAttempt]

    @property
    def status(self) -> OutgoingStatus:
        """Where the row stands."""
        return self.message.status

    @property
    def way(self) -> list[OutgoingStatus]:
        """The states that the row went through."""
        return [OutgoingStatus.CREATED, *(line.to_status for line in self.lines)]


class Pump:
    """One worker, one step at a time."""

    def __init__(
        self, harness: StoreHarness, *, actor: str = "worker-1", broadcast: str = "", tenant_id: str | None = None
    ) -> None:
        """Work on the store under test, for its tenant or another; messages are of this broadcast by default."""
        self._harness = harness
        self._actor = actor
        self._source = broadcast
        self._tenant_id = tenant_id or harness.tenant_id

    async def message(self, job: int = 1, to: int | None = None, **fields: object) -> OutgoingMessage:
        """Store the message of a job to a person, the person of the same number unless told otherwise."""
        return await self._send(await self.job(job), job if to is None else to, {"broadcast": self._source, **fields})

    async def campaign(self, people: int, n: int = 1, **fields: object) -> list[OutgoingMessage]:
        """Store a campaign's messages to so many people."""
        parent = messaging_job(n, template_key="newsletter", template_version=3)
        (stored,) = await self._harness.store.ensure_messaging_jobs(self._tenant_id, [parent])
        return [await self._send(stored.record, person, fields) for person in range(1, people + 1)]

    async def job(self, n: int = 1, **fields: object) -> NotificationJob:
        """Store a job with a payload and a template."""
        what = {"payload": PAYLOAD, "template_key": "welcome", "template_version": 2, "traceparent": "00-trace"}
        job = notification_job(n, **{**what, **fields})
        (stored,) = await self._harness.store.ensure_notification_jobs(self._tenant_id, [JobEntry(job=job)])
        return stored.record

    async def _send(
        self, parent: NotificationJob | MessagingJob, to: int, fields: dict[str, object]
    ) -> OutgoingMessage:
        address = await self.address(to)
        (answer,) = await self._harness.store.ensure_outgoing_messages(
            self._tenant_id, [outgoing_item(parent, address, **fields)]
        )
        assert answer.proceeds
        return answer.record

    async def address(self, n: int) -> AddressVersion:
        """Store a person's address."""
        (answer,) = await self._harness.store.ensure_address_versions(self._tenant_id, [address_version(n)])
        return answer.record

    async def heads(self, *routes: str, lows: dict[int, LowMark] | None = None) -> list[FlowHead]:
        """Discover the flows that have work."""
        found = await self._harness.store.discover_flows(routes=routes or (ROUTE,), lows=lows or {})
        return sorted(found.heads, key=lambda head: head.flow_id)

    async def claim(
        self, *, quota: int = 100, account: str = ACCOUNT, lease: timedelta = LEASE, routes: Sequence[str] = (ROUTE,)
    ) -> list[ClaimedMessage]:
        """Claim whatever is due, each flow through its account, in the order in which it was due."""
        quotas = [
            FlowQuota(flow_id=head.flow_id, quota=quota, account=head.account or account)
            for head in await self.heads(*routes)
        ]
        return await self.take(quotas, lease=lease)

    async def take(self, quotas: Sequence[FlowQuota], *, lease: timedelta = LEASE) -> list[ClaimedMessage]:
        """Claim these quotas under a new token."""
        token = guid(next(_TOKENS), "token")
        claimed = await self._harness.store.claim_outgoing(quotas, token=token, lease=lease, actor=self._actor)
        assert all(one.claim_token == token for one in claimed)
        await self.check()
        return sorted(claimed, key=lambda one: (one.was_due_at, one.id))

    async def claim_one(self, **how: str) -> ClaimedMessage:
        """Claim the only row that is due."""
        (claimed,) = await self.claim(**how)  # type: ignore[arg-type]  # an account, by name
        return claimed

    async def record(self, outcome: CallOutcome, *claimed: ClaimedMessage, **fields: object) -> list[OutgoingStatus]:
        """Record one outcome for each claim; return where the rows are after it."""
        results = [result(one, outcome, **fields) for one in claimed]
        await self._harness.store.record_outgoing(results, actor=self._actor)
        await self.check()
        by_id = {row.id: row.status for row in await self._harness.rows(self._tenant_id, OutgoingMessage)}
        return [by_id[one.id] for one in claimed]

    async def rescue(self, after: timedelta = LEASE + timedelta(seconds=1)) -> int:
        """Let leases run out and rescue what they held."""
        await self._harness.elapse(after)
        rescued = await self._harness.store.rescue_outgoing(limit=100)
        await self.check()
        return rescued

    async def seen(self, outgoing_id: int | None) -> Seen:
        """Look at one row."""
        tenant_id = self._tenant_id
        (message,) = [row for row in await self._harness.rows(tenant_id, OutgoingMessage) if row.id == outgoing_id]
        entries = await self._harness.rows(tenant_id, QueueEntry)
        (entry,) = [row for row in entries if (row.pk, row.rk) == (message.pk, message.rk)]
        lines = await self._harness.rows(tenant_id, Transition)
        attempts = await self._harness.rows(tenant_id, DeliveryAttempt)
        return Seen(
            message=message,
            entry=entry,
            lines=sorted((row for row in lines if row.outgoing_id == outgoing_id), key=lambda row: row.version),
            attempts=sorted((row for row in attempts if row.outgoing_id == outgoing_id), key=lambda row: row.attempt),
        )

    async def status(self, message: OutgoingMessage) -> OutgoingStatus:
        """Tell where a row stands."""
        return (await self.seen(message.id)).status

    async def check(self) -> None:
        """Hold what is stored to what must be true after every commit."""
        rows = await self._harness.rows(self._tenant_id, OutgoingMessage)
        entries = {(one.pk, one.rk): one for one in await self._harness.rows(self._tenant_id, QueueEntry)}
        lines = await self._harness.rows(self._tenant_id, Transition)
        for row in rows:
            entry = entries[row.pk, row.rk]
            assert (entry.due_at is not None) == (row.status in DUE), row
            assert (entry.lease_until is not None) == (row.status in LEASED), row
            assert entry.settle_at is None or row.status is OutgoingStatus.UNCERTAIN, row
            _check_lines(row, [line for line in lines if line.outgoing_id == row.id])
        await self._check_counts(rows, entries)

    async def _check_counts(self, rows: Sequence[OutgoingMessage], entries: dict[tuple[str, str], QueueEntry]) -> None:
        """I-41: of every flow with a broadcast, and of no other, the counters are the sum of its rows' states."""
        expected: Counter[tuple[str, ...]] = Counter()
        for row in rows:
            entry = entries[row.pk, row.rk]
            if entry.broadcast:
                expected[entry.lane, entry.route, entry.broadcast, entry.pinned, row.status] += 1
        stored: Counter[tuple[str, ...]] = Counter()
        for one in await self._harness.rows(self._tenant_id, FlowCount):
            assert one.n >= 0, one
            stored[one.lane, one.route, one.broadcast, one.pinned, one.status] += one.n
        assert +stored == +expected
        for broadcast in {entry.broadcast for entry in entries.values() if entry.broadcast}:
            totals = await self._harness.store.count_broadcast(self._tenant_id, broadcast)
            by_rows: Counter[str] = Counter()
            for (_, _, of, _, status), number in expected.items():
                by_rows[status] += number if of == broadcast else 0
            assert Counter(totals.by_status) == +by_rows
            assert totals.total == by_rows.total()


def result(claimed: ClaimedMessage, outcome: CallOutcome, **fields: object) -> CallResult:
    """Make the result of a claim's call."""
    return msgspec.structs.replace(
        CallResult(
            id=claimed.id,
            bucket=claimed.bucket,
            claim_token=claimed.claim_token,
            attempt=claimed.attempts,
            outcome=outcome,
        ),
        **fields,
    )


def low_mark(claimed: ClaimedMessage) -> LowMark:
    """Make the low mark behind a claimed row."""
    return LowMark(due_at=claimed.was_due_at, id=claimed.id)


def other_token(claimed: ClaimedMessage, token: UUID) -> ClaimedMessage:
    """Take a claim for one under another token."""
    return msgspec.structs.replace(claimed, claim_token=token)


def near(one_at: datetime | None, other_at: datetime, *, within: timedelta = timedelta(seconds=20)) -> bool:
    """Tell whether two instants are the same, but for the time that a test takes on an engine with its own clock."""
    return one_at is not None and abs(one_at - other_at) <= within


def _check_lines(row: OutgoingMessage, lines: Sequence[Transition]) -> None:
    """I-42: the lines of a row lead without a gap from its making to where it stands, each a legal move."""
    status, version = OutgoingStatus.CREATED, 1
    for line in sorted(lines, key=lambda line: line.version):
        assert line.from_status is status, (row, line)
        assert line.version > version, (row, line)
        assert OUTGOING_MESSAGE.may(from_=status, to=line.to_status), (row, line)
        assert line.actor
        status, version = line.to_status, line.version
    assert (row.status, row.version) == (status, version), (row, lines)
