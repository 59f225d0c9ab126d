"""The kinds of record that the contract is held against one after the other, and values that differ field by field.

What is here reads and writes nothing. Outgoing messages are ensured through their parent and have tests of their own.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from datetime import date, datetime, timedelta
from enum import Enum
from typing import Any, Final, get_args, get_type_hints
from uuid import UUID

import msgspec

from clarion.domain.address import AddressVersion
from clarion.domain.automation import AutomationJob, AutomationScheduler
from clarion.domain.ensured import Ensured
from clarion.domain.entity_event import EntityEvent
from clarion.domain.fingerprint import Fingerprint
from clarion.domain.guard import JobEntry
from clarion.domain.inbox import UserMessage
from clarion.domain.messaging import MessagingJob
from clarion.domain.notification import NotificationJob, NotificationScheduler
from clarion.domain.outgoing import OutgoingItem
from clarion.domain.person import Person, PersonRow, PersonVersion
from clarion.domain.timeline import OutgoingRow
from clarion.ports.ensure import ITEMS_MAX
from clarion.ports.store import Store
from clarion.testing import factories

# What happens to a record after it was made: no caller gives it, and a new row has none of it.
STATE_FIELDS: Final = frozenset(
    {
        "id",
        "status",
        "version",
        "lease_until",
        "retry_count",
        "rescue_count",
        "next_retry_at",
        "failure_reason",
        "on_support_hold",
        "run_now_at",
        "end_reason",
        "canceled_by",
        "dispatch_result",
        "trace_blob",
        "reason",
        "rule",
        "diagnostics",
        "metrics",
    }
)


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """One record type, how to make a record and how to ensure some of them.

    The records are `Any`: the list of all kinds is walked by tests that look at nothing but names of fields.
    """

    record: type[Any]
    make: Callable[..., Any]
    ensure: Callable[[Store, str, Sequence[Any]], Awaitable[list[Ensured[Any]]]]

    def __str__(self) -> str:
        """Name the kind in a test's id."""
        return self.record.__name__

    @property
    def given_fields(self) -> tuple[str, ...]:
        """The fields that are compared."""
        given: tuple[str, ...] = self.record.GIVEN
        return given

    @property
    def key_fields(self) -> tuple[str, ...]:
        """The fields that the key is made of."""
        row = self.make(1)
        return tuple(name for name in fields(self.record) if changed(row, name).key != row.key)

    @property
    def free_fields(self) -> tuple[str, ...]:
        """The fields that are neither: resolved by us, or changing over time."""
        bound = (*self.given_fields, *self.key_fields)
        return tuple(name for name in fields(self.record) if name not in bound)

    def optional_fields(self) -> tuple[str, ...]:
        """The fields that a caller may leave empty."""
        row = self.make(1)
        return tuple(name for name in fields(type(row)) if name not in STATE_FIELDS and is_optional(row, name))

    def full(self, n: int = 1) -> Any:  # noqa: ANN401  see the class
        """Make a record with every field filled that a caller can fill."""
        row = self.make(n)
        values = {name: sample(row, name) for name in self.optional_fields() if getattr(row, name) is None}
        return msgspec.structs.replace(row, **values)

    def bare(self, n: int = 1) -> Any:  # noqa: ANN401  see the class
        """Make a record with every field empty that a caller may leave empty."""
        return msgspec.structs.replace(self.make(n), **dict.fromkeys(self.optional_fields()))


def contradicted(row: Any) -> Any:  # noqa: ANN401  as in `Kind`
    """Give what a conflict leaves of a new row: itself, and an occurrence on hold, so that nobody is told of it."""
    if not isinstance(row, AutomationScheduler):
        return row
    return msgspec.structs.replace(
        row,
        on_support_hold=True,
        failure_reason="another occurrence was asked for under its key",
        version=row.version + 1,
    )


async def _ensure_jobs(
    store: Store, tenant_id: str, items: Sequence[NotificationJob]
) -> list[Ensured[NotificationJob]]:
    """Ensure jobs by themselves, without guard and scheduler row."""
    return await store.ensure_notification_jobs(tenant_id, [JobEntry(job=item) for item in items])


async def _ensure_schedulers(
    store: Store, tenant_id: str, items: Sequence[NotificationScheduler]
) -> list[Ensured[NotificationScheduler]]:
    """Ensure scheduler rows, of jobs that are ensured before them."""
    if len(items) <= ITEMS_MAX:  # a set that is too large is to be refused for its own size
        await factories.ensure_artifacts(store, tenant_id, items)
    return await store.ensure_notification_schedulers(tenant_id, items)


AUTOMATION_SCHEDULER: Final = Kind(
    record=AutomationScheduler,
    make=factories.automation_scheduler,
    ensure=lambda store, tenant_id, items: store.ensure_automation_schedulers(tenant_id, items),
)
AUTOMATION_JOB: Final = Kind(
    record=AutomationJob,
    make=factories.automation_job,
    ensure=lambda store, tenant_id, items: store.ensure_automation_jobs(tenant_id, items),
)
ENTITY_EVENT: Final = Kind(
    record=EntityEvent,
    make=factories.entity_event,
    ensure=lambda store, tenant_id, items: store.ensure_events(tenant_id, items),
)
NOTIFICATION_JOB: Final = Kind(record=NotificationJob, make=factories.notification_job, ensure=_ensure_jobs)
NOTIFICATION_SCHEDULER: Final = Kind(
    record=NotificationScheduler,
    make=factories.notification_scheduler,
    ensure=_ensure_schedulers,
)
MESSAGING_JOB: Final = Kind(
    record=MessagingJob,
    make=factories.messaging_job,
    ensure=lambda store, tenant_id, items: store.ensure_messaging_jobs(tenant_id, items),
)
ADDRESS_VERSION: Final = Kind(
    record=AddressVersion,
    make=factories.address_version,
    ensure=lambda store, tenant_id, items: store.ensure_address_versions(tenant_id, items),
)
PERSON_VERSION: Final = Kind(
    record=PersonVersion,
    make=factories.person_version,
    ensure=lambda store, tenant_id, items: store.ensure_person_versions(tenant_id, items),
)
USER_MESSAGE: Final = Kind(
    record=UserMessage,
    make=factories.user_message,
    ensure=lambda store, tenant_id, items: store.ensure_user_messages(tenant_id, items),
)
KINDS: Final = (
    AUTOMATION_SCHEDULER,
    AUTOMATION_JOB,
    ENTITY_EVENT,
    NOTIFICATION_JOB,
    NOTIFICATION_SCHEDULER,
    MESSAGING_JOB,
    ADDRESS_VERSION,
    PERSON_VERSION,
    USER_MESSAGE,
)
COMPARED: Final = tuple(kind for kind in KINDS if kind.given_fields)
"""The others compare nothing: a notification scheduler is returned as it is, whatever it holds, and of a version of an
address or a profile the key says all."""


def fields(record: type[Any]) -> tuple[str, ...]:
    """Name the fields of a record type."""
    names: tuple[str, ...] = record.__struct_fields__
    return names


def is_optional(row: msgspec.Struct, name: str) -> bool:
    """Tell whether a field may be empty."""
    return type(None) in get_args(get_type_hints(type(row))[name])


def changed(row: Any, name: str) -> Any:  # noqa: ANN401  any record, see Kind
    """Give the same record with another valid value in one field."""
    return msgspec.structs.replace(row, **{name: another(row, name)})


def changed_person(person: Person) -> Person:
    """Give the same person with another value in every column that neither says who it is nor names a stored row."""
    kept = ("recipient_id_hash", "domain", "person_id", "person_version_id")
    names = [name for name in PersonRow.__struct_fields__ if name not in kept]
    return msgspec.structs.replace(person, **{name: another(person, name) for name in names})


TOLD: Final = tuple(name for name in OutgoingItem.__struct_fields__ if name in OutgoingRow.__struct_fields__)
"""What an item decides and the timeline of its row shows."""


def changed_item(item: OutgoingItem) -> OutgoingItem:
    """Give the same item with another value in every such field that does not say which message goes where."""
    names = [name for name in TOLD if name not in ("message_id", "channel", "address_id")]
    return msgspec.structs.replace(item, **{name: another(item, name) for name in names})


def another(row: msgspec.Struct, name: str) -> object:
    """Make a value for a field that differs from the one it has."""
    match getattr(row, name):
        case None:
            return sample(row, name)
        case Fingerprint(tagged=(str() as text, *_)):
            keyed = text.startswith("k")
            return factories.payload_hash("another") if keyed else Fingerprint.of("another")
        case UUID():
            return factories.guid(99)
        case bool() as value:
            return not value
        case Enum() as value:
            return next(member for member in type(value) if member is not value)
        case str() as value:
            is_hash = re.fullmatch("[0-9a-f]{32}", value)
            return value[1:] + value[0] if is_hash else f"{value}-other"
        case int() as value:
            return value + 1
        case bytes() as value:
            return value + b"!"
        case datetime() | date() as value:
            return value + timedelta(days=1)
        case value:
            raise TypeError(f"there is no other value for {name}, which is {value!r}")


def sample(row: msgspec.Struct, name: str) -> object:
    """Make a value for a field that is empty."""
    hint = get_type_hints(type(row))[name]
    (kind,) = [arg for arg in get_args(hint) if arg is not type(None)] or [hint]
    if issubclass(kind, Enum):
        return next(iter(kind))
    samples: dict[type, object] = {
        str: factories.TEXT,
        int: 7,
        bytes: factories.BYTES,
        date: date(2024, 2, 29),
        datetime: factories.SOURCE_AT,
        UUID: factories.guid(7),
    }
    return samples[kind]
