"""Asking the server how it keeps commits, when somebody asks (`clarion check`). What it means: `domain.durability`.

Reads settings and the list of standbys, over a connection of its own.
"""

from typing import Final

import asyncpg

from clarion.adapters.stores.migration.failure import without_password
from clarion.adapters.stores.postgres.failure import address_failures, failures
from clarion.adapters.stores.query import load
from clarion.domain.durability import Durability, warnings_of

_SQL: Final = load(__package__, "durability.sql")

_CONNECT_MAX: Final = 10
"""Seconds for the connection and for the answer: the store was opened a moment ago, so the server is there."""


async def warn(url: str) -> tuple[str, ...]:
    """Say what can make the server at `url` forget what it has answered."""
    store = without_password(url)
    with failures(store), address_failures(store):
        connection = await asyncpg.connect(url, timeout=_CONNECT_MAX, command_timeout=_CONNECT_MAX)
        try:
            row = await connection.fetchrow(_SQL["read_durability"].sql)
        finally:
            await connection.close()
    return () if row is None else warnings_of(Durability(**row))
