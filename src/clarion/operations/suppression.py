"""Who gets nothing, and what people want: listed, added, lifted, shown and set.

Rows hold keyed hashes. They are shown as the person or the address behind them, which is opened in memory, within the
tenant, for one answer; whoever may not see messages as their recipients do gets addresses masked.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Final
from urllib.parse import unquote

from clarion.bootstrap import Platform
from clarion.catalog import preferences as catalog
from clarion.catalog.category import list_categories
from clarion.client import wire_suppression as wire
from clarion.dispatch.request import Destination, Trace
from clarion.domain import derived_id
from clarion.domain.identity import Channel, Identity, IdentityDomain, read_person
from clarion.domain.seal import TenantKeys
from clarion.domain.suppression import Cause, Change, Suppression, SuppressionKey, note_of, scope_of
from clarion.errors import InvalidInput
from clarion.operations import page
from clarion.operations.whom import opened_destination
from clarion.ports.suppression import SuppressionPlace
from clarion.producers.direct import target_of

SUPPRESSIONS: Final = "suppressions"

GONE: Final = "somebody who is not known any more"
"""A person who was removed, or an address that nobody has."""

_HASH_BYTES: Final = 16


class Suppressions:
    """The suppressions and preferences of a tenant."""

    def __init__(self, platform: Platform) -> None:
        """Work on this platform."""
        self._store = platform.store
        self._keyring = platform.keyring
        self._dispatcher = platform.dispatcher
        self._preferences = catalog.Preferences(platform.store)

    async def list(self, tenant_id: str, query: wire.SuppressionQuery, *, whole: bool) -> wire.SuppressionPage:
        """List suppressions, newest first, of one recipient or of one cause where that is asked for."""
        keys = await self._keyring.get(tenant_id)
        subjects = None if query.recipient is None else [_subject(keys, query.recipient, field="recipient")]
        found = await self._store.list_suppressions(
            tenant_id, subjects=subjects, cause=query.cause, before=_read(query.cursor), limit=query.limit + 1
        )
        rows, following = page.cut(SUPPRESSIONS, found, query.limit, _written)
        named = await self._names(tenant_id, keys, {one.subject for one in rows}, whole=whole)
        return wire.SuppressionPage(items=tuple(_shown(one, named) for one in rows), next_cursor=following)

    async def add(
        self, tenant_id: str, request: wire.SuppressionRequest, *, actor: str, trace: Trace
    ) -> wire.SuppressionsAdded:
        """Suppress people and addresses, all of them or none; audited with the reason."""
        keys = await self._keyring.get(tenant_id)
        items: list[Suppression] = []
        bare: list[Destination] = []
        for place, one in enumerate(request.items):
            identity, channel = read_recipient(one.recipient, field=f"items[{place}].recipient")
            if channel is not None:  # kept sealed, so that the list can show which address it is
                bare.append(Destination(identity=identity, channel=channel, destination=identity.id, trace=trace))
            scope = _scope(one.category, one.channel, field=f"items[{place}]")
            items.append(
                Suppression(
                    subject=_hashed(keys, identity, channel),
                    scope=scope,
                    cause=Cause.MANUAL,
                    note=note_of(request.reason),
                )
            )
        if bare:
            await self._dispatcher.ensure_address_versions(tenant_id, bare)
        done = await self._store.put_suppressions(tenant_id, items, actor=actor, reason=request.reason)
        return wire.SuppressionsAdded(
            added=len(done), warnings=await self._without_effect(tenant_id, {one.category for one in request.items})
        )

    async def _without_effect(self, tenant_id: str, categories: Collection[str | None]) -> tuple[str, ...]:
        """Say which categories stop nothing as things are: they may be misspelt, or people cannot refuse them."""
        named = sorted(one for one in categories if one is not None)
        offered = {one.name: one for one in await list_categories(self._store, tenant_id)} if named else {}
        unknown = [
            f"no published type has the category {one!r}: as long as that is so, it stops nothing"
            for one in named
            if one not in offered
        ]
        required = [
            f"the category {one!r} is required: it goes out all the same; leave the category out to stop everything"
            for one in named
            if one in offered and offered[one].required
        ]
        return (*unknown, *required)

    async def lift(self, tenant_id: str, key: SuppressionKey, *, reason: str, actor: str) -> bool:
        """Lift one; audited with the reason; False where there is none such."""
        return bool(await self._store.lift_suppressions(tenant_id, [key], actor=actor, reason=reason))

    async def key_of(
        self, tenant_id: str, recipient: str, category: str | None, channel: Channel | None
    ) -> SuppressionKey:
        """Name a suppression by whom it is of and what it is about."""
        keys = await self._keyring.get(tenant_id)
        return _subject(keys, recipient, field="recipient"), _scope(category, channel, field="")

    async def preferences(self, tenant_id: str, identity: Identity) -> wire.Preferences | None:
        """Show what a person can choose and how it stands; None where nobody is known by this name."""
        hashed = (await self._keyring.get(tenant_id)).hash_of(identity)
        if not await self._store.find_recipients(tenant_id, [hashed]):
            return None
        sheet = await self._preferences.show(tenant_id, hashed)
        return wire.Preferences(
            person=f"{identity.domain}:{identity.id}",
            stopped=sheet.stopped,
            items=tuple(
                wire.Preference(
                    category=one.category.name,
                    titles=one.category.titles,
                    required=one.category.required,
                    channels=dict(one.channels),
                )
                for one in sheet.categories
            ),
        )

    async def set_preferences(
        self, tenant_id: str, identity: Identity, request: wire.PreferencesRequest, *, actor: str
    ) -> wire.Preferences | None:
        """Set what a person wants, all of it or nothing, and show how it stands now; audited."""
        hashed = (await self._keyring.get(tenant_id)).hash_of(identity)
        if not await self._store.find_recipients(tenant_id, [hashed]):
            return None
        changes = [Change(category=one.category, channel=one.channel, on=one.on) for one in request.changes]
        await self._preferences.set(tenant_id, hashed, changes, actor=actor, reason=request.reason)
        return await self.preferences(tenant_id, identity)

    async def _names(self, tenant_id: str, keys: TenantKeys, subjects: set[str], *, whole: bool) -> Mapping[str, str]:
        """Name the people and the addresses behind hashes."""
        people = await self._store.find_recipients(tenant_id, subjects) if subjects else {}
        named = {hashed: f"{one.domain}:{one.person_id}" for hashed, one in people.items()}
        rest = subjects - named.keys()
        versions = await self._store.find_suppressed_addresses(tenant_id, rest) if rest else {}
        return named | {index: opened_destination(one, keys, whole=whole) for index, one in versions.items()}


def read_recipient(text: str, *, field: str) -> tuple[Identity, Channel | None]:
    """Read `user:ID`, `employee:GUID`, an address or `CHANNEL:ADDRESS`; of an address also its channel."""
    domain, colon, rest = text.partition(":")
    if colon and domain in (IdentityDomain.USER, IdentityDomain.EMPLOYEE):
        return read_person(text, field=field), None
    if colon and domain not in (Channel.EMAIL, Channel.SMS, Channel.PUSH, Channel.CHAT):
        raise InvalidInput(
            f"{domain!r:.40} is no kind of recipient",
            field=field,
            hint="write user:ID, employee:GUID or an address, with email:, sms:, push: or chat: before it if need be",
        )
    try:
        target = target_of(address=rest if colon else text, channel=Channel(domain) if colon else None, field=field)
    except InvalidInput as error:
        raise type(error)(error.message, field=field, hint=error.hint) from None
    return target.identity, target.channel


def read_id(text: str) -> SuppressionKey:
    """Read the id of a suppression as the list shows it."""
    try:
        plain = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
        subject, scope = plain[:_HASH_BYTES].hex(), plain[_HASH_BYTES:].decode("ascii")
    except (UnicodeError, ValueError):
        subject, scope = "", ""
    if len(subject) != 2 * _HASH_BYTES or not scope or not scope.isprintable():
        raise InvalidInput("it is no id of a suppression", field="id", hint="use one that the list shows")
    return subject, scope


def write_id(key: SuppressionKey) -> str:
    """Write the id of a suppression."""
    subject, scope = key
    return urlsafe_b64encode(bytes.fromhex(subject) + scope.encode("ascii")).decode().rstrip("=")


def _subject(keys: TenantKeys, recipient: str, *, field: str) -> str:
    return _hashed(keys, *read_recipient(recipient, field=field))


def _hashed(keys: TenantKeys, identity: Identity, channel: Channel | None) -> str:
    if channel is None:
        return keys.hash_of(identity)
    return derived_id.destination_index(
        index_key=keys.index_key, tenant_id=keys.tenant_id, channel=channel, destination=identity.id
    )


def _scope(category: str | None, channel: Channel | None, *, field: str) -> str:
    if category is None and channel is not None:
        raise InvalidInput(
            "a channel goes with a category",
            field=f"{field}.channel".removeprefix("."),
            hint="name the category too, or leave the channel out to suppress everything",
        )
    return scope_of(category, channel)


def _shown(row: Suppression, named: Mapping[str, str]) -> wire.Suppression:
    category, _, channel = row.scope.partition(":")
    return wire.Suppression(
        id=write_id(row.key),
        recipient=named.get(row.subject, GONE),
        category=None if category == scope_of() else unquote(category),
        channel=Channel(channel) if channel else None,
        cause=row.cause,
        note=row.note,
        created_by=row.created_by,
        created_at=row.created_at,
    )


def _written(row: Suppression) -> str:
    """Write the place of a row in the list; it was read from the store, which gave it its time."""
    return f"{row.created_at.isoformat() if row.created_at else ''} {row.subject} {row.scope}"


def _read(cursor: str | None) -> SuppressionPlace | None:
    place = page.read(SUPPRESSIONS, cursor, start="")
    if not place:
        return None
    try:
        at, subject, scope = place.split(" ")
        created_at = datetime.fromisoformat(at)
        if created_at.tzinfo is None:
            raise page.refused()
        return SuppressionPlace(created_at=created_at.astimezone(UTC), subject=subject, scope=scope)
    except (ValueError, OverflowError):  # no time, or one that lies outside all calendars in UTC
        raise page.refused() from None
