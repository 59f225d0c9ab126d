"""Editing people in part, and what is said of entries that cannot be stored: nothing is half applied."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import msgspec
import pytest

from clarion.catalog.people import ContactEntry, GroupEntry, PersonEdit, PersonEntry
from clarion.domain.address import AddressVersion
from clarion.domain.attribute import Kind
from clarion.domain.identity import Channel, Identity
from clarion.domain.person import CONTACTS_MAX, Person, StoredPerson
from clarion.errors import Conflict, InvalidInput, InvalidItems
from clarion.sealing.place import open_profile
from tests.unit.dispatch_harness import TRACE, DispatchHarness
from tests.unit.test_people import SAM, people

WHO = Identity.user("7")
MAIL = ContactEntry(channel=Channel.EMAIL, destination="sam@example.com")
PHONE = ContactEntry(channel=Channel.SMS, destination="+12025550101")


def token(text: str, **fields: Any) -> ContactEntry:
    return ContactEntry(channel=Channel.PUSH, destination=text, **fields)


def edit(**fields: Any) -> PersonEdit:
    return PersonEdit(identity=WHO, **fields)


class Known:
    """One tenant's people, and what is stored of one of them."""

    def __init__(self, harness: DispatchHarness) -> None:
        self.harness = harness
        self.people = people(harness)

    async def put(self, *entries: PersonEntry, **named: Any) -> Any:
        return await self.people.put("school", entries, trace=TRACE, **named)

    async def edit(self, *edits: PersonEdit, **named: Any) -> Any:
        return await self.people.edit("school", edits, trace=TRACE, **named)

    async def stored(self, identity: Identity = WHO) -> StoredPerson | None:
        keys = await self.harness.keyring.get("school")
        return (await self.harness.store.find_people("school", [keys.hash_of(identity)])).get(keys.hash_of(identity))

    async def person(self, identity: Identity = WHO) -> Person:
        stored = await self.stored(identity)
        assert stored is not None
        return stored.person

    async def profile(self) -> Mapping[str, object]:
        keys, person = await self.harness.keyring.get("school"), await self.person()
        assert person.person_version_id is not None
        (version,) = (await self.harness.store.find_person_versions("school", [person.person_version_id])).values()
        return open_profile(
            keys, version.profile, recipient_id_hash=version.recipient_id_hash, profile_hash=version.profile_hash
        )

    async def reached(self, *, current: bool = True) -> list[tuple[str, int]]:
        """Give the channel and serial of each contact."""
        rows = {one.id: one for one in await self.harness.store.rows("school", AddressVersion)}
        return [
            (at.channel.value, rows[at.address_id].serial)
            for at in (await self.person()).contacts
            if at.is_current is current
        ]

    async def declare(self) -> None:
        for name, kind in (("grade", Kind.NUMBER), ("city", Kind.TEXT), ("since", Kind.DATE), ("vip", Kind.TRUTH)):
            assert await self.people.declare("school", name, kind, actor="sam")


@pytest.fixture
async def known(harness: DispatchHarness) -> Known:
    return Known(harness)


async def test_what_an_edit_leaves_out_stays(known: Known) -> None:
    await known.declare()
    whole = PersonEntry(
        identity=WHO,
        name="Sam",
        profile={"title": "Dr.", "town": "Graz"},
        locale="de-AT",
        tz_id="Europe/Vienna",
        contacts=(MAIL, PHONE),
        attributes={"grade": 7, "city": "Graz"},
    )
    await known.put(whole)
    before = await known.stored()
    await known.edit(edit())
    assert await known.stored() == before
    await known.edit(
        edit(name="Sam Sample", profile={"title": None, "house": 5}, attributes={"grade": None, "vip": True})
    )
    assert await known.profile() == {"name": "Sam Sample", "town": "Graz", "house": 5}
    after = await known.stored()
    assert after is not None
    assert before is not None
    assert after.attributes == {"city": "Graz", "vip": "true"}
    assert after.person.contacts == before.person.contacts
    assert (after.person.locale, after.person.tz_id) == ("de-AT", "Europe/Vienna")
    await known.edit(edit(name=None, locale=None))
    assert await known.profile() == {"town": "Graz", "house": 5}
    assert ((await known.person()).locale, (await known.person()).tz_id) == (None, "Europe/Vienna")


async def test_a_whole_put_takes_away_what_it_leaves_out(known: Known) -> None:
    await known.declare()
    await known.put(msgspec.structs.replace(SAM, attributes={"grade": 7}, profile={"town": "Graz"}, locale="de"))
    await known.put(PersonEntry(identity=WHO))
    stored = await known.stored()
    assert stored is not None
    assert (stored.person.locale, stored.person.contacts, stored.attributes) == (None, (), {})
    assert await known.profile() == {}


async def test_contacts_of_the_channels_that_an_edit_names_are_replaced(known: Known) -> None:
    await known.put(PersonEntry(identity=WHO, contacts=(MAIL, PHONE, token("t1"), token("t2"))))
    other = ContactEntry(channel=Channel.EMAIL, destination="sam@other.example.com", verified=False)
    await known.edit(edit(contacts={Channel.EMAIL: (other,), Channel.SMS: ()}))
    assert await known.reached() == [("email", 2), ("push", 1), ("push", 2)]
    assert [at.verified for at in (await known.person()).contacts] == [False, True, True]


async def test_single_contacts_are_added_and_removed(known: Known) -> None:
    """What is there is not doubled, and what is not there is not missed; no address is stored to be removed."""
    await known.put(PersonEntry(identity=WHO, contacts=(MAIL, token("t1"))))
    await known.edit(edit(add_contacts=(token("t2"), token("t1"))))
    assert await known.reached() == [("email", 1), ("push", 1), ("push", 2)]
    await known.edit(edit(remove_contacts=(token("t1"), token("t9"))))
    assert await known.reached() == [("email", 1), ("push", 2)]
    assert len(await known.harness.store.rows("school", AddressVersion)) == 3


async def retire(known: Known, place: int) -> None:
    person = await known.person()
    contacts = list(person.contacts)
    contacts[place] = msgspec.structs.replace(contacts[place], retired_at=await known.harness.store.now())
    await known.harness.store.put_people("school", [msgspec.structs.replace(person, contacts=tuple(contacts))])


async def test_a_retired_token_that_is_given_again_is_current(known: Known) -> None:
    await known.put(PersonEntry(identity=WHO, contacts=(token("t1"), token("t2"))))
    await retire(known, 0)
    await known.edit(edit(name="Sam"))
    assert (await known.reached(), await known.reached(current=False)) == ([("push", 2)], [("push", 1)])
    await known.edit(edit(add_contacts=(token("t1"),)))
    assert await known.reached() == [("push", 1), ("push", 2)]


async def test_a_new_token_takes_the_place_of_retired_ones_of_its_channel(known: Known) -> None:
    await known.put(PersonEntry(identity=WHO, contacts=(MAIL, token("t1"), token("t2"))))
    await retire(known, 0)
    await retire(known, 1)
    await known.edit(edit(add_contacts=(token("t3"),)))
    assert (await known.reached(), await known.reached(current=False)) == ([("push", 2), ("push", 3)], [("email", 1)])


async def test_an_edit_of_a_stranger_is_refused_or_makes_the_person(known: Known) -> None:
    change = edit(name="Sam", add_contacts=(MAIL,))
    with pytest.raises(InvalidItems, match=r"people\[0\]\.person: there is no such person"):
        await known.edit(change)
    assert not await known.harness.store.rows("school", AddressVersion)
    await known.edit(change, create=True)
    assert (await known.profile(), await known.reached()) == ({"name": "Sam"}, [("email", 1)])


async def test_of_many_entries_every_mistake_is_told_with_its_place_and_nothing_is_stored(known: Known) -> None:
    await known.declare()
    bad: Sequence[tuple[dict[str, Any], str, str]] = [
        ({"identity": Identity.group(UUID(int=1))}, "person", "it is no person"),
        ({"name": "  "}, "name", "blank"),
        ({"name": "two\nlines"}, "name", "control character"),
        ({"profile": {"name": "Sam"}}, "profile.name", "field of its own"),
        ({"profile": {"bio": "x" * 4096}}, "profile", "a profile takes"),
        ({"profile": {"x": object()}}, "profile", "cannot be stored"),
        ({"profile": {"x": float("nan")}}, "profile", "cannot be stored"),
        ({"locale": "german"}, "locale", "no locale"),
        ({"tz_id": "Vienna"}, "zone", "no time zone"),
        ({"contacts": (MAIL, token("a b "))}, "contacts.push[0]", "blank"),
        (
            {"contacts": (PHONE, ContactEntry(channel=Channel.SMS, destination="0664 123"))},
            "contacts.sms[1]",
            "international",
        ),
        ({"contacts": (ContactEntry(channel=Channel.INBOX, destination="x"),)}, "contacts.inbox[0]", "no destination"),
        ({"contacts": tuple(token(f"t{n}") for n in range(CONTACTS_MAX + 1))}, "contacts", "they would be 51"),
        ({"attributes": {"grade": "7"}}, "attributes.grade", "no number"),
        ({"attributes": {"level": 7}}, "attributes.level", "no attribute of this name"),
        ({"attributes": {"since": "1.2.2026"}}, "attributes.since", "no date"),
    ]
    entries = [PersonEntry(**{"identity": Identity.user(f"u{n}"), **fields}) for n, (fields, _, _) in enumerate(bad)]
    good = PersonEntry(identity=WHO, name="Sam", contacts=(MAIL,))
    again = PersonEntry(identity=WHO, name="Sam again")
    with pytest.raises(InvalidItems) as refused:
        await known.put(good, *entries, again)
    told = [(mistake.field, mistake.message) for mistake in refused.value.mistakes]
    assert [field for field, _ in told] == [
        *(f"people[{place}].{field}" for place, (_, field, _) in enumerate(bad, start=1)),
        f"people[{len(bad) + 1}].person",
    ]
    assert all(words in message for (_, message), (_, _, words) in zip(told, bad, strict=False))
    assert told[-1][1] == "it is the person at place 0 again"
    assert all(mistake.hint for mistake in refused.value.mistakes)
    assert await known.stored() is None
    assert not await known.harness.store.rows("school", AddressVersion)
    checked = await known.people.check("school", [good, *entries, again])
    assert [(one.place, one.error.field) for one in checked] == [
        *((place, field) for place, (_, field, _) in enumerate(bad, start=1)),
        (len(bad) + 1, "person"),
    ]
    skipped = await known.put(good, *entries, again, skip=True)
    assert [one.place for one in skipped] == [one.place for one in checked]
    assert await known.profile() == {"name": "Sam"}


async def test_an_edit_that_would_become_too_much_is_refused(known: Known) -> None:
    """What is stored counts, and of the contacts those that stay."""
    tokens = tuple(token(f"t{n}") for n in range(CONTACTS_MAX))
    await known.put(PersonEntry(identity=WHO, contacts=tokens, profile={"a": "x" * 3000}))
    before = await known.stored()
    with pytest.raises(InvalidItems, match=r"people\[0\]\.contacts: they would be 51"):
        await known.edit(edit(add_contacts=(MAIL,)))
    with pytest.raises(InvalidItems, match=r"people\[0\]\.profile: a profile takes 60"):
        await known.edit(edit(profile={"b": "x" * 3000}))
    assert await known.stored() == before
    assert [one.place for one in await known.edit(edit(add_contacts=(MAIL,)), skip=True)] == [0]
    await known.edit(edit(contacts={Channel.PUSH: ()}, add_contacts=(MAIL,)))
    assert await known.reached() == [("email", 1)]


async def test_a_national_number_is_read_in_the_region_that_is_named(known: Known) -> None:
    """Nothing else says where it is from: not the person's language or zone."""
    national = ContactEntry(channel=Channel.SMS, destination="0664 1234567")
    entry = PersonEntry(identity=WHO, locale="de-AT", tz_id="Europe/Vienna", contacts=(national,))
    with pytest.raises(InvalidItems, match="not in international form"):
        await known.put(entry)
    await known.put(entry, region="at")
    (first,) = (await known.person()).contacts
    whole = ContactEntry(channel=Channel.SMS, destination="+43 664 1234567")
    await known.put(msgspec.structs.replace(entry, contacts=(whole,)), region="GB")
    assert (await known.person()).contacts == (first,)
    with pytest.raises(InvalidInput, match="region: it is no region that has phone numbers"):
        await known.put(entry, region="Austria")


async def test_edits_that_meet_all_count(known: Known) -> None:
    """Each looked before the others wrote: whoever comes late looks again and merges with what they wrote."""
    await known.declare()
    await known.put(SAM)
    find, others = (
        known.harness.store.find_people,
        [
            edit(attributes={"city": "Graz"}),
            edit(add_contacts=(token("t1"),)),
            edit(profile={"title": "Dr."}),
        ],
    )

    async def find_and_be_overtaken(tenant_id: str, hashes: Sequence[str]) -> Any:
        found = await find(tenant_id, hashes)
        if others:
            known.people._catalog = known.harness.store
            await known.edit(others.pop())
            known.people._catalog = overtaken
        return found

    overtaken: Any = Overtaken(known.harness.store, find_and_be_overtaken)
    known.people._catalog = overtaken
    await known.edit(edit(name="Sam Sample", locale="de"))
    stored = await known.stored()
    assert stored is not None
    assert stored.attributes == {"city": "Graz"}
    assert stored.person.locale == "de"
    assert await known.profile() == {"name": "Sam Sample", "title": "Dr."}
    assert await known.reached() == [("email", 1), ("push", 1), ("sms", 1)]


class Overtaken:
    """A store whose callers look, and are overtaken before they write."""

    def __init__(self, store: Any, find_people: Any) -> None:
        self._store = store
        self.find_people = find_people

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


async def test_removed_people_are_nobody_until_they_are_put_again(known: Known) -> None:
    other = Identity.user("8")
    await known.put(SAM, PersonEntry(identity=other))
    await known.people.put_group("school", GroupEntry(guid=UUID(int=1), name="All", members=(WHO, other)))
    assert await known.people.remove("school", [WHO, Identity.user("9")], actor="sam") == [WHO]
    assert await known.stored() is None
    assert len((await known.harness.store.find_members("school", {UUID(int=1)}))[UUID(int=1)]) == 1
    assert await known.people.remove("school", [WHO], actor="sam") == []
    await known.put(PersonEntry(identity=WHO))
    assert (await known.person()).contacts == ()


async def test_an_attribute_is_declared_once_and_for_one_kind(known: Known) -> None:
    assert await known.people.declare("school", "grade", Kind.NUMBER, actor="sam")
    assert not await known.people.declare("school", "grade", Kind.NUMBER, actor="sam")
    with pytest.raises(Conflict, match="the attribute grade is declared as number"):
        await known.people.declare("school", "grade", Kind.TEXT, actor="sam")
    for n in range(99):
        await known.people.declare("school", f"a{n}", Kind.TEXT, actor="sam")
    with pytest.raises(InvalidInput, match="the tenant has 100 attributes"):
        await known.people.declare("school", "one-more", Kind.TEXT, actor="sam")
    assert not await known.people.declare("school", "grade", Kind.NUMBER, actor="sam")


async def test_acts_of_people_are_told_in_the_audit_log_and_those_of_programs_are_not(known: Known) -> None:
    await known.put(SAM)
    await known.put(SAM, actor="sam")  # changes nothing
    await known.edit(edit(locale="de"), actor="sam")
    await known.people.remove("school", [WHO], actor="kim")
    hashed = (await known.harness.keyring.get("school")).hash_of(WHO)
    log = await known.harness.store.list_audit("school")
    assert [(one.actor, one.act, one.subject) for one in log] == [
        ("sam", "put", f"person {hashed}"),
        ("kim", "remove", f"person {hashed}"),
    ]
