"""Looking into an SQLite store from a test: its own connection, and the statements that it runs."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from clarion.adapters.stores.sqlite import SqliteStore

# A commit itself, and the parts of one that several methods share.
_FRAME = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE")
# What time it begins at, once for all its methods.
_CLOCK = ("SELECT high_water, boot, ahead FROM store_clock",)
# What a commit writes once for all its methods, at its end: counts of campaigns, and the clock's mark once a second.
_SHARED = ("INSERT INTO flow_count", "UPDATE store_clock")


class Counted:
    """The statements of methods, and apart from them those that a commit adds at its end."""

    def __init__(self) -> None:
        self.frame: list[str] = []
        self.clock: list[str] = []
        self.methods: list[str] = []
        self.shared: list[str] = []

    def note(self, statement: str) -> None:
        kinds = ((_FRAME, self.frame), (_CLOCK, self.clock), (_SHARED, self.shared))
        noted = next((into for starts, into in kinds if statement.startswith(starts)), self.methods)
        noted.append(statement)


def connection_of(store: SqliteStore) -> sqlite3.Connection:
    """The store's own connection, which belongs to the thread of its runner."""
    opened = store._core._session._opened
    assert opened is not None
    return opened[0]


@contextmanager
def counted(store: SqliteStore) -> Iterator[Counted]:
    """Every statement that SQLite runs for a store whose runner is inline."""
    counted = Counted()
    connection_of(store).set_trace_callback(counted.note)
    yield counted
    connection_of(store).set_trace_callback(None)
