"""People: put as a whole, changed in part, shown, listed, removed, and the attributes that they may have.

Profiles and addresses are stored sealed. They are opened in memory, within the tenant, for the people of one answer.
Who may see messages as their recipients do gets them whole, everybody else gets addresses as `domain.destination.mask`
leaves them, and no profile.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from clarion.bootstrap import Platform
from clarion.catalog import people as catalog
from clarion.catalog.people import ContactEntry, PersonEdit, PersonEntry, opened_profile
from clarion.catalog.person_entry import name_in
from clarion.client import wire, wire_people
from clarion.dispatch.request import Trace
from clarion.domain.address import AddressVersion
from clarion.domain.attribute import Kind, value_of
from clarion.domain.identity import Channel, Identity, read_person
from clarion.domain.person import Contact, PersonVersion, StoredPerson
from clarion.domain.seal import TenantKeys
from clarion.errors import InvalidInput, InvalidItems, SealBroken
from clarion.operations import page
from clarion.operations.whom import UNREADABLE, opened_destination

PEOPLE: Final = "people"


class People:
    """The people of a tenant."""

    def __init__(self, platform: Platform) -> None:
        """Work on this platform."""
        self._store = platform.store
        self._keyring = platform.keyring
        self._people = catalog.People(catalog=platform.store, dispatcher=platform.dispatcher, keyring=platform.keyring)

    async def put_all(
        self, tenant_id: str, request: wire_people.PeopleRequest, *, actor: str, trace: Trace
    ) -> wire_people.PeopleStored:
        """Insert or replace people, all of them or none."""
        entries = [
            _entry(read_person(item.person, field=f"people[{place}].person"), item)
            for place, item in enumerate(request.people)
        ]
        await self._people.put(tenant_id, entries, trace=trace, actor=actor, region=request.region)
        return wire_people.PeopleStored(stored=len(entries))

    async def put(
        self,
        tenant_id: str,
        identity: Identity,
        request: wire_people.PersonRequest,
        *,
        actor: str,
        trace: Trace,
        whole: bool,
    ) -> wire_people.Person | None:
        """Insert or replace one person; `whole` shows what is stored unmasked."""
        try:
            await self._people.put(
                tenant_id, [_entry(identity, request)], trace=trace, actor=actor, region=request.region
            )
        except InvalidItems as error:
            raise _of_one(error) from None
        return await self.find(tenant_id, identity, whole=whole)

    async def change(
        self,
        tenant_id: str,
        identity: Identity,
        request: wire_people.PersonChange,
        *,
        actor: str,
        trace: Trace,
        whole: bool,
    ) -> wire_people.Person | None:
        """Change a person in part; None where nobody is known by this name."""
        keys = await self._keyring.get(tenant_id)
        if not await self._store.find_people(tenant_id, [keys.hash_of(identity)]):
            return None
        try:
            await self._people.edit(
                tenant_id, [_edit(identity, request)], trace=trace, actor=actor, region=request.region
            )
        except InvalidItems as error:
            raise _of_one(error) from None
        return await self.find(tenant_id, identity, whole=whole)

    async def remove(self, tenant_id: str, identity: Identity, *, actor: str) -> bool:
        """Remove a person with their contacts and memberships; False where there is none."""
        return bool(await self._people.remove(tenant_id, [identity], actor=actor))

    async def find(self, tenant_id: str, identity: Identity, *, whole: bool) -> wire_people.Person | None:
        """Show a person."""
        hashed = (await self._keyring.get(tenant_id)).hash_of(identity)
        return next(iter(await self._shown(tenant_id, [hashed], whole=whole)), None)

    async def list(self, tenant_id: str, query: wire.PageQuery, *, whole: bool) -> wire_people.PersonPage:
        """List people, in the order of their hashes."""
        after = page.read(PEOPLE, query.cursor, start="")
        found = await self._store.list_people(tenant_id, after=after, limit=query.limit + 1)
        hashes, following = page.cut(PEOPLE, found, query.limit, lambda one: one)
        items = await self._shown(tenant_id, hashes, whole=whole)
        return wire_people.PersonPage(items=tuple(items), next_cursor=following)

    async def list_attributes(self, tenant_id: str) -> wire_people.AttributeList:
        """List the attributes that people may have."""
        declared = await self._store.list_attributes(tenant_id)
        return wire_people.AttributeList(
            items=tuple(wire_people.Attribute(name=one.name, kind=one.kind) for one in declared)
        )

    async def declare(self, tenant_id: str, name: str, kind: Kind, *, actor: str) -> wire_people.Attribute:
        """Declare an attribute; saying so again changes nothing."""
        await self._people.declare(tenant_id, name, kind, actor=actor)
        return wire_people.Attribute(name=name, kind=kind)

    async def _shown(self, tenant_id: str, hashes: Sequence[str], *, whole: bool) -> Sequence[wire_people.Person]:
        """Show people in the order of their hashes; whoever was removed meanwhile is left out."""
        keys = await self._keyring.get(tenant_id)
        people = await self._store.find_people(tenant_id, hashes)
        contacts = [at.address_id for one in people.values() for at in one.person.contacts]
        versions = {one.id: one for one in await self._store.find_addresses(tenant_id, contacts)}
        ids = [one.person.person_version_id for one in people.values() if one.person.person_version_id is not None]
        profiles = await self._store.find_person_versions(tenant_id, ids) if whole and ids else {}
        kinds = {one.name: one.kind for one in await self._store.list_attributes(tenant_id)}
        return [
            _person(
                people[hashed],
                profile=profiles.get(people[hashed].person.person_version_id or 0),
                versions=versions,
                kinds=kinds,
                keys=keys,
                whole=whole,
            )
            for hashed in hashes
            if hashed in people
        ]


def _person(
    stored: StoredPerson,
    *,
    profile: PersonVersion | None,
    versions: Mapping[int | None, AddressVersion],
    kinds: Mapping[str, Kind],
    keys: TenantKeys,
    whole: bool,
) -> wire_people.Person:
    person, name, others = stored.person, None, None
    if whole:
        name, others = _opened(keys, profile)
    return wire_people.Person(
        person=f"{person.domain}:{person.person_id}",
        name=name,
        profile=others,
        locale=person.locale,
        zone=person.tz_id,
        contacts=tuple(_contact(at, versions.get(at.address_id), keys, whole=whole) for at in person.contacts),
        attributes={key: value_of(kinds[key], text) for key, text in sorted(stored.attributes.items()) if key in kinds},
    )


def _opened(keys: TenantKeys, profile: PersonVersion | None) -> tuple[str | None, dict[str, object] | None]:
    """Open a profile; one that cannot be opened, or is not there, is shown as none."""
    try:
        return (None, {}) if profile is None else name_in(opened_profile(keys, profile))
    except SealBroken:
        return None, None


def _contact(
    contact: Contact, version: AddressVersion | None, keys: TenantKeys, *, whole: bool
) -> wire_people.KnownContact:
    return wire_people.KnownContact(
        channel=contact.channel,
        destination=UNREADABLE if version is None else opened_destination(version, keys, whole=whole),
        verified=contact.verified,
        retired_at=contact.retired_at,
    )


def _entry(identity: Identity, body: wire_people.PersonBody) -> PersonEntry:
    return PersonEntry(
        identity=identity,
        name=body.name,
        profile=body.profile,
        locale=body.locale,
        tz_id=body.zone,
        contacts=_contacts(body.contacts),
        attributes=body.attributes,
    )


def _edit(identity: Identity, change: wire_people.PersonChange) -> PersonEdit:
    return PersonEdit(
        identity=identity,
        name=change.name,
        profile=change.profile,
        locale=change.locale,
        tz_id=change.zone,
        contacts={channel: _contacts({channel: some or ()}) for channel, some in change.contacts.items()},
        add_contacts=_contacts(change.add_contacts),
        remove_contacts=_contacts(change.remove_contacts),
        attributes=change.attributes,
    )


def _contacts(given: Mapping[Channel, Sequence[wire_people.Contact]]) -> tuple[ContactEntry, ...]:
    return tuple(
        ContactEntry(channel=channel, destination=one.destination, verified=one.verified)
        for channel, some in given.items()
        for one in some
    )


def _of_one(error: InvalidItems) -> InvalidItems:
    """Name the fields of a request about one person as it has them."""
    return InvalidItems(
        [InvalidInput(one.message, field=one.field.removeprefix("people[0]."), hint=one.hint) for one in error.mistakes]
    )
