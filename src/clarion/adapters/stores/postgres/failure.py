"""What PostgreSQL's errors mean to those who can end them, while the program is at work.

The table of the migration (`migration.failure`) holds what is true at any time; here stand the lines that are different
or appear only at work. Reads errors and raises ours. What the server says is repeated only where it speaks of itself:
where it refuses a row, it quotes the row.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import asyncpg

from clarion.adapters.stores.migration.failure import LOST, POSTGRES, UNREACHABLE, Row, why_unreachable
from clarion.errors import (
    BadConfiguration,
    BrokenInvariant,
    ClarionError,
    InvalidInput,
    OperatorError,
    SchemaMissing,
    StoreBusy,
    StoreUnreachable,
)

# By SQLSTATE, or by its class (the first two characters) where the whole class means the same.
AT_WORK: Final[dict[str, Row]] = {
    **POSTGRES,
    "42501": (BadConfiguration, "forbids it", "grant the role SELECT, INSERT, UPDATE and DELETE on its tables"),
    "42P01": (SchemaMissing, "lacks a table", "run `clarion migrate` on it, or correct the role's search_path"),
    "42703": (SchemaMissing, "lacks a column", "run `clarion migrate` on it"),
    "57014": (StoreBusy, "took longer than a statement may", "try again when it has less to do"),
    "53": (StoreBusy, "lacks memory or another resource", "look at its log, then try again"),
    "25P03": (StoreUnreachable, "ended a transaction of ours that stood still", "try again"),
    "58": (StoreUnreachable, "cannot read or write its files", "look at its log and its disk"),
    "XX": (StoreUnreachable, "has an internal error", "look at its log"),
}

_TOO_LATE: Final[Row] = (StoreUnreachable, "did not answer in time", "see that it is well and near, then try again")

# What a transaction is repeated for: others had to go first, or a migration changed the type of a column, so that a
# statement which the connection had prepared no longer fits.
BROKEN_OFF: Final = (
    asyncpg.SerializationError,
    asyncpg.DeadlockDetectedError,
    asyncpg.InvalidCachedStatementError,
    asyncpg.OutdatedSchemaCacheError,
)


@contextmanager
def failures(store: str) -> Iterator[None]:
    """Turn what asyncpg raises inside the block into ours, except what the session repeats.

    `store` is named in the message and holds no password.
    """
    try:
        yield
    except BROKEN_OFF:
        raise  # the session repeats the transaction
    except asyncpg.PostgresError as error:
        ours = _meaning(error, store)
        # The server quotes the row that it refuses, and a traceback would show it.
        raise ours from (error if isinstance(ours, OperatorError) else None)
    except UnicodeEncodeError:
        raise _unstorable("half of a surrogate pair") from None
    except TimeoutError as error:
        raise _named(_TOO_LATE, store) from error
    except (OSError, asyncpg.InternalClientError, asyncpg.InterfaceError) as error:
        if isinstance(error, ValueError):  # asyncpg's word for a parameter that it cannot send
            raise _unstorable("a value that its column cannot hold") from None
        raise _named(UNREACHABLE, store, said=why_unreachable(error)) from error


@contextmanager
def address_failures(store: str) -> Iterator[None]:
    """Refuse an address that the driver cannot take apart; it says so in several ways, which may quote the address."""
    try:
        yield
    except (ValueError, IndexError):
        raise BadConfiguration(
            f"{store} has an address that cannot be read",
            hint="write it as postgresql://user:password@host:5432/database",
        ) from None


def _meaning(error: asyncpg.PostgresError, store: str) -> ClarionError:
    """Find the line of the table for an error of the server."""
    state = error.sqlstate or ""
    if state.startswith("22"):
        return _unstorable("a value that its column cannot hold")
    row = AT_WORK.get(state) or AT_WORK.get(state[:2])
    if row is None:
        place = getattr(error, "constraint_name", None) or getattr(error, "table_name", None) or "no constraint"
        return BrokenInvariant(f"{store} refused a statement ({state}, {place})")
    # Without the details, which are for the server's own log.
    return _named(row, store, said=why_unreachable(error) if isinstance(error, LOST) else str(error.args[0]))


def _named(row: Row, store: str, *, said: str = "") -> ClarionError:
    """Make our error of a line of the table, with what was said to us."""
    kind, what, hint = row
    return kind(f"{store} {what} ({said})" if said else f"{store} {what}", hint=hint)


def _unstorable(what: str) -> InvalidInput:
    """Refuse what no column can hold: the caller's text came to us unchecked."""
    return InvalidInput(
        f"the set holds {what}", field="items", hint="send well-formed text without NUL and sane numbers"
    )
