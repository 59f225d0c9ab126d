"""Tenants side by side: whatever one of them asks for, by whosever ids, finds and changes nothing of another's (I-02).

Two tenants are given the same records under the same keys, with the same guids, and every method that takes a tenant is
asked: by the twin, about what both have, and by a stranger that has nothing, about what the first one has.
"""

import inspect
from uuid import UUID

import msgspec
import pytest

from clarion.domain.audit import broken_link
from clarion.domain.claim import Gate
from clarion.domain.ensured import Ensured, Outcome
from clarion.domain.guard import JobEntry
from clarion.domain.inbox import Counts
from clarion.domain.notification import NotificationScheduler, NotificationStatus
from clarion.errors import InvalidInput
from clarion.ports.catalog import AuditEntry, NewTemplate
from clarion.ports.store import Store
from clarion.testing import factories as make
from clarion.testing.contracts.harness import RECORDS, StoreHarness, by_key
from clarion.testing.contracts.pump import BROADCAST
from clarion.testing.contracts.tenant_methods import MAKES, READS, REFUSED, WRITES
from clarion.testing.contracts.tenant_records import (
    BY,
    DIRECT,
    HASH,
    JOB,
    Filled,
    event,
    event_by_message,
    fill,
    guard_key,
)
from clarion.testing.row import DeliveryAttempt, Transition, WebhookEvent


async def all_of(harness: StoreHarness, tenant_id: str, filled: Filled) -> dict[str, object]:
    """Read all that a tenant has, by every method that reads and by the way around the store."""
    kinds: tuple[type[msgspec.Struct], ...] = (*RECORDS, Transition, DeliveryAttempt, WebhookEvent)
    rows: dict[str, object] = {}
    for kind in kinds:
        rows[kind.__name__] = by_key(await harness.rows(tenant_id, kind))
    rows["audit"] = await harness.rows(tenant_id, AuditEntry)
    return rows | {name: await ask(harness.store, tenant_id, filled) for name, ask in READS.items()}


def is_nothing(answer: object) -> bool:
    """Tell whether an answer says that there is nothing, or that nothing was done."""
    match answer:
        case UUID() | True:
            return False
        case Counts():
            return not answer.lines
        case _:
            return answer in (None, 0, [], (), {}, set())


class TenancyContract:
    """What is one tenant's is no other's."""

    async def test_every_method_that_takes_a_tenant_is_asked(self) -> None:
        """A method that is added and not listed here would be held to nothing."""
        takes = {
            name
            for name, method in inspect.getmembers(Store, callable)
            if not name.startswith("_") and "tenant_id" in inspect.signature(method).parameters
        }
        asked = {name.partition(" ")[0] for table in (READS, WRITES, MAKES, REFUSED) for name in table}
        assert asked - {"find_templates", "find_latest_versions", "find_settings"} == takes

    async def test_a_tenant_reads_the_same_whatever_its_twin_has(self, harness: StoreHarness) -> None:
        """Though everything of the twin's has the same keys and guids."""
        mine, theirs = harness.tenant_id, f"{harness.tenant_id}-2"
        filled = await fill(harness, mine)
        before = await all_of(harness, mine, filled)
        assert not any(is_nothing(before[name]) for name in READS)
        twin = await fill(harness, theirs)
        await harness.store.keep_events(theirs, [event_by_message()])
        assert await all_of(harness, mine, filled) == before
        await harness.store.keep_events(mine, [event_by_message()])
        before = await all_of(harness, mine, filled)
        after = await all_of(harness, theirs, twin)
        assert {name: _size(after[name]) for name in after} == {name: _size(before[name]) for name in before}
        log = await harness.rows(theirs, AuditEntry)
        assert [entry.seq for entry in log] == list(range(1, len(log) + 1))
        assert broken_link(theirs, log) is None

    async def test_a_stranger_finds_nothing_of_anothers(self, harness: StoreHarness) -> None:
        """By the very ids that the other one's rows have."""
        filled = await fill(harness, harness.tenant_id)
        for name, ask in READS.items():
            assert is_nothing(await ask(harness.store, f"{harness.tenant_id}-2", filled)), name

    async def test_what_differs_between_twins_is_told_of_each_as_it_is(self, harness: StoreHarness) -> None:
        """Whichever of the two was there first: the state of a job, and the latest version of a template."""
        mine, theirs = harness.tenant_id, f"{harness.tenant_id}-2"
        statuses = {mine: NotificationStatus.DONE, theirs: NotificationStatus.SKIPPED}
        for tenant_id, versions in ((mine, 3), (theirs, 2)):
            await fill(harness, tenant_id)
            for n in range(2, versions + 1):
                edition = NewTemplate(template_key="welcome", content_hash=f"h1:{n}", bundle="{}")
                await harness.store.publish_templates(tenant_id, [edition], **BY)
            (row,) = [
                one
                for one in await harness.rows(tenant_id, NotificationScheduler)
                if one.key == make.scheduler_of(JOB).key
            ]
            await harness.overwrite(
                tenant_id, msgspec.structs.replace(row, status=statuses[tenant_id], lease_until=None)
            )
        for tenant_id, version in ((mine, 3), (theirs, 2)):
            (line,) = await harness.store.list_jobs(tenant_id, JOB.partition_key)
            timeline = await harness.store.find_job_timeline(tenant_id, JOB.guid)
            (latest,) = [one for one in await harness.store.list_latest_jobs(tenant_id) if one.guid == JOB.guid]
            standings = await harness.store.find_standings(tenant_id, [JOB.guid])
            assert latest == line
            assert standings[JOB.guid].work is statuses[tenant_id]
            assert timeline is not None
            assert timeline.scheduler is not None
            assert timeline.scheduler.status is statuses[tenant_id]
            assert [one.version for one in await harness.store.list_templates(tenant_id)] == [version]
            (found,) = (await harness.store.find_templates([(tenant_id, "welcome", None)])).values()
            assert found.version == version

    async def test_a_guard_that_is_taken_back_is_the_askers_own(self, harness: StoreHarness) -> None:
        """Its job turns out to be in conflict, so its key was not used; the same key of another tenant was."""
        mine, theirs = harness.tenant_id, f"{harness.tenant_id}-2"
        filled = await fill(harness, mine)
        before = await all_of(harness, mine, filled)
        await harness.store.ensure_notification_jobs(theirs, [JobEntry(job=DIRECT.job)])
        odd = msgspec.structs.replace(DIRECT.job, template_key="another")
        (answer,) = await harness.store.ensure_notification_jobs(theirs, [JobEntry(job=odd, guard=DIRECT.guard)])
        assert answer.outcome is Outcome.CONFLICT
        assert await harness.store.find_guard(theirs, guard_key()) is None
        assert await all_of(harness, mine, filled) == before

    async def test_a_receipt_is_applied_for_its_own_tenant(self, harness: StoreHarness) -> None:
        """The same receipt of a tenant without the message waits on."""
        mine, theirs = harness.tenant_id, f"{harness.tenant_id}-2"
        await harness.store.keep_events(theirs, [event()])
        await fill(harness, mine)
        assert await harness.store.apply_events(limit=10, actor="track") == 1
        (applied,), (waiting,) = [await harness.rows(tenant_id, WebhookEvent) for tenant_id in (mine, theirs)]
        assert applied.applied_at is not None
        assert waiting.applied_at is None

    async def test_a_canceled_broadcast_cancels_nothing_of_a_twins(self, harness: StoreHarness) -> None:
        """Of the same name; each sweeps its own."""
        mine, theirs = harness.tenant_id, f"{harness.tenant_id}-2"
        filled = await fill(harness, mine)
        await fill(harness, theirs)
        before = await all_of(harness, mine, filled)
        await harness.store.set_gate(theirs, BROADCAST, Gate.CANCELED, **BY)
        assert await harness.store.sweep_canceled(limit=10) == 1
        assert await all_of(harness, mine, filled) == before

    async def test_nobody_is_reached_at_an_address_of_another_tenant(self, harness: StoreHarness) -> None:
        """Though it is the same person, with the same address."""
        filled = await fill(harness, harness.tenant_id)
        strange = f"{harness.tenant_id}-3"
        person = make.person(1, make.address_version(1, id=filled.address))
        with pytest.raises(InvalidInput, match="the tenant has no address version"):
            await harness.store.put_people(strange, [person])
        assert await harness.store.find_recipients(strange, {HASH}) == {}

    @pytest.mark.parametrize("name", WRITES)
    async def test_an_act_of_a_twin_or_a_stranger_changes_nothing_of_anothers(
        self, harness: StoreHarness, name: str
    ) -> None:
        """The twin changes its own, the stranger nothing at all, and the first can still do so itself."""
        mine, theirs, strange = (f"{harness.tenant_id}{end}" for end in ("", "-2", "-3"))
        filled = await fill(harness, mine)
        twin = await fill(harness, theirs)
        if name == "set_gate":
            for tenant_id in (mine, theirs):
                await harness.store.set_gate(tenant_id, BROADCAST, Gate.PAUSED, actor="kim")
        before = await all_of(harness, mine, filled)
        assert await WRITES[name](harness.store, strange, filled) is False
        # By its own ids, which the store gave, nobody else's row is meant; by ours, nothing is.
        assert await WRITES[name](harness.store, theirs, twin) is True
        if name.startswith(("retry_outgoing", "revoke_api_key")):
            assert await WRITES[name](harness.store, theirs, filled) is False
        assert await all_of(harness, mine, filled) == before
        assert await WRITES[name](harness.store, mine, filled) is True

    async def test_what_a_stranger_makes_is_its_own(self, harness: StoreHarness) -> None:
        """Under keys that another tenant has: nothing of that one is found, and nothing of it changes."""
        filled = await fill(harness, harness.tenant_id)
        before = await all_of(harness, harness.tenant_id, filled)
        for n, (name, ask) in enumerate(MAKES.items()):
            answer = await ask(harness.store, f"{harness.tenant_id}-3-{n}", filled)
            assert await all_of(harness, harness.tenant_id, filled) == before, name
            answers = answer if isinstance(answer, list) else [answer]
            assert all(one.outcome is Outcome.CREATED for one in answers if isinstance(one, Ensured)), name
            assert name != "keep_events" or answer == 2

    @pytest.mark.parametrize("name", REFUSED)
    async def test_what_stands_on_anothers_records_is_refused(self, harness: StoreHarness, name: str) -> None:
        """A job or an address of another tenant is not there; with a job of its own, the address still is not."""
        mine, strange = harness.tenant_id, f"{harness.tenant_id}-3"
        filled = await fill(harness, mine)
        before = await all_of(harness, mine, filled)
        with pytest.raises(InvalidInput, match="the tenant has no job"):
            await REFUSED[name](harness.store, strange, filled)
        if name == "ensure_outgoing_messages":
            await harness.store.ensure_notification_jobs(strange, [JobEntry(job=JOB)])
            with pytest.raises(InvalidInput, match="the tenant has no address version"):
                await REFUSED[name](harness.store, strange, filled)
        assert await all_of(harness, mine, filled) == before


def _size(rows: object) -> int:
    return len(rows) if isinstance(rows, list | tuple | dict | set) else 1
