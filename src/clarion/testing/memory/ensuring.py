"""Ensuring: find by key, compare, create if missing, in plain dicts. The promises are those of `ports.ensure`."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

import msgspec

from clarion.domain import key
from clarion.domain.address import AddressVersion
from clarion.domain.automation import AutomationScheduler, settled
from clarion.domain.comparison import Given, differing
from clarion.domain.ensured import Ensured, Outcome
from clarion.domain.fingerprint import Fingerprint
from clarion.domain.guard import IdempotencyGuard, JobEntry
from clarion.domain.inbox import UserMessage
from clarion.domain.messaging import MessagingJob
from clarion.domain.notification import NotificationJob, NotificationScheduler, NotificationStatus
from clarion.domain.outgoing import OutgoingItem, OutgoingMessage
from clarion.domain.support import Keyed, conflict_case
from clarion.ports.ensure import Hold, unknown_address, unknown_parent
from clarion.testing.memory.record import QueueEntry
from clarion.testing.memory.tables import Tables


class _Record(Given, Keyed, Protocol):
    """Any record that is kept by its key."""

    @property
    def correlation_id(self) -> str:
        """What ties the record to the request that made it."""
        ...


R = TypeVar("R", bound=_Record)
S = TypeVar("S", bound=msgspec.Struct)


def ensure(tables: Tables, tenant_id: str, given: R) -> Ensured[R]:
    """Find by key, compare, create if missing: the heart of every contract."""
    found = tables.of(tenant_id, type(given)).get(given.key)
    if found is None:
        return _create(tables, tenant_id, given)
    fields = differing(given, found)
    if fields is None:
        return Ensured(outcome=Outcome.NEWER, record=found)
    if fields:
        return _conflict(tables, tenant_id, given, found, fields)
    return Ensured(outcome=Outcome.FOUND, record=found)


def ensure_occurrence(tables: Tables, tenant_id: str, given: AutomationScheduler) -> Ensured[AutomationScheduler]:
    """Insert, or do with the row that is there what its state allows."""
    rows = tables.of(tenant_id, AutomationScheduler)
    found = rows.get(given.key)
    if found is None:
        return _create(tables, tenant_id, given)
    outcome, row = settled(given, found)
    if outcome is Outcome.CONFLICT:
        return _conflict(tables, tenant_id, given, found, differing(given, found) or ())
    rows[given.key] = row
    return Ensured(outcome=outcome, record=row)


def ensure_job(tables: Tables, tenant_id: str, given: JobEntry) -> Ensured[NotificationJob]:
    """Let the guard decide coordinates and payload, then ensure the job; with it go its guard and scheduler row."""
    guards = tables.of(tenant_id, IdempotencyGuard)
    if given.guard is not None:
        guard = guards.get(given.guard.key, given.guard)
        fields = differing(given.guard, guard)
        given = given.at(guard)
        if guard.retired_at is not None:
            return Ensured(outcome=Outcome.GONE, record=given.job)
        if fields is None:
            return Ensured(outcome=Outcome.NEWER, record=given.job)
        if fields:
            return _other_payload(tables, tenant_id, given.job, fields)
    job = ensure(tables, tenant_id, given.job)
    if job.proceeds and given.guard is not None:
        guards.setdefault(given.guard.key, _as_stored(given.guard))
    if job.proceeds and given.scheduler is not None:
        ensure_scheduler(tables, tenant_id, given.scheduler)
    return job


def ensure_scheduler(tables: Tables, tenant_id: str, given: NotificationScheduler) -> Ensured[NotificationScheduler]:
    """Insert a pending row that is due at once unless it says when."""
    return ensure(tables, tenant_id, msgspec.structs.replace(given, due_at=given.due_at or tables.now()))


def ensure_inbox(tables: Tables, tenant_id: str, given: UserMessage, *, hold: Hold | None) -> Ensured[UserMessage]:
    """Insert an inbox row unless the claim under which it was to be made is gone."""
    if given.key not in tables.of(tenant_id, UserMessage) and not _holds(tables, tenant_id, hold):
        return Ensured(outcome=Outcome.SUPERSEDED, record=given)
    return ensure(tables, tenant_id, given)


def ensure_outgoing(tables: Tables, tenant_id: str, items: Sequence[OutgoingItem]) -> list[Ensured[OutgoingMessage]]:
    """Insert the rows that are missing and whose hold stands; an unknown parent or address refuses all of them."""
    addresses = {address.id: address for address in tables.of(tenant_id, AddressVersion).values()}
    given = [(item, *_outgoing(tables, tenant_id, item, addresses.get(item.address_id))) for item in items]
    stored = tables.of(tenant_id, OutgoingMessage)
    answers: list[Ensured[OutgoingMessage]] = []
    for item, row, traceparent in given:
        if row.key not in stored and not _holds(tables, tenant_id, item.hold):
            answers.append(Ensured(outcome=Outcome.SUPERSEDED, record=row))
            continue
        answer = ensure(tables, tenant_id, row)
        if answer.outcome is Outcome.CREATED:
            _enqueue(tables, tenant_id, item, answer.record, traceparent)
        answers.append(answer)
    return answers


def _outgoing(
    tables: Tables, tenant_id: str, item: OutgoingItem, address: AddressVersion | None
) -> tuple[OutgoingMessage, str | None]:
    """Make the row of one item from its parent and its address version, and give the parent's trace with it."""
    parent: NotificationJob | MessagingJob | None
    if item.messaging_job is None:
        parent = tables.of(tenant_id, NotificationJob).get((item.pk,))
    else:
        parent = tables.of(tenant_id, MessagingJob).get((item.pk,))
    if parent is None:
        raise unknown_parent(item.pk)
    if address is None or (address.recipient_id_hash, address.channel) != (item.recipient_id_hash, item.channel):
        raise unknown_address(item.address_id)
    row = OutgoingMessage(
        bucket=parent.bucket,
        pk=item.pk,
        rk=key.outgoing_rk(recipient_key_hash=address.key_hash, channel=address.channel, attempt_no=item.attempt_no),
        message_id=item.message_id,
        address_id=item.address_id,
        channel=address.channel,
        attempt_no=item.attempt_no,
        correlation_id=parent.correlation_id,
    )
    return row, parent.traceparent


def _holds(tables: Tables, tenant_id: str, hold: Hold | None) -> bool:
    """Tell whether a scheduler row is still claimed under this version; what asks for no hold is always allowed."""
    return hold is None or any(
        (row.id, row.version) == hold and row.status is NotificationStatus.PROCESSING
        for row in tables.of(tenant_id, NotificationScheduler).values()
    )


def _enqueue(tables: Tables, tenant_id: str, item: OutgoingItem, row: OutgoingMessage, traceparent: str | None) -> None:
    """Let a new row wait in its flow."""
    flow = tables.flow(tenant_id, lane=item.lane, route=item.route, broadcast=item.broadcast)
    entry = QueueEntry(
        pk=row.pk,
        rk=row.rk,
        lane=item.lane,
        route=item.route,
        broadcast=item.broadcast,
        order_key=item.order_key,
        due_at=item.due_at or tables.now(),
        expires_at=item.expires_at,
        uncertain_policy=item.uncertain_policy,
        traceparent=traceparent,
    )
    tables.of(tenant_id, QueueEntry)[entry.key] = entry
    tables.places[row.id or 0] = (tenant_id, row.key)
    tables.count(flow, row.status, "", by=1)


def _other_payload(
    tables: Tables, tenant_id: str, given: NotificationJob, fields: Sequence[str]
) -> Ensured[NotificationJob]:
    """Answer a key that was used with another payload, naming the fields of the job it made, if that is left."""
    found = tables.of(tenant_id, NotificationJob).get(given.key, given)
    return _conflict(tables, tenant_id, given, found, differing(given, found) or fields)


def _create(tables: Tables, tenant_id: str, given: R) -> Ensured[R]:
    """Store a row under the next id."""
    stored = _as_stored(given)  # type: ignore[type-var]  # every record is a Struct, which a protocol cannot say
    row = msgspec.structs.replace(stored, id=tables.next_id())  # type: ignore[type-var]  # the same
    tables.of(tenant_id, type(given))[given.key] = row
    tables.note_created(tenant_id, type(given), given.key)
    return Ensured(outcome=Outcome.CREATED, record=row)


def _conflict(tables: Tables, tenant_id: str, given: R, found: R, fields: Sequence[str]) -> Ensured[R]:
    """Open the support case of a conflict, or see it once more, and change nothing else."""
    case = conflict_case(
        tenant_id=tenant_id, given=given, found=found, fields=fields, correlation_id=given.correlation_id
    )
    tables.open_cases(tenant_id, [case])
    return Ensured(outcome=Outcome.CONFLICT, record=found, differing=tuple(fields), case_id=case.case_id)


def _as_stored(given: S) -> S:
    """Keep of each fingerprint the one hash that a row carries."""
    values = ((name, getattr(given, name)) for name in given.__struct_fields__)
    hashes = {name: Fingerprint.stored(value.text) for name, value in values if isinstance(value, Fingerprint)}
    return msgspec.structs.replace(given, **hashes)
