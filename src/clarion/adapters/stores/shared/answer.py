"""Answering an ensure from what its two statements brought: which keys were created, and which rows are there.

Both SQL stores insert and read in their own dialect and come here for the verdicts, inside their transaction; the
support cases that come back are written by the same transaction. Pure.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

import msgspec

from clarion.domain.automation import AutomationScheduler, settled
from clarion.domain.comparison import Given, differing
from clarion.domain.ensured import Ensured, Outcome
from clarion.domain.guard import IdempotencyGuard, JobEntry
from clarion.domain.notification import NotificationJob
from clarion.domain.support import Keyed, SupportCase, conflict_case
from clarion.errors import BrokenInvariant
from clarion.ports.ensure import Holds

Key = tuple[str, ...]


class Ensurable(Given, Keyed, Protocol):
    """Any record that an ensure makes."""

    @property
    def correlation_id(self) -> str:
        """What ties the record to the request that made it."""
        ...


R = TypeVar("R", bound=Ensurable)


class Verdicts(msgspec.Struct, Generic[R], frozen=True, kw_only=True):
    """The answers of one set in the order asked, and what its transaction has still to write."""

    answers: list[Ensured[R]]
    cases: list[SupportCase]
    changed: list[R] = []


def compare(
    tenant_id: str, items: Sequence[R], *, stored: Mapping[Key, R | None], created: Collection[Key]
) -> Verdicts[R]:
    """Tell for each item whether it was created, found or is in conflict; of equal keys the first is the creator.

    An item whose row is None, because only a newer program can read it, is left to that program.
    """
    verdicts: Verdicts[R] = Verdicts(answers=[], cases=[])
    fresh = set(created)
    for given in items:
        found = stored[given.key]
        if found is None:
            verdicts.answers.append(Ensured(outcome=Outcome.NEWER, record=given))
            continue
        if given.key in fresh:
            fresh.remove(given.key)
            verdicts.answers.append(Ensured(outcome=Outcome.CREATED, record=found))
            continue
        fields = differing(given, found)
        if fields is None:
            verdicts.answers.append(Ensured(outcome=Outcome.NEWER, record=found))
        elif fields:
            _conflict(verdicts, tenant_id, given, found, fields)
        else:
            verdicts.answers.append(Ensured(outcome=Outcome.FOUND, record=found))
    return verdicts


def compare_held(
    tenant_id: str, items: Sequence[R], *, holds: Holds, stored: Mapping[Key, R | None], created: Collection[Key]
) -> Verdicts[R]:
    """Do the same for items that are made under a claim: one that is not there has lost its hold."""
    verdicts = compare(tenant_id, [given for given in items if given.key in stored], stored=stored, created=created)
    compared = iter(verdicts.answers)
    answers: list[Ensured[R]] = []
    for given in items:
        if given.key in stored:
            answers.append(next(compared))
        elif given.key in holds:
            answers.append(Ensured(outcome=Outcome.SUPERSEDED, record=given))
        else:
            raise BrokenInvariant(f"a {type(given).__name__} was neither made nor there, though it needs no hold")
    return Verdicts(answers=answers, cases=verdicts.cases)


def settle(
    tenant_id: str,
    items: Sequence[AutomationScheduler],
    *,
    stored: Mapping[Key, AutomationScheduler | None],
    created: Collection[Key],
) -> Verdicts[AutomationScheduler]:
    """Do the same for occurrences, whose rows an ensure may also move, wake or hold back: those are `changed`."""
    verdicts: Verdicts[AutomationScheduler] = Verdicts(answers=[], cases=[], changed=[])
    fresh, rows, changed = set(created), dict(stored), {}
    for given in items:
        found = rows[given.key]
        if found is None:
            verdicts.answers.append(Ensured(outcome=Outcome.NEWER, record=given))
            continue
        if given.key in fresh:
            fresh.remove(given.key)
            verdicts.answers.append(Ensured(outcome=Outcome.CREATED, record=found))
            continue
        outcome, row = settled(given, found)
        if row is not found:
            rows[given.key] = changed[given.key] = row
        if outcome is Outcome.CONFLICT:
            _conflict(verdicts, tenant_id, given, row, differing(given, found) or ())
            continue
        verdicts.answers.append(Ensured(outcome=outcome, record=row))
    verdicts.changed.extend(changed.values())
    return verdicts


class Passage(msgspec.Struct, frozen=True, kw_only=True):
    """One entry behind its guard: at the stored coordinates, or answered already.

    `differs` says that the key was used with another payload: the entry must not be inserted, only compared.
    """

    entry: JobEntry
    answer: Ensured[NotificationJob] | None = None
    differs: bool = False


def pass_guards(items: Sequence[JobEntry], *, guards: Mapping[Key, IdempotencyGuard]) -> list[Passage]:
    """Move each entry to the coordinates of its stored guard, and answer those whose key is retired or newer."""
    passages: list[Passage] = []
    for given in items:
        if given.guard is None:
            passages.append(Passage(entry=given))
            continue
        guard = guards[given.guard.key]
        entry, fields = given.at(guard), differing(given.guard, guard)
        answer = None
        if guard.retired_at is not None:
            answer = Ensured(outcome=Outcome.GONE, record=entry.job)
        elif fields is None:
            answer = Ensured(outcome=Outcome.NEWER, record=entry.job)
        passages.append(Passage(entry=entry, answer=answer, differs=bool(fields)))
    return passages


def judge_jobs(
    tenant_id: str,
    passages: Sequence[Passage],
    *,
    stored: Mapping[Key, NotificationJob | None],
    created: Collection[Key],
) -> Verdicts[NotificationJob]:
    """Compare the jobs that passed their guards; one whose payload differs is a conflict even where no job is left."""
    verdicts: Verdicts[NotificationJob] = Verdicts(answers=[], cases=[])
    fresh = set(created)
    for passage in passages:
        given = passage.entry.job
        if passage.answer is not None:
            verdicts.answers.append(passage.answer)
        elif passage.differs:
            found = stored.get(given.key) or given
            _conflict(verdicts, tenant_id, given, found, differing(given, found) or IdempotencyGuard.GIVEN)
        else:
            one = compare(tenant_id, [given], stored=stored, created=fresh & {given.key})
            fresh.discard(given.key)
            verdicts.answers.extend(one.answers)
            verdicts.cases.extend(one.cases)
    return verdicts


def _conflict(verdicts: Verdicts[R], tenant_id: str, given: R, found: R, fields: Sequence[str]) -> None:
    """Answer one item with its conflict and ask for its support case."""
    case = conflict_case(
        tenant_id=tenant_id, given=given, found=found, fields=fields, correlation_id=given.correlation_id
    )
    verdicts.cases.append(case)
    verdicts.answers.append(
        Ensured(outcome=Outcome.CONFLICT, record=found, differing=tuple(fields), case_id=case.case_id)
    )
