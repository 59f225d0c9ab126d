"""The control plane: templates in versions, people and groups, keys and cases."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec
import pytest

from clarion.domain.audience import Audience
from clarion.domain.ensured import Ensured, Outcome
from clarion.domain.identity import Channel
from clarion.domain.person import Contact, Person
from clarion.domain.support import SupportKind, SupportStatus
from clarion.errors import InvalidInput
from clarion.ports.catalog import ApiKey, NewTemplate, Role
from clarion.ports.facts import TemplateRow
from clarion.ports.store import Store
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.contracts.kind import changed_person
from clarion.testing.contracts.pump import near
from clarion.testing.contracts.support_cases import support_case
from clarion.testing.factories import TEXT, address_version, guid, person, person_version

AT: Final = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)


def api_key(n: int = 1, tenant_id: str = "acme", **fields: object) -> ApiKey:
    """Make a key as it is stored."""
    key = ApiKey(
        key_id=f"key-{tenant_id}-{n}", tenant_id=tenant_id, secret_hash=f"h1:{n}", actor=f"app-{n}", role=Role.SENDER
    )
    return msgspec.structs.replace(key, **fields)


async def make_person(harness: StoreHarness, n: int = 1, editions: tuple[int, ...] = (1,)) -> Person:
    """Store a person with mail addresses."""
    versions = [address_version(n, edition) for edition in editions]
    answers = await harness.store.ensure_address_versions(harness.tenant_id, versions)
    (version,) = await harness.store.ensure_person_versions(harness.tenant_id, [person_version(n)])
    made = person(n, *(answer.record for answer in answers), person_version_id=version.record.id)
    await harness.store.put_people(harness.tenant_id, [made])
    return made


def in_order(contacts: Sequence[Contact]) -> tuple[Contact, ...]:
    """Give contacts as they are read."""
    return tuple(sorted(contacts, key=lambda one: (one.channel, one.address_id)))


async def acts(harness: StoreHarness) -> list[tuple[str, str]]:
    """Give who did what to what, in order."""
    return [(entry.actor, entry.subject) for entry in await harness.store.list_audit(harness.tenant_id)]


async def _publish(store: Store, tenant_id: str, key: str, content_hash: str, *, bundle: str) -> Ensured[TemplateRow]:
    """Publish one template."""
    template = NewTemplate(template_key=key, content_hash=content_hash, bundle=bundle)
    (answer,) = await store.publish_templates(tenant_id, [template], actor="sam")
    return answer


class AuditPageContract:
    """The audit log as people read it."""

    async def test_the_newest_entries_come_first_page_by_page(self, harness: StoreHarness) -> None:
        """And only the tenant's own."""
        for enabled in (False, True, False, True):
            await harness.store.set_type_enabled(harness.tenant_id, "welcome", enabled=enabled, actor="sam")
        await harness.store.set_type_enabled(f"{harness.tenant_id}-2", "welcome", enabled=False, actor="kim")
        log = list(await harness.store.list_audit(harness.tenant_id))
        newest = list(await harness.store.list_newest_audit(harness.tenant_id, limit=3))
        assert newest == log[:0:-1]
        assert list(await harness.store.list_newest_audit(harness.tenant_id, before=newest[-1].seq)) == log[:1]


class TemplateContract:
    """What is published."""

    async def test_the_same_content_is_the_same_version_and_other_content_the_next(self, harness: StoreHarness) -> None:
        """Content that comes back after another is a new version: a version never changes."""
        published = [
            await _publish(harness.store, harness.tenant_id, "welcome", f"h1:{content}", bundle=f'{{"{content}": 1}}')
            for content in ("a", "a", "b", "b", "a")
        ]
        assert [answer.record.version for answer in published] == [1, 1, 2, 2, 3]
        new, known = Outcome.CREATED, Outcome.FOUND
        assert [answer.outcome for answer in published] == [new, known, new, known, new]
        assert published[2].record == published[3].record
        assert published[3].record == TemplateRow(
            template_key="welcome", version=2, content_hash="h1:b", bundle='{"b": 1}'
        )

    async def test_a_set_is_answered_in_its_order_and_makes_versions_of_what_is_new(
        self, harness: StoreHarness
    ) -> None:
        """Whatever the order of its keys."""
        await _publish(harness.store, harness.tenant_id, "b", "h1:b1", bundle="{}")
        templates = [
            NewTemplate(template_key=key, content_hash=content, bundle=f"of {content}")
            for key, content in (("c", "h1:c1"), ("b", "h1:b1"), ("a", "h1:a1"))
        ]
        answers = await harness.store.publish_templates(harness.tenant_id, templates, actor="sam")
        made = [(answer.record.template_key, answer.record.version) for answer in answers]
        assert made == [("c", 1), ("b", 1), ("a", 1)]
        assert [answer.outcome is Outcome.CREATED for answer in answers] == [True, False, True]
        assert [answer.record.bundle for answer in answers] == ["of h1:c1", "{}", "of h1:a1"]
        assert await harness.store.publish_templates(harness.tenant_id, [], actor="sam") == []

    async def test_a_set_is_stored_as_a_whole_or_not_at_all(self, harness: StoreHarness) -> None:
        """Half of a folder would mix a layout of before with texts of after."""
        good = NewTemplate(template_key="a", content_hash="h1:a", bundle="{}")
        bad = NewTemplate(template_key="b", content_hash="h1:b", bundle="\ud800")  # which no store can keep
        with pytest.raises(InvalidInput):
            await harness.store.publish_templates(harness.tenant_id, [good, bad], actor="sam")
        assert await harness.store.list_templates(harness.tenant_id) == []
        assert await acts(harness) == []

    async def test_two_who_publish_sets_in_another_order_both_come_to_an_end(self, harness: StoreHarness) -> None:
        """Each row of the one may have to wait for the other."""
        keys = [f"type-{n}" for n in range(8)]
        sets = [
            [NewTemplate(template_key=key, content_hash=f"h1:{n}", bundle="{}") for key in order]
            for n, order in enumerate((keys, keys[::-1], keys, keys[::-1]))
        ]
        answers = await asyncio.gather(
            *(harness.store.publish_templates(harness.tenant_id, one, actor="sam") for one in sets)
        )
        versions = [{one.record.template_key: one.record.version for one in answer} for answer in answers]
        assert all(len(set(made.values())) == 1 for made in versions)  # each set as a whole before or after another
        assert sorted(made["type-0"] for made in versions) == [1, 2, 3, 4]

    async def test_two_publishers_at_once_make_one_version(self, harness: StoreHarness) -> None:
        """Nobody gets an error."""
        answers = await asyncio.gather(
            *(_publish(harness.store, harness.tenant_id, "welcome", "h1:a", bundle="{}") for _ in range(4))
        )
        assert {answer.record.version for answer in answers} == {1}
        assert [answer.outcome for answer in answers].count(Outcome.CREATED) == 1

    async def test_templates_are_listed_by_key_in_their_latest_version(self, harness: StoreHarness) -> None:
        """A tenant's own."""
        for key, content in (("b", "1"), ("a", "1"), ("b", "2"), ("c", "1")):
            await _publish(harness.store, harness.tenant_id, key, content, bundle=TEXT)
        listed = await harness.store.list_templates(harness.tenant_id)
        assert [(row.template_key, row.version, row.content_hash) for row in listed] == [
            ("a", 1, "1"),
            ("b", 2, "2"),
            ("c", 1, "1"),
        ]
        assert all(row.bundle == TEXT for row in listed)
        assert await harness.store.list_templates(f"{harness.tenant_id}-2") == []

    async def test_versions_of_a_template_are_listed_newest_first(self, harness: StoreHarness) -> None:
        """As many as asked for, with their times."""
        before_at = await harness.store.now()
        for content in ("1", "2", "3"):
            await _publish(harness.store, harness.tenant_id, "welcome", content, bundle=TEXT)
        await _publish(harness.store, harness.tenant_id, "goodbye", "4", bundle=TEXT)
        after_at = await harness.store.now()
        listed = await harness.store.list_template_versions(harness.tenant_id, "welcome", limit=2)
        assert [(one.version, one.content_hash, one.quarantined_at) for one in listed] == [
            (3, "3", None),
            (2, "2", None),
        ]
        assert all(before_at <= one.created_at <= after_at for one in listed)
        assert await harness.store.list_template_versions(harness.tenant_id, "nothing", limit=2) == []

    async def test_a_quarantined_version_says_so_until_its_case_is_resolved(self, harness: StoreHarness) -> None:
        """That version alone: the next one of its key can be merged, and so can another tenant's with this content."""
        mine, theirs, store = harness.tenant_id, f"{harness.tenant_id}-2", harness.store
        for tenant_id, key, content in ((mine, "welcome", "1"), (mine, "code", "1"), (theirs, "welcome", "1")):
            await _publish(store, tenant_id, key, content, bundle="{}")
        names = [(mine, "welcome"), (mine, "code"), (theirs, "welcome")]
        assert not await store.quarantine_template(mine, "welcome", "another")
        assert await store.quarantine_template(mine, "welcome", "1")
        assert not await store.quarantine_template(mine, "welcome", "1")
        assert (await store.find_latest_versions(names)).quarantined == {(mine, "welcome")}
        found = await store.find_templates([(*name, 1) for name in names])
        assert [name[:2] for name, row in found.items() if row.quarantined] == [(mine, "welcome")]
        (case,) = await store.list_support_cases(mine)
        assert (case.kind, case.record, case.record_key) == (SupportKind.HOLD, "Template", '["welcome","1"]')
        assert await store.list_support_cases(theirs) == []
        await _publish(store, mine, "welcome", "2", bundle="{}")
        assert (await store.find_latest_versions(names)).quarantined == set()
        assert (await store.find_templates([(mine, "welcome", 1)]))[mine, "welcome", 1].quarantined
        assert await store.resolve_support_case(mine, case.case_id, actor="sam", resolution="it was the machine")
        assert not (await store.find_templates([(mine, "welcome", 1)]))[mine, "welcome", 1].quarantined

    async def test_templates_are_found_by_version_or_the_latest(self, harness: StoreHarness) -> None:
        """In one set over several tenants; what does not exist is left out."""
        mine, theirs = harness.tenant_id, f"{harness.tenant_id}-2"
        for tenant_id, content in ((mine, "1"), (mine, "2"), (theirs, "3")):
            await _publish(harness.store, tenant_id, "welcome", content, bundle=f"of {content}")
        wanted: list[tuple[str, str, int | None]] = [
            (mine, "welcome", None),
            (mine, "welcome", 1),
            (mine, "welcome", 2),
            (mine, "welcome", 3),
            (mine, "goodbye", None),
            (theirs, "welcome", None),
            (theirs, "welcome", 2),
        ]
        found = await harness.store.find_templates(wanted)
        assert {name: row.bundle for name, row in found.items()} == {
            (mine, "welcome", None): "of 2",
            (mine, "welcome", 1): "of 1",
            (mine, "welcome", 2): "of 2",
            (theirs, "welcome", None): "of 3",
        }
        assert await harness.store.find_templates([]) == {}
        names = [(mine, "welcome"), (mine, "goodbye"), (theirs, "welcome"), (mine, "welcome")]
        before_at = await harness.store.now()
        latest = await harness.store.find_latest_versions(names)
        assert latest.versions == {(mine, "welcome"): 2, (theirs, "welcome"): 1}
        nothing = await harness.store.find_latest_versions([])
        assert (nothing.versions, before_at <= latest.at <= nothing.at) == ({}, True)


class FactContract:
    """People, groups and settings, as a decision asks for them."""

    async def test_people_are_found_with_the_contacts_that_are_current(self, harness: StoreHarness) -> None:
        """By recipient hash; the unknown and another tenant's are left out."""
        one, two = await make_person(harness, 1, editions=(1, 2)), await make_person(harness, 2)
        hashes = [one.recipient_id_hash, two.recipient_id_hash, "0" * 32]
        found = await harness.store.find_recipients(harness.tenant_id, hashes)
        assert found == {
            known.recipient_id_hash: msgspec.structs.replace(known, contacts=in_order(known.contacts))
            for known in (one, two)
        }
        assert await harness.store.find_recipients(f"{harness.tenant_id}-2", hashes) == {}
        assert await harness.store.find_recipients(harness.tenant_id, []) == {}

    async def test_putting_people_again_replaces_every_column_and_the_contacts(self, harness: StoreHarness) -> None:
        """An old address is no contact any more, though its version stays; one that stays may be said to be another."""
        older = await make_person(harness, 1, editions=(1, 2))
        retired = msgspec.structs.replace(older.contacts[1], verified=False, retired_at=AT)
        newer = msgspec.structs.replace(changed_person(older), contacts=(retired,))
        await harness.store.put_people(harness.tenant_id, [newer])
        assert await harness.store.find_recipients(harness.tenant_id, [older.recipient_id_hash]) == {
            older.recipient_id_hash: newer
        }
        await harness.store.put_people(harness.tenant_id, [msgspec.structs.replace(newer, contacts=())])
        found = (await harness.store.find_recipients(harness.tenant_id, [older.recipient_id_hash])).popitem()[1]
        assert found.contacts == ()
        await harness.store.put_people(harness.tenant_id, [])

    async def test_people_with_an_address_that_is_not_theirs_are_refused(self, harness: StoreHarness) -> None:
        """Nobody's address, another person's and one of another channel are refused; nothing of the set is written."""
        one, two = await make_person(harness, 1), await make_person(harness, 2)
        (own,) = two.contacts
        nobodys = msgspec.structs.replace(own, address_id=999_999_999)
        elsewhere = msgspec.structs.replace(own, channel=Channel.SMS)
        for wrong in (*one.contacts, nobodys, elsewhere):
            newer = msgspec.structs.replace(two, locale="fr", contacts=(wrong,))
            with pytest.raises(InvalidInput, match=f"no address version {wrong.address_id}"):
                await harness.store.put_people(harness.tenant_id, [one, newer])
        hashes = [one.recipient_id_hash, two.recipient_id_hash]
        found = await harness.store.find_recipients(harness.tenant_id, hashes)
        assert {known.locale for known in found.values()} == {"de-AT"}

    async def test_groups_are_found_with_their_members_sorted(self, harness: StoreHarness) -> None:
        """Putting a group again replaces its members; a group without any is known and empty."""
        members = [address_version(n).recipient_id_hash for n in (1, 2, 3)]
        parents, staff = guid(1, "group"), guid(2, "group")
        await harness.store.put_group(harness.tenant_id, guid=parents, name=TEXT, members=[*members, members[0]])
        await harness.store.put_group(harness.tenant_id, guid=staff, name="Staff", members=[])
        found = await harness.store.find_members(harness.tenant_id, [parents, staff, guid(3, "group")])
        assert found == {parents: tuple(sorted(members)), staff: ()}
        await harness.store.put_group(harness.tenant_id, guid=parents, name="Parents", members=members[:1])
        assert await harness.store.find_members(harness.tenant_id, [parents]) == {parents: (members[0],)}
        assert await harness.store.find_members(f"{harness.tenant_id}-2", [parents]) == {}
        assert await harness.store.find_members(harness.tenant_id, []) == {}

    async def test_an_audience_is_read_in_pages_each_once(self, harness: StoreHarness) -> None:
        """Sorted, behind the one asked for, and only the tenant's own."""
        members = sorted(address_version(n).recipient_id_hash for n in range(1, 6))
        for n, some in ((1, members[:3]), (2, members[1:])):
            await harness.store.put_group(harness.tenant_id, guid=guid(n, "group"), name=TEXT, members=some)
        audience = Audience(groups=(guid(2, "group"), guid(1, "group"), guid(3, "group")))
        first = await harness.store.find_audience(harness.tenant_id, audience, limit=2)
        second = await harness.store.find_audience(harness.tenant_id, audience, after=first[-1], limit=10)
        assert [list(first), list(second)] == [members[:2], members[2:]]
        assert not await harness.store.find_audience(harness.tenant_id, audience, after=members[-1], limit=10)
        assert not await harness.store.find_audience(f"{harness.tenant_id}-2", audience, limit=10)
        assert not await harness.store.find_audience(harness.tenant_id, Audience(), limit=10)

    async def test_the_store_says_what_time_it_is(self, harness: StoreHarness) -> None:
        """By the clock that it judges due times by: a door accepts by it (I-37)."""
        assert near(await harness.store.now(), await harness.now())
        await harness.elapse(timedelta(days=3))
        assert near(await harness.store.now(), await harness.now())


class KeyContract:
    """Keys of the API."""

    async def test_a_key_is_found_by_its_public_id_as_it_was_stored(self, harness: StoreHarness) -> None:
        """Revoked or not; the store gives it the time of its making."""
        key = api_key(1, harness.tenant_id, expires_at=AT + timedelta(days=50 * 365))
        assert await harness.store.put_api_key(key, actor="sam")
        found = await harness.store.find_api_key(key.key_id)
        assert found is not None
        assert found == msgspec.structs.replace(key, created_at=found.created_at)
        assert near(found.created_at, await harness.now())
        assert await harness.store.find_api_key("nobody's") is None

    async def test_a_key_that_has_expired_by_the_stores_clock_is_listed_and_not_found(
        self, harness: StoreHarness
    ) -> None:
        """Whatever time the process that asks believes it is."""
        key = api_key(1, harness.tenant_id, expires_at=await harness.now() - timedelta(seconds=5))
        await harness.store.put_api_key(key, actor="sam")
        assert await harness.store.find_api_key(key.key_id) is None
        assert [one.key_id for one in await harness.store.list_api_keys(harness.tenant_id)] == [key.key_id]

    async def test_a_key_whose_id_is_taken_is_not_stored(self, harness: StoreHarness) -> None:
        """Whoever has it keeps it, and no other tenant's log speaks of it."""
        key = api_key(1, harness.tenant_id)
        assert await harness.store.put_api_key(key, actor="sam")
        stored = await harness.store.find_api_key(key.key_id)
        for tenant_id in (harness.tenant_id, f"{harness.tenant_id}-2"):
            other = msgspec.structs.replace(key, tenant_id=tenant_id, role=Role.ADMIN)
            assert not await harness.store.put_api_key(other, actor="kim")
        assert await harness.store.find_api_key(key.key_id) == stored
        assert await acts(harness) == [("sam", f"key {key.key_id}")]
        assert await harness.store.list_audit(f"{harness.tenant_id}-2") == []

    async def test_a_tenants_keys_are_listed_in_the_order_of_their_making(self, harness: StoreHarness) -> None:
        """And no other's."""
        theirs = f"{harness.tenant_id}-2"
        keys = [api_key(n, harness.tenant_id) for n in (3, 1, 2)]
        for key in (*keys, api_key(9, theirs)):
            await harness.store.put_api_key(key, actor="sam")
        assert [key.key_id for key in await harness.store.list_api_keys(harness.tenant_id)] == [
            key.key_id for key in keys
        ]

    async def test_a_key_is_revoked_once_and_by_its_own_tenant(self, harness: StoreHarness) -> None:
        """From now on; audited when it happened, and not when it did not."""
        key = api_key(1, harness.tenant_id)
        await harness.store.put_api_key(key, actor="sam")
        assert not await harness.store.revoke_api_key(f"{harness.tenant_id}-2", key.key_id, actor="kim")
        assert not await harness.store.revoke_api_key(harness.tenant_id, "nobody's", actor="kim")
        assert await harness.store.revoke_api_key(harness.tenant_id, key.key_id, actor="kim")
        assert not await harness.store.revoke_api_key(harness.tenant_id, key.key_id, actor="kim")
        found = await harness.store.find_api_key(key.key_id)
        assert found is not None
        assert near(found.revoked_at, await harness.now())
        assert [entry.actor for entry in await harness.store.list_audit(harness.tenant_id)] == ["sam", "kim"]

    async def test_a_case_is_resolved_once_and_opens_again_when_it_is_seen_again(self, harness: StoreHarness) -> None:
        """Audited with the resolution; another tenant cannot."""
        case = support_case()
        await harness.store.open_support_cases(harness.tenant_id, [case])
        resolve = harness.store.resolve_support_case
        assert not await resolve(f"{harness.tenant_id}-2", case.case_id, actor="sam", resolution="mended")
        assert not await resolve(harness.tenant_id, guid(9, "case"), actor="sam", resolution="mended")
        assert await resolve(harness.tenant_id, case.case_id, actor="sam", resolution="mended")
        assert not await resolve(harness.tenant_id, case.case_id, actor="sam", resolution="mended")
        stored = await harness.store.find_support_case(harness.tenant_id, case.case_id)
        assert stored is not None
        assert stored.status is SupportStatus.RESOLVED
        assert (stored.resolved_by, stored.resolution) == ("sam", "mended")
        assert near(stored.resolved_at, await harness.now())
        assert await harness.store.list_support_cases(harness.tenant_id, status=stored.status) == [stored]
        (entry,) = await harness.store.list_audit(harness.tenant_id)
        assert entry.actor == "sam"
        assert "mended" in f"{entry.reason} {entry.details}"
        await harness.store.open_support_cases(harness.tenant_id, [case])
        (again,) = await harness.store.list_support_cases(harness.tenant_id)
        assert (again.status, again.seen_count) == (SupportStatus.OPEN, 2)
        assert (again.resolved_at, again.resolved_by, again.resolution) == (stored.resolved_at, "sam", "mended")
