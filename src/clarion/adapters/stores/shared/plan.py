"""Plans of sources: what they are made over, and how they are carried out, each whole or not at all.

Writes `source_plan`, `automation_scheduler`, `threshold_state`, `entity_history` and `support_case`. What a plan does
to a row is in `domain.automation` and `domain.occurrence_move`; plans themselves are made by producers.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Final

import msgspec

from clarion.adapters.stores.shared import answer
from clarion.adapters.stores.shared.automation import insert_absent_occurrences
from clarion.adapters.stores.shared.entity_history import write_lines
from clarion.adapters.stores.shared.occurrence import lock_occurrences, read_occurrences, write_occurrences
from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.support import write_cases
from clarion.adapters.stores.shared.transaction import Overtaken, Transaction
from clarion.domain.automation import AutomationScheduler, remade
from clarion.domain.ensured import Ensured, Outcome
from clarion.domain.entity_event import EntityHistory, HistoryKind
from clarion.domain.occurrence_line import due_in_words, occurrence_line
from clarion.domain.occurrence_move import deactivated
from clarion.domain.planning import AppliedPlan, Deactivation, SourcePlan, SourceStanding, ThresholdState
from clarion.ports.ensure import bounded

_SQL: Final = Statements("plan.sql")

Source = tuple[str, str]
"""The type of a source and its id."""

Stored = dict[str, AutomationScheduler | None]
"""Rows by their keys; None for one that is there and that only a newer program can read."""


class _Serial(msgspec.Struct, frozen=True):
    source: str
    serial: int


class _Counted(msgspec.Struct, frozen=True):
    source_type: str
    source: str


class _Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What one plan comes to: its answer, the rows that it changes, and what is told of it."""

    applied: AppliedPlan
    changed: list[AutomationScheduler]
    lines: list[EntityHistory]


async def find_standings_of_sources(
    transaction: Transaction,
    tenant_id: str,
    source_type: str,
    sources: Collection[str],
    *,
    keys: Collection[str] = (),
) -> dict[str, SourceStanding]:
    """Return what is known of each of these sources' occurrences; one without any has none."""
    asked = sorted(set(bounded(list(sources))))
    bounded(list(keys))
    if not asked:
        return {}
    named = {"tenant_id": tenant_id, "source_type": source_type, "sources": asked}
    serials = {row.source: row.serial for row in await transaction.fetch(_Serial, _SQL["read_serials"], **named)}
    found = await transaction.fetch(AutomationScheduler, _SQL["read_open_occurrences"], **named)
    by_key = {row.scheduler_key: row for row in found}
    by_key |= await read_occurrences(transaction, tenant_id, keys)
    states: defaultdict[str, list[ThresholdState]] = defaultdict(list)
    for state in await transaction.fetch(ThresholdState, _SQL["read_states"], **named):
        states[state.source].append(state)
    rows: defaultdict[str, list[AutomationScheduler]] = defaultdict(list)
    for row in sorted(by_key.values(), key=lambda row: row.id or 0):
        if row.source_type == source_type:
            rows[row.source].append(row)
    return {
        source: SourceStanding(
            source_type=source_type,
            source=source,
            serial=serials.get(source, 0),
            open_rows=tuple(rows[source]),
            states=tuple(states[source]),
        )
        for source in asked
        if source in serials or rows[source] or states[source]
    }


async def apply_plans(transaction: Transaction, tenant_id: str, plans: Sequence[SourcePlan]) -> list[AppliedPlan]:
    """Carry plans out, each whole or not at all; of two for one source the first counts."""
    first: dict[Source, SourcePlan] = {}
    for plan in bounded(plans):
        first.setdefault((plan.source_type, plan.source), plan)
    if not first:
        return []
    counted = await transaction.fetch(_Counted, _SQL["count_plans"], tenant_id=tenant_id, plans=list(first.values()))
    current = [first[row.source_type, row.source] for row in counted]
    current.sort(key=lambda plan: (plan.source_type, plan.source))
    outcomes = await _carry_out(transaction, tenant_id, current)
    applied = {(plan.source_type, plan.source): one.applied for plan, one in zip(current, outcomes, strict=True)}
    overtaken = AppliedPlan(overtaken=True)
    return [
        applied.get((plan.source_type, plan.source), overtaken)
        if plan is first[plan.source_type, plan.source]
        else overtaken
        for plan in plans
    ]


async def _carry_out(transaction: Transaction, tenant_id: str, plans: Sequence[SourcePlan]) -> list[_Outcome]:
    """Lock what is there, insert what is not, and write all that changes."""
    asked = {row.scheduler_key: row for plan in plans for row in reversed(plan.ensure)}
    ended = {one.scheduler_key for plan in plans for one in plan.deactivate}
    locked = await lock_occurrences(transaction, [(tenant_id, key) for key in asked.keys() | ended])
    stored: Stored = {key: row for (_, key), row in locked.items()}
    absent = [row for key, row in asked.items() if key not in stored]
    made = await insert_absent_occurrences(transaction, tenant_id, absent)
    if len(made) < len(absent):
        raise Overtaken  # somebody made one of them since; what they made is locked the next time
    stored |= made
    verdicts = answer.settle(
        tenant_id,
        [row for plan in plans for row in plan.ensure if row.scheduler_key in made or row.scheduler_key not in ended],
        stored={(key,): row for key, row in stored.items()},
        created={(key,) for key in made},
    )
    settled = iter(verdicts.answers)
    moved = {row.scheduler_key for row in verdicts.changed}
    outcomes = [_outcome(plan, stored, settled, made=made, moved=moved) for plan in plans]
    await write_occurrences(transaction, [*verdicts.changed, *(row for one in outcomes for row in one.changed)])
    if states := {(one.source_type, *one.key): one for plan in plans for one in plan.states}:
        await transaction.execute(_SQL["write_threshold_states"], tenant_id=tenant_id, states=list(states.values()))
    await write_lines(transaction, [(tenant_id, line) for one in outcomes for line in one.lines])
    await write_cases(transaction, tenant_id, verdicts.cases)
    return outcomes


def _outcome(
    plan: SourcePlan,
    stored: Stored,
    settled: Iterator[Ensured[AutomationScheduler]],
    *,
    made: Collection[str],
    moved: Collection[str],
) -> _Outcome:
    """Put one plan's answer together: what was settled for all plans at once, and what it ends or makes anew."""
    given = {one.scheduler_key: one for one in plan.deactivate}
    ensured: list[Ensured[AutomationScheduler]] = []
    changed: list[AutomationScheduler] = []
    ended: list[str] = []
    lines: list[EntityHistory] = []
    for row in plan.ensure:
        end = given.get(row.scheduler_key)
        is_settled = end is None or row.scheduler_key in made
        one = next(settled) if is_settled else _made_anew(row, end, stored[row.scheduler_key])
        ensured.append(one)
        if not is_settled and one.outcome is Outcome.REACTIVATED:
            changed.append(one.record)
            ended.append(row.scheduler_key)
        if (kind := _kind(one, moved=moved)) is not None:
            lines.append(_line(plan, one.record, kind, due_in_words(one.record)))
    for end in plan.deactivate:
        found = stored.get(end.scheduler_key)
        if found is None or any(row.scheduler_key == end.scheduler_key for row in plan.ensure):
            continue
        if (gone := deactivated(found, end)) is not None:
            changed.append(gone)
            ended.append(end.scheduler_key)
            lines.append(_line(plan, gone, HistoryKind.DEACTIVATED, end.reason))
    return _Outcome(applied=AppliedPlan(ensured=tuple(ensured), deactivated=tuple(ended)), changed=changed, lines=lines)


def _made_anew(
    given: AutomationScheduler, end: Deactivation | None, found: AutomationScheduler | None
) -> Ensured[AutomationScheduler]:
    """Give an occurrence another input where it is still as it was read; else it is its worker's."""
    if found is None:
        return Ensured(outcome=Outcome.NEWER, record=given)
    again = remade(given, found) if end is not None and found.version == end.version else None
    if again is None:
        return Ensured(outcome=Outcome.FOUND, record=found)
    return Ensured(outcome=Outcome.REACTIVATED, record=again)


def _kind(one: Ensured[AutomationScheduler], *, moved: Collection[str]) -> HistoryKind | None:
    """Say what a line tells of an answer; what was there and stays as it was is not told of."""
    match one.outcome:
        case Outcome.CREATED | Outcome.REACTIVATED:
            return HistoryKind.PLANNED
        case Outcome.CONFLICT:
            return HistoryKind.CONFLICT
        case Outcome.FOUND if one.record.scheduler_key in moved:
            return HistoryKind.MOVED
        case _:
            return None


def _line(plan: SourcePlan, row: AutomationScheduler, kind: HistoryKind, text: str) -> EntityHistory:
    return occurrence_line(row, kind, cause=plan.cause, at=plan.at, text=text, correlation_id=plan.correlation_id)
