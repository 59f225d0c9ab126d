"""Everything that a PostgreSQL store can do, done once: every method, so that each of its statements is sent."""

from datetime import timedelta
from typing import Final
from uuid import UUID

import msgspec
import pytest

from clarion.adapters.stores.postgres import PostgresStore
from clarion.adapters.stores.postgres.queue.claim import find_claimed
from clarion.adapters.stores.postgres.session import Transaction
from clarion.domain.attribute import Attribute, Kind
from clarion.domain.audience import Audience
from clarion.domain.call import Accepted, CallOutcome, Deferred, Misconfigured, NotCalled, Refused, Unknown
from clarion.domain.claim import CallResult, ClaimedMessage, FlowQuota, Gate, LowMark, Settlement, StageResult
from clarion.domain.guard import JobEntry
from clarion.domain.identity import Lane
from clarion.domain.inbox import Marking
from clarion.domain.notification import NotificationStatus, Stage
from clarion.domain.outgoing import OutgoingMessage, OutgoingStatus
from clarion.domain.person import BusinessUnit, LocalForm
from clarion.domain.quota import Amount, Limits
from clarion.domain.recipient import FrozenSet, RecipientJob
from clarion.domain.report_run import manual_row
from clarion.domain.seal import Purpose
from clarion.domain.setting import SettingChange
from clarion.domain.support import SupportStatus
from clarion.domain.suppression import Signal
from clarion.domain.trouble import quarantined_template
from clarion.domain.worker import Heartbeat
from clarion.errors import Gone, InvalidInput
from clarion.ports.catalog import ApiKey, NewTemplate, Role, Used
from clarion.ports.track import ProviderEvent
from clarion.testing import factories as make
from tests.integration.postgres_fill import TENANT
from tests.integration.postgres_suppressing import use_suppressions
from tests.integration.postgres_use_automation import use_automation
from tests.integration.postgres_use_groups import use_groups
from tests.integration.postgres_use_sources import use_events, use_reminders, use_sources
from tests.integration.watched_connection import Connection

ROUTE: Final = "email:default"
READER: Final = f"{1:032}"  # whose inbox has 5,000 lines
LARGE: Final = UUID("00000000-0000-4000-8000-000000000001")  # a group and others of 5,000 people
LEASE: Final = timedelta(minutes=1)


async def use_everything(store: PostgresStore, connection: Connection, *, start: int) -> None:
    """Ask the store for everything that it can do, so that each of its queries is sent."""
    await use_ensures(store, range(start - 10, start + 10))  # on full tables, some are there and some are new
    await use_automation(store, range(start - 10, start + 10))
    await use_stages(store)
    await use_queue(store, connection, start)
    await use_catalog(store)
    await use_insights(store, connection)
    await use_reports(store, start)
    await use_inboxes(store, connection, start + 77)
    await use_sources(store, start)
    await use_events(store, start)
    await use_reminders(store, start)


async def use_ensures(store: PostgresStore, around: range) -> None:
    for tenant_id in (TENANT, f"{TENANT}-{around.start}"):  # of which the second is new
        await store.ensure_tenant(tenant_id, {(Purpose.DATA, 1): b"wrapped"})
    await store.ensure_automation_schedulers(TENANT, [make.automation_scheduler(n) for n in around])
    moved = [make.automation_scheduler(n, local_time="10:00") for n in around]
    await store.ensure_automation_schedulers(TENANT, moved)
    await store.rerun_occurrence(TENANT, moved[0].scheduler_key, n=1, actor="sam", reason="lost")
    await store.ensure_automation_jobs(TENANT, [make.automation_job(n) for n in around])
    await store.ensure_notification_jobs(TENANT, [make.guarded_entry(f"key-{n}") for n in around])
    await store.ensure_notification_jobs(TENANT, [JobEntry(job=make.notification_job(n)) for n in around])
    await store.ensure_notification_schedulers(TENANT, [make.notification_scheduler(n) for n in around])
    await store.ensure_messaging_jobs(TENANT, [make.messaging_job(n) for n in around])
    await store.ensure_user_messages(TENANT, [make.user_message(n) for n in around])
    # A job that is there without a guard, and now asked for with one and other content: its guard is taken back.
    job = make.notification_job()
    await store.ensure_notification_jobs(TENANT, [JobEntry(job=job)])
    odd = msgspec.structs.replace(job, template_key="another")
    await store.ensure_notification_jobs(TENANT, [JobEntry(job=odd, guard=make.guard_of(odd, "odd"))])
    versions = await store.ensure_address_versions(TENANT, [make.address_version(n) for n in around])
    (campaign,) = await store.ensure_messaging_jobs(TENANT, [make.messaging_job(2)])
    for parent in (campaign.record, job):
        items = make.outgoing_items(parent, [version.record for version in versions], lane=Lane.BULK)
        await store.ensure_outgoing_messages(TENANT, items)
        with pytest.raises(InvalidInput):
            await store.ensure_outgoing_messages(TENANT, [msgspec.structs.replace(items[0], address_id=2**40)])
        again = [msgspec.structs.replace(item, attempt_no=2, hold=(1, 1)) for item in items]
        await store.ensure_outgoing_messages(TENANT, again)


async def use_stages(store: PostgresStore) -> None:
    claims = await store.claim_stage(Stage.SCHEDULE, lanes=tuple(Lane), limit=20, lease=LEASE)
    assert claims
    hashes = [f"{n:032x}" for n in range(3)]
    sets = [FrozenSet(job_id=claim.job.id or 0, job_key="k", text="[]", recipients=hashes) for claim in claims]
    for _ in range(2):  # of which the second finds what the first has stored
        await store.freeze_recipients(TENANT, sets)
    line = RecipientJob(recipient_id_hash=f"{4:032x}", job_key="k", job_id=claims[0].job.id or 0)
    assert await store.note_recipients(TENANT, claims[0].hold, [line])
    results = [
        StageResult(
            scheduler_id=claim.scheduler.id or 0,
            version=claim.scheduler.version,
            to=NotificationStatus.READY,
            stage=Stage.GENERATE,
        )
        for claim in claims[:10]
    ]
    assert len(await store.finish_stage(results)) == len(results)
    failed = msgspec.structs.replace(
        results[0],
        scheduler_id=claims[-1].scheduler.id or 0,
        version=claims[-1].scheduler.version,
        to=NotificationStatus.FAILED,
    )
    assert await store.finish_stage([failed])
    await store.claim_stage(Stage.GENERATE, lanes=tuple(Lane), limit=20, lease=timedelta())
    assert await store.rescue_stages(limit=10, rescues_max=0)
    assert await store.retry_job(TENANT, claims[0].job.guid, actor="sam", reason="again")


OUTCOMES: Final[tuple[CallOutcome, ...]] = (
    Accepted(provider_message_id="p"),
    Deferred(reason="busy"),
    Refused(reason="no", recipient_not_found=True),
    Misconfigured(reason="no such sender"),
    NotCalled(reason="not ready"),
    Unknown(reason="lost"),
)


async def use_queue(store: PostgresStore, connection: Connection, start: int) -> None:
    """Claim rows with and without an order, let every outcome happen to them, and all that can follow."""
    broadcast = f"a broadcast from {start}"  # of its own, so that the flow pinned to its account is made each time
    await store.set_gate(TENANT, broadcast, Gate.OPEN, actor="sam")
    jobs = [make.notification_job(start + n) for n in range(40)]
    await store.ensure_notification_jobs(TENANT, [JobEntry(job=job) for job in jobs])
    versions = await store.ensure_address_versions(TENANT, [make.address_version(start + n) for n in range(40)])
    campaigns = (broadcast, "")  # of each pair the later one can be woken, which a row of a broadcast never is
    items = [
        make.outgoing_item(job, version.record, order_key=f"{n // 2:032}", broadcast=campaigns[n % 2], route=ROUTE)
        for n, (job, version) in enumerate(zip(jobs, versions, strict=True))
    ]
    answers = await store.ensure_outgoing_messages(TENANT, items)
    claimed = await claim_all(store, token=1)
    assert len(claimed) >= 20  # one of each pair that shares an order key
    quotas = [FlowQuota(flow_id=message.flow_id, quota=1, account="main") for message in claimed]
    token = claimed[0].claim_token
    found = await store._session.read(lambda c: find_claimed(Transaction(c), quotas, token=token, lease=LEASE))
    assert {message.id for message in found} == {message.id for message in claimed}
    results = [result(message, OUTCOMES[n % 6]) for n, message in enumerate(claimed)]
    await store.record_outgoing(results, actor="worker")
    lost = await claim_all(store, token=2, lease=timedelta())
    assert await store.rescue_outgoing(limit=100)
    late = [result(lost[0], NotCalled(reason="not ready")), result(claimed[0], Accepted(provider_message_id="late"))]
    await store.record_outgoing(late, actor="worker")
    uncertain = await store.find_uncertain(accounts=("main",), limit=20)
    settlements = [
        Settlement(id=one.id, bucket=one.bucket, version=one.version, replay=n % 2 == 0, reason="so")
        for n, one in enumerate(uncertain)
    ]
    assert await store.settle_uncertain(settlements, actor="settle")
    failed = await connection.fetchrow("SELECT id, version FROM outgoing_message WHERE status = 'FailedFinal' LIMIT 1")
    assert failed is not None
    assert await store.retry_outgoing(TENANT, failed["id"], version=failed["version"], actor="sam", reason="again")
    await use_track(store, [answer.record for answer in answers[:20]])
    await use_cancels(store, connection, broadcast)
    await use_codes(store, start)


async def claim_all(store: PostgresStore, *, token: int, lease: timedelta = LEASE) -> list[ClaimedMessage]:
    found = await store.discover_flows(routes=[ROUTE], lows={2**40: LowMark(due_at=make.SOURCE_AT, id=1)})
    quotas = [FlowQuota(flow_id=head.flow_id, quota=40, account=head.account or "main") for head in found.heads]
    return await store.claim_outgoing(quotas, token=make.guid(token, "token"), lease=lease, actor="worker")


def result(message: ClaimedMessage, outcome: CallOutcome) -> CallResult:
    return CallResult(
        id=message.id,
        bucket=message.bucket,
        claim_token=message.claim_token,
        attempt=message.attempts,
        outcome=outcome,
    )


async def use_track(store: PostgresStore, rows: list[OutgoingMessage]) -> None:
    """Events about rows that were called, by our key and by the provider's, and about none."""
    events = [
        ProviderEvent(
            account="main",
            event_id=f"{row.id}",
            status=OutgoingStatus.DELIVERED,
            message_id=row.message_id,
            recipient_key_hash=row.rk[:32],
            provider_message_id=f"told-{row.id}",
            happened_at=make.SOURCE_AT,
            raw="",
        )
        for row in rows
    ]
    lower = [
        msgspec.structs.replace(event, event_id=f"late-{event.event_id}", status=OutgoingStatus.SENT_TO_PROVIDER)
        for event in events
    ]
    for at, signal in ((make.SOURCE_AT, Signal.STOP), (make.SOURCE_AT + LEASE, Signal.START)):
        said = {"signal": signal, "happened_at": at}
        answered = [msgspec.structs.replace(one, event_id=f"{signal}-{one.event_id}", **said) for one in events]
        await store.keep_events(TENANT, answered)
        assert await store.apply_events(limit=100, actor="track")
    strange = msgspec.structs.replace(events[0], event_id=f"strange-{rows[0].id}", message_id=None)
    for some in (events, [*lower, msgspec.structs.replace(strange, provider_message_id="nobody's")]):
        await store.keep_events(TENANT, some)
        assert await store.apply_events(limit=100, actor="track")
    nobodys = [msgspec.structs.replace(strange, event_id=f"{strange.event_id}-{n}") for n in range(1000)]
    await store.keep_events(TENANT, [msgspec.structs.replace(one, provider_message_id="?") for one in nobodys])
    assert await store.apply_events(limit=100, actor="track") == 0


JOB_IN_STATE: Final = """
SELECT j.guid FROM notification_job AS j JOIN outgoing_message AS o ON o.tenant_id = j.tenant_id AND o.pk = j.row_key
WHERE o.status = $1 AND o.cancel_at IS NULL LIMIT 1
"""


async def use_cancels(store: PostgresStore, connection: Connection, broadcast: str) -> None:
    """Cancel what waits and what is uncertain, and a broadcast."""
    for status in (OutgoingStatus.RETRY_READY, OutgoingStatus.UNCERTAIN):
        job = await connection.fetchval(JOB_IN_STATE, status)
        assert await store.cancel_job(TENANT, job, actor="sam")
    await store.set_gate(TENANT, broadcast, Gate.CANCELED, actor="sam")
    await store.sweep_canceled(limit=100)


async def use_codes(store: PostgresStore, start: int) -> None:
    """Erase the data of a one-time code, and be refused to work on it again."""
    job = make.notification_job(start + 5000, payload=b"sealed", one_time_code=True)
    pending = msgspec.structs.replace(make.scheduler_of(job), lane=Lane.CRITICAL)
    await store.ensure_notification_jobs(TENANT, [JobEntry(job=job, scheduler=pending)])
    claims = await store.claim_stage(Stage.SCHEDULE, lanes=[Lane.CRITICAL], limit=1000, lease=LEASE)
    mine = [one for one in claims if one.job.guid == job.guid]
    await store.finish_stage([one.ended(NotificationStatus.FAILED, stage=Stage.SCHEDULE) for one in mine])
    assert (await store.erase_codes(after=0, limit=100)).erased >= 1
    with pytest.raises(Gone):
        await store.retry_job(TENANT, job.guid, actor="sam", reason="again")


async def _use_people(store: PostgresStore, one: str) -> None:
    """Put a person, find them, and edit them beside somebody new, who is removed again."""
    (address,) = await store.ensure_address_versions(TENANT, [make.address_version()])
    (profile,) = await store.ensure_person_versions(TENANT, [make.person_version()])
    known = make.person(1, address.record, person_version_id=profile.record.id)
    await store.put_people(TENANT, [known], attributes={one: {"grade": "7"}}, actor="sam")
    seen = await store.find_people(TENANT, [one])
    assert await store.put_people(TENANT, [known, make.person(2)], seen=seen)
    assert await store.remove_people(TENANT, [make.person(2).recipient_id_hash], actor="sam")
    assert one in await store.list_people(TENANT, limit=1000)
    await store.declare_attribute(TENANT, Attribute(name="grade", kind=Kind.NUMBER), actor="sam")
    assert await store.list_attributes(TENANT)
    assert await store.find_person_versions(TENANT, [profile.record.id or 0])


async def use_catalog(store: PostgresStore) -> None:
    one, group = make.address_version().recipient_id_hash, make.guid(1, "group")
    await _use_people(store, one)
    unit = BusinessUnit(guid=make.guid(1, "unit"), name="North", locale="de")
    await store.put_business_unit(TENANT, unit)
    assert await store.list_business_units(TENANT)
    await store.set_tenant_form(TENANT, LocalForm(locale="de"), actor="sam")
    assert len(await store.find_local_forms(TENANT, [unit.guid])) == 2
    await store.put_group(TENANT, guid=make.guid(2, "group"), name="inner")
    await store.put_group(TENANT, guid=group, name="all", members=[one], children=[make.guid(2, "group")])
    assert await store.find_recipients(TENANT, [one])
    assert await store.find_members(TENANT, [group])
    # Parts that are far larger than a page, in each way to be in an audience; `FILL` makes them.
    large = Audience(
        groups=(LARGE,), roles=(("teacher", ""),), units=(LARGE,), relations=(("class", LARGE, "guardian"),)
    )
    assert len(await store.find_audience(TENANT, large, after="8", limit=100)) in (0, 100)
    small = Audience(groups=(group,), roles=(("head", ""),), units=(group,), relations=(("class", LARGE, "doctor"),))
    assert list(await store.find_audience(TENANT, small, limit=100)) == [one]
    await use_groups(store, group, unit.guid, one)
    await store.set_type_enabled(TENANT, "welcome", enabled=False, actor="sam")
    await use_suppressions(store, TENANT, one)
    assert (await store.now()).tzinfo
    for change in (SettingChange(enabled=False), SettingChange(enabled=None)):
        await store.put_setting(TENANT, "welcome", unit.guid, change, actor="sam")
    await store.set_type_enabled(TENANT, "goodbye", enabled=False, actor="sam")
    await store.set_type_enabled(TENANT, "goodbye", enabled=True, actor="sam")
    assert await store.list_settings(TENANT, limit=10)
    assert not (await store.find_settings([(TENANT, "welcome", unit.guid)]))[TENANT, "welcome", unit.guid].enabled
    for content in ("h1:1", "h1:2"):  # of which one is new, whatever was published before
        template = NewTemplate(template_key="welcome", content_hash=content, bundle="{}")
        await store.publish_templates(TENANT, [template], actor="sam")
    assert await store.find_templates([(TENANT, "welcome", None)])
    assert (await store.find_latest_versions([(TENANT, "welcome")])).versions
    assert await store.list_templates(TENANT)
    (version, *_) = await store.list_template_versions(TENANT, "welcome", limit=5)
    assert await store.quarantine_template(TENANT, "welcome", version.content_hash)
    held = quarantined_template(TENANT, template_key="welcome", version=version.version)
    assert await store.resolve_support_case(TENANT, held.case_id, actor="sam", resolution="mended")
    key = ApiKey(key_id="key-id-of-sam", tenant_id=TENANT, secret_hash="h1:1", actor="sam", role=Role.ADMIN)  # noqa: S106  no secret
    await store.put_api_key(key, actor="sam")
    assert await store.find_api_key(key.key_id)
    assert await store.list_api_keys(TENANT)
    await store.revoke_api_key(TENANT, key.key_id, actor="sam")
    await store.set_quota(TENANT, key.key_id, Limits(requests=1), actor="sam")
    await store.set_quota(TENANT, key.key_id, Limits(), actor="sam")
    assert await store.count_usage([Used(tenant_id=TENANT, key_id=key.key_id, amount=Amount(requests=1))])
    assert await store.list_usage(TENANT)
    (case, *_) = await store.list_support_cases(TENANT, status=SupportStatus.OPEN)
    assert await store.resolve_support_case(TENANT, case.case_id, actor="sam", resolution="mended")
    assert await store.list_audit(TENANT)
    assert await store.list_newest_audit(TENANT)


async def use_insights(store: PostgresStore, connection: Connection) -> None:
    job = make.notification_job()
    message = await connection.fetchval("SELECT message_id FROM outgoing_message WHERE pk = $1", job.row_key)
    assert await store.find_job_timeline(TENANT, job.guid)
    assert await store.copy_tenant(TENANT, until=make.SOURCE_AT, rows_max=10**6)
    part = await store.find_job_timeline(TENANT, job.guid, messages=[message])
    assert part is not None
    assert part.outgoing
    assert await store.find_job(TENANT, job.guid)
    assert await store.find_job_of_message(TENANT, message)
    assert await store.list_jobs(TENANT, job.partition_key)
    (latest, *_) = await store.list_latest_jobs(TENANT)
    assert await store.list_latest_jobs(TENANT, after=(latest.source_at, latest.guid))
    assert len(await store.find_standings(TENANT, [job.guid, latest.guid])) == 2
    got = await store.list_jobs_of_recipient(TENANT, READER, partition_key=job.partition_key, after=f"{2000:019}")
    assert got
    assert isinstance(await store.find_sets(TENANT, [one.guid for one in got]), list)
    assert await store.count_messages(TENANT, [message])
    assert isinstance(await store.find_payloads(TENANT, [job.guid, latest.guid]), dict)
    address = await connection.fetchval("SELECT max(id) FROM address_version")
    assert await store.find_addresses(TENANT, [address])
    assert await store.list_uncertain(TENANT)
    (case, *_) = await store.list_support_cases(TENANT)
    assert await store.find_support_case(TENANT, case.case_id)
    assert await store.list_tenants()
    assert (await store.measure()).uncertain
    assert await store.measure_routes()
    heartbeat = Heartbeat(worker_id=make.guid(1, "worker"), name="host:1", program="0", channels=(), accounts=())
    await store.note_heartbeat(heartbeat)
    assert await store.list_workers()
    await store.end_worker(heartbeat.worker_id)


async def use_reports(store: PostgresStore, start: int) -> None:
    said = make.report_subscription(name=f"from {start}")
    assert await store.put_subscription(TENANT, said, actor="sam")
    assert await store.find_subscription(TENANT, said.guid)
    assert await store.list_subscriptions(TENANT, limit=10)
    run = manual_row(said, make.guid(1, "run"), now=make.SOURCE_AT, correlation_id="request")
    assert (await store.run_subscription(TENANT, run, actor="sam")).proceeds
    (claimed, *_) = await store.claim_subscriptions(limit=10, lease=LEASE)
    assert await store.finish_subscription(claimed, look_again=LEASE)
    later = make.SOURCE_AT + timedelta(days=start)  # when few jobs were made
    told = make.notification_job(
        start + 1, source_at=later, row_key=f"counted-{start}", guid=make.guid(start, "counted")
    )
    await store.ensure_notification_jobs(TENANT, [JobEntry(job=told)])
    await store.ensure_user_messages(TENANT, [make.user_message(start, job_row_key=told.row_key, row_key=f"c-{start}")])
    until = later + timedelta(microseconds=1)
    assert len(await store.count_deliveries(TENANT, start_at=later, end_at=until)) == 1
    assert (await store.count_broadcast(TENANT, str(make.messaging_job(2).guid))).total


async def use_inboxes(store: PostgresStore, connection: Connection, n: int) -> None:
    mine = make.user_message(n, content=b"sealed", row_key=f"{n:019}", message_id=make.guid(n, "line"))
    (answer,) = await store.ensure_user_messages(TENANT, [mine])
    reader = mine.recipient_id_hash
    assert await store.list_inbox(TENANT, reader)
    assert await store.find_contents(TENANT, [(mine.bucket, answer.record.id or 0)])
    assert await store.mark_lines(TENANT, reader, [mine.message_id], Marking.READ)
    listed = await store.list_inbox(TENANT, READER, after=f"{2000:019}", limit=100)
    await store.mark_lines(TENANT, READER, [line.message_id for line in listed[:50]], Marking.ARCHIVE)
    await store.mark_inbox(TENANT, READER, Marking.READ)
    await connection.execute("UPDATE user_message SET in_inbox = false WHERE message_id = $1", mine.message_id)
    await connection.execute("DELETE FROM inbox_state WHERE recipient_id_hash = $1", reader)
    assert await store.enter_lines(limit=500) == 1
    past = "UPDATE inbox_state SET expires_at = now() - interval '1 s' WHERE recipient_id_hash = $1"
    await connection.execute(past, reader)
    assert (await store.count_inbox(TENANT, reader)).has_expired
    assert await store.sweep_inbox(TENANT, reader, limit=500) == 1
    past = "UPDATE inbox_state SET expires_at = now() WHERE expires_at < now() + interval '20 minutes'"
    await connection.execute(past)
    await store.sweep_inboxes(limit=500)
    await store.count_inbox(TENANT, READER)
