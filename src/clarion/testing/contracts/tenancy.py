"""Tenants side by side: whatever one of them asks for, by whosever ids, finds and changes nothing of another's (I-02).

Two tenants are given the same records under the same keys, with the same guids, and every method that takes a tenant is
asked: by the twin, about what both have, and by a stranger that has nothing, about what the first one has.
"""

import inspect
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import msgspec
import pytest

from clarion.domain.audit import broken_link
from clarion.domain.call import Accepted, Refused, Unknown
from clarion.domain.claim import Gate
from clarion.domain.ensured import Ensured, Outcome
from clarion.domain.guard import JobEntry
from clarion.domain.notification import NotificationScheduler, NotificationStatus
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.quota import Amount, Limits, Usage
from clarion.domain.seal import Purpose
from clarion.domain.support import SupportCase, SupportKind, SupportStatus
from clarion.errors import InvalidInput
from clarion.ports.catalog import ApiKey, AuditEntry, Role, Used
from clarion.ports.store import Store
from clarion.ports.track import ProviderEvent
from clarion.testing import factories as make
from clarion.testing.contracts.harness import RECORDS, StoreHarness, by_key
from clarion.testing.contracts.pump import ACCOUNT, BROADCAST, Pump
from clarion.testing.row import DeliveryAttempt, Transition, WebhookEvent

GROUP: Final = make.guid(1, "group")
CASE: Final = SupportCase(
    case_id=make.guid(1, "case"),
    kind=SupportKind.HOLD,
    record="NotificationJob",
    record_key="[]",
    details="{}",
    correlation_id="c-1",
)
DIRECT: Final = make.guarded_entry(message_id=make.guid(1, "direct"))
JOB: Final = make.notification_job(1)
FAILED_JOB: Final = make.notification_job(5)
HASH: Final = make.address_version(1).recipient_id_hash
HASHED: Final = f"sha256:{'0' * 64}"
BUNDLE: Final = {"template_key": "welcome", "content_hash": "h1:00", "bundle": "{}"}
BY: Final = {"actor": "sam"}
LATER: Final = datetime(2100, 1, 1, tzinfo=UTC)
"""When a row is due that is to wait."""


class Filled(msgspec.Struct, frozen=True, kw_only=True):
    """The ids that a tenant's rows were given, which are the only thing that differs from its twin's."""

    api_key: str
    failed: int
    uncertain: int
    address: int
    versions: dict[int, int]


async def fill(harness: StoreHarness, tenant_id: str) -> Filled:
    """Give a tenant one of everything."""
    store, pump = harness.store, Pump(harness, tenant_id=tenant_id, broadcast=BROADCAST)
    await store.ensure_tenant(tenant_id, {(purpose, 1): b"wrapped" for purpose in Purpose}, actor="sam")
    key = ApiKey(key_id=f"key-{tenant_id}", tenant_id=tenant_id, secret_hash=HASHED, actor="sam", role=Role.SENDER)
    await store.put_api_key(key, actor="sam")
    await store.count_usage([Used(tenant_id=tenant_id, key_id="", amount=Amount(requests=1))])
    await store.publish_template(tenant_id, **BUNDLE, actor="sam")
    await store.set_type_enabled(tenant_id, "welcome", enabled=False, actor="sam")
    await store.ensure_automation_schedulers(tenant_id, [make.automation_scheduler()])
    await store.ensure_automation_jobs(tenant_id, [make.automation_job()])
    await store.ensure_messaging_jobs(tenant_id, [make.messaging_job()])
    pending = [JobEntry(job=job, scheduler=make.scheduler_of(job)) for job in (JOB, FAILED_JOB)]
    await store.ensure_notification_jobs(tenant_id, [DIRECT, *pending])
    (row,) = [one for one in await harness.rows(tenant_id, NotificationScheduler) if one.key == _failed_key()]
    ended = {"status": NotificationStatus.FAILED, "due_at": None}
    await harness.overwrite(tenant_id, msgspec.structs.replace(row, **ended))
    await store.ensure_user_messages(tenant_id, [make.user_message()])
    addresses = [await pump.address(n) for n in (1, 2, 3, 4)]
    await store.put_people(tenant_id, [make.person(1, addresses[0])])
    await store.put_group(tenant_id, guid=GROUP, name="all", members=[HASH])
    await store.open_support_cases(tenant_id, [CASE])
    items = [_item(address) for address in addresses]
    items[3] = msgspec.structs.replace(items[3], due_at=LATER)
    refused, uncertain, sent, waiting = [
        answer.record for answer in await store.ensure_outgoing_messages(tenant_id, items)
    ]
    first, second, third = sorted(await pump.claim(), key=lambda one: one.id)
    await pump.record(Refused(reason="no such address"), first)
    await pump.record(Unknown(reason="lost"), second)
    await pump.record(Accepted(provider_message_id="p-1"), third)
    await store.keep_events(tenant_id, [_event()])
    rows = (refused, uncertain, sent, waiting)
    assert [await pump.status(one) for one in rows] == [
        OutgoingStatus.FAILED_FINAL,
        OutgoingStatus.UNCERTAIN,
        OutgoingStatus.SENT_TO_PROVIDER,
        OutgoingStatus.CREATED,
    ]
    return Filled(
        api_key=key.key_id,
        failed=refused.id or 0,
        uncertain=uncertain.id or 0,
        address=addresses[0].id or 0,
        versions={one.id or 0: (await pump.seen(one.id)).message.version for one in rows},
    )


def _failed_key() -> tuple[str, ...]:
    return make.scheduler_of(FAILED_JOB).key


def _event() -> ProviderEvent:
    return ProviderEvent(
        account=ACCOUNT,
        event_id="event-1",
        status=OutgoingStatus.DELIVERED,
        provider_message_id="p-1",
        happened_at=datetime(2026, 1, 1, tzinfo=UTC),
        raw="{}",
    )


def _event_by_message() -> ProviderEvent:
    address = make.address_version(3, id=3)
    named = {"message_id": _item(address).message_id, "recipient_key_hash": address.key_hash}
    return msgspec.structs.replace(_event(), event_id="event-3", provider_message_id=None, **named)


Ask = Callable[[Store, str, Filled], Awaitable[Any]]

READS: Final[dict[str, Ask]] = {
    "find_guard": lambda store, tenant, _: store.find_guard(tenant, _guard_key()),
    "find_job_of_message": lambda store, tenant, _: store.find_job_of_message(tenant, make.guid(1, "direct")),
    "find_job_of_message of an outgoing row": lambda store, tenant, _: store.find_job_of_message(
        tenant, _item(make.address_version(1, id=1)).message_id
    ),
    "find_job_of_message of an inbox row": lambda store, tenant, _: store.find_job_of_message(
        tenant, make.user_message().message_id
    ),
    "find_job_timeline": lambda store, tenant, _: store.find_job_timeline(tenant, JOB.guid),
    "find_job_timeline of a direct send": lambda store, tenant, _: store.find_job_timeline(tenant, DIRECT.job.guid),
    "find_members": lambda store, tenant, _: store.find_members(tenant, {GROUP}),
    "find_recipients": lambda store, tenant, _: store.find_recipients(tenant, {HASH}),
    "find_support_case": lambda store, tenant, _: store.find_support_case(tenant, CASE.case_id),
    "find_tenant_keys": lambda store, tenant, _: store.find_tenant_keys(tenant),
    "list_api_keys": lambda store, tenant, _: store.list_api_keys(tenant),
    "list_audit": lambda store, tenant, _: store.list_audit(tenant),
    "list_newest_audit": lambda store, tenant, _: store.list_newest_audit(tenant),
    "list_jobs": lambda store, tenant, _: store.list_jobs(tenant, JOB.partition_key),
    "list_latest_jobs": lambda store, tenant, _: store.list_latest_jobs(tenant),
    "find_standings": lambda store, tenant, _: store.find_standings(tenant, [JOB.guid]),
    "find_addresses": lambda store, tenant, of: store.find_addresses(tenant, [of.address]),
    "list_support_cases": lambda store, tenant, _: store.list_support_cases(tenant),
    "list_support_cases that are open": lambda store, tenant, _: store.list_support_cases(
        tenant, status=SupportStatus.OPEN
    ),
    "list_templates": lambda store, tenant, _: store.list_templates(tenant),
    "list_usage": lambda store, tenant, _: _used(store, tenant),
    "list_uncertain": lambda store, tenant, _: store.list_uncertain(tenant),
    "find_templates": lambda store, tenant, _: store.find_templates([(tenant, "welcome", None)]),
    "find_templates of a version": lambda store, tenant, _: store.find_templates([(tenant, "welcome", 1)]),
    "find_latest_versions": lambda store, tenant, _: _latest_versions(store, tenant),
    "find_disabled_types": lambda store, tenant, _: store.find_disabled_types([(tenant, "welcome")]),
}


async def _latest_versions(store: Store, tenant_id: str) -> object:
    """Leave the time out, which is nobody's."""
    return (await store.find_latest_versions([(tenant_id, "welcome")])).versions


WRITES: Final[dict[str, Ask]] = {
    "cancel_job": lambda store, tenant, _: store.cancel_job(tenant, JOB.guid, **BY),
    "retry_job": lambda store, tenant, _: store.retry_job(tenant, FAILED_JOB.guid, reason="again", **BY),
    "retry_outgoing of what failed": lambda store, tenant, of: store.retry_outgoing(
        tenant, of.failed, version=of.versions[of.failed], reason="again", **BY
    ),
    "retry_outgoing of what is uncertain": lambda store, tenant, of: store.retry_outgoing(
        tenant, of.uncertain, version=of.versions[of.uncertain], reason="again", **BY
    ),
    "resolve_support_case": lambda store, tenant, _: store.resolve_support_case(
        tenant, CASE.case_id, resolution="mended", **BY
    ),
    "revoke_api_key": lambda store, tenant, of: store.revoke_api_key(tenant, of.api_key, **BY),
    "set_gate": lambda store, tenant, _: store.set_gate(tenant, BROADCAST, Gate.OPEN, **BY),
    "set_type_enabled": lambda store, tenant, _: store.set_type_enabled(tenant, "welcome", enabled=True, **BY),
}
"""Acts that change what is there, and answer whether they did; a stranger has nothing there."""

MAKES: Final[dict[str, Ask]] = {
    "ensure_tenant": lambda store, tenant, _: store.ensure_tenant(tenant, {(Purpose.DATA, 1): b"other"}, actor="kim"),
    "set_gate": lambda store, tenant, _: store.set_gate(tenant, BROADCAST, Gate.PAUSED, **BY),
    "set_quota": lambda store, tenant, _: store.set_quota(tenant, "", Limits(requests=1), **BY),
    "open_support_cases": lambda store, tenant, _: store.open_support_cases(tenant, [CASE]),
    "publish_template": lambda store, tenant, _: store.publish_template(
        tenant, template_key="welcome", content_hash="h1:01", bundle="[]", **BY
    ),
    "put_group": lambda store, tenant, _: store.put_group(tenant, guid=GROUP, name="none", members=["0" * 32]),
    "put_people": lambda store, tenant, _: store.put_people(tenant, [make.person(1, profile=b"other")]),
    "keep_events": lambda store, tenant, _: store.keep_events(
        tenant, [msgspec.structs.replace(_event(), raw="[]"), msgspec.structs.replace(_event(), event_id="event-2")]
    ),
    "ensure_automation_schedulers": lambda store, tenant, _: store.ensure_automation_schedulers(
        tenant, [make.automation_scheduler(local_time="10:00")]
    ),
    "ensure_automation_jobs": lambda store, tenant, _: store.ensure_automation_jobs(tenant, [make.automation_job()]),
    "ensure_notification_jobs": lambda store, tenant, _: store.ensure_notification_jobs(
        tenant, [DIRECT, JobEntry(job=JOB, scheduler=make.scheduler_of(JOB))]
    ),
    "ensure_messaging_jobs": lambda store, tenant, _: store.ensure_messaging_jobs(tenant, [make.messaging_job()]),
    "ensure_address_versions": lambda store, tenant, _: store.ensure_address_versions(tenant, [make.address_version()]),
    "ensure_user_messages": lambda store, tenant, _: store.ensure_user_messages(tenant, [make.user_message()]),
}
"""Acts that make something where there is nothing."""

REFUSED: Final[dict[str, Ask]] = {
    "ensure_notification_schedulers": lambda store, tenant, _: store.ensure_notification_schedulers(
        tenant, [make.scheduler_of(JOB)]
    ),
    "ensure_outgoing_messages": lambda store, tenant, of: store.ensure_outgoing_messages(
        tenant, [_item(make.address_version(1, id=of.address))]
    ),
    "ensure_outgoing_messages of a campaign": lambda store, tenant, of: store.ensure_outgoing_messages(
        tenant, [make.outgoing_item(make.messaging_job(), make.address_version(1, id=of.address))]
    ),
}
"""Acts that are refused where what they stand on is another tenant's."""


async def _used(store: Store, tenant: str) -> list[Usage]:
    """List what was used, without when it was read."""
    found = await store.list_usage(tenant)
    return [msgspec.structs.replace(one, now=LATER) for one in found]


def _guard_key() -> tuple[str, str]:
    assert DIRECT.guard is not None
    return DIRECT.guard.operation, DIRECT.guard.key_hash


def _item(address: Any) -> Any:  # noqa: ANN401  an address version and the item that goes to it
    return make.outgoing_item(JOB, address, broadcast=BROADCAST)


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
    return answer is None or answer is False or (not isinstance(answer, bool | UUID) and answer in ([], (), {}, set()))


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
        assert asked - {"find_templates", "find_latest_versions", "find_disabled_types"} == takes

    async def test_a_tenant_reads_the_same_whatever_its_twin_has(self, harness: StoreHarness) -> None:
        """Though everything of the twin's has the same keys and guids."""
        mine, theirs = harness.tenant_id, f"{harness.tenant_id}-2"
        filled = await fill(harness, mine)
        before = await all_of(harness, mine, filled)
        assert not any(is_nothing(before[name]) for name in READS)
        twin = await fill(harness, theirs)
        await harness.store.keep_events(theirs, [_event_by_message()])
        assert await all_of(harness, mine, filled) == before
        await harness.store.keep_events(mine, [_event_by_message()])
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
                await harness.store.publish_template(
                    tenant_id, template_key="welcome", content_hash=f"h1:{n}", bundle="{}", **BY
                )
            (row,) = [
                one
                for one in await harness.rows(tenant_id, NotificationScheduler)
                if one.key == make.scheduler_of(JOB).key
            ]
            await harness.overwrite(tenant_id, msgspec.structs.replace(row, status=statuses[tenant_id], due_at=None))
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
        assert await harness.store.find_guard(theirs, _guard_key()) is None
        assert await all_of(harness, mine, filled) == before

    async def test_a_receipt_is_applied_for_its_own_tenant(self, harness: StoreHarness) -> None:
        """The same receipt of a tenant without the message waits on."""
        mine, theirs = harness.tenant_id, f"{harness.tenant_id}-2"
        await harness.store.keep_events(theirs, [_event()])
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
