"""Operations on a store that chance can put together: ensures of every kind, and what befalls rows between them.

An operation names records by small numbers, so that most of them meet others; it reads the ids that it needs from the
store that it runs on, so that the same one can run on two.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

import msgspec
from hypothesis import strategies as st

from clarion.domain.address import AddressVersion
from clarion.domain.automation import AutomationScheduler
from clarion.domain.ensured import Ensured
from clarion.domain.guard import IdempotencyGuard, JobEntry
from clarion.domain.notification import NotificationScheduler, NotificationStatus
from clarion.domain.outgoing import OutgoingMessage, OutgoingStatus
from clarion.domain.support import SupportCase, SupportStatus
from clarion.testing.contracts.automation import NEW_TIME, NOTES, STATES
from clarion.testing.contracts.harness import by_key
from clarion.testing.contracts.holding import CLAIMED
from clarion.testing.contracts.kind import ADDRESS_VERSION, AUTOMATION_SCHEDULER, KINDS, Kind, changed, changed_item
from clarion.testing.contracts.side import Operation, Side
from clarion.testing.factories import (
    SOURCE_AT,
    address_version,
    automation_scheduler,
    guarded_entry,
    guid,
    messaging_job,
    notification_job,
    notification_scheduler,
    outgoing_item,
)

T = TypeVar("T")

LATER: Final = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
NO_SUCH_ID: Final = 2**40

Answers = Sequence[Ensured[Any]]


class Prepare(msgspec.Struct, frozen=True):
    """Give a tenant an occurrence, and what outgoing rows stand on: a scheduler row that is claimed is among it."""

    async def run(self, side: Side) -> Answers:
        """Ensure all of it."""
        store, tenant_id = side.store, side.tenant_id
        await store.ensure_automation_schedulers(tenant_id, [automation_scheduler(1)])
        versions = [address_version(1), address_version(1, 2), address_version(2)]
        await store.ensure_address_versions(tenant_id, versions)
        await store.ensure_messaging_jobs(tenant_id, [messaging_job(1)])
        entry = JobEntry(job=notification_job(1), scheduler=notification_scheduler(1))
        await store.ensure_notification_jobs(tenant_id, [entry])
        (scheduler,) = await store.ensure_notification_schedulers(tenant_id, [notification_scheduler(1)])
        await side.harness.overwrite(tenant_id, msgspec.structs.replace(scheduler.record, **CLAIMED))
        return ()


class EnsureRecords(msgspec.Struct, frozen=True):
    """Ensure some records of one kind, each as it is first made or changed in a field."""

    kind: Kind
    items: tuple[tuple[int, int], ...]

    async def run(self, side: Side) -> Answers:
        """Ensure the set."""
        items = [self._record(n, variant) for n, variant in self.items]
        answers: Answers = await self.kind.ensure(side.store, side.tenant_id, items)
        return answers

    def _record(self, n: int, variant: int) -> msgspec.Struct:
        record = self.kind.make(n)
        compared = self.kind.given_fields
        variants = (
            record,
            changed(record, compared[0]) if compared else record,
            changed(record, compared[-1]) if compared else record,
            self.kind.make(n, **NEW_TIME) if self.kind is AUTOMATION_SCHEDULER else changed(record, "correlation_id"),
        )
        made: msgspec.Struct = variants[variant]
        return made


class EnsureJobs(msgspec.Struct, frozen=True):
    """Ensure jobs behind guards, and such without: (key, payload, whether later, whether with a scheduler row)."""

    items: tuple[tuple[int, int, bool, bool], ...]

    async def run(self, side: Side) -> Answers:
        """Ensure the set."""
        entries = [self._entry(*item) for item in self.items]
        return await side.store.ensure_notification_jobs(side.tenant_id, entries)

    def _entry(self, number: int, payload: int, later: bool, scheduled: bool) -> JobEntry:
        if number == 0:
            entry = JobEntry(job=notification_job(1), scheduler=notification_scheduler(1))
        else:
            at = LATER if later else SOURCE_AT
            entry = guarded_entry(f"key-{number}", payload=f"payload-{payload}", created_at=at)
        return entry if scheduled else msgspec.structs.replace(entry, scheduler=None)


class EnsureOutgoing(msgspec.Struct, frozen=True):
    """Ensure rows of several parents.

    For each a parent (campaign or job, by number), an address (n, which), an odd message or not, a number or none. An
    item with a number has other values in every field that the timeline shows than one without.
    """

    hold: str
    items: tuple[tuple[tuple[bool, int], tuple[int, int], bool, int | None], ...]

    async def run(self, side: Side) -> Answers:
        """Ensure the set."""
        hold = await self._hold(side)
        ids = {row.key: row.id for row in await side.harness.rows(side.tenant_id, AddressVersion)}
        items = []
        for (campaign, parent), (n, edition), odd, attempt_no in self.items:
            address = address_version(n, edition)
            stored = msgspec.structs.replace(address, id=ids.get(address.key, NO_SUCH_ID))
            job = messaging_job(parent) if campaign else notification_job(parent)
            item = outgoing_item(job, stored, attempt_no=attempt_no, hold=None if campaign else hold)
            item = changed_item(item) if attempt_no else item
            items.append(msgspec.structs.replace(item, message_id=guid(99)) if odd else item)
        return await side.store.ensure_outgoing_messages(side.tenant_id, items)

    async def _hold(self, side: Side) -> tuple[int, int] | None:
        if self.hold == "none":
            return None
        for row in await side.harness.rows(side.tenant_id, NotificationScheduler):
            if row.key == notification_scheduler(1).key and row.id is not None:
                return row.id, row.version + (self.hold == "stale")
        return NO_SUCH_ID, 1


class Overtake(msgspec.Struct, frozen=True):
    """Put one row, chosen by number, into another state, as workers, people and retention do."""

    record: str
    place: int
    state: int

    async def run(self, side: Side) -> Answers:
        """Overwrite the row if there is one."""
        kinds = {kind.__name__: kind for kind in OVERTAKEN}
        rows = by_key(await side.harness.rows(side.tenant_id, kinds[self.record]))
        if rows:
            await side.harness.overwrite(side.tenant_id, self._moved(rows[self.place % len(rows)]))
        return ()

    def _moved(self, row: msgspec.Struct) -> msgspec.Struct:
        fields: dict[str, object]
        match row:
            case AutomationScheduler():
                fresh = {"status": "Pending", "lease_until": None, "canceled_by": None, "on_support_hold": False}
                fields = {**fresh, **NOTES, "version": row.version + 1, **_pick(STATES, self.state).stored}
                fields["status"] = type(row.status)(str(fields["status"]))
            case NotificationScheduler():
                status = _pick(tuple(NotificationStatus), self.state)
                fields = {
                    "status": status,
                    "version": row.version + 1,
                    "due_at": LATER if status is NotificationStatus.READY else None,
                    "lease_until": LATER if status is NotificationStatus.PROCESSING else None,
                }
            case OutgoingMessage():
                fields = {"status": _pick(tuple(OutgoingStatus), self.state), "version": row.version + 1}
            case IdempotencyGuard():
                fields = {"retired_at": _pick((LATER, None), self.state)}
            case SupportCase():
                fields = {"status": _pick(tuple(SupportStatus), self.state)}
            case _:
                raise TypeError(f"nothing befalls a {type(row).__name__}")
        return msgspec.structs.replace(row, **fields)


OVERTAKEN: Final[tuple[type[msgspec.Struct], ...]] = (
    AutomationScheduler,
    NotificationScheduler,
    OutgoingMessage,
    IdempotencyGuard,
    SupportCase,
)


def _pick(choices: Sequence[T], number: int) -> T:
    return choices[number % len(choices)]


# Few numbers, so that operations meet; sets of up to four, so that duplicates occur and an example stays readable. What
# is listed twice is drawn twice as often: the kinds that an ensure does most with, and what lets it succeed.
_KINDS: Final = (*KINDS, AUTOMATION_SCHEDULER, AUTOMATION_SCHEDULER, ADDRESS_VERSION)
_VARIANTS: Final = (0, 0, 0, 1, 2, 3)
_PARENTS: Final = (1, 1, 1, 1, 1, 1, 1, 2)  # the second is never made
_ADDRESSES: Final = ((1, 1), (2, 1), (1, 1), (2, 1), (1, 2), (3, 1))
_OVERTAKEN: Final[tuple[type[msgspec.Struct], ...]] = (
    *OVERTAKEN,
    AutomationScheduler,
    AutomationScheduler,
    OutgoingMessage,
)


def _sets(items: st.SearchStrategy[T]) -> st.SearchStrategy[tuple[T, ...]]:
    """Draw a set, the empty one too."""
    return st.lists(items, max_size=4).map(tuple)


OPERATIONS: Final[st.SearchStrategy[Operation]] = st.one_of(
    st.builds(
        EnsureRecords,
        kind=st.sampled_from(_KINDS),
        items=_sets(st.tuples(st.integers(1, 2), st.sampled_from(_VARIANTS))),
    ),
    st.builds(
        EnsureJobs,
        items=_sets(st.tuples(st.integers(0, 2), st.sampled_from((0, 0, 1)), st.booleans(), st.booleans())),
    ),
    st.builds(
        EnsureOutgoing,
        hold=st.sampled_from(("none", "none", "held", "held", "stale")),
        items=_sets(
            st.tuples(
                st.tuples(st.booleans(), st.sampled_from(_PARENTS)),
                st.sampled_from(_ADDRESSES),
                st.sampled_from((False, False, True)),
                st.sampled_from((None, None, 2)),
            )
        ),
    ),
    st.builds(
        Overtake,
        record=st.sampled_from([kind.__name__ for kind in _OVERTAKEN]),
        place=st.integers(0, 2),
        state=st.integers(0, 14),
    ),
)
