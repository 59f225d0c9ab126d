"""People and groups: what is stored of them is sealed or hashed, and putting them again changes nothing."""

from uuid import UUID

import msgspec
import pytest

from clarion.catalog.people import ContactEntry, GroupEntry, People, PersonEntry
from clarion.domain import derived_id
from clarion.domain.address import AddressVersion
from clarion.domain.identity import Channel, Identity
from clarion.domain.person import PersonVersion
from clarion.errors import InvalidAddress, InvalidItems
from clarion.sealing.place import profile_place
from tests.unit.dispatch_harness import TRACE, DispatchHarness

SAM = PersonEntry(
    identity=Identity.user("7"),
    name="Sam Sample",
    contacts=(
        ContactEntry(channel=Channel.EMAIL, destination="Sam@Example.com"),
        ContactEntry(channel=Channel.SMS, destination="+1 202 555 0101"),
    ),
)
KIM = PersonEntry(identity=Identity.employee(UUID(int=7)), name="Kim Example")


def people(harness: DispatchHarness) -> People:
    return People(catalog=harness.store, dispatcher=harness.dispatcher, keyring=harness.keyring)


async def hash_of(harness: DispatchHarness, person: PersonEntry) -> str:
    keys = await harness.keyring.get("school")
    return derived_id.recipient_id_hash(identity_key=keys.identity_key, tenant_id="school", identity=person.identity)


async def test_a_person_is_stored_with_a_sealed_profile_and_address_versions(harness: DispatchHarness) -> None:
    await people(harness).put("school", [SAM, KIM], trace=TRACE)
    sam, kim = await hash_of(harness, SAM), await hash_of(harness, KIM)
    found = await harness.store.find_recipients("school", {sam, kim})
    assert [one.channel for one in found[sam].contacts] == [Channel.EMAIL, Channel.SMS]
    assert found[kim].contacts == ()
    (version,) = [
        one for one in await harness.store.rows("school", PersonVersion) if one.id == found[sam].person_version_id
    ]
    assert b"Sam" not in version.profile
    place = profile_place(recipient_id_hash=sam, profile_hash=version.profile_hash)
    opened = place.open(await harness.keyring.get("school"), version.profile)
    assert msgspec.json.decode(opened) == {"name": "Sam Sample"}


async def test_an_edit_makes_a_new_version_and_the_old_profile_is_the_old_version(harness: DispatchHarness) -> None:
    """Whoever is called as before is as before: going back to a profile makes no third one."""
    renamed = msgspec.structs.replace(SAM, name="Sam Other", locale="de-AT", tz_id="Europe/Vienna")
    seen = []
    for entry in (SAM, renamed, renamed, SAM):
        await people(harness).put("school", [entry], trace=TRACE)
        (found,) = (await harness.store.find_recipients("school", {await hash_of(harness, SAM)})).values()
        seen.append((found.person_version_id, found.locale, found.tz_id))
    first, second = sorted(await harness.store.rows("school", PersonVersion), key=lambda one: one.serial)
    assert (first.serial, second.serial) == (1, 2)
    other = (second.id, "de-AT", "Europe/Vienna")
    assert seen == [(first.id, None, None), other, other, (first.id, None, None)]


async def test_a_profile_has_a_limit(harness: DispatchHarness) -> None:
    large = msgspec.structs.replace(SAM, name="S" * 5000)
    with pytest.raises(InvalidItems, match=r"a profile takes 50\d\d bytes") as refused:
        await people(harness).put("school", [KIM, large], trace=TRACE)
    assert "4096" in (refused.value.hint or "")
    assert await harness.store.find_recipients("school", {await hash_of(harness, KIM)}) == {}


async def test_putting_people_again_makes_no_second_address(harness: DispatchHarness) -> None:
    await people(harness).put("school", [SAM], trace=TRACE)
    await people(harness).put("school", [SAM], trace=TRACE)
    stored = await harness.store.find_recipients("school", {await hash_of(harness, SAM)})
    assert {at.address_id for one in stored.values() for at in one.contacts} == {
        version.id for version in await harness.store.rows("school", AddressVersion)
    }


async def test_a_changed_destination_is_the_next_version_and_the_old_one_is_no_contact(
    harness: DispatchHarness,
) -> None:
    moved = ContactEntry(channel=Channel.EMAIL, destination="sam@other.example.com", verified=False)
    for contacts in (SAM.contacts, (moved,)):
        await people(harness).put("school", [msgspec.structs.replace(SAM, contacts=contacts)], trace=TRACE)
    (found,) = (await harness.store.find_recipients("school", {await hash_of(harness, SAM)})).values()
    mails = [one for one in await harness.store.rows("school", AddressVersion) if one.channel is Channel.EMAIL]
    assert [one.serial for one in mails] == [1, 2]
    assert [(one.address_id, one.verified) for one in found.contacts] == [(mails[1].id, False)]


async def test_a_wrong_address_is_refused_before_anybody_is_stored(harness: DispatchHarness) -> None:
    wrong = msgspec.structs.replace(SAM, contacts=(ContactEntry(channel=Channel.EMAIL, destination="sam"),))
    with pytest.raises(InvalidItems) as refused:
        await people(harness).put("school", [KIM, wrong], trace=TRACE)
    (mistake,) = refused.value.mistakes
    assert (type(mistake), mistake.field) == (InvalidAddress, "people[1].contacts.email[0]")
    assert await harness.store.find_recipients("school", {await hash_of(harness, KIM)}) == {}


async def test_a_group_holds_its_members_by_their_hashes(harness: DispatchHarness) -> None:
    guid = UUID(int=1)
    await people(harness).put("school", [SAM, KIM], trace=TRACE)
    await people(harness).put_group(
        "school", GroupEntry(guid=guid, name="All", members=(SAM.identity, KIM.identity, SAM.identity))
    )
    found = await harness.store.find_members("school", {guid})
    assert found == {guid: tuple(sorted([await hash_of(harness, SAM), await hash_of(harness, KIM)]))}
