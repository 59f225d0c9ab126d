"""The PostgreSQL store: every port of storage over one pool of connections.

`store` is the surface, one transaction a method. What is the same on both engines comes from `stores.shared`; what is
hot or PostgreSQL's own lies here with its SQL: `outgoing` makes messages, `queue/` is claiming and recording, `track`
receipts. `session` keeps connections, time limits and repetition, `failure` says what the server's errors mean, `codec`
turns records into parameters and rows into records. `wake_up` wakes other processes, `durability` asks how commits are
kept.

A store opens a database that `migration` has prepared and refuses one that it may not use.
"""

from typing import TYPE_CHECKING, cast

import asyncpg

from clarion.adapters.stores.migration import check_postgres, migrate_postgres
from clarion.adapters.stores.migration.failure import without_password
from clarion.adapters.stores.postgres.durability import warn
from clarion.adapters.stores.postgres.session import Patience, Session
from clarion.adapters.stores.postgres.store import PostgresStore
from clarion.adapters.stores.postgres.wake_up import open_wake_up
from clarion.ports.clock import Clock
from clarion.ports.store import Migrated

if TYPE_CHECKING:
    from clarion.adapters.stores.postgres.session import Connection

__all__ = ["Patience", "PostgresStore", "migrate", "open_store", "open_wake_up", "warn"]


async def open_store(
    url: str,
    *,
    clock: Clock,  # noqa: ARG001  every store is opened alike; here the server's own now() judges due times and leases
    patience: Patience = Patience(),  # noqa: B008  frozen, so every call may share it
    connection_class: type["asyncpg.Connection[asyncpg.Record]"] = asyncpg.Connection,
) -> PostgresStore:
    """Open the database at `url`, for example `postgresql://user@/database?host=/run/postgresql`.

    The clock is not used: many processes share a server, and only its clock is the same for all of them.
    """
    store = without_password(url)

    async def check(connection: "Connection") -> None:
        # What the pool lends is a connection to asyncpg (isinstance says so), though not to its type stubs.
        await check_postgres(cast("asyncpg.Connection[asyncpg.Record]", connection), store=store)

    session = await Session.open(url, patience=patience, connection_class=connection_class)
    try:
        await session.read(check)
    except BaseException:
        await session.close()
        raise
    return PostgresStore(session)


async def migrate(url: str) -> Migrated:
    """Bring the database at `url` up to date."""
    return await migrate_postgres(url)
