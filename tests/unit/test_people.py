"""People and groups: what is stored of them is sealed or hashed, and putting them again changes nothing."""

from uuid import UUID

import msgspec
import pytest

from clarion.catalog.people import Contact, GroupEntry, People, PersonEntry
from clarion.domain import derived_id
from clarion.domain.address import AddressVersion
from clarion.domain.identity import Channel, Identity
from clarion.errors import Conflict, InvalidAddress
from clarion.sealing.place import profile_place
from tests.unit.dispatch_desk import TRACE, Desk

SAM = PersonEntry(
    identity=Identity.user("7"),
    name="Sam Sample",
    contacts=(
        Contact(channel=Channel.EMAIL, destination="Sam@Example.com"),
        Contact(channel=Channel.SMS, destination="+1 202 555 0101"),
    ),
)
KIM = PersonEntry(identity=Identity.employee(UUID(int=7)), name="Kim Example")


def people(desk: Desk) -> People:
    return People(catalog=desk.store, dispatcher=desk.dispatcher, keyring=desk.keyring)


async def hash_of(desk: Desk, person: PersonEntry) -> str:
    keys = await desk.keyring.get("school")
    return derived_id.recipient_id_hash(identity_key=keys.identity_key, tenant_id="school", identity=person.identity)


async def test_a_person_is_stored_with_a_sealed_profile_and_address_versions(desk: Desk) -> None:
    await people(desk).put("school", [SAM, KIM], trace=TRACE)
    sam, kim = await hash_of(desk, SAM), await hash_of(desk, KIM)
    found = await desk.store.find_recipients("school", {sam, kim})
    assert [channel for channel, _ in found[sam].contacts] == [Channel.EMAIL, Channel.SMS]
    assert found[kim].contacts == ()
    assert b"Sam" not in found[sam].profile
    opened = profile_place(sam).open(await desk.keyring.get("school"), found[sam].profile)
    assert msgspec.json.decode(opened) == {"name": "Sam Sample"}


async def test_putting_people_again_makes_no_second_address(desk: Desk) -> None:
    await people(desk).put("school", [SAM], trace=TRACE)
    await people(desk).put("school", [SAM], trace=TRACE)
    stored = await desk.store.find_recipients("school", {await hash_of(desk, SAM)})
    assert {address_id for one in stored.values() for _, address_id in one.contacts} == {
        version.id for version in desk.store.table("school", AddressVersion).values()
    }


async def test_a_changed_destination_needs_the_next_serial(desk: Desk) -> None:
    await people(desk).put("school", [SAM], trace=TRACE)
    moved = msgspec.structs.replace(
        SAM, contacts=(Contact(channel=Channel.EMAIL, destination="sam@other.example.com"),)
    )
    with pytest.raises(Conflict, match="give the new destination the serial 2"):
        await people(desk).put("school", [moved], trace=TRACE)
    again = msgspec.structs.replace(
        SAM, contacts=(Contact(channel=Channel.EMAIL, destination="sam@other.example.com", serial=2),)
    )
    await people(desk).put("school", [again], trace=TRACE)
    (found,) = (await desk.store.find_recipients("school", {await hash_of(desk, SAM)})).values()
    assert [channel for channel, _ in found.contacts] == [Channel.EMAIL]


async def test_a_wrong_address_is_refused_before_anybody_is_stored(desk: Desk) -> None:
    wrong = msgspec.structs.replace(SAM, contacts=(Contact(channel=Channel.EMAIL, destination="sam"),))
    with pytest.raises(InvalidAddress):
        await people(desk).put("school", [KIM, wrong], trace=TRACE)
    assert await desk.store.find_recipients("school", {await hash_of(desk, KIM)}) == {}


async def test_a_group_holds_its_members_by_their_hashes(desk: Desk) -> None:
    guid = UUID(int=1)
    await people(desk).put("school", [SAM, KIM], trace=TRACE)
    await people(desk).put_group(
        "school", GroupEntry(guid=guid, name="All", members=(SAM.identity, KIM.identity, SAM.identity))
    )
    found = await desk.store.find_members("school", {guid})
    assert found == {guid: tuple(sorted([await hash_of(desk, SAM), await hash_of(desk, KIM)]))}
