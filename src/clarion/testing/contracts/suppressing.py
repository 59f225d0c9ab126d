"""Suppressions and preferences as a store keeps them: each once, audited, the stronger cause outlasting the weaker.

What they do to messages is in `opting_out`, what providers report becomes of them in `evidence`.
"""

import asyncio
from typing import Final

import msgspec

from clarion.domain.identity import Channel
from clarion.domain.suppression import Cause, Change, Suppression
from clarion.ports.catalog import AuditEntry
from clarion.ports.suppression import PreferencesSet, SuppressionPlace
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.factories import TEXT, address_version

SUBJECT: Final = address_version(1).recipient_id_hash
OTHER: Final = address_version(1).destination_index
PAGE: Final = 2

OFF: Final = (Change(category="news", channel=Channel.EMAIL, on=False), Change(category="offers", on=False))
ON: Final = (Change(category="news", channel=Channel.EMAIL, on=True), Change(category="offers", on=True))


def bounce(subject: str = OTHER, **fields: object) -> Suppression:
    """Make a suppression of everything."""
    return msgspec.structs.replace(Suppression(subject=subject, scope="*", cause=Cause.BOUNCE, note=TEXT), **fields)


class SuppressionContract:
    """Who must not get what."""

    async def stored(self, harness: StoreHarness) -> list[tuple[str, str, Cause]]:
        """List all, without who and when."""
        found = await harness.store.list_suppressions(harness.tenant_id, limit=100)
        return sorted((one.subject, one.scope, one.cause) for one in found)

    async def acts(self, harness: StoreHarness) -> list[tuple[str, str, str | None]]:
        """Tell what the audit log says, oldest first."""
        log = await harness.rows(harness.tenant_id, AuditEntry)
        return [(entry.act, entry.subject, entry.reason) for entry in log]

    async def test_a_suppression_is_kept_as_it_was_put(self, harness: StoreHarness) -> None:
        """With who did it and when, by the store's clock."""
        put = bounce()
        assert await harness.store.put_suppressions(harness.tenant_id, [put], actor="sam", reason="asked") == [put.key]
        (found,) = await harness.store.list_suppressions(harness.tenant_id)
        assert found == msgspec.structs.replace(put, created_by="sam", created_at=found.created_at)
        assert found.created_at is not None
        assert abs((found.created_at - await harness.now()).total_seconds()) < 5
        assert await self.acts(harness) == [("suppress", f"suppression {OTHER}", "asked")]

    async def test_what_is_put_again_changes_nothing(self, harness: StoreHarness) -> None:
        """And has no line in the audit log, since nothing was done."""
        await harness.store.put_suppressions(harness.tenant_id, [bounce()], actor="sam")
        before = await harness.store.list_suppressions(harness.tenant_id), await self.acts(harness)
        again = [bounce(note="another"), bounce()]
        assert await harness.store.put_suppressions(harness.tenant_id, again, actor="kim") == []
        assert (await harness.store.list_suppressions(harness.tenant_id), await self.acts(harness)) == before
        assert await harness.store.put_suppressions(harness.tenant_id, [], actor="kim") == []

    async def test_any_order_of_causes_ends_in_the_strongest(self, harness: StoreHarness) -> None:
        """So what came from STOP, which START lifts, stays where something else stopped it too."""
        store, tenant_id = harness.store, harness.tenant_id
        weak, strong = bounce(cause=Cause.STOP), bounce(cause=Cause.COMPLAINT, note=None)
        await store.put_suppressions(tenant_id, [weak], actor="track")
        (before,) = await store.list_suppressions(tenant_id)
        assert await store.put_suppressions(tenant_id, [strong, bounce()], actor="sam") == [strong.key]
        assert await store.put_suppressions(tenant_id, [weak], actor="track") == []
        (after,) = await store.list_suppressions(tenant_id)
        assert after == msgspec.structs.replace(strong, created_by="sam", created_at=before.created_at)

    async def test_what_is_lifted_is_gone_and_nothing_else(self, harness: StoreHarness) -> None:
        """By subject and scope together; what is not there is not lifted."""
        store, tenant_id = harness.store, harness.tenant_id
        rows = [bounce(subject, scope=scope) for subject in (SUBJECT, OTHER) for scope in ("*", "news")]
        await store.put_suppressions(tenant_id, rows, actor="sam")
        keys = [(SUBJECT, "news"), (OTHER, "*"), (OTHER, "offers")]
        assert sorted(await store.lift_suppressions(tenant_id, keys, actor="kim", reason="mended")) == sorted(keys[:2])
        assert await self.stored(harness) == sorted([(SUBJECT, "*", Cause.BOUNCE), (OTHER, "news", Cause.BOUNCE)])
        assert await store.lift_suppressions(tenant_id, keys, actor="kim") == []
        lifted = [one for one in await self.acts(harness) if one[0] == "lift"]
        assert sorted(lifted) == sorted(("lift", f"suppression {subject}", "mended") for subject, _ in keys[:2])

    async def test_they_are_found_by_subject(self, harness: StoreHarness) -> None:
        """In one question for many; whoever gets everything is left out."""
        rows = [bounce(SUBJECT, scope=scope) for scope in ("*", "news:email")]
        await harness.store.put_suppressions(harness.tenant_id, [*rows, bounce()], actor="sam")
        stranger = address_version(2).recipient_id_hash
        found = await harness.store.find_suppressions(harness.tenant_id, [stranger, OTHER, SUBJECT, SUBJECT])
        assert found == {SUBJECT: {"*": Cause.BOUNCE, "news:email": Cause.BOUNCE}, OTHER: {"*": Cause.BOUNCE}}
        assert await harness.store.find_suppressions(harness.tenant_id, []) == {}

    async def test_pages_show_every_one_once_newest_first(self, harness: StoreHarness) -> None:
        """Also where several came at one moment, and of the subjects that are asked for only."""
        store, tenant_id = harness.store, harness.tenant_id
        for scopes in (("a", "b", "c"), ("d", "e")):
            rows = [bounce(subject, scope=scope) for subject in (SUBJECT, OTHER) for scope in scopes]
            await store.put_suppressions(tenant_id, rows, actor="sam")
        for subjects, number in ((None, 10), ([SUBJECT], 5), ([], 0)):
            seen: list[Suppression] = []
            place: SuppressionPlace | None = None
            while page := await store.list_suppressions(tenant_id, subjects=subjects, before=place, limit=PAGE):
                assert len(page) <= PAGE
                seen += page
                at = page[-1].created_at
                assert at is not None
                place = SuppressionPlace(created_at=at, subject=page[-1].subject, scope=page[-1].scope)
            assert len(seen) == len({one.key for one in seen}) == number
            assert [one.created_at for one in seen] == sorted((one.created_at for one in seen), reverse=True)  # type: ignore[type-var]  # all are stored

    async def test_one_cause_is_listed_by_itself(self, harness: StoreHarness) -> None:
        """Page by page, and of one subject too."""
        store, tenant_id = harness.store, harness.tenant_id
        rows = [bounce(subject, scope=scope) for subject in (SUBJECT, OTHER) for scope in ("a", "b", "c")]
        await store.put_suppressions(tenant_id, rows, actor="sam")
        await store.put_suppressions(tenant_id, [bounce(cause=Cause.STOP)], actor="sam")
        (stop,) = await store.list_suppressions(tenant_id, cause=Cause.STOP)
        assert (stop.scope, stop.cause) == ("*", Cause.STOP)
        seen: list[Suppression] = []
        place: SuppressionPlace | None = None
        while page := await store.list_suppressions(tenant_id, cause=Cause.BOUNCE, before=place, limit=PAGE):
            seen += page
            assert page[-1].created_at is not None
            place = SuppressionPlace(created_at=page[-1].created_at, subject=page[-1].subject, scope=page[-1].scope)
        assert len(seen) == len({one.key for one in seen}) == 6
        assert len(await store.list_suppressions(tenant_id, subjects=[OTHER], cause=Cause.BOUNCE)) == 3

    async def test_the_addresses_behind_indexes_are_found(self, harness: StoreHarness) -> None:
        """The newest version of each; an index that nobody has is left out."""
        store, tenant_id = harness.store, harness.tenant_id
        versions = [address_version(1), address_version(2)]
        stored = [one.record for one in await store.ensure_address_versions(tenant_id, versions)]
        asked = [*(one.destination_index for one in stored), address_version(3).destination_index]
        found = await store.find_suppressed_addresses(tenant_id, asked)
        assert found == {one.destination_index: one for one in stored}

    async def test_preferences_are_rows_of_the_same_table(self, harness: StoreHarness) -> None:
        """Off is a row, on is none; one entry in the log for each category that changed."""
        store, tenant_id = harness.store, harness.tenant_id
        done = await store.set_preferences(tenant_id, SUBJECT, OFF, actor="recipient", reason="too many")
        assert done == PreferencesSet(put=frozenset({"news:email", "offers"}), lifted=frozenset())
        assert await self.stored(harness) == [
            (SUBJECT, "news:email", Cause.PREFERENCE),
            (SUBJECT, "offers", Cause.PREFERENCE),
        ]
        assert await store.set_preferences(tenant_id, SUBJECT, OFF, actor="recipient") == PreferencesSet(
            put=frozenset(), lifted=frozenset()
        )
        await store.set_preferences(tenant_id, SUBJECT, ON[1:], actor="sam")
        assert await self.stored(harness) == [(SUBJECT, "news:email", Cause.PREFERENCE)]
        log = await harness.rows(tenant_id, AuditEntry)
        assert [(entry.actor, entry.act, entry.subject, entry.reason, entry.details) for entry in log] == [
            (
                "recipient",
                "set",
                f"preferences {SUBJECT}",
                "too many",
                '{"category":"news","cause":"preference","off":["news:email"],"on":[]}',
            ),
            (
                "recipient",
                "set",
                f"preferences {SUBJECT}",
                "too many",
                '{"category":"offers","cause":"preference","off":["offers"],"on":[]}',
            ),
            (
                "sam",
                "set",
                f"preferences {SUBJECT}",
                None,
                '{"category":"offers","cause":"preference","off":[],"on":["offers"]}',
            ),
        ]

    async def test_switching_on_lifts_what_another_cause_had_switched_off(self, harness: StoreHarness) -> None:
        """It is one cell, whoever switched it off; what stops everything is none of it."""
        store, tenant_id = harness.store, harness.tenant_id
        rows = [bounce(SUBJECT, scope=scope, cause=Cause.UNSUBSCRIBE) for scope in ("*", "news:email")]
        await store.put_suppressions(tenant_id, rows, actor="sam")
        await store.set_preferences(tenant_id, SUBJECT, ON, actor="recipient")
        assert await self.stored(harness) == [(SUBJECT, "*", Cause.UNSUBSCRIBE)]

    async def test_one_channel_of_a_category_that_is_off_leaves_the_others_off(self, harness: StoreHarness) -> None:
        """On every other channel that there is."""
        store, tenant_id = harness.store, harness.tenant_id
        await store.set_preferences(tenant_id, SUBJECT, OFF, actor="sam")
        change = Change(category="offers", channel=Channel.SMS, on=True)
        await store.set_preferences(tenant_id, SUBJECT, [change], actor="sam")
        off = {scope for _, scope, _ in await self.stored(harness)}
        assert off == {"news:email", *(f"offers:{one}" for one in Channel if one is not Channel.SMS)}

    async def test_a_preference_that_is_changed_twice_at_once_is_one_of_the_two(self, harness: StoreHarness) -> None:
        """In each cell, never an error, and never half of either."""
        store, tenant_id = harness.store, harness.tenant_id
        first = (*OFF[:1], *ON[1:])
        second = (*ON[:1], *OFF[1:])
        for _ in range(5):
            await asyncio.gather(
                store.set_preferences(tenant_id, SUBJECT, first, actor="one"),
                store.set_preferences(tenant_id, SUBJECT, second, actor="two"),
                store.set_preferences(tenant_id, SUBJECT, first, actor="three"),
            )
            off = {scope for _, scope, _ in await self.stored(harness)}
            assert off in ({"news:email"}, {"offers"})

    async def test_one_that_is_put_twice_at_once_is_there_once(self, harness: StoreHarness) -> None:
        """Two bounces of an address, applied by two workers (I-34)."""
        store, tenant_id = harness.store, harness.tenant_id
        rows = [bounce(subject) for subject in (SUBJECT, OTHER)]
        answers = await asyncio.gather(
            *(store.put_suppressions(tenant_id, order, actor="sam") for order in (rows, rows[::-1], rows))
        )
        assert sorted(key for answer in answers for key in answer) == sorted(row.key for row in rows)
        assert len(await self.acts(harness)) == 2
