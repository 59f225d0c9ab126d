"""What is loaded for a decision: a page of 5,000 in statements of 1,000, and every suppression that could matter."""

from collections.abc import Collection
from uuid import UUID

import pytest

from clarion.catalog.people import ContactEntry, PersonEntry
from clarion.domain.identity import Channel, Identity
from clarion.domain.person import Contact, Person
from clarion.domain.suppression import Cause, Suppression
from clarion.pipeline.generate.facts import load_known
from clarion.ports.ensure import ITEMS_MAX
from clarion.testing.clock import ManualClock
from clarion.testing.store import SqliteInMemory
from tests.unit.dispatch_harness import TRACE, DispatchHarness
from tests.unit.test_people import people

TENANT = "school"


class Counting(SqliteInMemory):
    """A store that notes how much it is asked at once."""

    def __init__(self) -> None:
        super().__init__(ManualClock())
        self.asked: list[tuple[str, int]] = []

    async def find_recipients(self, tenant_id: str, hashes: Collection[str]) -> dict[str, Person]:
        self.asked.append(("people", len(hashes)))
        return await super().find_recipients(tenant_id, hashes)

    async def find_suppressions(self, tenant_id: str, subjects: Collection[str]) -> dict[str, dict[str, Cause]]:
        self.asked.append(("suppressions", len(subjects)))
        return await super().find_suppressions(tenant_id, subjects)


@pytest.mark.parametrize("number", [0, 1, ITEMS_MAX, ITEMS_MAX + 1, 5 * ITEMS_MAX])
async def test_a_page_is_loaded_in_sets_however_large_it_is(number: int) -> None:
    store = Counting()
    hashes = [UUID(int=one).hex for one in range(number)]
    assert (await load_known(store, TENANT, hashes)).people == {}
    full, rest = divmod(number, ITEMS_MAX)
    sets = [ITEMS_MAX] * full + ([rest] if rest else [])
    assert store.asked == [*(("people", one) for one in sets), *(("suppressions", one) for one in sets)]


async def test_a_suppression_is_found_by_a_person_and_by_each_address_of_theirs_and_by_a_bare_address(
    harness: DispatchHarness,
) -> None:
    """Those of others, and of addresses that nobody asks about, are not loaded."""
    entries = [
        PersonEntry(
            identity=Identity.user(name),
            name=name,
            contacts=(ContactEntry(channel=Channel.EMAIL, destination=f"{name}@example.com"),),
        )
        for name in ("sam", "kim", "pat")
    ]
    await people(harness).put(TENANT, entries, trace=TRACE)
    keys = await harness.keyring.get(TENANT)
    sam, kim, pat = (keys.hash_of(one.identity) for one in entries)
    found = await harness.store.find_recipients(TENANT, [sam, kim, pat])
    mail = {one: found[one].contacts[0].destination_index for one in (sam, kim, pat)}
    bare = Contact(channel=Channel.SMS, address_id=-1, destination_index=UUID(int=7).hex)
    alone = UUID(int=8).hex
    subjects = [kim, mail[sam], pat, mail[pat], bare.destination_index, alone]
    await harness.store.put_suppressions(
        TENANT, [Suppression(subject=one, scope="news", cause=Cause.PREFERENCE) for one in subjects], actor="test"
    )
    known = await load_known(
        harness.store, TENANT, [sam, kim], bare=[alone], addresses={(Channel.SMS, "+447700900001"): bare}
    )
    assert set(known.people) == {sam, kim}
    wanted = {kim, mail[sam], bare.destination_index, alone}
    assert known.suppressed == {one: {"news": Cause.PREFERENCE} for one in wanted}
