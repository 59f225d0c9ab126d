"""The store as the Ensure contracts ask for it: insert what is absent, read what is there, compare.

Every method is one transaction over a set of items (one item is a set of one) and answers item by item, in the order
asked. Inserts are sorted by unique key, so that two callers cannot deadlock; the read is a second statement of the same
READ COMMITTED transaction, because in one combined statement the loser of a race would see no row. Ensuring again what
is there writes nothing. A conflict opens its support case in the same transaction and changes nothing else.

`testing.contracts` says what each method must do, as tests that every store passes.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Protocol, TypeVar

from clarion.domain.address import AddressVersion
from clarion.domain.automation import AutomationJob, AutomationScheduler
from clarion.domain.ensured import Ensured
from clarion.domain.guard import IdempotencyGuard, JobEntry
from clarion.domain.inbox import UserMessage
from clarion.domain.messaging import MessagingJob
from clarion.domain.notification import NotificationJob, NotificationScheduler
from clarion.domain.outgoing import OutgoingItem, OutgoingMessage
from clarion.domain.person import PersonVersion
from clarion.domain.seal import Purpose
from clarion.domain.support import SupportCase
from clarion.errors import InvalidInput

ITEMS_MAX: Final = 1000
"""A transaction of a thousand rows takes some ten milliseconds, so nobody behind it on a single writer waits long."""


T = TypeVar("T")

WrappedKeys = Mapping[tuple[Purpose, int], bytes]
"""A tenant's keys by purpose and serial, wrapped by the vault."""


Hold = tuple[int, int]
"""A claim of a pending job: the scheduler row's id and its version."""

Holds = Mapping[tuple[str, ...], Hold]
"""The claims under which rows are made, by the rows' keys; a row that is not among them needs none."""

NO_HOLDS: Final[Holds] = {}


class EnsureStore(Protocol):
    """Creation of records, and nothing else."""

    async def ensure_tenant(self, tenant_id: str, keys: WrappedKeys, *, actor: str | None = None) -> WrappedKeys:
        """Make the tenant with these keys unless it exists; return the keys that it has.

        The making is audited, in the new tenant's log and in one transaction with it, where a person is the actor.
        Without one it is a program's that makes what it works with, such as a benchmark's.
        """
        ...

    async def find_tenant_keys(self, tenant_id: str) -> WrappedKeys | None:
        """Return the tenant's wrapped keys, or None where there is no such tenant."""
        ...

    async def ensure_automation_schedulers(
        self, tenant_id: str, items: Sequence[AutomationScheduler]
    ) -> list[Ensured[AutomationScheduler]]:
        """Insert, or settle with the row that is there as `domain.automation.settled` decides."""
        ...

    async def ensure_automation_jobs(
        self, tenant_id: str, items: Sequence[AutomationJob]
    ) -> list[Ensured[AutomationJob]]:
        """Insert the traces that are missing."""
        ...

    async def ensure_notification_jobs(
        self, tenant_id: str, items: Sequence[JobEntry]
    ) -> list[Ensured[NotificationJob]]:
        """Insert guards, jobs and scheduler rows that are missing, together or not at all.

        A guard with another payload is a conflict and a retired one is gone; neither makes a job. A job that is there
        without its scheduler row gets it through the dispatch key.
        """
        ...

    async def find_guard(self, tenant_id: str, key: tuple[str, str]) -> IdempotencyGuard | None:
        """Return the guard of an operation and a key's hash, retired or not; None where the key was never used."""
        ...

    async def ensure_notification_schedulers(
        self, tenant_id: str, items: Sequence[NotificationScheduler]
    ) -> list[Ensured[NotificationScheduler]]:
        """Insert the pending rows that are missing; one that is there is returned as it is, whatever its state.

        Raises InvalidInput where a row's job is unknown to the tenant; then nothing is written.
        """
        ...

    async def ensure_messaging_jobs(self, tenant_id: str, items: Sequence[MessagingJob]) -> list[Ensured[MessagingJob]]:
        """Insert the jobs that are missing; their blobs are already durable."""
        ...

    async def ensure_address_versions(
        self, tenant_id: str, items: Sequence[AddressVersion]
    ) -> list[Ensured[AddressVersion]]:
        """Insert the versions that are missing, each with the next serial of its recipient and channel, counted here.

        The same destination of a recipient is found, whichever serial it has and was asked for with; none is a
        conflict. Two who insert at once get versions of their own, or the same one where the destination is the same.
        """
        ...

    async def ensure_person_versions(
        self, tenant_id: str, items: Sequence[PersonVersion]
    ) -> list[Ensured[PersonVersion]]:
        """Insert the profiles that are missing, each with the next serial of its person, which is counted here.

        The same profile of a person is found, whichever serial it has and was asked for with; none is a conflict.
        """
        ...

    async def ensure_user_messages(
        self, tenant_id: str, items: Sequence[UserMessage], *, holds: Holds = NO_HOLDS
    ) -> list[Ensured[UserMessage]]:
        """Insert the inbox rows that are missing.

        `holds` has by its key the claim under which a row is made. One whose hold no longer stands and whose row is
        missing is answered SUPERSEDED (the record as it was given, without an id); the others proceed.
        """
        ...

    async def ensure_outgoing_messages(
        self, tenant_id: str, items: Sequence[OutgoingItem]
    ) -> list[Ensured[OutgoingMessage]]:
        """Insert the rows that are missing by one INSERT … SELECT over parents and address versions.

        Items may have different parents. One whose hold no longer stands and whose row is missing is answered
        SUPERSEDED (the record as it would have been, without an id); the others proceed. Raises InvalidInput where a
        parent or an address version (with this recipient and channel) is unknown to the tenant; then nothing is
        written.
        """
        ...

    async def open_support_cases(self, tenant_id: str, cases: Sequence[SupportCase]) -> None:
        """Open these cases, or see them once more: for trouble that was found outside of any ensure above."""
        ...


def unknown_parent(pk: str) -> InvalidInput:
    """Make the one error for outgoing rows whose job is not there."""
    return InvalidInput(f"the tenant has no job {pk!r}", field="parent", hint="ensure the job before its messages")


def unknown_artifact(rk: str) -> InvalidInput:
    """Make the one error for scheduler rows whose job is not there."""
    return InvalidInput(
        f"the tenant has no job {rk!r}", field="artifact_rk", hint="ensure the job before its scheduler row"
    )


def unknown_address(address_id: int) -> InvalidInput:
    """Make the one error for an address version that is not there."""
    return InvalidInput(
        f"the tenant has no address version {address_id}",
        field="address_id",
        hint="ensure the address version before the messages that go to it",
    )


def unknown_profile(person_version_id: int) -> InvalidInput:
    """Make the one error for a version of a profile that is not there."""
    return InvalidInput(
        f"the tenant has no person version {person_version_id}",
        field="person_version_id",
        hint="ensure the person version before the person who has it",
    )


def in_sets(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Cut items into sets that are small enough for one transaction."""
    for start in range(0, len(items), ITEMS_MAX):
        yield items[start : start + ITEMS_MAX]


def bounded(items: Sequence[T]) -> Sequence[T]:
    """Return the set, or refuse one that would keep others waiting for too long."""
    if len(items) > ITEMS_MAX:
        raise InvalidInput(
            f"a set has {len(items)} items, {ITEMS_MAX} is the most", field="items", hint="ensure them in several sets"
        )
    return items
