"""Settings and wiring: the only place that reads the environment and chooses adapters.

Adapters are found by the scheme of a URL through entry points (`clarion.stores`, `clarion.blobs`, `clarion.vaults`),
ours exactly as a stranger's. Everything below takes what it needs as arguments.
"""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import entry_points
from pathlib import Path
from typing import Protocol, cast
from urllib.parse import quote

import msgspec

from clarion.adapters.host import HostClock, random_bytes
from clarion.dispatch import DeliveryDispatcher
from clarion.errors import InvalidInput, SchemaMissing, SchemaOutdated
from clarion.ports.blobs import Blobs
from clarion.ports.clock import Clock
from clarion.ports.store import Migrated, Store
from clarion.ports.vault import Randomness, Vault


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Where this installation keeps things, as URLs."""

    store: str
    blobs: str
    vault: str
    home: Path | None = None  # made by `prepare` where anything lies in it by default


class StoreEngine(Protocol):
    """What an entry point of `clarion.stores` offers."""

    async def open_store(self, url: str, *, clock: Clock) -> Store:
        """Open a migrated store."""
        ...

    async def migrate(self, url: str) -> Migrated:
        """Bring the store's schema up to date; safe when several processes do it at once."""
        ...


class BlobOpener(Protocol):
    """What an entry point of `clarion.blobs` offers."""

    def __call__(self, url: str) -> Blobs:
        """Open a blob store."""
        ...


class VaultKind(Protocol):
    """What an entry point of `clarion.vaults` offers."""

    def open_vault(self, url: str, *, randomness: Randomness) -> Vault:
        """Open a vault that was created."""
        ...

    def create_vault(self, url: str, *, randomness: Randomness) -> None:
        """Make the vault of a new installation unless it exists."""
        ...


class Platform(msgspec.Struct, frozen=True, kw_only=True):
    """One open installation."""

    store: Store
    blobs: Blobs
    dispatcher: DeliveryDispatcher
    clock: Clock


def load_settings(environ: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings; without any, everything lies in the folder `clarion-data` where the program is started."""
    home = Path(environ.get("CLARION_HOME") or "clarion-data").absolute()
    places = {name: environ.get(f"CLARION_{name.upper()}") for name in ("store", "blobs", "vault")}
    return Settings(
        store=places["store"] or f"sqlite:///{home}/clarion.db",
        blobs=places["blobs"] or f"file://{quote(str(home))}/blobs",
        vault=places["vault"] or f"file://{quote(str(home))}/master.key",
        home=None if all(places.values()) else home,
    )


async def prepare(settings: Settings) -> Migrated:
    """Bring the schema up to date and, for a new installation, make the vault; safe to do again and at once.

    The vault is made only where there is no schema yet, and before it: a master key that is missing later was lost, and
    a new one in its place would open nothing.
    """
    if settings.home is not None:
        settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    engine = _engine(settings)
    try:
        store = await engine.open_store(settings.store, clock=HostClock())
        await store.close()
    except SchemaOutdated:
        pass  # an installation that is to be updated; its vault must be there
    except SchemaMissing:
        _vault(settings).create_vault(settings.vault, randomness=random_bytes)
    return await engine.migrate(settings.store)


@asynccontextmanager
async def open_platform(settings: Settings) -> AsyncIterator[Platform]:
    """Open store, blobs and vault, and close them again."""
    clock, engine, vault_kind = HostClock(), _engine(settings), _vault(settings)
    open_blobs = cast(BlobOpener, _adapter("blobs", settings.blobs, setting="CLARION_BLOBS"))
    blobs, vault = open_blobs(settings.blobs), vault_kind.open_vault(settings.vault, randomness=random_bytes)
    store = await engine.open_store(settings.store, clock=clock)
    try:
        yield Platform(
            store=store,
            blobs=blobs,
            dispatcher=DeliveryDispatcher(store=store, blobs=blobs, vault=vault),
            clock=clock,
        )
    finally:
        await store.close()


def _engine(settings: Settings) -> StoreEngine:
    return cast(StoreEngine, _adapter("stores", settings.store, setting="CLARION_STORE"))


def _vault(settings: Settings) -> VaultKind:
    return cast(VaultKind, _adapter("vaults", settings.vault, setting="CLARION_VAULT"))


def _adapter(group: str, url: str, *, setting: str) -> object:
    """Load what an entry point names for a URL's scheme, or say which schemes there are."""
    scheme = url.partition(":")[0]
    found = entry_points(group=f"clarion.{group}")
    if scheme not in found.names:
        raise InvalidInput(
            f"no adapter is installed for the URL scheme {scheme!r}",
            field=setting,
            hint=f"use a URL that starts with one of: {', '.join(sorted(found.names))}",
        )
    return found[scheme].load()
