"""Two stores as each other's oracle: the same operations, put together by chance, come to the same on both.

After every operation its answer and every row of the tenant are compared; at the end every question is asked. The
reference is SQLite in memory, whose clock is set; the other store's clock may be its own, and the reference follows it.
`clarion.testing.compare` is the command that does it for as long as one likes.
"""

from collections.abc import Sequence
from datetime import timedelta
from itertools import count, islice
from typing import ClassVar, Final, NamedTuple, Self, TypeVar

import hypothesis
import msgspec
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from clarion.domain.automation import AutomationScheduler
from clarion.domain.entity_event import EntityEvent
from clarion.domain.notification import NotificationScheduler
from clarion.domain.outgoing import OutgoingMessage
from clarion.domain.support import SupportCase
from clarion.errors import ClarionError
from clarion.testing.clock import ManualClock
from clarion.testing.contracts.catalog_operation import CATALOG_OPERATIONS, Ask
from clarion.testing.contracts.due_operation import BEGINNING, DUE_OPERATIONS
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.contracts.inbox_operation import INBOX_OPERATIONS
from clarion.testing.contracts.operation import OPERATIONS, Prepare
from clarion.testing.contracts.queue_operation import QUEUE_OPERATIONS, START, Elapse
from clarion.testing.contracts.side import Operation, Side, differences
from clarion.testing.contracts.source_operation import SOURCE_OPERATIONS
from clarion.testing.contracts.stage_operation import STAGE_OPERATIONS
from clarion.testing.row import InboxState, PlannedSetting, RepairRow, WebhookEvent
from clarion.testing.store import StandIn

T = TypeVar("T")

SHOWN_MAX: Final = 12
"""Of the places where two stores differ after one operation: the first few tell it all."""

MOMENT: Final = timedelta(milliseconds=1)
"""Between two operations: time stands still within one, and on no machine between two."""

_TENANTS: Final = count(1)
"""Every example has a tenant of its own, so that the stores need not be emptied between examples."""


class Compared:
    """A store beside the reference, each operation done to both."""

    def __init__(self, harness: StoreHarness, reference: StandIn, *, within: timedelta) -> None:
        """Compare a store that has nothing to do with a new reference; instants may differ by this much."""
        self._harness = harness
        self._reference = reference
        self._within = within
        self._looked_at = reference.clock.now()

    @classmethod
    async def open(cls, harness: StoreHarness, *, within: timedelta = timedelta(seconds=1)) -> Self:
        """Open a reference whose clock shows what the store's does."""
        return cls(harness, StandIn(ManualClock(await harness.now())), within=within)

    async def close(self) -> None:
        """Close the reference."""
        await self._reference.store.close()

    async def run(self, operations: Sequence[Operation]) -> str | None:
        """Do operations for a new tenant until the stores differ; say where, or None where they never do."""
        tenant_id = f"{self._harness.tenant_id}-compared-{next(_TENANTS)}"
        expected, found = Side(self._reference, tenant_id), Side(self._harness, tenant_id)
        try:
            for place, operation in enumerate((*operations, Ask())):
                await self._go_on(timedelta(seconds=operation.seconds) if isinstance(operation, Elapse) else MOMENT)
                pair = [await _outcome(operation, side) for side in (expected, found)]
                differing = list(islice(differences(*pair, within=self._within), SHOWN_MAX))
                if differing:
                    return "\n".join((f"the reference against the store after {place}, {operation}:", *differing))
        finally:
            await _clear(expected)
            await _clear(found)
        return None

    async def _go_on(self, by: timedelta) -> None:
        """Let time pass for both, and for the reference also what has passed by itself on the store's own clock."""
        passed = await self._harness.now() - self._looked_at
        await self._harness.elapse(by)
        await self._reference.elapse(by + passed)
        self._looked_at = await self._harness.now()


LEFT: Final[tuple[type[msgspec.Struct], ...]] = (
    OutgoingMessage,
    NotificationScheduler,
    WebhookEvent,
    SupportCase,
    InboxState,
    AutomationScheduler,
    EntityEvent,
    PlannedSetting,
    RepairRow,
)
"""What workers look into for what there is to do, of whichever tenant."""


class Work(NamedTuple):
    """Operations that chance may put together: what they begin with, and how many an example has, at least and most.

    `share` of a hundred examples are of this work: the more there is to combine, the more. `seed` is that of the run at
    every commit: with it, it sees the bugs that its own tests plant; a rare one needs luck.
    """

    start: tuple[Operation, ...]
    operations: st.SearchStrategy[Operation]
    length: tuple[int, int]
    share: int
    seed: int = 11

    def examples(self, number: int, *, seed: int | None = None) -> list[tuple[Operation, ...]]:
        """Draw so many examples, each with its beginning."""
        seed = self.seed if seed is None else seed
        found = drawn(self.operations, examples=number, operations=self.length, seed=seed)
        return [(*self.start, *one) for one in found]


ENSURES: Final = Work((Prepare(),), OPERATIONS, (8, 30), 26)
MESSAGES: Final = Work(START, QUEUE_OPERATIONS, (30, 60), 30)
JOBS: Final = Work((), STAGE_OPERATIONS, (20, 40), 19)
KNOWN: Final = Work((), CATALOG_OPERATIONS, (10, 30), 10, seed=1)
INBOXES: Final = Work((), INBOX_OPERATIONS, (20, 40), 5)
TOLD: Final = Work((), SOURCE_OPERATIONS, (20, 40), 5, seed=1)
FALLEN_DUE: Final = Work(BEGINNING, DUE_OPERATIONS, (20, 40), 5)
WORKS: Final = {
    "ensures": ENSURES,
    "messages": MESSAGES,
    "jobs": JOBS,
    "known": KNOWN,
    "inboxes": INBOXES,
    "told": TOLD,
    "fallen due": FALLEN_DUE,
}


class ComparisonContract:
    """Whatever is done in whatever order, a store answers and holds what the reference does.

    The fixture `harness` gives a store with nothing left to do, as for `pipeline.PipelineContract`.
    """

    WITHIN: ClassVar = timedelta(seconds=1)
    """How far apart instants may be; a store whose clock is set for the test can be held to none."""

    EXAMPLES: ClassVar = 50
    """Lists of operations to draw, of pending jobs and of what is known fewer: some tens of seconds on a server."""

    async def test_any_ensures_come_to_the_same_as_on_sqlite(self, harness: StoreHarness) -> None:
        """Records of every kind, and what befalls their rows between two ensures."""
        await self._compare(harness, ENSURES.examples(self.EXAMPLES))

    async def test_any_work_on_messages_comes_to_the_same_as_on_sqlite(self, harness: StoreHarness) -> None:
        """Claims in their order, results, receipts, uncertain sends, retries, gates and cancels."""
        await self._compare(harness, MESSAGES.examples(self.EXAMPLES))

    async def test_any_work_on_pending_jobs_comes_to_the_same_as_on_sqlite(self, harness: StoreHarness) -> None:
        """Claims in their order, what stages end in, rows made under a claim, rescues and retries."""
        await self._compare(harness, JOBS.examples(self.EXAMPLES * 3 // 5))

    async def test_any_changes_to_what_is_known_come_to_the_same_as_on_sqlite(self, harness: StoreHarness) -> None:
        """Templates, people, groups, settings and keys, each with its entry in the audit log."""
        await self._compare(harness, KNOWN.examples(self.EXAMPLES // 3))

    async def test_any_use_of_inboxes_comes_to_the_same_as_on_sqlite(self, harness: StoreHarness) -> None:
        """New lines, marks of some and of all, what expires and what is swept, down to every row."""
        await self._compare(harness, INBOXES.examples(self.EXAMPLES // 3))

    async def test_whatever_automation_is_told_comes_to_the_same_as_on_sqlite(self, harness: StoreHarness) -> None:
        """Sources, events, settings, planning, repairs and scans, down to every row."""
        await self._compare(harness, TOLD.examples(self.EXAMPLES // 3))

    async def test_whatever_falls_due_comes_to_the_same_as_on_sqlite(self, harness: StoreHarness) -> None:
        """Plans, claims in their order, ends, rescues, people's words and lists, down to every row."""
        await self._compare(harness, FALLEN_DUE.examples(self.EXAMPLES // 3))

    async def _compare(self, harness: StoreHarness, examples: Sequence[Sequence[Operation]]) -> None:
        compared = await Compared.open(harness, within=self.WITHIN)
        try:
            for number, example in enumerate(examples):
                differing = await compared.run(example)
                assert differing is None, f"example {number}: {differing}"
        finally:
            await compared.close()


def drawn(operation: st.SearchStrategy[T], *, examples: int, operations: tuple[int, int], seed: int) -> list[list[T]]:
    """Draw so many lists of operations, each between so long and so long; of each seed the same ones.

    Drawn beforehand and not shrunk: an example of fifty operations takes minutes to shrink, and shrinks little.
    """
    found: list[list[T]] = []

    @hypothesis.seed(seed)
    @settings(max_examples=examples, deadline=None, database=None, phases=[Phase.generate])
    @given(st.lists(operation, min_size=operations[0], max_size=operations[1]))
    def collect(example: list[T]) -> None:
        found.append(example)

    collect()
    return found


async def _outcome(operation: Operation, side: Side) -> object:
    """Do an operation and give what it came to and all that is stored then, comparably."""
    try:
        answer = await operation.run(side)
    except ClarionError as error:
        answer = (type(error).__name__, error.code, getattr(error, "field", None))
    look = await side.look()
    return {"answer": look.comparable(answer), **look.rows}


async def _clear(side: Side) -> None:
    """Take away what is left to do, since workers work for all tenants."""
    for kind in LEFT:
        for row in await side.harness.rows(side.tenant_id, kind):
            await side.harness.remove(side.tenant_id, row)
