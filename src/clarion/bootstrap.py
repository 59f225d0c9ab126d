"""Settings and wiring: the only place that reads the environment and chooses adapters.

Adapters are found by the scheme of a URL through entry points (`clarion.stores`, `clarion.blobs`, `clarion.vaults`),
ours exactly as a stranger's. Plugins of `clarion.reminders` and `clarion.events` are all used. Everything below takes
what it needs as arguments.
"""

import asyncio
import os
import re
import stat
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final, cast
from urllib.parse import quote

import msgspec

from clarion.adapters.host import HostClock, HostIds, random_bytes
from clarion.catalog.library import Library
from clarion.catalog.quarantine import Quarantine
from clarion.dispatch import DeliveryDispatcher
from clarion.domain import account
from clarion.domain.due import DUE_LEASE
from clarion.domain.identity import Channel
from clarion.domain.public_url import public_url
from clarion.errors import BadConfiguration, InvalidInput, SchemaMissing, SchemaOutdated
from clarion.ports.adapter import (
    BlobOpener,
    ClockCommand,
    Closing,
    Inspector,
    ProviderOpener,
    RendererOpener,
    StoreEngine,
    VaultKind,
    WakeUpOpener,
    Warner,
)
from clarion.ports.blobs import Blobs
from clarion.ports.clock import Clock, Ids
from clarion.ports.provider import Probed, Provider
from clarion.ports.renderer import Renderer
from clarion.ports.store import ClockReading, CopyStore, Migrated, Store
from clarion.ports.templates import Templates
from clarion.ports.vault import Randomness
from clarion.producers import registration
from clarion.producers.direct import DirectSends
from clarion.producers.due import Due
from clarion.producers.hand_over import Reminders
from clarion.producers.opening import Automation, open_automation
from clarion.producers.records import Records
from clarion.producers.report_plugin import Reports
from clarion.producers.reports import SubscriptionRuns
from clarion.producers.sources import Sources
from clarion.sealing.contents import MessagingContents
from clarion.sealing.keyring import Keyring
from clarion.sealing.recipients import RecipientSets
from clarion.sealing.traces import Traces

DEFAULT_HOME: Final = "clarion-data"
"""The folder of an installation that names none, below the one where the program is started."""

IN_MEMORY: Final = "sqlite://:memory:"
"""A store that is gone when it is closed."""

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}")


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Where this installation keeps things, as URLs."""

    store: str
    blobs: str
    vault: str
    providers: Mapping[str, str]  # channel → URL; `*` for every channel that is not named
    account_names: Mapping[str, str] = {}  # channel or `*` → what its URL calls its account, where it does
    public_url: str | None = None  # what every link that leaves begins with
    tenant: str | None = None  # of commands that name none
    home: Path | None = None  # made by `prepare` where anything lies in it by default


class Platform(msgspec.Struct, frozen=True, kw_only=True):
    """One open installation."""

    settings: Settings
    store: Store
    blobs: Blobs
    keyring: Keyring
    dispatcher: DeliveryDispatcher
    recipient_sets: RecipientSets
    contents: MessagingContents
    templates: Templates
    renderer: Renderer
    accounts: Mapping[str, str]  # route (a channel, for now) → account
    providers: Mapping[str, Provider]  # account → provider
    sends: DirectSends
    sources: Sources
    reports: Reports
    automation: Automation
    clock: Clock
    ids: Ids
    randomness: Randomness


def load_settings(environ: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings; without any, everything lies in the folder `clarion-data` where the program is started."""
    home = Path(environ.get("CLARION_HOME") or DEFAULT_HOME).absolute()
    places = {name: environ.get(f"CLARION_{name.upper()}") for name in ("store", "blobs", "vault")}
    providers, names = account.read(environ.get("CLARION_PROVIDERS") or f"*=sandbox://{quote(str(home))}/sandbox.db")
    url = environ.get("CLARION_PUBLIC_URL")
    return Settings(
        store=places["store"] or f"sqlite:///{home}/clarion.db",
        blobs=places["blobs"] or f"file://{quote(str(home))}/blobs",
        vault=places["vault"] or f"file://{quote(str(home))}/master.key",
        providers=providers,
        account_names=names,
        public_url=public_url(url, field="CLARION_PUBLIC_URL") if url else None,
        tenant=environ.get("CLARION_TENANT") or None,
        home=None if all(places.values()) else home,
    )


async def prepare(settings: Settings) -> Migrated:
    """Bring the schema up to date and, for a new installation, make the vault; safe to do again and at once.

    The vault is made only where there is no schema yet, and before it: a master key that is missing later was lost, and
    a new one in its place would open nothing.
    """
    if settings.home is not None:
        try:
            settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise BadConfiguration(
                f"the folder {settings.home} cannot be made ({error.strerror})",
                hint="let CLARION_HOME name a folder that this user may write",
            ) from None
        require_home(settings)
    engine, vault = _engine(settings), _vault(settings)
    try:
        store = await engine.open_store(settings.store, clock=HostClock())
        await store.close()
    except SchemaOutdated:
        pass  # an installation that is to be updated; its vault must be there
    except SchemaMissing:
        vault.create_vault(settings.vault, randomness=random_bytes)
    vault.open_vault(settings.vault, randomness=random_bytes)
    return await engine.migrate(settings.store)


def require_home(settings: Settings) -> None:
    """Raise where there is no folder, since only `migrate` makes one, or one in which others could replace files."""
    if settings.home is None:
        return
    if not settings.home.is_dir():
        raise BadConfiguration(
            f"there is no folder {settings.home}", hint="correct CLARION_HOME; for a new one, run: clarion migrate"
        )
    if settings.home.stat().st_mode & stat.S_IWOTH:
        raise BadConfiguration(
            f"every user may write to the folder {settings.home}", hint=f"run: chmod 700 {settings.home}"
        )


def load_renderer() -> Renderer:
    """Make a renderer, which needs nothing else of an installation."""
    return cast(Callable[[], Renderer], _adapter("renderers", "liquid", setting="renderer"))()


@asynccontextmanager
async def open_platform(settings: Settings, *, works: bool = False, by: Clock | None = None) -> AsyncIterator[Platform]:
    """Open store, blobs, vault and providers, which go `by` the machine's clock or another one, and close them again.

    A process that `works` for everybody merges templates in processes of their own; a command merges its own here.
    """
    require_home(settings)
    clock, ids = by or HostClock(), HostIds()
    engine, vault_kind = _engine(settings), _vault(settings)
    open_blobs = cast(BlobOpener, _adapter("blobs", settings.blobs, setting="CLARION_BLOBS"))
    open_renderer = cast(RendererOpener, _adapter("renderers", "liquid", setting="renderer"))
    vault, blobs = vault_kind.open_vault(settings.vault, randomness=random_bytes), open_blobs(settings.blobs)
    async with AsyncExitStack() as closing:
        store = await engine.open_store(settings.store, clock=clock)
        closing.push_async_callback(store.close)
        accounts, providers = await _open_providers(settings, closing, clock=clock)
        keyring, templates = Keyring(store, vault), Library(store)
        quarantine = Quarantine(store, stored=templates.note_quarantine)
        closing.push_async_callback(quarantine.close)
        renderer = open_renderer(apart=works, quarantined=quarantine.hear)
        if isinstance(renderer, Closing):
            closing.push_async_callback(renderer.close)
        dispatcher = DeliveryDispatcher(store=store, blobs=blobs, keyring=keyring)
        sends = DirectSends(dispatcher=dispatcher, templates=templates, renderer=renderer)
        sources = Sources(Records(store, keyring), registration.reminder_plugins(_loaders(registration.REMINDERS)))
        closing.push_async_callback(sources.close)
        reports = Reports(registration.report_plugins(_loaders(registration.REPORTS)))
        closing.push_async_callback(reports.close)
        automation = open_automation(
            store, sources=sources, sends=sends, processors=registration.event_processors(_loaders(registration.EVENTS))
        )
        closing.push_async_callback(automation.processors.close)
        yield Platform(
            settings=settings,
            store=store,
            blobs=blobs,
            keyring=keyring,
            dispatcher=dispatcher,
            recipient_sets=RecipientSets(blobs=blobs, keyring=keyring),
            contents=MessagingContents(blobs=blobs, keyring=keyring),
            templates=templates,
            renderer=renderer,
            accounts=accounts,
            providers=providers,
            sends=sends,
            sources=sources,
            reports=reports,
            automation=automation,
            clock=clock,
            ids=ids,
            randomness=random_bytes,
        )


def due_worker(platform: Platform, *, lease: timedelta = DUE_LEASE) -> Due:
    """Make the worker that hands over what has fallen due."""
    store = platform.store
    return Due(
        store=store,
        sources=store,
        facts=store,
        reminders=Reminders(
            settings=store,
            facts=store,
            jobs=store,
            sources=platform.sources,
            sends=platform.sends,
            dispatcher=platform.dispatcher,
        ),
        reports=SubscriptionRuns(
            reports=platform.reports,
            counts=store,
            facts=store,
            jobs=store,
            sends=platform.sends,
            dispatcher=platform.dispatcher,
            contents=platform.contents,
            keyring=platform.keyring,
            public_url=platform.settings.public_url,
        ),
        dispatcher=platform.dispatcher,
        traces=Traces(blobs=platform.blobs, keyring=platform.keyring),
        clock=platform.clock,
        lease=lease,
    )


@asynccontextmanager
async def open_memory(clock: Clock) -> AsyncIterator[tuple[CopyStore, Blobs]]:
    """Open a store and blobs in memory, which hold nothing: a copy is put in, and gone when they are closed."""
    engine = cast(StoreEngine, _adapter("stores", IN_MEMORY, setting="store"))
    open_blobs = cast(BlobOpener, _adapter("blobs", "memory://", setting="blobs"))
    store = await engine.open_store(IN_MEMORY, clock=clock)
    try:
        yield cast(CopyStore, store), open_blobs("memory://")
    finally:
        await store.close()


async def check(settings: Settings) -> None:
    """Open everything as the program would, a tenant's keys too, have the store look for damage, and try the accounts.

    Every account that can be tried is connected to, all at once, and nothing is sent.
    """
    async with open_platform(settings) as platform:
        for tenant_id in await platform.store.list_tenants(limit=1):
            await platform.keyring.get(tenant_id)  # they open only under the master key that wrapped them
        inspect = cast(Inspector | None, getattr(_engine(settings), "inspect", None))
        if inspect is not None:
            await inspect(settings.store)
        probed = {name: one for name, one in platform.providers.items() if isinstance(one, Probed)}
        found = await asyncio.gather(*(one.probe() for one in probed.values()))
    if unusable := [f"{name} ({why})" for name, why in zip(probed, found, strict=True) if why is not None]:
        raise BadConfiguration(
            f"the provider account {' and the account '.join(unusable)} cannot be used",
            hint="see that the server runs and can be reached from here, and that CLARION_PROVIDERS names it rightly",
        )


async def store_warnings(settings: Settings) -> tuple[str, ...]:
    """Say what of the store's server can lose what it has answered, where the engine can tell."""
    warn = cast(Warner | None, getattr(_engine(settings), "warn", None))
    return () if warn is None else await warn(settings.store)


async def read_clock(settings: Settings) -> ClockReading:
    """Say what time it is by this machine and by the store, also where the store refuses this machine's clock."""
    require_home(settings)
    engine, clock = _engine(settings), HostClock()
    read = cast(ClockCommand | None, getattr(engine, "read_clock", None))
    if read is not None:
        return await read(settings.store, clock=clock)
    store = await engine.open_store(settings.store, clock=clock)
    try:
        return ClockReading(machine_at=clock.now(), store_at=await store.now())
    finally:
        await store.close()


async def set_clock(settings: Settings, *, actor: str, reason: str) -> ClockReading:
    """Set the store's time to this machine's, audited; say what both were before."""
    require_home(settings)
    set_to_machine = cast(ClockCommand | None, getattr(_engine(settings), "set_clock", None))
    if set_to_machine is None:
        raise InvalidInput(
            "the time of this store is that of its server", field="store", hint="set the clock of the server"
        )
    return await set_to_machine(settings.store, clock=HostClock(), actor=actor, reason=reason)


@asynccontextmanager
async def open_wake_up(
    settings: Settings, *, hear: Callable[[str], None]
) -> AsyncIterator[Callable[[str], None] | None]:
    """Give what wakes other processes, or None where the store carries no wake-ups: there the next poll finds work."""
    opener = cast(WakeUpOpener | None, getattr(_engine(settings), "open_wake_up", None))
    if opener is None:
        yield None
        return
    wake_up = await opener(settings.store, hear=hear)
    try:
        yield wake_up.wake
    finally:
        await wake_up.close()


async def _open_providers(
    settings: Settings, closing: AsyncExitStack, *, clock: Clock
) -> tuple[dict[str, str], dict[str, Provider]]:
    """Open one provider for each account, and say which of them serves which channel."""
    accounts: dict[str, str] = {}
    providers: dict[str, Provider] = {}
    urls: dict[str, str] = {}
    for channel in Channel:
        entry = channel if channel in settings.providers else "*"
        url = settings.providers.get(entry)
        if channel is Channel.INBOX or url is None:
            continue
        name = settings.account_names.get(entry) or account.name_of(url)
        if name not in providers:
            opener = cast(ProviderOpener, _adapter("providers", url, setting="CLARION_PROVIDERS"))
            urls[name], providers[name] = url, await opener(url, clock=clock)
            closing.push_async_callback(providers[name].close)
        if urls[name] != url:
            raise account.unusable(
                f"two accounts are called {name!r}", hint="give one another name with the option name="
            )
        provider = providers[name]
        if channel in provider.channels:
            accounts[channel] = name
        elif entry == channel:
            raise account.unusable(
                f"the account {name!r} cannot carry {channel}",
                hint=f"let it serve {', '.join(sorted(provider.channels))}, and name another account for {channel}",
            )
    return accounts, providers


def _engine(settings: Settings) -> StoreEngine:
    return cast(StoreEngine, _adapter("stores", settings.store, setting="CLARION_STORE"))


def _vault(settings: Settings) -> VaultKind:
    return cast(VaultKind, _adapter("vaults", settings.vault, setting="CLARION_VAULT"))


def _loaders(group: str) -> dict[str, registration.Loader]:
    """Find the plugins of a group, by their names; none is imported yet."""
    return {point.name: point.load for point in entry_points(group=group)}


def _adapter(group: str, url: str, *, setting: str) -> object:
    """Load what an entry point names for a URL's scheme, or say which schemes there are."""
    scheme, colon, _ = url.partition(":")
    found = entry_points(group=f"clarion.{group}")
    if scheme not in found.names:
        # What has no colon or odd characters is no scheme: a password may stand in it.
        is_scheme = colon and _SCHEME.fullmatch(scheme)
        raise InvalidInput(
            f"no adapter is installed for the URL scheme {scheme!r}" if is_scheme else "it is no URL",
            field=setting,
            hint=f"use a URL that starts with one of: {', '.join(sorted(found.names))}",
        )
    return found[scheme].load()
