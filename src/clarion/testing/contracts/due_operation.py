"""Operations on what falls due that chance can put together: plans, claims, their ends, rescues, and people's words.

As those of `queue_operation`, they name occurrences and claims by small numbers and can run on two stores.
"""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final
from uuid import UUID

import msgspec
from hypothesis import strategies as st

from clarion.domain.automation import AutomationScheduler, AutomationStatus, AutomationType
from clarion.domain.entity_event import EntityHistory, HistoryKind
from clarion.domain.occurrence_line import occurrence_line
from clarion.domain.planning import EndReason, SourcePlan, SourceStanding
from clarion.ports.automation import DueClaim, DueEnd, Standing
from clarion.testing.contracts.planning import PLANNED_AT, TYPE, ended, occurrence, source, state
from clarion.testing.contracts.pump import LEASE
from clarion.testing.contracts.queue_operation import Elapse, Resolve
from clarion.testing.contracts.side import Operation, Side
from clarion.testing.factories import automation_scheduler, guid

NUMBERS: Final = (1, 2, 3)
OFFSETS: Final = (30, 7)
PAGE: Final = 2
OF_A_REPORT: Final = 3
"""The number whose occurrences are of the other type, for the lists of one type alone; their keys are no report's, so
they are never run again."""


def key_of(n: int, offset_days: int) -> str:
    """Name an occurrence."""
    return occurrence(n, offset_days=offset_days).scheduler_key


class Wish(msgspec.Struct, frozen=True):
    """What one plan is to say of the n-th source; without `minutes` its occurrences stay when they are."""

    n: int
    offsets: tuple[int, ...]
    minutes: int | None
    unit: int
    ends: bool
    is_stale: bool

    def plan(self, standing: SourceStanding, *, now: datetime) -> SourcePlan:
        """Make the plan over what is known."""
        stored = {one.scheduler_key: one.scheduled_at for one in standing.open_rows}
        rows = []
        for offset_days in self.offsets:
            key = key_of(self.n, offset_days)
            at = stored.get(key) if self.minutes is None else None
            rows.append(self._row(key, offset_days, at=at or now + timedelta(minutes=self.minutes or 0)))
        return SourcePlan(
            source_type=TYPE,
            source=source(self.n),
            serial=standing.serial + self.is_stale,
            deactivate=tuple(ended(one) for one in standing.open_rows if self.ends),
            ensure=tuple(rows),
            states=(state(self.n, met=self.ends, edge_no=standing.serial),),
            cause=f"event {self.unit}",
            at=PLANNED_AT,
            correlation_id="request-7",
        )

    def _row(self, key: str, offset_days: int, *, at: datetime) -> AutomationScheduler:
        is_report = self.n == OF_A_REPORT
        row = automation_scheduler(
            self.n,
            offset_days=offset_days,
            business_unit=str(guid(self.unit, "unit")),
            automation_type=AutomationType.REPORT_SUBSCRIPTION if is_report else AutomationType.REMINDER,
            scheduled_at=at,
        )
        return msgspec.structs.replace(row, scheduler_key=key)


class Plan(msgspec.Struct, frozen=True):
    """Carry plans out that were made over what is there, or over what is not."""

    wishes: tuple[Wish, ...]

    async def run(self, side: Side) -> object:
        """Read, plan and apply."""
        now = await side.harness.now()
        known = await standings(side)
        nothing = SourceStanding(source_type=TYPE, source="")
        plans = [one.plan(known.get(source(one.n), nothing), now=now) for one in self.wishes]
        return await side.store.apply_plans(side.tenant_id, plans)


class ClaimDue(msgspec.Struct, frozen=True):
    """Claim what is due."""

    limit: int

    async def run(self, side: Side) -> object:
        """Claim and remember it."""
        claims = await side.store.claim_due(limit=self.limit, lease=LEASE)
        side.due += claims
        return claims


class Ending(StrEnum):
    """How a claim may end."""

    DONE = "done"
    FOLLOWED = "followed"
    SKIPPED = "skipped"
    DEACTIVATED = "deactivated"
    FAILED = "failed"
    CANCELED = "canceled"
    LATER = "later"
    NOT_BEGUN = "not begun"
    HELD = "held"


class FinishDue(msgspec.Struct, frozen=True):
    """End some of the claims so far, each counted from the latest, in one set."""

    ends: tuple[tuple[int, Ending], ...]

    async def run(self, side: Side) -> object:
        """End those of which there is such a claim."""
        claims = [(side.due[-1 - back], how) for back, how in self.ends if back < len(side.due)]
        return await side.store.finish_due([_end(one, how) for one, how in claims])


def _end(one: DueClaim, how: Ending) -> DueEnd:
    """Write the end of a claim."""
    line = occurrence_line(one.row, HistoryKind.HANDED_OVER, cause=how, at=PLANNED_AT, text=how)
    end = DueEnd(
        tenant_id=one.tenant_id,
        scheduler_key=one.row.scheduler_key,
        version=one.row.version,
        to=AutomationStatus.COMPLETED,
        line=line,
    )
    return msgspec.structs.replace(end, **_fields(one, how))


def _fields(one: DueClaim, how: Ending) -> dict[str, object]:
    match how:
        case Ending.DONE:
            return {"dispatch_result": "{}", "trace_blob": "a/1"}
        case Ending.FOLLOWED:
            following = occurrence(4, scheduled_at=one.row.scheduled_at + timedelta(minutes=3))
            return {"next": following}
        case Ending.SKIPPED:
            return {"reason": EndReason.NO_RECIPIENTS}
        case Ending.DEACTIVATED:
            return {"to": AutomationStatus.DEACTIVATED, "reason": EndReason.SOURCE_NO_LONGER_VALID}
        case Ending.FAILED:
            return {"to": AutomationStatus.FAILED, "failure_reason": "no such boat"}
        case Ending.CANCELED:
            return {"to": AutomationStatus.CANCELED, "line": None}
        case Ending.LATER:
            return {"to": AutomationStatus.PENDING, "delay": timedelta(seconds=40), "failure_reason": "no answer"}
        case Ending.NOT_BEGUN:
            return {"to": AutomationStatus.PENDING, "delay": timedelta(), "is_retry": False}
        case Ending.HELD:
            return {"to": AutomationStatus.PENDING, "hold": True, "failure_reason": "no answer"}


class RescueDue(msgspec.Struct, frozen=True):
    """Rescue what workers left behind."""

    limit: int

    async def run(self, side: Side) -> object:
        """Rescue as many as that."""
        return await side.store.rescue_due(limit=self.limit)


class Verb(StrEnum):
    """What a person does with an occurrence: the names of the store's methods."""

    HOLD = "hold_occurrence"
    RELEASE = "release_occurrence"
    RUN = "run_occurrence_now"
    DEACTIVATE = "deactivate_occurrence"


class Say(msgspec.Struct, frozen=True):
    """Do something with an occurrence on a person's word."""

    verb: Verb
    n: int
    offset_days: int

    async def run(self, side: Side) -> object:
        """Do it, whatever the occurrence is."""
        do = getattr(side.store, self.verb)
        return await do(side.tenant_id, key_of(self.n, self.offset_days), actor="sam", reason="mended")


class Rerun(msgspec.Struct, frozen=True):
    """Have a completed occurrence run again."""

    n: int
    offset_days: int
    count: int

    async def run(self, side: Side) -> object:
        """Ask for its re-run of that number."""
        first = key_of(self.n, self.offset_days)
        return await side.store.rerun_occurrence(side.tenant_id, first, n=self.count, actor="kim", reason="lost")


class AskDue(msgspec.Struct, frozen=True):
    """Ask every question about occurrences and what is told of them."""

    async def run(self, side: Side) -> object:
        """Ask them."""
        keys = [key_of(n, offset_days) for n in NUMBERS for offset_days in OFFSETS]
        soon = await side.harness.now() + timedelta(minutes=2)
        return {
            "standings": sorted((await standings(side)).items()),
            "with keys": sorted((await standings(side, *keys)).items()),
            "found": [await side.store.find_occurrence(side.tenant_id, key) for key in keys],
            "lists": [await listed(side, one) for one in Standing],
            "reports": [await listed(side, one, of=AutomationType.REPORT_SUBSCRIPTION) for one in Standing],
            "soon": [await listed(side, one, until=soon) for one in (Standing.WAITING, Standing.DUE)],
            "told": [await told(side, n) for n in NUMBERS],
        }


async def standings(side: Side, *keys: str) -> dict[str, SourceStanding]:
    """Read what is known of every source."""
    sources = [source(n) for n in NUMBERS]
    return await side.store.find_standings_of_sources(side.tenant_id, TYPE, sources, keys=keys)


async def listed(
    side: Side, standing: Standing, *, of: AutomationType | None = None, until: datetime | None = None
) -> list[AutomationScheduler]:
    """List what stands so, page by page."""
    rows: list[AutomationScheduler] = []
    after = None
    while page := await side.store.list_occurrences(
        side.tenant_id, standing=standing, automation_type=of, until=until, after=after, limit=PAGE
    ):
        rows += page
        after = (page[-1].due_at, page[-1].id or 0)
    return rows


async def told(side: Side, n: int) -> list[EntityHistory]:
    """List an entity's history, page by page."""
    lines: list[EntityHistory] = []
    after = None
    while page := await side.store.list_history(side.tenant_id, UUID(source(n)), after=after, limit=PAGE):
        lines += page
        after = (page[-1].at, page[-1].row_key)
    return lines


_N: Final = st.sampled_from(NUMBERS)
_OFFSET: Final = st.sampled_from(OFFSETS)
_WISH: Final = st.builds(
    Wish,
    n=_N,
    offsets=st.lists(_OFFSET, max_size=2, unique=True).map(tuple),
    minutes=st.sampled_from((None, -5, -1, 1, 4)),
    unit=st.sampled_from((1, 1, 1, 2)),
    ends=st.booleans(),
    is_stale=st.sampled_from((False, False, False, True)),
)
_DRAWN: Final[tuple[tuple[int, st.SearchStrategy[Operation]], ...]] = (
    (6, st.builds(Plan, wishes=st.lists(_WISH, min_size=1, max_size=3).map(tuple))),
    (8, st.builds(ClaimDue, limit=st.sampled_from((1, 2, 100)))),
    (
        6,
        st.builds(
            FinishDue,
            ends=st.lists(st.tuples(st.integers(0, 3), st.sampled_from(Ending)), min_size=1, max_size=3).map(tuple),
        ),
    ),
    (4, st.builds(RescueDue, limit=st.sampled_from((1, 100)))),
    (6, st.builds(Say, verb=st.sampled_from(Verb), n=_N, offset_days=_OFFSET)),
    (2, st.builds(Rerun, n=st.sampled_from((1, 2)), offset_days=_OFFSET, count=st.sampled_from((1, 1, 2)))),
    (6, st.builds(Elapse, seconds=st.sampled_from((1, 41, 61, 61, 61, 301)))),
    (1, st.builds(Resolve, place=st.integers(0, 9))),
    (4, st.builds(AskDue)),
)
DUE_OPERATIONS: Final = st.sampled_from(
    [place for place, (times, _) in enumerate(_DRAWN) for _ in range(times)]
).flatmap(lambda place: _DRAWN[place][1])
BEGINNING: Final = (
    Plan(
        tuple(Wish(n=n, offsets=OFFSETS, minutes=-n, unit=1, ends=False, is_stale=False) for n in NUMBERS),
    ),
)
"""An occurrence of every name is there, and due."""
