"""Two callers of the PostgreSQL store at once, interleaved at every statement of an ensure (F-04, I-03, I-04).

The first caller is stopped before its n-th statement, BEGIN and COMMIT included; the second then runs until it has
ended or waits for the first one's lock; then the first goes on. Whatever n is, neither sees an error, one creates and
the other finds.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from clarion.adapters.stores.postgres import PostgresStore
from clarion.domain.automation import AutomationStatus
from clarion.domain.ensured import Outcome
from clarion.domain.guard import JobEntry
from clarion.domain.seal import Purpose
from clarion.errors import Conflict
from clarion.ports.ensure import EnsureStore
from clarion.ports.source import EventStore
from clarion.testing import factories as make
from clarion.testing.contracts.kind import contradicted
from tests.integration.race import Call, Meeting, Race, open_race
from tests.integration.raced_ensures import (
    RACED,
    Answers,
    Prepare,
    address_versions,
    guarded_jobs,
    new_jobs,
    notification_schedulers,
    outgoing_messages,
    person_versions,
)


@pytest.fixture
async def race(migrated_postgres_url: str) -> AsyncIterator[Race]:
    async with open_race(migrated_postgres_url) as race:
        yield race


def test_every_ensure_of_a_store_is_raced() -> None:
    """So that an eleventh cannot be forgotten; the making of a tenant has a test of its own below."""
    ensures = {name for port in (EnsureStore, EventStore) for name in vars(port) if name.startswith("ensure_")}
    assert ensures - {"ensure_tenant"} == {raced.method for raced in RACED.values()}
    assert len(ensures) == 11


COUNTED = (address_versions, person_versions)
"""The store counts their serials, and nothing of them is compared."""

each_kind = pytest.mark.parametrize("prepare", RACED, ids=lambda prepare: prepare.__name__)
each_compared = pytest.mark.parametrize(
    "prepare",
    [one for one in RACED if one not in (notification_schedulers, *COUNTED)],
    ids=lambda prepare: prepare.__name__,
)


async def at_every_statement(
    race: Race, prepare: Prepare, *, first: Sequence[int] = (1,), second: Sequence[int] = (1,), differing: bool = False
) -> list[Meeting]:
    """Let two callers meet before each statement of the first one, every time in a tenant of their own."""
    count = await race.statements(await prepare(race.second, "alone", first, False))
    meetings: list[Meeting] = []
    for n in range(1, count + 1):
        tenant = f"acme-{n}"
        one = await prepare(race.second, tenant, first, False)
        other = await prepare(race.second, tenant, second, differing)
        meetings.append(await race.meet(tenant, one, other, stop_before=n))
    # Before its insert nobody has to wait for the first, and after it everybody does.
    assert [meeting.waited for meeting in meetings] == sorted(meeting.waited for meeting in meetings)
    assert not meetings[0].waited
    assert meetings[-1].waited
    return meetings


def outcomes(answers: Answers) -> dict[tuple[str, ...], Outcome]:
    return {answer.record.key: answer.outcome for answer in answers}


async def rows(race: Race, prepare: Prepare, tenant: str) -> int:
    sql = f"SELECT count(*) FROM {RACED[prepare].table} WHERE tenant_id = $1"  # noqa: S608  a name of the table above
    count: int = await race.observer.fetchval(sql, tenant)
    return count


@each_kind
async def test_at_every_statement_one_creates_and_the_other_finds(race: Race, prepare: Prepare) -> None:
    for meeting in await at_every_statement(race, prepare):
        (one,), (other,) = meeting.first, meeting.second
        assert {one.outcome, other.outcome} == {Outcome.CREATED, Outcome.FOUND}
        assert one.record == other.record
        assert (one.outcome is Outcome.CREATED) is meeting.waited
        assert await rows(race, prepare, meeting.tenant) == 1


async def test_the_loser_of_a_race_for_a_key_returns_the_winners_coordinates(race: Race) -> None:
    for meeting in await at_every_statement(race, guarded_jobs, first=(1,), second=(1, 2)):
        winner, loser = (meeting.first, meeting.second) if meeting.waited else (meeting.second, meeting.first)
        assert winner[0].outcome is Outcome.CREATED
        assert loser[0].record == winner[0].record
        guards = await race.observer.fetch(
            "SELECT job_row_key FROM idempotency_guard WHERE tenant_id = $1 ORDER BY created_at", meeting.tenant
        )
        assert {guard["job_row_key"] for guard in guards} == {
            answer.record.row_key for answer in (*meeting.first, *meeting.second)
        }
        schedulers = await race.observer.fetchval(
            "SELECT count(*) FROM notification_scheduler WHERE tenant_id = $1", meeting.tenant
        )
        assert schedulers == await rows(race, guarded_jobs, meeting.tenant) == 2


@pytest.mark.parametrize("payload, told", [("hello", Outcome.FOUND), ("something else", Outcome.CONFLICT)])
async def test_a_set_for_one_statement_waits_for_whoever_is_before_it_and_then_goes_the_general_way(
    race: Race, payload: str, told: Outcome
) -> None:
    """Of its two keys the other caller has one: that is judged, and the other is made."""
    count = await race.statements(await guarded_jobs(race.second, "alone", (1,), False))
    waited = False
    for n in range(1, count + 1):
        tenant = f"acme-{n}"
        general = await guarded_jobs(race.second, tenant, (1,), False)
        meeting = await race.meet(tenant, general, await new_jobs(tenant, 2, 1, payload=payload), stop_before=n)
        (one,), (alone, other) = meeting.first, meeting.second
        assert alone.outcome is Outcome.CREATED
        if meeting.waited:
            assert (one.outcome, other.outcome) == (Outcome.CREATED, told)
        else:
            assert (one.outcome, other.outcome) == (told, Outcome.CREATED)
        assert one.record == other.record
        assert await rows(race, guarded_jobs, tenant) == 2
        assert await race.observer.fetchval("SELECT count(*) FROM idempotency_guard WHERE tenant_id = $1", tenant) == 2
        waited = meeting.waited
    assert waited, "before the other's commit"


async def test_of_two_sets_for_one_statement_one_creates_and_the_other_finds(race: Race) -> None:
    one, other = await new_jobs("acme", 1, 2, 3), await new_jobs("acme", 4, 3, 2)
    assert await race.statements(await new_jobs("alone", 1, 2, 3)) == 1
    meeting = await race.meet("acme", one, other, stop_before=1)
    first, second = outcomes(meeting.first), outcomes(meeting.second)
    assert sorted(second.values()) == [Outcome.CREATED] * 3
    assert sorted(first.values()) == [Outcome.CREATED, Outcome.FOUND, Outcome.FOUND]
    assert await rows(race, guarded_jobs, "acme") == 4
    for keys in RACED[guarded_jobs].keys[:1]:
        inserted = [tuple(row) for row in await race.observer.fetch(keys)]
        assert len(inserted) == 4 + 3


async def test_one_statement_inserts_keys_in_their_own_order_and_numbers_rows_in_the_order_asked(race: Race) -> None:
    asked = [answer.record.row_key for answer in await (await new_jobs("acme", 5, 2, 4, 1, 3))(race.second)]
    for keys in RACED[guarded_jobs].keys:
        inserted = [tuple(row) for row in await race.observer.fetch(keys)]
        assert len(inserted) == 5
        assert inserted == sorted(inserted)
    numbered = await race.observer.fetch("SELECT artifact_rk FROM notification_scheduler ORDER BY id")
    assert [row["artifact_rk"] for row in numbered] == asked


@each_kind
async def test_overlapping_sets_in_opposite_orders_wait_for_each_other_and_never_deadlock(
    race: Race, prepare: Prepare
) -> None:
    for meeting in await at_every_statement(race, prepare, first=(1, 2, 3), second=(4, 3, 2)):
        one, other = outcomes(meeting.first), outcomes(meeting.second)
        shared = one.keys() & other.keys()
        assert (len(one), len(other), len(shared)) == (3, 3, 2)
        assert all({one[key], other[key]} == {Outcome.CREATED, Outcome.FOUND} for key in shared)
        alone = [*(one[key] for key in one.keys() - shared), *(other[key] for key in other.keys() - shared)]
        assert alone == [Outcome.CREATED, Outcome.CREATED]
        assert await rows(race, prepare, meeting.tenant) == 4


@each_kind
async def test_keys_are_inserted_in_their_own_order_whatever_order_was_asked(race: Race, prepare: Prepare) -> None:
    """So that of two overlapping sets the one that comes first to their first shared key comes first to all."""
    call = await prepare(race.second, "acme", (5, 2, 4, 1, 3, 8, 6, 7), False)
    asked = [answer.record.key for answer in await call(race.second)]
    assert asked != sorted(asked)
    for keys in RACED[prepare].keys:
        inserted = [tuple(row) for row in await race.observer.fetch(keys)]
        assert len(inserted) == len(asked)
        assert inserted == sorted(inserted)


async def test_what_a_set_writes_besides_its_rows_is_sorted_too(race: Race) -> None:
    """Cases, broadcasts, flows and counters: other sets come to the same ones by other items."""
    numbers = (5, 2, 4, 1, 3, 8, 6, 7)
    await race.second.ensure_messaging_jobs("acme", [make.messaging_job(n) for n in numbers])
    conflicts = [make.messaging_job(n, run_key="another") for n in numbers]
    await race.second.ensure_messaging_jobs("acme", conflicts)
    answers = await race.second.ensure_address_versions("acme", [make.address_version(n) for n in numbers])
    job = make.notification_job()
    await race.second.ensure_notification_jobs("acme", [JobEntry(job=job)])
    broadcasts = ("c", "a", "e", "b", "d")
    items = [
        make.outgoing_item(job, answer.record, broadcast=broadcast, route=f"route-{broadcast}")
        for answer, broadcast in zip(answers, broadcasts, strict=False)
    ]
    await race.second.ensure_outgoing_messages("acme", items)
    for keys, count in (
        ("SELECT case_id FROM support_case ORDER BY ctid", len(conflicts)),
        ("SELECT broadcast FROM broadcast ORDER BY ctid", len(broadcasts)),
        ("SELECT lane, route, broadcast FROM flow ORDER BY ctid", len(broadcasts)),
        ("SELECT flow_id FROM flow_count ORDER BY ctid", len(broadcasts)),
    ):
        inserted = [tuple(row) for row in await race.observer.fetch(keys)]
        assert len(inserted) == count
        assert inserted == sorted(inserted)


@pytest.mark.parametrize("prepare", [outgoing_messages, notification_schedulers], ids=lambda prepare: prepare.__name__)
async def test_rows_that_wait_for_workers_get_their_ids_in_the_order_asked(race: Race, prepare: Prepare) -> None:
    """Those that are due together are claimed in the order of their ids."""
    call = await prepare(race.second, "acme", (5, 2, 4, 1, 3), False)
    ids = [answer.record.id for answer in await call(race.second)]
    assert ids == sorted(ids)


@each_compared
async def test_of_two_with_different_content_one_creates_and_one_is_in_conflict(race: Race, prepare: Prepare) -> None:
    for meeting in await at_every_statement(race, prepare, differing=True):
        (one,), (other,) = meeting.first, meeting.second
        assert {one.outcome, other.outcome} == {Outcome.CREATED, Outcome.CONFLICT}
        created, second = (one, other) if one.outcome is Outcome.CREATED else (other, one)
        assert second.record == contradicted(created.record)
        assert (one.outcome is Outcome.CREATED) is meeting.waited
        (case,) = await race.second.list_support_cases(meeting.tenant)
        assert (case.case_id, case.seen_count) == (one.case_id or other.case_id, 1)
        assert await rows(race, prepare, meeting.tenant) == 1


@pytest.mark.parametrize("prepare", COUNTED, ids=lambda prepare: prepare.__name__)
async def test_of_two_who_edit_a_person_each_gets_a_serial_of_its_own(race: Race, prepare: Prepare) -> None:
    for meeting in await at_every_statement(race, prepare, differing=True):
        (one,), (other,) = meeting.first, meeting.second
        assert {one.outcome, other.outcome} == {Outcome.CREATED}
        assert (one.record.serial, other.record.serial) == ((1, 2) if meeting.waited else (2, 1))
        assert await rows(race, prepare, meeting.tenant) == 2


async def test_of_two_address_edits_at_once_neither_is_lost_and_what_both_bring_is_one_version(race: Race) -> None:
    """Whoever comes second has one that the first one makes, and would have given it another serial."""

    def edit(tenant: str, *editions: int) -> Call:
        items = [make.address_version(1, edition) for edition in editions]
        return lambda store: store.ensure_address_versions(tenant, items)

    waited = 0
    for n in range(1, await race.statements(edit("alone", 1, 2)) + 1):
        tenant = f"acme-{n}"
        meeting = await race.meet(tenant, edit(tenant, 1, 2), edit(tenant, 3, 1), stop_before=n)
        (one, shared), (other, again) = meeting.first[::-1], meeting.second
        assert shared.record == again.record
        assert {shared.outcome, again.outcome} == {Outcome.CREATED, Outcome.FOUND}
        assert {one.outcome, other.outcome} == {Outcome.CREATED}
        serials = [shared.record.serial, one.record.serial, other.record.serial]
        assert serials == ([1, 2, 3] if meeting.waited else [2, 3, 1])
        assert await rows(race, address_versions, tenant) == 3
        waited += meeting.waited
    assert waited, "before the first one's commit"


@each_compared
async def test_two_conflicts_about_one_row_are_one_case_seen_twice(race: Race, prepare: Prepare) -> None:
    async def conflict_in(tenant: str) -> Call:
        await (await prepare(race.second, tenant, (1,), False))(race.second)
        return await prepare(race.second, tenant, (1,), True)

    for n in range(1, await race.statements(await conflict_in("alone")) + 1):
        tenant = f"acme-{n}"
        conflict = await conflict_in(tenant)
        meeting = await race.meet(tenant, conflict, conflict, stop_before=n)
        assert [answer.outcome for answer in (*meeting.first, *meeting.second)] == [Outcome.CONFLICT] * 2
        (case,) = await race.second.list_support_cases(tenant)
        assert case.seen_count == 2
        assert await rows(race, prepare, tenant) == 1


async def test_of_two_that_make_a_tenant_both_go_on_with_the_keys_of_the_first(race: Race) -> None:
    def call(tenant: str, wrapped: bytes) -> Call:
        return lambda store: store.ensure_tenant(tenant, {(Purpose.DATA, 1): wrapped})

    for n in range(1, await race.statements(call("alone", b"one")) + 1):
        tenant = f"acme-{n}"
        meeting = await race.meet(tenant, call(tenant, b"one"), call(tenant, b"two"), stop_before=n)
        winner = b"one" if meeting.waited else b"two"
        assert meeting.first == meeting.second == {(Purpose.DATA, 1): winner}


@pytest.mark.parametrize("of", ["reminder", "subscription"])
async def test_of_two_changes_made_of_one_version_one_is_refused(race: Race, of: str) -> None:
    make_one = make.reminder_setting if of == "reminder" else make.report_subscription

    async def changing_in(tenant: str) -> tuple[Call, Call]:
        await getattr(race.second, f"put_{of}")(tenant, make_one(1), actor="sam")

        def change(**fields: object) -> Call:
            async def call(store: PostgresStore) -> bool:
                try:
                    done: bool = await getattr(store, f"put_{of}")(
                        tenant, make_one(1, **fields), actor="kim", expected=1
                    )
                except Conflict:
                    return False
                return done

            return call

        return change(name="Ends soon"), change(active=False)

    first, _ = await changing_in("alone")
    for n in range(1, await race.statements(first) + 1):
        tenant = f"acme-{n}"
        meeting = await race.meet(tenant, *await changing_in(tenant), stop_before=n)
        assert (meeting.first, meeting.second) == ((True, False) if meeting.waited else (False, True))
        found: Any = await getattr(race.second, f"find_{of}")(tenant, make_one(1).guid)
        assert found.version == 2


async def test_of_two_that_wake_an_occurrence_one_does_and_the_other_finds_it_awake(race: Race) -> None:
    async def waking_in(tenant: str) -> Call:
        await race.second.ensure_automation_schedulers(tenant, [make.automation_scheduler()])
        await race.other.execute("UPDATE automation_scheduler SET status = 'Failed' WHERE tenant_id = $1", tenant)
        given = make.automation_scheduler(local_time="10:00")
        return lambda store: store.ensure_automation_schedulers(tenant, [given])

    count = await race.statements(await waking_in("alone"))
    for n in range(1, count + 1):
        tenant = f"acme-{n}"
        wake = await waking_in(tenant)
        meeting = await race.meet(tenant, wake, wake, stop_before=n)
        (one,), (other,) = meeting.first, meeting.second
        assert {one.outcome, other.outcome} == {Outcome.REACTIVATED, Outcome.FOUND}
        assert one.record == other.record
        assert (one.record.status, one.record.version) == (AutomationStatus.PENDING, 2)
        assert meeting.waited is (n >= count - 1)  # behind the lock there are only the move and the COMMIT


async def test_an_occurrence_that_a_worker_claims_between_read_and_write_is_left_to_it(race: Race) -> None:
    given = make.automation_scheduler(local_time="10:00")
    await race.second.ensure_automation_schedulers("acme", [make.automation_scheduler()])

    async def claim(_: PostgresStore) -> None:
        await race.other.execute(
            "UPDATE automation_scheduler SET status = 'Processing', lease_until = now(), version = version + 1"
        )

    meeting = await race.meet(
        "acme", lambda store: store.ensure_automation_schedulers("acme", [given]), claim, stop_before=4
    )
    (answer,) = meeting.first
    assert (answer.outcome, answer.record.status, answer.record.version) == (
        Outcome.FOUND,
        AutomationStatus.PROCESSING,
        2,
    )
    assert answer.record.local_time == make.automation_scheduler().local_time
    assert race.gate.passed.count("ROLLBACK;") == 1
