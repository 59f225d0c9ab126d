"""What a person does by a link from a mail, without a login: unsubscribe, take it back, and choose what they get.

The link says which tenant's and whose it is. What it changes is audited with the actor `recipient`. A link that does
not hold is refused in the same way, and after as much work, whatever is wrong with it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Final, TypeVar

import msgspec

from clarion.bootstrap import Platform
from clarion.catalog.category import Category, list_categories
from clarion.domain import person_link, unsubscribe
from clarion.domain.identity import Channel
from clarion.domain.locale import choose
from clarion.domain.seal import TenantKeys
from clarion.domain.sealed_link import tenant_of
from clarion.domain.suppression import EVERYTHING, RECIPIENT, Cause, Change, is_held, is_off
from clarion.domain.unsubscribe import Unsubscription
from clarion.errors import InvalidInput

CELLS_MAX: Final = 1000
"""On one page, and so in one change: more than anybody reads. What comes behind them, by name, is not on the page."""

T = TypeVar("T")


class Guest(msgspec.Struct, frozen=True, kw_only=True):
    """Who came by a link, and the languages that they are known to read, theirs before their tenant's."""

    keys: TenantKeys
    recipient_id_hash: str
    locales: tuple[str | None, ...] = ()

    @property
    def tenant_id(self) -> str:
        """Whose recipient it is."""
        return self.keys.tenant_id

    def reads(self, asked: tuple[str, ...], have: tuple[str, ...]) -> str:
        """Choose a language of those there are: the one they are known to read, what the browser asks for, or ours."""
        person, tenant = self.locales
        return choose([person, *asked, tenant], have)


class Unsubscribing(msgspec.Struct, frozen=True, kw_only=True):
    """What a link unsubscribes from, and whether that is possible now: a category may have become a required one."""

    guest: Guest
    wanted: Unsubscription
    required: bool


Cell = tuple[str, Channel]
"""A category on a channel: what somebody chooses."""


class Preferences(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody may choose from and what they cannot refuse, and under which scopes they get nothing, and why."""

    guest: Guest
    categories: Sequence[Category]
    suppressed: Mapping[str, Cause]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Everything that they choose, as many as one page has."""
        return tuple(islice((cell for cell in self._optional() if not is_held(self.suppressed, *cell)), CELLS_MAX))

    @property
    def held(self) -> tuple[Cell, ...]:
        """What an administrator has switched off by hand, which they cannot switch on here."""
        return tuple(islice((cell for cell in self._optional() if is_held(self.suppressed, *cell)), CELLS_MAX))

    @property
    def on(self) -> frozenset[Cell]:
        """What of it they get."""
        return frozenset(cell for cell in self.cells if not is_off(self.suppressed, *cell))

    @property
    def gets_nothing(self) -> bool:
        """Whether nothing goes to them at all, such as after a complaint; they cannot change that here."""
        return EVERYTHING in self.suppressed

    def _optional(self) -> Iterator[Cell]:
        optional = (one for one in self.categories if not one.required)
        return ((one.name, channel) for one in optional for channel in one.channels)


class ByLink:
    """What links can do."""

    def __init__(self, platform: Platform) -> None:
        """Work on this platform."""
        self._store = platform.store
        self._keyring = platform.keyring
        self._clock = platform.clock

    async def read_unsubscribing(self, token: str) -> Unsubscribing:
        """Say who unsubscribes from what, or raise InvalidInput where the link does not hold."""
        keys, wanted = await self._read(token, unsubscribe.read_token)
        guest = await self._guest(keys, wanted.recipient_id_hash)
        categories = await list_categories(self._store, guest.tenant_id)
        required = any(one.required for one in categories if one.name == wanted.category)
        return Unsubscribing(guest=guest, wanted=wanted, required=required)

    async def unsubscribe(self, asked: Unsubscribing) -> str | None:
        """Unsubscribe; return the token that takes it back, or None where it was so before."""
        wanted = asked.wanted
        change = Change(category=wanted.category, channel=wanted.channel, on=False)
        done = await self._store.set_preferences(
            asked.guest.tenant_id, wanted.recipient_id_hash, [change], cause=Cause.UNSUBSCRIBE, actor=RECIPIENT
        )
        return person_link.undo_token(asked.guest.keys, wanted, now=self._clock.now()) if done.put else None

    async def undo(self, asked: Unsubscribing, token: str) -> None:
        """Take back that somebody unsubscribed by this link; raise InvalidInput where the token is for another."""
        undone = person_link.read_undo_token(asked.guest.keys, token, now=self._clock.now())
        if undone != asked.wanted:
            raise InvalidInput("it takes back something else", field="undo", hint="open the link from the mail again")
        found = await self._store.find_suppressions(asked.guest.tenant_id, [undone.recipient_id_hash])
        if is_held(found.get(undone.recipient_id_hash, {}), undone.category, undone.channel):
            raise InvalidInput(
                "it was switched off by hand since", field="undo", hint="ask whoever sends these messages"
            )
        change = Change(category=undone.category, channel=undone.channel, on=True)
        await self._store.set_preferences(asked.guest.tenant_id, undone.recipient_id_hash, [change], actor=RECIPIENT)

    async def read_preferences(self, token: str) -> Preferences:
        """Give somebody's preferences, or raise InvalidInput where the link does not hold, or no more."""
        now = self._clock.now()
        keys, recipient = await self._read(token, partial(person_link.read_preferences_token, now=now))
        guest = await self._guest(keys, recipient)
        categories = await list_categories(self._store, guest.tenant_id)
        return await self._preferences(guest, categories)

    async def choose(self, seen: Preferences, wanted: Mapping[Cell, bool]) -> Preferences:
        """Switch cells on and off, all of them or none; return how the preferences are then.

        A cell that nobody may choose (any more) raises InvalidInput, and then nothing is changed.
        """
        may = frozenset(seen.cells)
        for category, channel in wanted.keys() - may:
            raise InvalidInput(
                f"{category!r} on {channel} cannot be chosen", field="cell", hint="load the page again: it has changed"
            )
        changes = [Change(category=category, channel=channel, on=on) for (category, channel), on in wanted.items()]
        if changes:
            guest = seen.guest
            await self._store.set_preferences(guest.tenant_id, guest.recipient_id_hash, changes, actor=RECIPIENT)
        return await self._preferences(seen.guest, seen.categories)

    async def _preferences(self, guest: Guest, categories: Sequence[Category]) -> Preferences:
        found = await self._store.find_suppressions(guest.tenant_id, [guest.recipient_id_hash])
        return Preferences(guest=guest, categories=categories, suppressed=found.get(guest.recipient_id_hash, {}))

    async def _guest(self, keys: TenantKeys, recipient_id_hash: str) -> Guest:
        """Find out which languages somebody reads; of a bare address nothing is known."""
        person = (await self._store.find_recipients(keys.tenant_id, [recipient_id_hash])).get(recipient_id_hash)
        tenant = (await self._store.find_local_forms(keys.tenant_id, [])).get(None)
        locales = (person.locale if person else None, tenant.locale if tenant else None)
        return Guest(keys=keys, recipient_id_hash=recipient_id_hash, locales=locales)

    async def _read(self, token: str, read: Callable[[TenantKeys, str], T]) -> tuple[TenantKeys, T]:
        """Open a token with the keys of the tenant that it names.

        Whoever tries names of tenants must not learn by the time it takes which there are. The keys of one that there
        is not are looked for in the store, so those of one that there is are looked for once more.
        """
        tenant_id = tenant_of(token)
        held = self._keyring.held(tenant_id)
        try:
            keys = await self._keyring.get(tenant_id)
            return keys, read(keys, token)
        except InvalidInput:
            if held is not None:
                await self._store.find_tenant_keys(tenant_id)
            raise
