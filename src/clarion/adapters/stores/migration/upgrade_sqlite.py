"""Bring an SQLite file up to date: all steps in one transaction, so that it is as before or at the target.

The write lock is taken before anything is read: of several processes that migrate at once, one does the work and the
others find it done. The file is made readable for its owner only; the journal mode and what else a running store sets
belong to the store.
"""

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import clarion
from clarion.adapters.stores.migration.compatibility import read_sqlite, revision_for
from clarion.adapters.stores.migration.failure import sqlite_failures
from clarion.adapters.stores.migration.history import HISTORY, History
from clarion.errors import BrokenInvariant, StoreReadOnly, StoreUnreachable
from clarion.ports.store import Migrated

# Longer than any write of a running program takes (at most 1,000 rows a transaction), short enough for a person.
BUSY_TIMEOUT = timedelta(seconds=30)


def migrate_sqlite(
    path: Path | str,
    *,
    target: str | None = None,
    history: History = HISTORY,
    program: str = clarion.__version__,
    busy_timeout: timedelta = BUSY_TIMEOUT,
) -> Migrated:
    """Apply the steps that the file lacks, up to `target` or all of them, and report them."""
    # Importing alembic takes half a second, which only a migration should pay.
    from clarion.adapters.stores.migration import ledger

    path = Path(path).absolute()
    store = f"sqlite:///{path}"
    _make_private(path)
    with (
        sqlite_failures(store),
        contextlib.closing(_connect(path, busy_timeout=busy_timeout)) as connection,
        ledger.wrap_sqlite(connection) as wrapped,
    ):
        connection.execute("BEGIN IMMEDIATE")
        with wrapped.begin():  # writes no BEGIN of its own, and ends ours: by a commit, or by a rollback on an error
            before = revision_for(
                read_sqlite(connection), engine="sqlite", store=store, program=program, history=history
            )
            steps = history.ahead(current=before, target=target)
            if steps:
                run_sql = partial(_run_sql, connection, history)
                ledger.upgrade(wrapped, history=history, target=steps[-1], run_sql=run_sql)
    return Migrated(from_revision=before, to_revision=steps[-1] if steps else before, steps=steps)


def statements(sql: str) -> Iterator[str]:
    """Split a file into statements by SQLite's own notion of a complete one: triggers hold semicolons too."""
    statement = ""
    *pieces, rest = sql.split(";")
    for piece in pieces:
        statement += f"{piece};"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if (statement + rest).strip():
        yield statement + rest


def _make_private(path: Path) -> None:
    """Make the file, readable for its owner only, unless it is there."""
    try:
        # Never opening one that is there: closing it would drop the locks of a store in this same process.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return
    except FileNotFoundError:
        raise StoreUnreachable(
            f"the folder {path.parent} does not exist", hint="create it, or name another file"
        ) from None
    except (PermissionError, NotADirectoryError, IsADirectoryError) as error:
        raise StoreReadOnly(
            f"no file can be made in {path.parent} ({error.strerror})", hint="make the folder writable for this user"
        ) from None


def _connect(path: Path, *, busy_timeout: timedelta) -> sqlite3.Connection:
    """Open a file that is there; transactions are ours to begin and end."""
    # By its address, so that no name means something else to sqlite3 (":memory:"), and never making a file, whose mode
    # would be the umask's.
    address = f"{path.as_uri()}?mode=rw"
    return sqlite3.connect(address, uri=True, timeout=busy_timeout.total_seconds(), isolation_level=None)


def _run_sql(connection: sqlite3.Connection, history: History, _step: object, name: str) -> str:
    """Run a step's file inside the transaction that is open on the connection; return its text."""
    sql = history.sql("sqlite", name)
    for statement in statements(sql):
        connection.execute(statement)
        if not connection.in_transaction:
            raise BrokenInvariant(f"the schema step {name} ends the transaction that it runs in")
    return sql
