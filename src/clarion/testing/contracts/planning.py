"""Plans: what a store knows of a source's occurrences, and how a plan is carried out, each whole or not at all."""

from datetime import UTC, date, datetime, timedelta
from typing import Any, Final
from uuid import UUID

import msgspec
import pytest

from clarion.domain.automation import AutomationScheduler, AutomationStatus, CanceledBy
from clarion.domain.ensured import Outcome
from clarion.domain.entity_event import EntityHistory, HistoryKind
from clarion.domain.planning import AppliedPlan, Deactivation, EndReason, SourcePlan, ThresholdState
from clarion.domain.support import SupportCase
from clarion.testing.contracts.harness import StoreHarness, everything
from clarion.testing.contracts.kind import contradicted
from clarion.testing.factories import TEXT, automation_scheduler, guid

PLANNED_AT: Final = datetime(2026, 1, 10, 8, 0, tzinfo=UTC)
TYPE: Final = "order"
BEGINNING: Final = UUID("00000000-0000-4000-8000-000000000001")


def source(n: int = 1) -> str:
    """Name the source of the n-th occurrence of the factories."""
    return str(guid(n, "order"))


def occurrence(n: int = 1, /, *, offset_days: int = -3, **fields: object) -> AutomationScheduler:
    """Make one of several occurrences of the n-th source, so many days before its date."""
    row = automation_scheduler(n, offset_days=offset_days)
    key = row.scheduler_key.rsplit(":", 1)[0] + f":{offset_days}"
    return msgspec.structs.replace(row, scheduler_key=key, **fields)


def moved_unit(row: AutomationScheduler) -> AutomationScheduler:
    """Give an occurrence the input that it has in another business unit."""
    given = automation_scheduler(business_unit=str(guid(9, "unit")), offset_days=row.offset_days)
    return msgspec.structs.replace(
        row, business_unit=given.business_unit, input_hash=given.input_hash, local_date=date(2026, 1, 28)
    )


def plan(n: int = 1, /, *, serial: int = 0, **fields: object) -> SourcePlan:
    """Make a plan for the n-th source."""
    made = SourcePlan(
        source_type=TYPE, source=source(n), serial=serial, cause="event 1", at=PLANNED_AT, correlation_id="request-7"
    )
    return msgspec.structs.replace(made, **fields)


def ended(row: AutomationScheduler, reason: EndReason = EndReason.SOURCE_CHANGED) -> Deactivation:
    """Say that an occurrence is no longer wanted as it was read."""
    return Deactivation(scheduler_key=row.scheduler_key, version=row.version, reason=reason)


def state(n: int = 1, /, *, met: bool = True, edge_no: int = 1, scope: str = "all") -> ThresholdState:
    """Make the state of a metric of the n-th source."""
    return ThresholdState(
        setting=str(guid(1, "setting")),
        source_type=TYPE,
        source=source(n),
        metric="seats_taken",
        scope=scope,
        met=met,
        edge_no=edge_no,
    )


async def apply(harness: StoreHarness, *plans: SourcePlan) -> list[AppliedPlan]:
    """Carry plans out."""
    return await harness.store.apply_plans(harness.tenant_id, list(plans))


async def planned(harness: StoreHarness, *rows: AutomationScheduler) -> list[AutomationScheduler]:
    """Store occurrences of the first source by its first plan."""
    (applied,) = await apply(harness, plan(ensure=rows))
    return [one.record for one in applied.ensured]


async def stored(harness: StoreHarness) -> dict[str, AutomationScheduler]:
    """Read all occurrences by key."""
    return {row.scheduler_key: row for row in await harness.rows(harness.tenant_id, AutomationScheduler)}


async def told(harness: StoreHarness) -> list[tuple[HistoryKind, str, str]]:
    """Read the lines of history: what, of which occurrence, because of what."""
    rows = await harness.rows(harness.tenant_id, EntityHistory)
    return sorted((row.kind, row.subject, row.cause) for row in rows)


class PlanContract:
    """The promises of `ports.automation` about plans."""

    async def test_a_plan_makes_its_occurrences_tells_of_each_and_is_counted(self, harness: StoreHarness) -> None:
        """The entity's history says what and because of what; the next plan is made over one more."""
        rows = [occurrence(offset_days=30), occurrence(offset_days=7)]
        (applied,) = await apply(harness, plan(ensure=tuple(rows), states=(state(),)))
        assert [one.outcome for one in applied.ensured] == [Outcome.CREATED] * 2
        assert not applied.overtaken
        found = await harness.store.find_standings_of_sources(harness.tenant_id, TYPE, [source(), source(2)])
        assert found.keys() == {source()}
        standing = found[source()]
        assert (standing.serial, standing.states) == (1, (state(),))
        assert [row.scheduler_key for row in standing.open_rows] == [row.scheduler_key for row in rows]
        assert standing.open_rows == tuple(one.record for one in applied.ensured)
        assert await told(harness) == sorted((HistoryKind.PLANNED, row.scheduler_key, "event 1") for row in rows)
        lines = await harness.store.list_history(harness.tenant_id, UUID(rows[0].primary_entity), limit=10)
        assert {(line.at, line.correlation_id) for line in lines} == {(PLANNED_AT, "request-7")}
        assert {line.text for line in lines} == {"payment-reminder, due on 2026-01-29 at 09:00 Europe/Berlin"}

    async def test_a_plan_over_another_serial_is_overtaken_and_writes_nothing(self, harness: StoreHarness) -> None:
        """Too old or from the future; another source's plan in the set is carried out all the same."""
        await planned(harness, occurrence(offset_days=30))
        before = await everything(harness)
        late: dict[str, Any] = {"ensure": (occurrence(offset_days=7),), "states": (state(),)}
        for serial in (0, 2):
            assert await apply(harness, plan(serial=serial, **late)) == [AppliedPlan(overtaken=True)]
        assert await apply(harness, plan(2, serial=3, ensure=(occurrence(2),))) == [AppliedPlan(overtaken=True)]
        assert await everything(harness) == before
        old, good = await apply(harness, plan(**late), plan(2, ensure=(occurrence(2),)))
        assert (old.overtaken, good.overtaken) == (True, False)
        assert {row.source for row in (await stored(harness)).values()} == {source(), source(2)}

    async def test_of_two_plans_for_one_source_in_a_set_the_first_is_carried_out(self, harness: StoreHarness) -> None:
        """The second was made over what the first has changed."""
        one, other = plan(ensure=(occurrence(offset_days=30),)), plan(ensure=(occurrence(offset_days=7),))
        first, second = await apply(harness, one, other)
        assert (first.overtaken, second.overtaken) == (False, True)
        assert [row.offset_days for row in (await stored(harness)).values()] == [30]

    async def test_what_is_no_longer_wanted_ends_as_what_is_wanted_begins_and_the_state_moves_with_them(
        self, harness: StoreHarness
    ) -> None:
        """One transaction: `postgres` and `sqlite` tests break it off at every statement."""
        (old,) = await planned(harness, occurrence(offset_days=30))
        new = occurrence(offset_days=7)
        (applied,) = await apply(
            harness,
            plan(serial=1, deactivate=(ended(old),), ensure=(new,), states=(state(met=False),), cause="event 2"),
        )
        assert applied.deactivated == (old.scheduler_key,)
        rows = await stored(harness)
        assert rows[old.scheduler_key] == msgspec.structs.replace(
            old, status=AutomationStatus.DEACTIVATED, end_reason="SourceChanged", version=2
        )
        assert rows[new.scheduler_key] == applied.ensured[0].record
        assert await harness.rows(harness.tenant_id, ThresholdState) == [state(met=False)]
        assert (HistoryKind.DEACTIVATED, old.scheduler_key, "event 2") in await told(harness)

    @pytest.mark.parametrize(
        "since",
        [
            {"version": 2},
            {"version": 2, "status": AutomationStatus.PROCESSING, "lease_until": PLANNED_AT},
            {"status": AutomationStatus.COMPLETED},
            {"on_support_hold": True},
            {"status": AutomationStatus.CANCELED, "canceled_by": CanceledBy.PERSON},
        ],
        ids=["moved since", "claimed since", "completed", "held", "canceled"],
    )
    async def test_what_is_not_as_it_was_read_or_is_not_its_to_end_is_left(
        self, harness: StoreHarness, since: dict[str, object]
    ) -> None:
        """I-21: its worker looks again whether it is wanted, and what is held waits for a person. It is no conflict."""
        (row,) = await planned(harness, occurrence())
        other = msgspec.structs.replace(row, **since)
        await harness.overwrite(harness.tenant_id, other)
        (applied,) = await apply(harness, plan(serial=1, deactivate=(ended(row),), cause="event 2"))
        assert applied == AppliedPlan()
        assert await stored(harness) == {row.scheduler_key: other}
        assert len(await told(harness)) == 1

    async def test_an_occurrence_with_another_input_is_made_anew_where_it_is_as_it_was_read(
        self, harness: StoreHarness
    ) -> None:
        """Deactivated and ensured under one key; no conflict, because its plan knows of both."""
        (row,) = await planned(harness, occurrence())
        given = moved_unit(row)
        (applied,) = await apply(harness, plan(serial=1, deactivate=(ended(row),), ensure=(given,), cause="event 2"))
        (one,) = applied.ensured
        assert (one.outcome, applied.deactivated) == (Outcome.REACTIVATED, (row.scheduler_key,))
        assert one.record == msgspec.structs.replace(
            row,
            business_unit=given.business_unit,
            input_hash=one.record.input_hash,
            local_date=given.local_date,
            version=2,
        )
        assert one.record.input_hash != row.input_hash
        assert await stored(harness) == {row.scheduler_key: one.record}
        assert await harness.rows(harness.tenant_id, SupportCase) == []

        taken = msgspec.structs.replace(
            one.record, version=3, status=AutomationStatus.PROCESSING, lease_until=PLANNED_AT
        )
        await harness.overwrite(harness.tenant_id, taken)
        (left,) = await apply(harness, plan(serial=2, deactivate=(ended(one.record),), ensure=(row,), cause="event 3"))
        assert [one.outcome for one in left.ensured] == [Outcome.FOUND]
        assert left.deactivated == ()
        assert await stored(harness) == {row.scheduler_key: taken}

    async def test_an_occurrence_that_moved_since_it_was_read_is_not_made_anew(self, harness: StoreHarness) -> None:
        """A person made it due since: what the plan knows of it is old, and its worker looks again."""
        (row,) = await planned(harness, occurrence())
        asked = {"actor": "sam", "reason": TEXT}
        assert await harness.store.run_occurrence_now(harness.tenant_id, row.scheduler_key, **asked)
        before = await stored(harness)
        (left,) = await apply(harness, plan(serial=1, deactivate=(ended(row),), ensure=(moved_unit(row),)))
        assert [one.outcome for one in left.ensured] == [Outcome.FOUND]
        assert left.deactivated == ()
        assert await stored(harness) == before

    async def test_the_last_state_of_a_metric_is_the_one_that_stands(self, harness: StoreHarness) -> None:
        """Whether it is met and how often it became so: the number is a part of the next occurrence's key."""
        for serial, last in enumerate((state(edge_no=1), state(edge_no=2), state(met=False, edge_no=2))):
            await apply(harness, plan(serial=serial, states=(last,)))
            found = await harness.store.find_standings_of_sources(harness.tenant_id, TYPE, [source()])
            assert found[source()].states == (last,)

    async def test_a_conflict_withholds_its_own_occurrence_and_the_plan_goes_on(self, harness: StoreHarness) -> None:
        """I-04: held back, with its case and its line; the others of the plan are made."""
        (row,) = await planned(harness, occurrence())
        new = occurrence(offset_days=7)
        (applied,) = await apply(harness, plan(serial=1, ensure=(moved_unit(row), new), cause="event 2"))
        odd, made = applied.ensured
        assert (odd.outcome, made.outcome) == (Outcome.CONFLICT, Outcome.CREATED)
        assert odd.differing == ("business_unit", "input_hash")
        assert await stored(harness) == {row.scheduler_key: contradicted(row), new.scheduler_key: made.record}
        (case,) = await harness.rows(harness.tenant_id, SupportCase)
        assert case.case_id == odd.case_id
        assert (HistoryKind.CONFLICT, row.scheduler_key, "event 2") in await told(harness)

    async def test_a_new_send_time_moves_the_row_and_is_told_and_the_same_is_not(self, harness: StoreHarness) -> None:
        """The occurrence keeps its key and whatever was noted on it."""
        (row,) = await planned(harness, occurrence())
        later = msgspec.structs.replace(row, local_time="10:00", scheduled_at=row.scheduled_at + timedelta(hours=1))
        (applied,) = await apply(harness, plan(serial=1, ensure=(later,), cause="event 2"))
        assert applied.ensured[0].record == msgspec.structs.replace(later, version=2)
        await apply(harness, plan(serial=2, ensure=(later,), cause="event 3"))
        assert [kind for kind, _, _ in await told(harness)] == [HistoryKind.MOVED, HistoryKind.PLANNED]

    async def test_the_replay_of_a_plan_writes_its_own_lines_again_and_no_others(self, harness: StoreHarness) -> None:
        """The key of a line is the occurrence and its cause; a row that was woken is told of under the same."""
        (row,) = await planned(harness, occurrence())
        await apply(harness, plan(serial=1, deactivate=(ended(row),)))
        before = await told(harness)
        later_at = PLANNED_AT + timedelta(minutes=1)
        (woken,) = await apply(harness, plan(serial=2, ensure=(row,), at=later_at))
        assert woken.ensured[0].outcome is Outcome.REACTIVATED
        assert await told(harness) == before
        lines = await harness.rows(harness.tenant_id, EntityHistory)
        assert {line.kind: line.at for line in lines} == {
            HistoryKind.PLANNED: later_at,
            HistoryKind.DEACTIVATED: PLANNED_AT,
        }

    async def test_a_standing_is_what_is_not_over_and_what_was_asked_for_by_its_key(
        self, harness: StoreHarness
    ) -> None:
        """Of these sources of this type, and of no other tenant."""
        open_, over, asked = await planned(harness, *(occurrence(offset_days=days) for days in (30, 7, 1)))
        for row in (over, asked):
            await harness.overwrite(
                harness.tenant_id, msgspec.structs.replace(row, status=AutomationStatus.COMPLETED, version=2)
            )
        await apply(harness, plan(2, ensure=(occurrence(2),), states=(state(2), state(2, scope="north"))))
        found = await harness.store.find_standings_of_sources(
            harness.tenant_id, TYPE, [source(), source(2)], keys=[asked.scheduler_key, "reminder:none"]
        )
        assert {row.scheduler_key for row in found[source()].open_rows} == {open_.scheduler_key, asked.scheduler_key}
        assert [one.scope for one in found[source(2)].states] == ["all", "north"]
        ask = harness.store.find_standings_of_sources
        assert await ask(harness.tenant_id, "class", [source()]) == {}
        assert await ask(f"{harness.tenant_id}-2", TYPE, [source()]) == {}
        assert await ask(harness.tenant_id, TYPE, []) == {}

    async def test_plans_of_another_tenant_touch_nothing_of_this_one(self, harness: StoreHarness) -> None:
        """Same source, same keys, same versions."""
        (row,) = await planned(harness, occurrence())
        before = await everything(harness)
        other = f"{harness.tenant_id}-2"
        await harness.store.apply_plans(other, [plan(ensure=(occurrence(),), states=(state(),))])
        (applied,) = await harness.store.apply_plans(other, [plan(serial=1, deactivate=(ended(row),))])
        assert applied.deactivated == (row.scheduler_key,)
        assert await everything(harness) == before

    async def test_lines_of_history_are_listed_newest_first_behind_a_place(self, harness: StoreHarness) -> None:
        """Of one moment in the order of their keys, so that no page loses or repeats one."""
        lines = [
            EntityHistory(
                entity_guid=BEGINNING,
                kind=HistoryKind.EVENT,
                subject=f"event-{n}",
                cause=TEXT,
                at=PLANNED_AT + timedelta(hours=n // 2),
                text=TEXT,
                correlation_id="c",
            )
            for n in range(5)
        ]
        await harness.store.write_history(harness.tenant_id, [*lines, lines[0]])
        await harness.store.write_history(f"{harness.tenant_id}-2", lines[:1])
        listed: list[EntityHistory] = []
        while page := await harness.store.list_history(
            harness.tenant_id, BEGINNING, after=(listed[-1].at, listed[-1].row_key) if listed else None, limit=2
        ):
            listed += page
        assert listed == [lines[n] for n in (4, 3, 2, 1, 0)]
        assert await harness.store.list_history(harness.tenant_id, guid(1), limit=10) == []

    async def test_what_was_told_of_one_subject_is_listed_alone(self, harness: StoreHarness) -> None:
        """Page by page, and not with one whose name begins alike, such as a re-run of the same occurrence."""
        lines = [
            EntityHistory(
                entity_guid=BEGINNING,
                kind=HistoryKind.HELD,
                subject=subject,
                cause=f"claim {n}",
                at=PLANNED_AT + timedelta(hours=n // 2),
                text=TEXT,
                correlation_id="c",
            )
            for n in range(3)
            for subject in ("boat", "boat:retry:1")
        ]
        await harness.store.write_history(harness.tenant_id, lines)
        await harness.store.write_history(f"{harness.tenant_id}-2", lines[:1])
        for subject, expected in (("boat", (4, 2, 0)), ("boat:retry:1", (5, 3, 1)), ("boa", ())):
            listed: list[EntityHistory] = []
            while page := await harness.store.list_history(
                harness.tenant_id,
                BEGINNING,
                subject=subject,
                after=(listed[-1].at, listed[-1].row_key) if listed else None,
                limit=2,
            ):
                listed += page
            assert listed == [lines[n] for n in expected]
        assert not await harness.store.list_history(harness.tenant_id, guid(1), subject="boat", limit=10)
