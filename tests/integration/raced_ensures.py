"""The ensures that two callers race for: for each kind of record, what a caller asks for and where it is written."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any, Final, NamedTuple

import msgspec

from clarion.adapters.stores.postgres import PostgresStore
from clarion.domain.ensured import Ensured
from clarion.domain.fingerprint import Fingerprint
from clarion.domain.guard import JobEntry
from clarion.domain.identity import Lane
from clarion.domain.notification import NotificationStatus, Stage
from clarion.testing import factories as make
from tests.integration.race import Call

Answers = list[Ensured[Any]]
Prepare = Callable[[PostgresStore, str, Sequence[int], bool], Awaitable[Call]]


async def address_versions(_: PostgresStore, tenant: str, numbers: Sequence[int], differing: bool) -> Call:
    """Of these rows nothing is compared: what differs is another version."""
    items = [make.address_version(n, 2 if differing else 1) for n in numbers]
    return lambda store: store.ensure_address_versions(tenant, items)


async def automation_schedulers(_: PostgresStore, tenant: str, numbers: Sequence[int], differing: bool) -> Call:
    fields = {"input_hash": Fingerprint.of("another")} if differing else {}
    items = [make.automation_scheduler(n, **fields) for n in numbers]
    return lambda store: store.ensure_automation_schedulers(tenant, items)


async def automation_jobs(_: PostgresStore, tenant: str, numbers: Sequence[int], differing: bool) -> Call:
    fields = {"input_hash": Fingerprint.of("another")} if differing else {}
    items = [make.automation_job(n, **fields) for n in numbers]
    return lambda store: store.ensure_automation_jobs(tenant, items)


async def entity_events(_: PostgresStore, tenant: str, numbers: Sequence[int], differing: bool) -> Call:
    fields = {"data_hash": "k1:another"} if differing else {}
    items = [make.entity_event(n, **fields) for n in numbers]
    return lambda store: store.ensure_events(tenant, items)


async def messaging_jobs(_: PostgresStore, tenant: str, numbers: Sequence[int], differing: bool) -> Call:
    fields = {"content_hash": Fingerprint.of("another")} if differing else {}
    items = [make.messaging_job(n, **fields) for n in numbers]
    return lambda store: store.ensure_messaging_jobs(tenant, items)


async def person_versions(_: PostgresStore, tenant: str, numbers: Sequence[int], differing: bool) -> Call:
    """Of these rows nothing is compared: what differs is another version."""
    fields = {"profile_hash": "k1:another"} if differing else {}
    items = [make.person_version(n, **fields) for n in numbers]
    return lambda store: store.ensure_person_versions(tenant, items)


async def user_messages(_: PostgresStore, tenant: str, numbers: Sequence[int], differing: bool) -> Call:
    fields = {"event_type": "another"} if differing else {}
    items = [make.user_message(n, **fields) for n in numbers]
    return lambda store: store.ensure_user_messages(tenant, items)


async def held_user_messages(store: PostgresStore, tenant: str, numbers: Sequence[int], differing: bool) -> Call:
    """As a worker makes them that holds their job."""
    hold = await hold_of_job(store, tenant)
    fields = {"event_type": "another"} if differing else {}
    items = [make.user_message(n, **fields) for n in numbers]
    return lambda caller: caller.ensure_user_messages(tenant, items, holds={item.key: hold for item in items})


async def hold_of_job(store: PostgresStore, tenant: str) -> tuple[int, int]:
    """Claim the tenant's job, or find it claimed."""
    job = make.notification_job()
    await store.ensure_notification_jobs(tenant, [JobEntry(job=job, scheduler=make.scheduler_of(job))])
    await store.claim_stage(Stage.SCHEDULE, lanes=tuple(Lane), limit=10, lease=timedelta(hours=1))
    (scheduler,) = await store.ensure_notification_schedulers(tenant, [make.scheduler_of(job)])
    assert scheduler.record.id is not None
    assert scheduler.record.status is NotificationStatus.PROCESSING
    return scheduler.record.id, scheduler.record.version


async def guarded_jobs(_: PostgresStore, tenant: str, numbers: Sequence[int], differing: bool) -> Call:
    """The two callers have clocks of their own, so their row keys differ until the guard has decided."""
    created_at = make.SOURCE_AT + timedelta(hours=numbers[0], days=1 if differing else 0)
    payload = "something else" if differing else "hello"
    items = [make.guarded_entry(f"key-{n}", created_at=created_at, payload=payload) for n in numbers]
    return lambda store: store.ensure_notification_jobs(tenant, [generally(item) for item in items])


def generally(entry: JobEntry) -> JobEntry:
    """Have an entry stored in the general way: the one statement for what is new knows no diagnostics."""
    assert entry.scheduler is not None
    return msgspec.structs.replace(entry, scheduler=msgspec.structs.replace(entry.scheduler, diagnostics="{}"))


async def new_jobs(tenant: str, *numbers: int, payload: str = "hello") -> Call:
    """Jobs as doors ask for them, which one statement stores where all of them are new."""
    created_at = make.SOURCE_AT + timedelta(hours=7)
    items = [make.guarded_entry(f"key-{n}", created_at=created_at, payload=payload) for n in numbers]
    return lambda store: store.ensure_notification_jobs(tenant, items)


async def outgoing_messages(store: PostgresStore, tenant: str, numbers: Sequence[int], differing: bool) -> Call:
    # A job and some addresses are there before the race.
    await store.ensure_notification_jobs(tenant, [JobEntry(job=make.notification_job())])
    addresses = await store.ensure_address_versions(tenant, [make.address_version(n) for n in numbers])
    fields = {"message_id": make.guid(99)} if differing else {}
    items = make.outgoing_items(make.notification_job(), [answer.record for answer in addresses], **fields)
    return lambda caller: caller.ensure_outgoing_messages(tenant, items)


async def held_outgoing_messages(store: PostgresStore, tenant: str, numbers: Sequence[int], differing: bool) -> Call:
    """As a worker makes them that holds their job."""
    hold = await hold_of_job(store, tenant)
    addresses = await store.ensure_address_versions(tenant, [make.address_version(n) for n in numbers])
    fields: dict[str, object] = {"message_id": make.guid(99)} if differing else {}
    versions = [answer.record for answer in addresses]
    items = make.outgoing_items(make.notification_job(), versions, hold=hold, **fields)
    return lambda caller: caller.ensure_outgoing_messages(tenant, items)


async def notification_schedulers(store: PostgresStore, tenant: str, numbers: Sequence[int], differing: bool) -> Call:
    assert not differing, "of these rows nothing is compared"
    await store.ensure_notification_jobs(tenant, [JobEntry(job=make.notification_job(n)) for n in numbers])
    items = [make.notification_scheduler(n) for n in numbers]
    return lambda caller: caller.ensure_notification_schedulers(tenant, items)


class Raced(NamedTuple):
    """A method of the store that is raced, its table, and what it inserts: the keys, in the order of insertion."""

    method: str
    table: str
    keys: tuple[str, ...]


_USER_MESSAGES: Final = Raced(
    "ensure_user_messages",
    "user_message",
    (
        "SELECT bucket, partition_key, row_key FROM user_message ORDER BY ctid",
        "SELECT recipient_id_hash FROM inbox_count ORDER BY ctid",
    ),
)
_OUTGOING: Final = Raced(
    "ensure_outgoing_messages", "outgoing_message", ("SELECT bucket, pk, rk FROM outgoing_key ORDER BY ctid",)
)
RACED: Final[dict[Prepare, Raced]] = {
    address_versions: Raced(
        "ensure_address_versions",
        "address_version",
        ("SELECT recipient_id_hash, channel, serial FROM address_version ORDER BY ctid",),
    ),
    automation_schedulers: Raced(
        "ensure_automation_schedulers",
        "automation_scheduler",
        ("SELECT scheduler_key FROM automation_scheduler ORDER BY ctid",),
    ),
    automation_jobs: Raced(
        "ensure_automation_jobs",
        "automation_job",
        ("SELECT partition_key, row_key FROM automation_job ORDER BY ctid",),
    ),
    entity_events: Raced("ensure_events", "entity_event", ("SELECT event_guid FROM entity_event ORDER BY ctid",)),
    messaging_jobs: Raced("ensure_messaging_jobs", "messaging_job", ("SELECT guid FROM messaging_job ORDER BY ctid",)),
    person_versions: Raced(
        "ensure_person_versions",
        "person_version",
        ("SELECT recipient_id_hash, profile_hash FROM person_version ORDER BY ctid",),
    ),
    user_messages: _USER_MESSAGES,
    held_user_messages: _USER_MESSAGES,
    guarded_jobs: Raced(
        "ensure_notification_jobs",
        "notification_job",
        (
            "SELECT operation, key_hash FROM idempotency_guard ORDER BY ctid",
            "SELECT row_key FROM notification_job ORDER BY ctid",
            "SELECT artifact_type, artifact_pk, artifact_rk, event_type FROM notification_scheduler ORDER BY ctid",
        ),
    ),
    outgoing_messages: _OUTGOING,
    held_outgoing_messages: _OUTGOING,
    notification_schedulers: Raced(
        "ensure_notification_schedulers",
        "notification_scheduler",
        ("SELECT artifact_type, artifact_pk, artifact_rk, event_type FROM notification_scheduler ORDER BY ctid",),
    ),
}
