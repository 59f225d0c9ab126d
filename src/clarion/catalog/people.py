"""People and groups, as minimal rows: who somebody is, where they are reached, and who belongs together.

Every profile is a person version and every contact an address version, which the dispatcher seals and ensures, so
nothing readable about a person reaches a store. Putting the same people again changes nothing.
"""

from collections.abc import Sequence
from uuid import UUID

import msgspec

from clarion.catalog.local_form import checked_form
from clarion.dispatch import DeliveryDispatcher
from clarion.dispatch.request import Destination, Profile, Trace
from clarion.domain.identity import Channel, Identity
from clarion.domain.person import Contact, LocalForm, Person
from clarion.errors import ProgramTooOld
from clarion.ports.ensure import in_sets
from clarion.ports.store import Store
from clarion.sealing.keyring import Keyring


class ContactEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Where a person is reached on a channel, and whether that is known to be the person's own."""

    channel: Channel
    destination: str
    verified: bool = True


class PersonEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A person as their owner knows them."""

    identity: Identity
    name: str
    locale: str | None = None
    tz_id: str | None = None
    contacts: tuple[ContactEntry, ...] = ()


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

    async def put(self, tenant_id: str, people: Sequence[PersonEntry], *, trace: Trace) -> None:
        """Insert or replace people with the contacts that they have now."""
        keys = await self._keyring.get(tenant_id)
        forms = [checked_form(LocalForm(locale=one.locale, tz_id=one.tz_id)) for one in people]
        by_person = dict(zip((one.identity for one in people), forms, strict=True))
        for chunk in in_sets(people):
            contacts = await self._contacts(tenant_id, chunk, trace)
            profiles = [Profile(identity=one.identity, content={"name": one.name}, trace=trace) for one in chunk]
            versions = await self._dispatcher.ensure_person_versions(tenant_id, profiles)
            people_now = [
                Person(
                    recipient_id_hash=keys.hash_of(one.identity),
                    domain=one.identity.domain,
                    person_id=one.identity.id,
                    person_version_id=version.record.id,
                    locale=by_person[one.identity].locale,
                    tz_id=by_person[one.identity].tz_id,
                    contacts=contacts.get(place, ()),
                )
                for place, (one, version) in enumerate(zip(chunk, versions, strict=True))
            ]
            await self._catalog.put_people(tenant_id, people_now)

    async def put_group(self, tenant_id: str, group: GroupEntry) -> None:
        """Insert or replace a group."""
        keys = await self._keyring.get(tenant_id)
        members = [keys.hash_of(member) for member in group.members]
        await self._catalog.put_group(tenant_id, guid=group.guid, name=group.name, members=members)

    async def _contacts(
        self, tenant_id: str, people: Sequence[PersonEntry], trace: Trace
    ) -> dict[int, tuple[Contact, ...]]:
        """Ensure every contact; return the address versions of each person, by the person's place."""
        wanted = [(place, one, contact) for place, one in enumerate(people) for contact in one.contacts]
        found: dict[int, tuple[Contact, ...]] = {}
        for chunk in in_sets(wanted):
            given = [
                Destination(
                    identity=one.identity,
                    channel=contact.channel,
                    destination=contact.destination,
                    trace=trace,
                )
                for _, one, contact in chunk
            ]
            answers = await self._dispatcher.ensure_address_versions(tenant_id, given)
            for (place, _, contact), answer in zip(chunk, answers, strict=True):
                if answer.record.id is None:
                    raise ProgramTooOld(
                        f"a newer program has stored the {contact.channel} address", hint="update this one"
                    )
                reached = Contact(
                    channel=contact.channel,
                    address_id=answer.record.id,
                    destination_index=answer.record.destination_index,
                    verified=contact.verified,
                )
                found[place] = (*found.get(place, ()), reached)
        return found
