"""A dispatcher over either engine, for tests."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import pytest

from clarion.adapters.blobs import open_blobs
from clarion.adapters.stores.postgres import open_store as open_postgres
from clarion.dispatch import DeliveryDispatcher
from clarion.ports.store import Store
from clarion.sealing.keyring import Keyring
from clarion.testing.clock import ManualClock
from clarion.testing.store import SqliteInMemory
from clarion.testing.vault import SeededVault

TENANT = "school"

ENGINES = ("sqlite", "postgresql")


class Door(NamedTuple):
    """A dispatcher and the store that it works on."""

    dispatcher: DeliveryDispatcher
    store: Store


@asynccontextmanager
async def open_door(request: pytest.FixtureRequest) -> AsyncIterator[Door]:
    """Open a dispatcher over the engine that a fixture is parametrised by."""
    if request.param == "sqlite":
        store: Store = SqliteInMemory(ManualClock())
    else:
        store = await open_postgres(request.getfixturevalue("migrated_postgres_url"), clock=ManualClock())
    keyring = Keyring(store, SeededVault())
    dispatcher = DeliveryDispatcher(store=store, blobs=open_blobs("memory://"), keyring=keyring)
    await dispatcher.ensure_tenant(TENANT)
    yield Door(dispatcher, store)
    await store.close()
