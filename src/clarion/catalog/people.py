"""People and groups: who somebody is, where they are reached, and who belongs together.

Every profile is a person version and every contact an address version, which the dispatcher seals and ensures, so
nothing readable about a person reaches a store but the attributes that the tenant has declared. Putting the same people
again changes nothing. What callers may write, and what is wrong with it, is in `person_entry`.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final
from uuid import UUID

import msgspec
from msgspec import UNSET

from clarion.catalog.person_entry import (
    BadEntry,
    Checked,
    ContactEntry,
    Entry,
    PersonEdit,
    PersonEntry,
    check_entries,
    content_of,
    name_in,
    refusal,
    require_profile,
    too_many_contacts,
)
from clarion.dispatch import DeliveryDispatcher
from clarion.dispatch.request import Destination, Profile, Trace
from clarion.domain import derived_id
from clarion.domain.attribute import DECLARED_MAX, Attribute, Kind, require_name
from clarion.domain.destination import require_region
from clarion.domain.identity import Channel, Identity
from clarion.domain.person import CONTACTS_MAX, Contact, Person, PersonVersion, StoredPerson
from clarion.domain.seal import TenantKeys
from clarion.errors import Conflict, InvalidInput, ProgramTooOld, StoreBusy
from clarion.ports.ensure import in_sets
from clarion.ports.store import Store
from clarion.sealing.keyring import Keyring
from clarion.sealing.place import open_profile

__all__ = ["BadEntry", "ContactEntry", "GroupEntry", "People", "PersonEdit", "PersonEntry"]

MERGES_MAX: Final = 20
"""How often an edit begins again because somebody else was faster: nobody edits one person so often by chance."""

Reached = Mapping[tuple[Identity, Channel, str], Contact]
"""The contact of each destination that some people are to have."""


Merge = tuple[Checked, StoredPerson, Mapping[str, object]]
"""An entry, and what it is merged with: a stored person and their opened profile."""


class GroupEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A group by name, with its members."""

    guid: UUID
    name: str
    members: tuple[Identity, ...]


class People:
    """Puts people and groups into a tenant."""

    def __init__(self, *, catalog: Store, dispatcher: DeliveryDispatcher, keyring: Keyring) -> None:
        """Store in this catalog; destinations go through this dispatcher, under these keys."""
        self._catalog = catalog
        self._dispatcher = dispatcher
        self._keyring = keyring

    async def check(
        self, tenant_id: str, entries: Sequence[Entry], *, region: str | None = None, create: bool = False
    ) -> list[BadEntry]:
        """Tell which entries cannot be stored, and store nothing; parts are merged as in `edit`."""
        good, bad = await self._check(tenant_id, entries, region)
        parts = [(place, one) for place, one in good.items() if isinstance(entries[place], PersonEdit)]
        for chunk in in_sets(parts):
            _, _, unfit = await self._merge(tenant_id, dict(chunk), create=create)
            bad += unfit
        return sorted(bad, key=lambda one: one.place)

    async def put(
        self,
        tenant_id: str,
        entries: Sequence[PersonEntry],
        *,
        trace: Trace,
        actor: str | None = None,
        region: str | None = None,
        skip: bool = False,
    ) -> list[BadEntry]:
        """Insert or replace people as a whole.

        Entries that cannot be stored are left out and returned with `skip`; without it one of them is enough to have
        nothing stored. A phone number without country code is one of the region.
        """
        good, bad = await self._check(tenant_id, entries, region)
        _require(bad, skip=skip)
        for chunk in in_sets(list(good.values())):
            people, attributes = await self._whole(tenant_id, chunk, trace)
            await self._catalog.put_people(tenant_id, people, attributes=attributes, actor=actor)
        return bad

    async def edit(
        self,
        tenant_id: str,
        edits: Sequence[PersonEdit],
        *,
        trace: Trace,
        actor: str | None = None,
        region: str | None = None,
        create: bool = False,
        skip: bool = False,
    ) -> list[BadEntry]:
        """Change people in part, however many others change the same ones; with `create` also those not known yet.

        Entries that cannot be stored are treated as in `put`.
        """
        good, bad = await self._check(tenant_id, edits, region)
        _require(bad, skip=skip)
        for chunk in in_sets(list(good.items())):
            bad += await self._edit(tenant_id, dict(chunk), trace=trace, actor=actor, create=create, skip=skip)
        return sorted(bad, key=lambda one: one.place)

    async def remove(self, tenant_id: str, identities: Sequence[Identity], *, actor: str) -> list[Identity]:
        """Remove people, with their contacts and memberships; return those who were there."""
        keys = await self._keyring.get(tenant_id)
        by_hash = {keys.hash_of(one): one for one in identities}
        removed: list[Identity] = []
        for chunk in in_sets(list(by_hash)):
            removed += [by_hash[one] for one in await self._catalog.remove_people(tenant_id, chunk, actor=actor)]
        return removed

    async def declare(self, tenant_id: str, name: str, kind: Kind, *, actor: str) -> bool:
        """Declare an attribute; False where it is declared so already."""
        wanted = Attribute(name=require_name(name), kind=kind)
        declared = await self._catalog.list_attributes(tenant_id)
        if len(declared) >= DECLARED_MAX and wanted not in declared:
            raise InvalidInput(
                f"the tenant has {len(declared)} attributes", field="name", hint=f"use {DECLARED_MAX} at most"
            )
        stands, is_new = await self._catalog.declare_attribute(tenant_id, wanted, actor=actor)
        if stands != wanted:
            raise Conflict(f"the attribute {name} is declared as {stands.kind}", hint="give the new one another name")
        return is_new

    async def put_group(self, tenant_id: str, group: GroupEntry) -> None:
        """Insert or replace a group."""
        keys = await self._keyring.get(tenant_id)
        members = [keys.hash_of(member) for member in group.members]
        await self._catalog.put_group(tenant_id, guid=group.guid, name=group.name, members=members)

    async def _check(
        self, tenant_id: str, entries: Sequence[Entry], region: str | None
    ) -> tuple[dict[int, Checked], list[BadEntry]]:
        await self._keyring.get(tenant_id)  # refuses a tenant that does not exist
        named = None if region is None else require_region(region)
        has_attributes = any(entry.attributes for entry in entries)
        declared = await self._catalog.list_attributes(tenant_id) if has_attributes else []
        return check_entries(entries, declared=declared, region=named)

    async def _whole(
        self, tenant_id: str, entries: Sequence[Checked], trace: Trace
    ) -> tuple[list[Person], dict[str, dict[str, str]]]:
        """Make the people that whole entries describe."""
        keys = await self._keyring.get(tenant_id)
        reached = await self._reach(tenant_id, entries, trace)
        nobody = {one.identity: _unknown(keys, one.identity) for one in entries}
        return await self._made(tenant_id, keys, [(one, nobody[one.identity], {}) for one in entries], reached, trace)

    async def _edit(
        self,
        tenant_id: str,
        edits: Mapping[int, Checked],
        *,
        trace: Trace,
        actor: str | None,
        create: bool,
        skip: bool,
    ) -> list[BadEntry]:
        """Merge edits with what is stored, again and again while others change the same people."""
        keys = await self._keyring.get(tenant_id)
        for _ in range(MERGES_MAX):
            seen, merges, bad = await self._merge(tenant_id, edits, create=create)
            _require(bad, skip=skip)
            reached = await self._reach(tenant_id, [one for one, _, _ in merges], trace)
            people, attributes = await self._made(tenant_id, keys, merges, reached, trace)
            known = {
                one.recipient_id_hash: seen[one.recipient_id_hash] for one in people if one.recipient_id_hash in seen
            }
            put = await self._catalog.put_people(tenant_id, people, attributes=attributes, seen=known, actor=actor)
            if put is not None:
                return bad
        raise StoreBusy(f"others changed the same people {MERGES_MAX} times before us", hint="try again")

    async def _merge(
        self, tenant_id: str, edits: Mapping[int, Checked], *, create: bool
    ) -> tuple[Mapping[str, StoredPerson], list[Merge], list[BadEntry]]:
        """Read what edits are to be merged with; tell those that can be from those that cannot."""
        keys = await self._keyring.get(tenant_id)
        hashes = {place: keys.hash_of(one.identity) for place, one in edits.items()}
        seen = await self._catalog.find_people(tenant_id, list(hashes.values()))
        contents = await self._contents(tenant_id, keys, edits.values(), seen)
        merges: list[Merge] = []
        bad: list[BadEntry] = []
        for place, one in edits.items():
            base, content = seen.get(hashes[place]), contents.get(hashes[place], {})
            try:
                merges.append(_mergeable(keys, one, base, content, create=create))
            except InvalidInput as error:
                bad.append(BadEntry(place=place, error=error))
        return seen, merges, bad

    async def _made(
        self,
        tenant_id: str,
        keys: TenantKeys,
        merges: Sequence[Merge],
        reached: Reached,
        trace: Trace,
    ) -> tuple[list[Person], dict[str, dict[str, str]]]:
        """Make of each entry and what it is merged with the person that it comes to, with their attributes by hash."""
        profiles = {
            one.identity: Profile(identity=one.identity, content=_content(one, content), trace=trace)
            for one, base, content in merges
            if one.has_profile or base.person.person_version_id is None
        }
        ensured = await self._dispatcher.ensure_person_versions(tenant_id, list(profiles.values()))
        versions = dict(zip(profiles, (answer.record.id for answer in ensured), strict=True))
        people = [
            Person(
                recipient_id_hash=base.person.recipient_id_hash,
                domain=one.identity.domain,
                person_id=one.identity.id,
                person_version_id=versions.get(one.identity, base.person.person_version_id),
                locale=base.person.locale if one.locale is UNSET else one.locale,
                tz_id=base.person.tz_id if one.tz_id is UNSET else one.tz_id,
                contacts=_contacts(keys, one, base.person.contacts, reached),
            )
            for one, base, _ in merges
        ]
        attributes = {base.person.recipient_id_hash: _attributes(one, base.attributes) for one, base, _ in merges}
        return people, attributes

    async def _reach(self, tenant_id: str, entries: Sequence[Checked], trace: Trace) -> Reached:
        """Ensure the version of every address that people are to have."""
        wanted = {(one.identity, at.channel, at.destination): at for one in entries for at in one.reached}
        found: dict[tuple[Identity, Channel, str], Contact] = {}
        for chunk in in_sets(list(wanted)):
            given = [
                Destination(identity=identity, channel=channel, destination=text, trace=trace)
                for identity, channel, text in chunk
            ]
            answers = await self._dispatcher.ensure_address_versions(tenant_id, given)
            for key, answer in zip(chunk, answers, strict=True):
                if answer.record.id is None:
                    raise ProgramTooOld(f"a newer program has stored the {key[1]} address", hint="update this one")
                found[key] = Contact(
                    channel=key[1],
                    address_id=answer.record.id,
                    destination_index=answer.record.destination_index,
                    verified=wanted[key].verified,
                )
        return found

    async def _contents(
        self, tenant_id: str, keys: TenantKeys, edits: Collection[Checked], seen: Mapping[str, StoredPerson]
    ) -> dict[str, dict[str, object]]:
        """Open the profiles that are to be merged with, by recipient hash."""
        hashes = {keys.hash_of(one.identity) for one in edits if one.has_profile}
        ids = [one.person.person_version_id for hashed, one in seen.items() if hashed in hashes]
        versions = await self._catalog.find_person_versions(tenant_id, [one for one in ids if one is not None])
        return {one.recipient_id_hash: opened_profile(keys, one) for one in versions.values()}


def opened_profile(keys: TenantKeys, version: PersonVersion) -> dict[str, object]:
    """Open a version of a profile."""
    return open_profile(
        keys, version.profile, recipient_id_hash=version.recipient_id_hash, profile_hash=version.profile_hash
    )


def _require(bad: Sequence[BadEntry], *, skip: bool) -> None:
    if bad and not skip:
        raise refusal(bad)


def _unknown(keys: TenantKeys, identity: Identity) -> StoredPerson:
    """Make what an entry is merged with where nobody is known."""
    person = Person(recipient_id_hash=keys.hash_of(identity), domain=identity.domain, person_id=identity.id)
    return StoredPerson(person=person)


def _mergeable(
    keys: TenantKeys, edit: Checked, base: StoredPerson | None, content: Mapping[str, object], *, create: bool
) -> tuple[Checked, StoredPerson, Mapping[str, object]]:
    """Give an edit with what it is merged with, or refuse it: nobody is there, or it would become too much."""
    if base is None and not create:
        raise InvalidInput("there is no such person", field="person", hint="put the person as a whole first")
    base = base or _unknown(keys, edit.identity)
    if edit.has_profile:
        require_profile(_content(edit, content))
    kept = [one for one in base.person.contacts if one.is_current and one.channel not in edit.contacts]
    if (count := len(kept) + len(edit.reached)) > CONTACTS_MAX:
        raise too_many_contacts(count)
    return edit, base, content


def _content(edit: Checked, content: Mapping[str, object]) -> dict[str, object]:
    name, others = name_in(content)
    return content_of(name if edit.name is UNSET else edit.name, {**others, **edit.profile})


def _attributes(edit: Checked, stored: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in {**stored, **edit.attributes}.items() if value is not None}


def _contacts(keys: TenantKeys, edit: Checked, stored: Sequence[Contact], reached: Reached) -> tuple[Contact, ...]:
    """Say where a person is reached after an edit.

    A destination that is given is current, whatever became of it before. A new one on a channel takes the place of
    those that were retired there: nobody asks any more why nothing came at the old one.
    """
    given = {reached[edit.identity, at.channel, at.destination].address_id: at for at in edit.reached}
    new = [reached[edit.identity, at.channel, at.destination] for at in edit.reached]
    renewed = {at.channel for at in edit.added}
    gone = {
        derived_id.destination_index(
            index_key=keys.index_key, tenant_id=keys.tenant_id, channel=at.channel, destination=at.destination
        )
        for at in edit.removed
    }
    kept = [
        at
        for at in stored
        if at.channel not in edit.contacts
        and at.address_id not in given
        and at.destination_index not in gone
        and (at.is_current or at.channel not in renewed)
    ]
    return (*kept, *new)
