"""The sandbox's file: every call that it was given, whatever came of it, in an SQLite database of its own.

Tests read from it what was really delivered and how often; the demo shows it as the outbox. It holds destinations and
contents in the clear, so only this user may read the file. It survives a kill of the process but not a power cut, which
would cost a flush for every call.

What became of accepted messages lies beside them until the postman has brought it to whoever sent them, with the secret
that signs it. Who may see the outbox in a browser lies there too (`link`).

Synchronous; whoever uses it decides in which thread.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Final
from uuid import UUID

import msgspec

from clarion.domain.call import Call
from clarion.domain.content import Content
from clarion.domain.hint import Hints
from clarion.domain.identity import Channel
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.suppression import Signal
from clarion.errors import BadConfiguration
from clarion.sandbox import link
from clarion.sandbox.receipt import Receipt, WaitingReceipt

BUSY_TIMEOUT: Final = timedelta(seconds=5)
"""For another process to end its transaction, which is one insert."""

PAGE_MAX: Final = 200
"""Messages a page: more than anybody reads at once."""

_BEFORE_MAX: Final = 2**63 - 1
"""What SQLite holds; no message has this number."""

_SCHEMA: Final = """
create table if not exists call (
    id              integer primary key,
    called_at       integer not null,  -- microseconds since 1970
    outcome         text    not null,
    idempotency_key text    not null,
    tenant_id       text    not null,
    message_id      text    not null,
    channel         text    not null,
    destination     text    not null,
    content         text    not null,
    attempt         integer not null,
    correlation_id  text    not null,
    traceparent     text,
    headers         text,
    hints           text
) strict;
create index if not exists call_key on call (idempotency_key, outcome);
create table if not exists receipt (
    id          integer primary key,
    call_id     integer not null references call (id),
    status      text    not null,
    happened_at integer not null,  -- from then on it can be brought
    ended_at    integer,           -- when it was taken, or refused for good
    unique (call_id, status)
) strict;
create index if not exists receipt_waiting on receipt (happened_at) where ended_at is null;
create table if not exists identity (
    id     integer primary key check (id = 1),
    name   text not null,  -- tells the events of this file from those of another
    secret blob not null   -- signs them
) strict;
"""

_LATER_COLUMNS: Final = frozenset({"headers", "hints"})
"""Of `call`: a file that an earlier program made gets them when it is opened."""

_INSERT: Final = """
insert into call (called_at, outcome, idempotency_key, tenant_id, message_id, channel, destination, content, attempt,
                  correlation_id, traceparent, headers, hints)
values (:called_at, :outcome, :idempotency_key, :tenant_id, :message_id, :channel, :destination, :content, :attempt,
        :correlation_id, :traceparent, :headers, :hints)
returning id
"""

# The first delivery of a key that is still within the window; a duplicate does not start a new one.
_EARLIER: Final = """
select id from call
where idempotency_key = ? and outcome = 'accepted' and called_at > ?
order by id limit 1
"""

_PAGE: Final = """
select id, called_at, outcome, idempotency_key, tenant_id, message_id, channel, destination, content, attempt,
       correlation_id, headers, hints
from call
where outcome = 'accepted' and id < :before
  and (:tenant_id is null or tenant_id = :tenant_id) and (:channel is null or channel = :channel)
order by id desc limit :limit
"""


# SQLite's randomblob draws from the system's generator; a lint rule forbids Python's own sources of chance here.
_MAKE_IDENTITY: Final = """
insert or ignore into identity (id, name, secret) values (1, lower(hex(randomblob(4))), randomblob(32))
"""

_ADD_RECEIPT: Final = """
insert or ignore into receipt (call_id, status, happened_at) values (?, ?, ?)
"""

_WAITING: Final = """
select r.id, r.call_id, r.status, r.happened_at, c.tenant_id, c.idempotency_key
from receipt as r join call as c on c.id = r.call_id
where r.ended_at is null and r.happened_at <= ?
order by r.happened_at, r.id limit ?
"""


class Ending(StrEnum):
    """What became of a call at the provider, which is not always what its caller heard."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    TURNED_DOWN = "turned down"
    LOST = "lost"


class Entry(msgspec.Struct, frozen=True):
    """A call to write down, and what became of it unless its key is a repeated one; without a time it was just now.

    `receipt` is what will be said about it, if it is accepted and anything is.
    """

    call: Call
    ending: Ending
    called_at: datetime | None = None
    receipt: Receipt | None = None


class SandboxMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message that the sandbox accepted, as it was given."""

    id: int
    called_at: datetime
    outcome: Ending
    idempotency_key: str
    tenant_id: str
    message_id: UUID
    channel: Channel
    destination: str
    content: Content
    attempt: int
    correlation_id: str
    headers: dict[str, str] = {}
    hints: Hints | None = None


class OutboxPage(msgspec.Struct, frozen=True, kw_only=True):
    """Messages from the newest on, and where the next page begins, if there is one."""

    messages: tuple[SandboxMessage, ...]
    next_before: int | None


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """How many calls there were; `repeated_keys` counts keys that were delivered more than once."""

    calls: int
    accepted: int
    duplicates: int
    turned_down: int
    lost: int
    keys: int
    repeated_keys: int


class Ledger:
    """One open file."""

    def __init__(self, path: Path, *, busy_timeout: timedelta = BUSY_TIMEOUT) -> None:
        """Open a file, or make one for this user only."""
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Only where there is no file: closing any descriptor of an open database drops this process's locks on it.
            with suppress(FileExistsError):
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            self._connection = _connect(path, busy_timeout)
        except (OSError, sqlite3.Error) as error:
            raise BadConfiguration(
                f"the sandbox's file {path} cannot be used ({error})",
                hint="name a file that this user may write, on a disk with space",
            ) from None
        self.links = link.Links(self._connection)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def record(self, entries: Sequence[Entry], *, dedupe: timedelta | None = None) -> list[str | None]:
        """Write calls down, all or none; return the id of each one's delivery, or None where it was not delivered."""
        with self._transaction():
            now_at = self._now()
            return [self._insert(entry, entry.called_at or now_at, dedupe) for entry in entries]

    def page(
        self,
        *,
        before: int | None = None,
        limit: int = 50,
        tenant_id: str | None = None,
        channel: Channel | None = None,
    ) -> OutboxPage:
        """Return accepted messages, the newest first, from behind `before` on."""
        limit = max(1, min(limit, PAGE_MAX))
        rows = self._connection.execute(
            _PAGE,
            {
                "before": _BEFORE_MAX if before is None else max(0, min(before, _BEFORE_MAX)),
                "limit": limit + 1,
                "tenant_id": tenant_id,
                "channel": channel,
            },
        ).fetchall()
        messages = tuple(map(_message, rows[:limit]))
        return OutboxPage(messages=messages, next_before=messages[-1].id if len(rows) > limit else None)

    def find(self, message: int, *, tenant_id: str | None = None) -> SandboxMessage | None:
        """Return one accepted message, or None where there is none, or it is another tenant's."""
        found = self.page(before=message + 1, limit=1, tenant_id=tenant_id).messages
        return found[0] if found and found[0].id == message else None

    def identity(self) -> tuple[str, bytes]:
        """Return the name of this file and its secret, which are made when they are first asked for."""
        ask = "select name, secret from identity"
        found = self._connection.execute(ask).fetchone()
        if found is None:
            self._connection.execute(_MAKE_IDENTITY)
            found = self._connection.execute(ask).fetchone()
        name, secret = found
        return str(name), bytes(secret)

    def add_receipt(self, call_id: int, status: OutgoingStatus, signal: Signal | None = None) -> bool:
        """Have something said about an accepted call from now on; False where it was or will be said already."""
        receipt = Receipt(status, self._now(), signal)
        added = self._connection.execute(_ADD_RECEIPT, (call_id, receipt.said, _microseconds(receipt.happened_at)))
        return added.rowcount == 1

    def waiting_receipts(self, *, now: datetime, limit: int) -> list[WaitingReceipt]:
        """Return what is to be said by now and was not, the oldest first."""
        rows = self._connection.execute(_WAITING, (_microseconds(now), limit)).fetchall()
        return [
            WaitingReceipt(
                id=row[0],
                call_id=row[1],
                receipt=Receipt.read(row[2], _EPOCH + timedelta(microseconds=row[3])),
                tenant_id=row[4],
                idempotency_key=row[5],
            )
            for row in rows
        ]

    def end_receipts(self, ids: Sequence[int], *, now: datetime) -> None:
        """Note that these were taken, or refused for good."""
        with self._transaction():
            ended = [(_microseconds(now), one) for one in ids]
            self._connection.executemany("update receipt set ended_at = ? where id = ?", ended)

    def deliveries(self) -> dict[str, int]:
        """Count deliveries by idempotency key, for keys that were called at all."""
        return dict(
            self._connection.execute(
                "select idempotency_key, sum(outcome = 'accepted') from call group by idempotency_key"
            ).fetchall()
        )

    def totals(self) -> Totals:
        """Count everything."""
        counts = dict(self._connection.execute("select outcome, count(*) from call group by outcome").fetchall())
        deliveries = self.deliveries()
        return Totals(
            calls=sum(counts.values()),
            accepted=counts.get(Ending.ACCEPTED, 0),
            duplicates=counts.get(Ending.DUPLICATE, 0),
            turned_down=counts.get(Ending.TURNED_DOWN, 0),
            lost=counts.get(Ending.LOST, 0),
            keys=len(deliveries),
            repeated_keys=sum(count > 1 for count in deliveries.values()),
        )

    def _now(self) -> datetime:
        """Return the time by the database's own clock; exact to a millisecond."""
        (milliseconds,) = self._connection.execute(link.NOW).fetchone()
        return _EPOCH + timedelta(milliseconds=milliseconds)

    def _insert(self, entry: Entry, called_at: datetime, dedupe: timedelta | None) -> str | None:
        """Write one call down."""
        call, ending, earlier = entry.call, entry.ending, None
        if ending is Ending.ACCEPTED and dedupe is not None:
            since = _microseconds(called_at - dedupe)
            earlier = self._connection.execute(_EARLIER, (call.idempotency_key, since)).fetchone()
            ending = Ending.DUPLICATE if earlier else ending
        own = self._connection.execute(
            _INSERT,
            {
                "called_at": _microseconds(called_at),
                "outcome": ending,
                "idempotency_key": call.idempotency_key,
                "tenant_id": call.tenant_id,
                "message_id": str(call.message_id),
                "channel": call.channel,
                "destination": call.destination,
                "content": msgspec.json.encode(call.content).decode(),
                "attempt": call.attempt,
                "correlation_id": call.correlation_id,
                "traceparent": call.traceparent,
                "headers": msgspec.json.encode(call.headers).decode() if call.headers else None,
                "hints": None if call.hints is None else msgspec.json.encode(call.hints).decode(),
            },
        ).fetchone()
        if entry.receipt is not None and ending is Ending.ACCEPTED:
            said = (own[0], entry.receipt.said, _microseconds(entry.receipt.happened_at))
            self._connection.execute(_ADD_RECEIPT, said)
        delivered = ending in (Ending.ACCEPTED, Ending.DUPLICATE)
        return delivery_id((earlier or own)[0]) if delivered else None

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("begin immediate")
        try:
            yield
            self._connection.execute("commit")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("rollback")
            raise


def _connect(path: Path, busy_timeout: timedelta) -> sqlite3.Connection:
    """Open the file with its tables; where that fails, nothing stays open."""
    connection = sqlite3.connect(
        path, timeout=busy_timeout.total_seconds(), isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = normal")
        connection.executescript(_SCHEMA + link.SCHEMA)
        for name in _LATER_COLUMNS - {str(row[1]) for row in connection.execute("pragma table_info(call)")}:
            with suppress(sqlite3.OperationalError):  # another process has just added it
                connection.execute(f"alter table call add column {name} text")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def delivery_id(call_id: int) -> str:
    """Make the provider message id of a call that was accepted."""
    return f"sandbox-{call_id}"


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _microseconds(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1)


def _message(row: tuple[object, ...]) -> SandboxMessage:
    """Read a row of the outbox."""
    names = SandboxMessage.__struct_fields__
    fields = dict(zip(names, row, strict=True))
    fields["called_at"] = _EPOCH + timedelta(microseconds=int(str(fields["called_at"])))
    fields["content"] = msgspec.json.decode(str(fields["content"]))
    for name, absent in (("headers", "{}"), ("hints", "null")):
        fields[name] = msgspec.json.decode(str(fields[name] or absent))
    return msgspec.convert(fields, SandboxMessage)
