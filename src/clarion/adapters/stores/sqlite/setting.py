"""Looking at the store's time, and setting it to the machine's clock by a person's word (`clarion clock`).

Time is set only while nobody else has the file open: then no call is under way, and no process goes by the old time.
Forwards it is as if the time had passed. Back, what waits keeps the time that it had left: leases, retries, how long a
message may still be sent and when its first call of unknown outcome was all move by as much as the clock does. Times
that callers named stay, and so do those in histories, logs and keys. Writes an entry into every tenant's audit log.
"""

import sqlite3
from typing import Final

from clarion.adapters.stores.query import load
from clarion.adapters.stores.shared.audit import append_audit
from clarion.adapters.stores.shared.transaction import finished
from clarion.adapters.stores.sqlite.clock import instant
from clarion.adapters.stores.sqlite.location import Location
from clarion.adapters.stores.sqlite.session import Session, keep_clock, read_clock
from clarion.domain import act
from clarion.errors import StoreBusy
from clarion.ports.clock import Clock
from clarion.ports.store import ClockReading

_SQL: Final = load(__package__, "setting.sql")
_BACK: Final = ("set_back_schedulers", "set_back_messages", "set_back_receipts")


def read_time(location: Location, *, clock: Clock) -> ClockReading:
    """Say what time it is, whatever the machine's clock says."""
    session = Session(location, clock=clock, any_clock=True)
    session.open()
    try:
        return _reading(session, clock)
    finally:
        session.close()


def set_time(location: Location, *, clock: Clock, actor: str, reason: str) -> ClockReading:
    """Set the store's time to the machine's clock; return what both said before."""
    session = Session(location, clock=clock, any_clock=True)
    session.open()
    try:
        _require_alone(session.connection, store=location.shown)
        before = _reading(session, clock)
        with session.transaction() as transaction:
            was = session.clock.now()
            kept = session.clock.set_to_wall()
            by = was - kept.high_water
            if by > 0:
                for name in _BACK:
                    transaction.rows(_SQL[name], was=was, by=by)
            keep_clock(session.connection, kept)
            done = act.set_clock(from_at=instant(was), to_at=instant(kept.high_water), reason=reason, actor=actor)
            for (tenant_id,) in transaction.rows(_SQL["list_tenants"]):
                finished(append_audit(transaction, tenant_id, done))
    finally:
        session.close()
    return before


def _reading(session: Session, clock: Clock) -> ClockReading:
    high_water = read_clock(session.connection).high_water
    return ClockReading(
        machine_at=clock.now(),
        store_at=instant(session.clock.now()),
        mark_at=instant(high_water) if high_water else None,
    )


def _require_alone(connection: sqlite3.Connection, *, store: str) -> None:
    """Keep the file for this connection, which SQLite grants only where no other is open.

    For that the file leaves its log; the next store that opens it brings it back.
    """
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    try:
        (mode,) = connection.execute("PRAGMA journal_mode = DELETE").fetchone()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
            raise
        mode = "wal"
    if mode != "delete":
        raise StoreBusy(
            f"other processes have {store} open",
            hint="stop serve, work and every other command that uses it, then try again",
        )
