"""Retiring: a contact that its provider does not know any more is reached no more."""

from datetime import timedelta

from clarion.domain.call import Refused
from clarion.domain.outgoing import OutgoingStatus
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.contracts.pump import Pump, near, other_token
from clarion.testing.factories import guid, person


class RetiringContract:
    """What a refusal that says so does to contacts."""

    async def test_a_contact_that_its_provider_does_not_know_is_retired(self, harness: StoreHarness) -> None:
        """It alone; whoever was retired before is so since then, and a bare address is nobody's contact."""
        store, tenant_id, pump = harness.store, harness.tenant_id, Pump(harness)
        addresses = [await pump.address(n) for n in (1, 2, 3)]
        await store.put_people(tenant_id, [person(n, at) for n, at in enumerate(addresses[:2], start=1)])
        before = await store.find_recipients(tenant_id, [one.recipient_id_hash for one in addresses])
        for n in (1, 2, 3):
            await pump.message(n)
        first, second, bare = sorted(await pump.claim(), key=lambda one: one.id)
        await pump.record(Refused(reason="full"), second)
        assert await store.find_recipients(tenant_id, before) == before
        await pump.record(Refused(reason="410", recipient_not_found=True), first, bare)
        found = await store.find_recipients(tenant_id, before)
        (retired,), (current,) = (found[one.recipient_id_hash].contacts for one in addresses[:2])
        assert near(retired.retired_at, await harness.now())
        assert current.is_current
        await harness.elapse(timedelta(hours=1))
        await pump.record(Refused(reason="410", recipient_not_found=True), first)
        assert await store.find_recipients(tenant_id, before) == found

    async def test_a_refusal_that_comes_late_retires_as_well(self, harness: StoreHarness) -> None:
        """Whoever holds the row now; what it says of the destination is true all the same."""
        store, tenant_id, pump = harness.store, harness.tenant_id, Pump(harness)
        address = await pump.address(1)
        await store.put_people(tenant_id, [person(1, address)])
        await pump.message(1)
        claimed = await pump.claim_one()
        stranger = other_token(claimed, guid(1, "stranger"))
        gone = Refused(reason="410", recipient_not_found=True)
        assert await pump.record(gone, stranger) == [OutgoingStatus.SENDING]
        (found,) = (await store.find_recipients(tenant_id, [address.recipient_id_hash])).values()
        assert not found.contacts[0].is_current
