"""One connection, its clock, and the one way to run a transaction on it.

Everything that this store asks of SQLite goes through here: a `BEGIN IMMEDIATE` for each commit, which one store method
has for itself or several share under savepoints; our own errors instead of the driver's; and time from the registered
function `clarion_now()` only, which stands still inside a commit. Synchronous: a session is opened, used and closed in
one thread, that of its runner. What is asked lives in the other modules of the package, beside its SQL.
"""

import atexit
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from typing import Any, Final, TypeVar

import msgspec

from clarion.adapters.stores.migration import HISTORY, check_sqlite
from clarion.adapters.stores.query import Query, load
from clarion.adapters.stores.shared.statement import Statement
from clarion.adapters.stores.shared.transaction import Argument
from clarion.adapters.stores.sqlite import codec
from clarion.adapters.stores.sqlite.clock import Kept, StoreClock
from clarion.adapters.stores.sqlite.failure import failures
from clarion.adapters.stores.sqlite.location import Location
from clarion.errors import BadConfiguration, BrokenInvariant, StoreDamaged
from clarion.ports.clock import Clock

S = TypeVar("S", bound=msgspec.Struct)
Parameter = str | int | bytes | None

LIBRARY_MIN: Final = (3, 38, 0)
"""The first with the operator `->>`; strict tables and RETURNING are older."""

BUSY_TIMEOUT: Final = timedelta(seconds=5)
"""For another process to end its transaction: a thousand rows take some ten milliseconds, a schema step or a backup may
take seconds, and a caller that has waited for five should rather hear of it than hold on to its request."""

_SWITCHES_MAX: Final = 10
"""Attempts to switch a file to its log. The loser of two that try at once waits for the winner and finds it done, so a
second attempt is enough unless others come between."""

# Every commit is on disk before it is answered (F-44). Sorting a set takes no file: it holds a thousand rows at most.
# 64 MB of pages keep the indexes of a queue of a million rows at hand. The log is carried over to the file every 16 MB:
# rows are written three times within seconds (made, claimed, recorded), and so their pages are copied once, not thrice.
_SETTINGS: Final = (
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -65536",
    "PRAGMA wal_autocheckpoint = 4096",
)

# On PostgreSQL the keys of outgoing messages are a table of their own (decision 0021). Here they are columns of the
# message, and this view lets a shared statement ask for them by the same name.
OUTGOING_KEY: Final = """
CREATE TEMP VIEW outgoing_key AS
SELECT tenant_id, bucket, pk, rk, message_id, id AS outgoing_id FROM outgoing_message
"""

_CLOCK: Final = load(__package__, "clock.sql")


class Transaction:
    """What one store method asks inside a commit; it is kept or rolled back as a whole, by its session."""

    def __init__(self, connection: sqlite3.Connection, *, now: int) -> None:
        """Ask over a connection on which a transaction has begun, at this time."""
        self._connection = connection
        self.now = now

    def rows(self, query: Query, **parameters: Parameter) -> list[tuple[Any, ...]]:
        """Run one statement and return what it returns."""
        return self._connection.execute(query.sql, parameters).fetchall()

    def table(self, query: Query, **parameters: Parameter) -> tuple[codec.Columns, list[tuple[Any, ...]]]:
        """Run one statement and return the names of its columns and its rows."""
        cursor = self._connection.execute(query.sql, parameters)
        return tuple(column[0] for column in cursor.description), cursor.fetchall()

    def records(self, kind: type[S], query: Query, **parameters: Parameter) -> list[S]:
        """Run one statement and return its rows as records of one kind."""
        columns, rows = self.table(query, **parameters)
        return list(map(codec.reader(kind, columns), rows))

    async def fetch(self, kind: type[S], statement: Statement, /, **given: Argument) -> list[S]:
        """Run a shared statement, at once, and return its rows as records."""
        cursor = self._connection.execute(statement.sqlite, codec.named(statement, given))
        return list(map(codec.reader(kind, tuple(column[0] for column in cursor.description)), cursor.fetchall()))

    async def copy(self, statement: Statement, /, **given: Argument) -> tuple[codec.Columns, list[tuple[Any, ...]]]:
        """Run a shared statement, at once, and return the names of its columns and its rows."""
        cursor = self._connection.execute(statement.sqlite, codec.named(statement, given))
        return tuple(column[0] for column in cursor.description), cursor.fetchall()

    def paste(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Parameter | float]]) -> None:
        """Put rows into a table of ours; what the table computes by itself is left out."""
        own = {
            name
            for _, name, _, _, _, _, hidden in self._connection.execute(f"PRAGMA table_xinfo({table})")
            if not hidden
        }
        kept = [place for place, name in enumerate(columns) if name in own]
        names, marks = ", ".join(columns[place] for place in kept), ", ".join("?" * len(kept))
        insert = f"INSERT INTO {table} ({names}) VALUES ({marks})"  # noqa: S608  names of our own tables
        self._connection.executemany(insert, ([row[place] for place in kept] for row in rows))

    async def execute(self, statement: Statement, /, **given: Argument) -> int:
        """Run a shared statement, at once, and return how many rows it wrote."""
        return self._connection.execute(statement.sqlite, codec.named(statement, given)).rowcount

    async def lock(self, what: str, /) -> None:
        """Do nothing: there is one writer at a time."""

    async def share(self, what: str, /) -> None:
        """Do nothing, for the same reason."""


class Commit:
    """A transaction of SQLite that several store methods share, each in a part of its own."""

    def __init__(self, connection: sqlite3.Connection, clock: StoreClock, *, store: str) -> None:
        """Share what has begun on this connection."""
        self._connection = connection
        self._clock = clock
        self._store = store
        self._before = connection.total_changes

    @property
    def changes(self) -> int:
        """How many rows were written so far."""
        return self._connection.total_changes - self._before

    @property
    def stands(self) -> bool:
        """Whether there is still something to commit: SQLite ends a transaction by itself where the disk is full."""
        return self._connection.in_transaction

    @contextmanager
    def part(self) -> Iterator[Transaction]:
        """Run the block under a savepoint: if it fails, nothing of it is kept and the other parts are as they were."""
        with failures(self._store):
            self._connection.execute("SAVEPOINT part")
            try:
                with self.whole() as transaction:
                    yield transaction
            except BaseException:
                if self.stands:
                    self._connection.execute("ROLLBACK TO part")
                    self._connection.execute("RELEASE part")
                raise
            self._connection.execute("RELEASE part")

    @contextmanager
    def whole(self) -> Iterator[Transaction]:
        """Run the block as all that is committed."""
        transaction = Transaction(self._connection, now=self._clock.now())
        yield transaction

    def finish(self) -> None:
        """Write what is written once for all parts: what the file keeps of the time."""
        if self.changes and (kept := self._clock.to_keep()) is not None:
            keep_clock(self._connection, kept)


class Session:
    """The connection to one database."""

    def __init__(
        self, location: Location, *, clock: Clock, busy_timeout: timedelta = BUSY_TIMEOUT, any_clock: bool = False
    ) -> None:
        """Open nothing yet: that is for the thread which will use the connection.

        With `any_clock` it is opened whatever the machine's clock says: for those who look at the time, or set it.
        """
        self._location = location
        self._host_clock = clock
        self._busy_timeout = busy_timeout
        self._any_clock = any_clock
        self._opened: tuple[sqlite3.Connection, StoreClock] | None = None
        self._identity: tuple[int, int] | None = None

    def open(self) -> None:
        """Connect to a database that is there and that this program may use; one in memory is made."""
        require_library(sqlite3.sqlite_version_info)
        if self._location.path is not None:
            self._location.require_file()
        with failures(self._location.shown):
            connection = self._connect()
            self._identity = self._location.identity()
            try:
                self._opened = connection, self._prepare(connection)
            except BaseException:
                connection.close()
                raise

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._opened is not None:
            connection, _ = self._opened
            self._opened = None
            with failures(self._location.shown):
                connection.close()

    @property
    def connection(self) -> sqlite3.Connection:
        """The open connection itself: a test of a store in memory has no other way to look at its rows."""
        return self._in_use()[0]

    @property
    def clock(self) -> StoreClock:
        """The store's clock."""
        return self._in_use()[1]

    def monotonic(self) -> float:
        """Return the seconds of the host's monotonic clock, for measuring how long something takes."""
        return self._host_clock.monotonic()

    @contextmanager
    def commit(self) -> Iterator[Commit]:
        """Run the block as one transaction that may write: all of it is committed, or nothing is."""
        connection, clock = self._in_use()
        with failures(self._location.shown):
            connection.execute("BEGIN IMMEDIATE")  # so that waiting for another writer happens here and nowhere later
            try:
                clock.follow(read_clock(connection))
                with clock.standing_still():
                    commit = Commit(connection, clock, store=self._location.shown)
                    yield commit
                    commit.finish()
                self._require_same_file()
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:  # SQLite has ended it by itself where the disk is full
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Run the block as one method with a commit of its own."""
        with self.commit() as commit, commit.whole() as transaction:
            yield transaction

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """Run a block that only reads: it sees one state of the database and waits for no writer."""
        connection, clock = self._in_use()
        self._require_same_file()
        with failures(self._location.shown):
            connection.execute("BEGIN")
            try:
                clock.follow(read_clock(connection))
                with clock.standing_still():
                    yield Transaction(connection, now=clock.now())
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def _require_same_file(self) -> None:
        """Raise where the file was deleted or replaced: SQLite would go on in one that nobody finds again."""
        if self._location.identity() != self._identity:
            raise StoreDamaged(
                f"{self._location.shown} was deleted or replaced while it was in use",
                hint="stop all that use it, put it back or restore it from a backup, and start them again",
            )

    def _in_use(self) -> tuple[sqlite3.Connection, StoreClock]:
        """Return the connection and its clock."""
        if self._opened is None:
            raise BrokenInvariant("a store was used before it was opened or after it was closed")
        return self._opened

    def _connect(self) -> sqlite3.Connection:
        """Open the database and leave transactions to us; never make a file, whose mode would be the umask's."""
        path = self._location.path
        return sqlite3.connect(
            ":memory:" if path is None else f"{path.absolute().as_uri()}?mode=rw",
            uri=path is not None,
            timeout=self._busy_timeout.total_seconds(),
            isolation_level=None,
            check_same_thread=path is not None,  # one in memory may be closed by whichever thread drops it last
        )

    def _prepare(self, connection: sqlite3.Connection) -> StoreClock:
        """Check the schema, choose how the file is written, and give SQL its functions."""
        if self._location.path is None:
            _schema().backup(connection)
        else:
            connection.execute("SELECT count(*) FROM sqlite_schema")  # is it a database at all, and a sound one?
            check_sqlite(connection, store=self._location.url)
            _use_log(connection, store=self._location.shown)
        for setting in _SETTINGS:
            connection.execute(setting)
        connection.execute(OUTGOING_KEY)
        clock = StoreClock(self._host_clock, read_clock(connection))
        if not self._any_clock:
            clock.require_near(store=self._location.shown)
        # To SQLite "deterministic" means: asked once a statement and not once a row. The clock stands still meanwhile.
        connection.create_function("clarion_now", 0, clock.now, deterministic=True)
        connection.create_function("clarion_bytes", 1, codec.unpack_bytes, deterministic=True)
        return clock


def require_library(version: tuple[int, int, int]) -> None:
    """Refuse an SQLite that does not know our SQL, before it says so in its own words."""
    if version < LIBRARY_MIN:
        raise BadConfiguration(
            f"the SQLite of this Python is {'.'.join(map(str, version))} and Clarion needs "
            f"{'.'.join(map(str, LIBRARY_MIN))} or newer",
            hint="use a Python that was built with a newer SQLite, or a PostgreSQL store",
        )


@cache
def _schema() -> sqlite3.Connection:
    """Build the schema once, for databases in memory to be copied from: a copy takes a hundredth of the time.

    Any thread may copy it, and nobody writes to it.
    """
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    for step in sorted((HISTORY.folder / "sqlite").glob("*.sql")):
        connection.executescript(step.read_text(encoding="utf-8"))
    atexit.register(connection.close)
    return connection


def read_clock(connection: sqlite3.Connection) -> Kept:
    """Read what the file keeps of the time."""
    high_water, boot, ahead = connection.execute(_CLOCK["read_clock"].sql).fetchone()
    return Kept(high_water=high_water, boot=boot, ahead=ahead)


def keep_clock(connection: sqlite3.Connection, kept: Kept) -> None:
    """Write it, in the transaction that is open."""
    connection.execute(_CLOCK["keep_clock"].sql, msgspec.structs.asdict(kept))


def _use_log(connection: sqlite3.Connection, *, store: str) -> None:
    """Have commits appended to a log (WAL), so that readers and the writer do not wait for each other.

    The file keeps this setting, so only the first store that opens it has anything to switch.
    """
    for attempt in range(1, _SWITCHES_MAX + 1):
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or attempt == _SWITCHES_MAX:
                raise
            # Two that switch at once would wait for each other for ever, so SQLite refuses one of them at once. It
            # waits here, for the other's transaction to end.
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
            continue
        if mode != "wal":
            raise BadConfiguration(
                f"{store} lies where no write-ahead log can be kept", hint="move it to a disk of this machine"
            )
        return
