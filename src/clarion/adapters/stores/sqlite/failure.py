"""What SQLite's errors mean to those who can end them, while the program is at work.

The table of the migration (`migration.failure`) holds what is true at any time; here stand the lines that are different
at work. Reads errors and raises ours.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from clarion.adapters.stores.migration.failure import SQLITE, Row
from clarion.adapters.stores.sqlite.codec import unstorable
from clarion.errors import BrokenInvariant, ClarionError, StoreBusy, StoreDamaged, StoreFull

_NO_SPACE: Final[Row] = (
    StoreFull,
    "has no space left",
    "make space on its disk; nothing of this work was stored, so try again",
)

# By primary result code, which extended codes carry in their low byte; by the extended code where it says more.
AT_WORK: Final[dict[int, Row]] = {
    **SQLITE,
    sqlite3.SQLITE_BUSY: (
        StoreBusy,
        "was locked by another process for longer than we wait",
        "end what holds it (another Clarion, a backup, a shell with an open transaction), then try again",
    ),
    sqlite3.SQLITE_FULL: _NO_SPACE,
    sqlite3.SQLITE_IOERR_SHMSIZE: _NO_SPACE,
    sqlite3.SQLITE_NOTADB: (StoreDamaged, "is no SQLite database", "name another file; this one is as it was"),
    sqlite3.SQLITE_CORRUPT: (StoreDamaged, "is damaged", "stop all that use it and restore it from a backup"),
}

_DATATYPE: Final = 3091
"""SQLITE_CONSTRAINT_DATATYPE, which the module `sqlite3` does not name: a value of another type than its column's."""


@contextmanager
def failures(store: str) -> Iterator[None]:
    """Turn what sqlite3 raises inside the block into ours; `store` is what the message calls the database."""
    try:
        yield
    except sqlite3.Error as error:
        raise _meaning(error, store) from error
    except UnicodeEncodeError:
        raise unstorable("half of a surrogate pair") from None
    except OverflowError:  # the driver's word for a number of more than 64 bits
        raise unstorable("a value that its column cannot hold") from None


def _meaning(error: sqlite3.Error, store: str) -> ClarionError:
    """Find the line of the table for an error."""
    # Errors that the module raises by itself (a closed connection, another thread's) carry no code.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK)
    if code == _DATATYPE:
        return unstorable("a value that its column cannot hold")
    row = AT_WORK.get(code) or AT_WORK.get(code & 0xFF)
    if row is None:
        return BrokenInvariant(f"{store} refused a statement ({error})")  # SQLite names constraints, never values
    kind, what, hint = row
    return kind(f"{store} {what} ({error})", hint=hint)
