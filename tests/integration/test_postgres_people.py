"""Two who change one person at once on PostgreSQL, meeting at every statement: nothing is lost or mixed."""

from collections.abc import AsyncIterator

import msgspec
import pytest

from clarion.adapters.stores.postgres import PostgresStore
from clarion.domain.person import Person, StoredPerson
from clarion.testing import factories as make
from tests.integration.race import Call, Race, open_race


@pytest.fixture
async def race(migrated_postgres_url: str) -> AsyncIterator[Race]:
    async with open_race(migrated_postgres_url) as race:
        yield race


async def known(store: PostgresStore, tenant: str, *editions: int) -> Person:
    """Store a person with a few addresses."""
    answers = await store.ensure_address_versions(tenant, [make.address_version(1, edition) for edition in editions])
    person = make.person(1, *(answer.record for answer in answers))
    await store.put_people(tenant, [person])
    return person


async def seen(store: PostgresStore, tenant: str) -> dict[str, StoredPerson]:
    return dict(await store.find_people(tenant, [make.person(1).recipient_id_hash]))


def edit(tenant: str, person: Person, as_seen: dict[str, StoredPerson]) -> Call:
    return lambda store: store.put_people(tenant, [person], seen=as_seen, actor="sam")


@pytest.mark.parametrize("is_known", [True, False])
async def test_of_two_edits_from_the_same_look_one_is_stored_and_the_other_is_told(race: Race, is_known: bool) -> None:
    """Of somebody who is known, and of somebody whom both make."""

    async def calls(tenant: str) -> tuple[Call, Call]:
        person = await known(race.second, tenant, 1, 2) if is_known else make.person(1)
        look = await seen(race.second, tenant)
        fewer = msgspec.structs.replace(person, locale="fr", contacts=person.contacts[:1])
        other = msgspec.structs.replace(person, tz_id="UTC", contacts=person.contacts[1:])
        return edit(tenant, fewer, look), edit(tenant, other, look)

    count, waited = await race.statements((await calls("alone"))[0]), 0
    for n in range(1, count + 1):
        tenant = f"acme-{n}"
        one, other = await calls(tenant)
        meeting = await race.meet(tenant, one, other, stop_before=n)
        hashed = make.person(1).recipient_id_hash
        assert (meeting.first, meeting.second) == (([hashed], None) if meeting.waited else (None, [hashed]))
        (stored,) = (await seen(race.second, tenant)).values()
        assert (stored.person.locale, stored.person.tz_id) == (
            ("fr", "Europe/Vienna") if meeting.waited else ("de-AT", "UTC")
        )
        assert len(await race.second.list_audit(tenant)) == 1
        waited += meeting.waited
    assert waited > 1, "from the lock to the commit"


async def test_an_edit_and_a_removal_at_once_leave_the_person_or_nothing_of_them(race: Race) -> None:
    """Whoever is removed does not come back by an edit of what was seen before."""

    async def calls(tenant: str) -> tuple[Call, Call]:
        person = await known(race.second, tenant, 1, 2)
        changed = msgspec.structs.replace(person, locale="fr")
        return (
            edit(tenant, changed, await seen(race.second, tenant)),
            lambda store: store.remove_people(tenant, [person.recipient_id_hash], actor="sam"),
        )

    for n in range(1, await race.statements((await calls("alone"))[0]) + 1):
        tenant = f"acme-{n}"
        meeting = await race.meet(tenant, *await calls(tenant), stop_before=n)
        assert meeting.second == [make.person(1).recipient_id_hash]
        assert (meeting.first is None) is (not meeting.waited)
        assert await seen(race.second, tenant) == {}
        left = await race.observer.fetchval("SELECT count(*) FROM contact WHERE tenant_id = $1", tenant)
        assert left == 0


async def test_two_whole_puts_at_once_leave_one_of_the_two_and_never_a_mixture(race: Race) -> None:
    async def calls(tenant: str) -> tuple[Call, Call]:
        person = await known(race.second, tenant, 1, 2)
        one = msgspec.structs.replace(person, locale="fr", contacts=person.contacts[:1])
        other = msgspec.structs.replace(person, locale="it", contacts=person.contacts[1:])

        def put(whole: Person) -> Call:
            return lambda store: store.put_people(tenant, [whole], actor="sam")

        return put(one), put(other)

    for n in range(1, await race.statements((await calls("alone"))[0]) + 1):
        tenant = f"acme-{n}"
        meeting = await race.meet(tenant, *await calls(tenant), stop_before=n)
        (stored,) = (await seen(race.second, tenant)).values()
        assert (stored.person.locale, len(stored.person.contacts)) == ("it" if meeting.waited else "fr", 1)
        addresses = await race.second.find_addresses(tenant, [stored.person.contacts[0].address_id])
        assert [one.serial for one in addresses] == [2 if meeting.waited else 1]
