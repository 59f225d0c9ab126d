"""What tenants and API keys may use in a day, and have used: counts of all processes together, and quotas."""

import asyncio
from datetime import UTC

import msgspec

from clarion.domain.quota import Amount, Limits, Usage
from clarion.ports.catalog import ApiKey, Role, Used
from clarion.testing.contracts.harness import StoreHarness

KEY = "a-key-of-the-tenant"


def used(harness: StoreHarness, *counts: int, key: str = KEY) -> Used:
    """Make a use of so many requests, notifications and recipients."""
    amount = Amount(**dict(zip(Amount.__struct_fields__, counts, strict=False)))
    return Used(tenant_id=harness.tenant_id, key_id=key, amount=amount)


async def usage(harness: StoreHarness, key: str = KEY) -> Usage:
    """Read what one key has used."""
    (found,) = [one for one in await harness.store.list_usage(harness.tenant_id) if one.key_id == key]
    return found


class UsageContract:
    """Counts and quotas."""

    async def test_what_is_counted_adds_up_and_is_given_back(self, harness: StoreHarness) -> None:
        """For each key and for the tenant as a whole, in one statement."""
        store = harness.store
        assert await store.count_usage([]) == []
        await store.count_usage([used(harness, 1), used(harness, 1, key="")])
        found = await store.count_usage([used(harness, 2, 3, 4), used(harness, key="")])
        assert {one.key_id: one.used for one in found} == {
            KEY: Amount(requests=3, notifications=3, recipients=4),
            "": Amount(requests=1),
        }
        listed = await store.list_usage(harness.tenant_id)
        assert [one.key_id for one in listed] == ["", KEY], "the tenant itself is first"
        assert [one.used for one in listed] == [Amount(requests=1), Amount(requests=3, notifications=3, recipients=4)]

    async def test_processes_that_count_at_once_lose_nothing(self, harness: StoreHarness) -> None:
        """Whatever the order in which they name tenant and key."""
        uses = [used(harness, 1), used(harness, 1, key="")]
        await asyncio.gather(*(harness.store.count_usage(uses if n % 2 else uses[::-1]) for n in range(10)))
        assert (await usage(harness)).used == (await usage(harness, "")).used == Amount(requests=10)

    async def test_another_day_starts_the_counts_again(self, harness: StoreHarness) -> None:
        """Its row is the same, so that nothing has to be swept; it says which day it is of."""
        (today,) = await harness.store.count_usage([used(harness, 5, 5, 5)])
        assert today.day == today.now.astimezone(UTC).date()
        tomorrow = msgspec.structs.replace(today, now=today.now.replace(year=today.now.year + 1))
        assert tomorrow.used == Amount()

    async def test_a_quota_is_set_and_lifted_and_leaves_the_counts_alone(self, harness: StoreHarness) -> None:
        """What stands so already is no change, and has no entry in the audit log."""
        store, limits = harness.store, Limits(requests=10, recipients=0)
        assert not await store.set_quota(harness.tenant_id, KEY, Limits(), actor="ada")
        await store.count_usage([used(harness, 3)])
        assert await store.set_quota(harness.tenant_id, KEY, limits, actor="ada")
        assert not await store.set_quota(harness.tenant_id, KEY, limits, actor="ada")
        assert await store.set_quota(harness.tenant_id, "", Limits(notifications=7), actor="ada")
        (counted,) = await store.count_usage([used(harness, 1)])
        assert (counted.limits, counted.used) == (limits, Amount(requests=4))
        assert (await usage(harness, "")).limits == Limits(notifications=7)
        assert await store.set_quota(harness.tenant_id, KEY, Limits(), actor="ada")
        assert (await usage(harness)).limits == Limits()
        acts = [(one.act, one.subject) for one in await store.list_audit(harness.tenant_id)]
        key, tenant = ("limit", f"key {KEY}"), ("limit", f"tenant {harness.tenant_id}")
        assert sorted(acts) == sorted([key, tenant, key])

    async def test_a_key_shows_when_it_was_used_last(self, harness: StoreHarness) -> None:
        """One that was never used shows nothing, and the use of the tenant is not the key's."""
        ids = [f"{harness.tenant_id}-key-{n}" for n in (1, 2)]
        for key_id in ids:
            key = ApiKey(key_id=key_id, tenant_id=harness.tenant_id, secret_hash="h1:1", actor="sam", role=Role.ADMIN)  # noqa: S106  no secret
            await harness.store.put_api_key(key, actor="sam")
        await harness.store.count_usage([used(harness, 1, key=ids[0]), used(harness, 1, key="")])
        first, second = await harness.store.list_api_keys(harness.tenant_id)
        assert first.last_used_at == (await usage(harness, ids[0])).last_used_at is not None
        assert second.last_used_at is None
