"""What an engine's error means to an operator: one table an engine, from the engine's code to ours.

It reads errors and raises ours; what to do about them stands in their hints. An error that no line of a table knows is
a step that does not fit the database, which is our fault until shown otherwise. Messages name the store without its
password.
"""

import contextlib
import errno
import os
import socket
import sqlite3
import ssl
from collections.abc import Iterator
from typing import Final, TypeAlias
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import asyncpg

from clarion.errors import (
    BadConfiguration,
    BrokenInvariant,
    ClarionError,
    SchemaUnknown,
    StoreBusy,
    StoreFull,
    StoreReadOnly,
    StoreUnreachable,
)

Row: TypeAlias = tuple[type[ClarionError], str, str]

UNREACHABLE: Row = (StoreUnreachable, "does not answer", "see that the server runs and can be reached, then try again")

NO_SPACE: Row = (StoreFull, "has no space left", "make space on its disk, then try again")

# By SQLSTATE, or by its class (the first two characters) where the whole class means the same.
POSTGRES: dict[str, Row] = {
    "08": UNREACHABLE,
    "57": UNREACHABLE,
    "53300": (StoreUnreachable, "has no connection left", "raise its max_connections or stop a client, then try again"),
    "3D000": (StoreUnreachable, "has no such database", "create the database, or correct its name"),
    "28": (BadConfiguration, "refuses the user or the password", "correct the credentials of the store"),
    "42501": (BadConfiguration, "forbids it", "grant the role CREATE on the schema, or migrate as the owner"),
    "3F000": (
        BadConfiguration,
        "has no schema to create tables in",
        "create the first schema of the role's search_path",
    ),
    "25006": (StoreReadOnly, "is read-only", "name the primary server, not a standby"),
    "53100": NO_SPACE,
    "55P03": (StoreBusy, "holds locks for longer than we wait", "end its long transactions, then try again"),
    "40P01": (StoreBusy, "holds locks against ours", "try again when it has less to do"),
}

# By primary result code, which extended codes carry in their low byte; by the extended code where it says more.
SQLITE: dict[int, Row] = {
    sqlite3.SQLITE_BUSY: (StoreBusy, "is locked by another process", "stop the process that holds it, then try again"),
    sqlite3.SQLITE_LOCKED: (StoreBusy, "is locked by this process", "close its other connection, then try again"),
    sqlite3.SQLITE_READONLY: (StoreReadOnly, "is read-only", "make the file and its folder writable for this user"),
    sqlite3.SQLITE_PERM: (StoreReadOnly, "is not ours to write", "make the file and its folder writable for this user"),
    sqlite3.SQLITE_CANTOPEN: (StoreUnreachable, "cannot be opened", "see that it is a file that this user may open"),
    # A quota or a limit on the size of files comes as this one, and not as a full disk.
    sqlite3.SQLITE_IOERR: (
        StoreUnreachable,
        "cannot be read or written",
        "see that its disk has space and is sound, then try again",
    ),
    sqlite3.SQLITE_FULL: NO_SPACE,
    sqlite3.SQLITE_IOERR_SHMSIZE: NO_SPACE,  # no room for the few kB of `-shm` that every opened database needs
    sqlite3.SQLITE_NOTADB: (SchemaUnknown, "is not an SQLite database", "name another file; this is left as it was"),
    sqlite3.SQLITE_CORRUPT: (SchemaUnknown, "is a damaged SQLite database", "restore it from a backup"),
}


@contextlib.contextmanager
def postgres_failures(store: str) -> Iterator[None]:
    """Turn what asyncpg raises inside the block into ours; `store` is named in the message and holds no password."""
    try:
        yield
    except asyncpg.PostgresError as error:
        state = error.sqlstate or ""
        said = why_unreachable(error) if isinstance(error, LOST) else str(error)
        raise _ours(POSTGRES.get(state) or POSTGRES.get(state[:2]), store, error, said=said) from error
    except (OSError, asyncpg.InternalClientError, asyncpg.InterfaceError) as error:
        if isinstance(error, ValueError):  # asyncpg's word for an address or option that it cannot read
            raise _ours((BadConfiguration, "has an address that cannot be read", "correct it"), store, error) from error
        raise _ours(UNREACHABLE, store, error, said=why_unreachable(error)) from error


LOST: Final = asyncpg.PostgresConnectionError
"""What the driver says by itself, though it looks like a word of the server's."""


def why_unreachable(error: Exception) -> str:
    """Say why a server gave no answer, in our words: Python's and the driver's name numbers and functions of theirs."""
    match error:
        case TimeoutError():
            return "it took too long"
        case ConnectionRefusedError():
            return "it refuses connections"
        case socket.gaierror():
            return "no address is known for its host"
        case FileNotFoundError():
            return "no server has a socket in that folder"
        case ssl.SSLError():
            return "it and this program cannot agree on TLS"
        case OSError(errno=int(number)):
            return os.strerror(number)
        case OSError() if f"[Errno {errno.ECONNREFUSED}]" in str(error):  # its host has several addresses
            return "it refuses connections"
        case OSError():
            return "it cannot be reached"
        case _:
            return "the connection was lost"


@contextlib.contextmanager
def sqlite_failures(store: str) -> Iterator[None]:
    """Turn what sqlite3 raises inside the block into ours; `store` is named in the message."""
    try:
        yield
    except sqlite3.Error as error:
        # Errors that the module raises by itself (a closed connection, wrong use) carry no code.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK)
        raise _ours(SQLITE.get(code) or SQLITE.get(code & 0xFF), store, error) from error


def without_password(url: str) -> str:
    """Return the address of a server as it may be shown, without its password and without options."""
    if "@" not in url and "?" not in url:
        return url  # a file's has neither, and putting it together again would lose a slash
    try:
        parts = urlsplit(url)
        options = [(name, value) for name, value in parse_qsl(parts.query) if name in ("host", "port")]
    except ValueError:
        return "the store"  # an address that cannot be read may have its password anywhere
    user, _, place = parts.netloc.rpartition("@")
    name = user.partition(":")[0]
    netloc = f"{name}@{place}" if name else place
    return urlunsplit((parts.scheme, netloc, parts.path, urlencode(options, safe="/"), ""))


def _ours(row: Row | None, store: str, error: Exception, *, said: str | None = None) -> ClarionError:
    """Make our error of a row of a table, with what was said; an error without a row is a defect of a step."""
    if row is None:
        step = " ".join(["schema step", *getattr(error, "__notes__", [])])  # `ledger` notes the file's name
        return BrokenInvariant(f"{step} does not fit {store}, which said: {error}")
    kind, what, hint = row
    return kind(f"{store} {what} ({error if said is None else said})", hint=hint)
