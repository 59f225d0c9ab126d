"""Versions of profiles, whose serials the store counts; and the languages and zones of tenants, units and people."""

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec
import pytest

from clarion.domain.ensured import Outcome
from clarion.domain.person import BusinessUnit, LocalForm, PersonVersion
from clarion.errors import InvalidInput
from clarion.testing.contracts.harness import StoreHarness, everything
from clarion.testing.factories import TEXT, guid, person, person_version

EDITORS: Final = 6
"""Who edit one person at once: more than one connection's worth, fewer than a pool has."""

NORTH: Final = BusinessUnit(guid=guid(1, "unit"), name=TEXT, locale="fr-CA", tz_id="America/Toronto")
SOUTH: Final = BusinessUnit(guid=guid(2, "unit"), name="South")


def edits(*numbers: int) -> list[PersonVersion]:
    """Make profiles of one person that differ."""
    return [person_version(1, profile_hash=f"k1:edit-{n}", profile=b"sealed %d" % n) for n in numbers]


async def serials(harness: StoreHarness) -> dict[str, int]:
    """Give the serial of each stored profile, by its hash."""
    return {one.profile_hash: one.serial for one in await harness.rows(harness.tenant_id, PersonVersion)}


class ProfileContract:
    """What a store promises of profiles."""

    async def test_serials_are_counted_for_each_person_whatever_is_asked_for(self, harness: StoreHarness) -> None:
        """From 1, in the order asked; a serial in a request means nothing."""
        asked = [*edits(1), person_version(2, serial=9), *edits(2)]
        answers = await harness.store.ensure_person_versions(harness.tenant_id, asked)
        assert [answer.record.serial for answer in answers] == [1, 1, 2]
        (third,) = await harness.store.ensure_person_versions(harness.tenant_id, edits(3))
        assert (third.outcome, third.record.serial) == (Outcome.CREATED, 3)

    async def test_the_same_profile_is_the_same_version_whenever_it_comes(self, harness: StoreHarness) -> None:
        """Also after others: going back to an old profile makes no new row, and what was sealed first stays."""
        made = await harness.store.ensure_person_versions(harness.tenant_id, edits(1, 2))
        before = await everything(harness)
        again = [msgspec.structs.replace(one, profile=b"sealed anew", serial=7) for one in edits(2, 1)]
        answers = await harness.store.ensure_person_versions(harness.tenant_id, again)
        assert [answer.outcome for answer in answers] == [Outcome.FOUND, Outcome.FOUND]
        assert [answer.record for answer in answers] == [made[1].record, made[0].record]
        assert await everything(harness) == before

    async def test_editors_at_the_same_time_get_a_serial_each(self, harness: StoreHarness) -> None:
        """None is lost, none is counted twice, and no number is left out."""

        async def edit(profiles: Sequence[PersonVersion]) -> list[Outcome]:
            answers = await harness.store.ensure_person_versions(harness.tenant_id, profiles)
            return [answer.outcome for answer in answers]

        sets = [edits(2 * n, 2 * n + 1) for n in range(EDITORS)]
        outcomes = await asyncio.gather(*(edit(one) for one in sets))
        assert outcomes == [[Outcome.CREATED, Outcome.CREATED]] * EDITORS
        assert sorted((await serials(harness)).values()) == list(range(1, 2 * EDITORS + 1))

    async def test_of_those_who_make_the_same_edit_at_once_one_makes_the_version(self, harness: StoreHarness) -> None:
        """All of them get it."""
        asked = [harness.store.ensure_person_versions(harness.tenant_id, edits(1)) for _ in range(EDITORS)]
        answers = [answer for (answer,) in await asyncio.gather(*asked)]
        assert sorted(answer.outcome for answer in answers) == [Outcome.CREATED] + [Outcome.FOUND] * (EDITORS - 1)
        assert {answer.record.id for answer in answers} == {answers[0].record.id}
        assert await serials(harness) == {"k1:edit-1": 1}

    async def test_people_with_somebody_elses_profile_are_refused(self, harness: StoreHarness) -> None:
        """Nothing of the set is written, and so it is with a version that is not there."""
        (theirs,) = await harness.store.ensure_person_versions(harness.tenant_id, [person_version(2)])
        for version_id in (theirs.record.id, 999_999_999):
            people = [person(2, person_version_id=theirs.record.id), person(1, person_version_id=version_id)]
            with pytest.raises(InvalidInput, match=f"no person version {version_id}"):
                await harness.store.put_people(harness.tenant_id, people)
        found = await harness.store.find_recipients(harness.tenant_id, [person(n).recipient_id_hash for n in (1, 2)])
        assert found == {}


class LocalFormContract:
    """In which language and zone people read, where they do not say so themselves."""

    async def test_a_tenants_own_is_audited_when_it_changes(self, harness: StoreHarness) -> None:
        """Saying again what is so already changes nothing; a tenant that nobody made has none."""
        store, tenant_id = harness.store, harness.tenant_id
        german = LocalForm(locale="de-AT", tz_id="Europe/Vienna")
        assert await store.set_tenant_form(tenant_id, german, actor="sam") is False
        assert await store.find_local_forms(tenant_id, []) == {}
        await store.ensure_tenant(tenant_id, {})
        assert await store.find_local_forms(tenant_id, []) == {None: LocalForm()}
        assert [await store.set_tenant_form(tenant_id, german, actor="sam") for _ in range(2)] == [True, False]
        assert await store.find_local_forms(tenant_id, []) == {None: german}
        assert await store.set_tenant_form(tenant_id, LocalForm(tz_id="Europe/Vienna"), actor="kim") is True
        assert await store.find_local_forms(tenant_id, []) == {None: LocalForm(tz_id="Europe/Vienna")}
        log = await store.list_audit(tenant_id)
        assert [(entry.actor, entry.act, entry.subject, msgspec.json.decode(entry.details)) for entry in log] == [
            ("sam", "set", f"tenant {tenant_id}", {"locale": "de-AT", "zone": "Europe/Vienna"}),
            ("kim", "set", f"tenant {tenant_id}", {"zone": "Europe/Vienna"}),
        ]

    async def test_business_units_are_found_by_their_guids_and_listed_by_name(self, harness: StoreHarness) -> None:
        """Putting one again replaces it."""
        store, tenant_id = harness.store, harness.tenant_id
        for unit in (NORTH, SOUTH):
            await store.put_business_unit(tenant_id, unit)
        assert list(await store.list_business_units(tenant_id)) == sorted((NORTH, SOUTH), key=lambda one: one.name)
        forms = await store.find_local_forms(tenant_id, [NORTH.guid, SOUTH.guid, guid(3, "unit")])
        assert forms == {NORTH.guid: LocalForm(locale="fr-CA", tz_id="America/Toronto"), SOUTH.guid: LocalForm()}
        await store.put_business_unit(tenant_id, msgspec.structs.replace(SOUTH, name="A", locale="fr"))
        assert [one.name for one in await store.list_business_units(tenant_id)] == ["A", TEXT]
        assert await store.find_local_forms(tenant_id, [SOUTH.guid]) == {SOUTH.guid: LocalForm(locale="fr")}
