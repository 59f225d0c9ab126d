"""Trouble that the queue finds: which support case each kind of it opens, one for each cause.

Pure values, shared by every store, so that the same trouble is the same case wherever it is stored. The case itself and
the one of a conflict are in `support`.
"""

from typing import Final
from uuid import UUID

import msgspec

from clarion.domain import derived_id, reply
from clarion.domain.automation import AutomationScheduler
from clarion.domain.entity_event import EntityEvent
from clarion.domain.notification import NotificationScheduler
from clarion.domain.queue_row import Trouble
from clarion.domain.support import SupportCase, SupportKind

_REASON_BYTES_MAX: Final = 600
"""Of a reason in a case, whose details have 4096 bytes: JSON may write each of its bytes as six."""


def poisoned_job(tenant_id: str, scheduler: NotificationScheduler, *, rescues: int) -> SupportCase:
    """Make the case of a pending job whose workers die again and again (I-23)."""
    return _case(
        SupportKind.DEAD_LETTER,
        tenant_id,
        record=NotificationScheduler.__name__,
        key=scheduler.key,
        details={"stage": scheduler.stage, "rescues": rescues, "reason": "every worker that took it was lost"},
        correlation_id=scheduler.correlation_id,
    )


_KINDS: Final = {
    Trouble.NEVER_CALLED: SupportKind.DEAD_LETTER,
    Trouble.FAULTY_ACCOUNT: SupportKind.MISCONFIGURATION,
    Trouble.GIVEN_UP: SupportKind.DEAD_LETTER,
    Trouble.LEFT_UNCERTAIN: SupportKind.UNCERTAIN,
    Trouble.DEFECT: SupportKind.HOLD,
}


def troubled_message(
    what: Trouble, tenant_id: str, *, pk: str, account: str, message_id: str, reason: str, correlation_id: str
) -> SupportCase:
    """Make the case of a message in trouble; it names the last message that it was seen with.

    A job whose messages cannot be called with, or are held back by a defect, is one case for all of its recipients.
    Anything else is one case for the account that the messages went through.
    """
    is_of_job = what in (Trouble.NEVER_CALLED, Trouble.DEFECT)
    return _case(
        _KINDS[what],
        tenant_id,
        record="OutgoingMessage" if is_of_job else "ProviderAccount",
        key=(pk,) if is_of_job else (account,),
        details={"message_id": message_id, "reason": _shortened(reason)},
        correlation_id=correlation_id,
    )


def failing_account(tenant_id: str, *, account: str, reason: str, failures: int, correlation_id: str) -> SupportCase:
    """Make the case of an account that takes nothing, for a tenant whose messages wait for it: one, however many wait.

    It names the request of the last message that was tried.
    """
    return _case(
        SupportKind.OUTAGE,
        tenant_id,
        record="ProviderAccount",
        key=(account,),
        details={"reason": _shortened(reason), "calls_without_success": failures},
        correlation_id=correlation_id,
    )


def quarantined_template(tenant_id: str, *, template_key: str, version: int) -> SupportCase:
    """Make the case of a template version that ended the processes which merged it."""
    return _case(
        SupportKind.HOLD,
        tenant_id,
        record="Template",
        key=(template_key, str(version)),
        details={
            "reason": "merging it ended a process again and again: it is not merged any more, and its messages wait"
        },
        correlation_id="renderer",  # no one request: it takes three merges
    )


def failed_job(tenant_id: str, scheduler: NotificationScheduler) -> SupportCase:
    """Make the case of a pending job that failed for good; the same case as where its workers died of it."""
    return _case(
        SupportKind.DEAD_LETTER,
        tenant_id,
        record=NotificationScheduler.__name__,
        key=scheduler.key,
        details={"stage": scheduler.stage, "reason": _shortened(scheduler.reason or "")},
        correlation_id=scheduler.correlation_id,
    )


def failed_event(tenant_id: str, event: EntityEvent, *, reason: str) -> SupportCase:
    """Make the case of an event that could not be handled, for good or because its workers died of it."""
    return _case(
        SupportKind.DEAD_LETTER,
        tenant_id,
        record=EntityEvent.__name__,
        key=event.key,
        details={"event_type": reply.storable(event.event_type, bytes_max=200), "reason": _shortened(reason)},
        correlation_id=event.correlation_id,
    )


def held_occurrence(tenant_id: str, scheduler_key: str, *, reason: str, correlation_id: str) -> SupportCase:
    """Make the case of a due occurrence that waits on hold."""
    return _of_occurrence(SupportKind.HOLD, tenant_id, scheduler_key, reason, correlation_id)


def hold_case_id(tenant_id: str, scheduler_key: str) -> UUID:
    """Name the case of an occurrence on hold, for who ends its hold."""
    return derived_id.support_case_id(
        tenant_id=tenant_id, kind=SupportKind.HOLD, parts=[AutomationScheduler.__name__, scheduler_key]
    )


def failed_occurrence(tenant_id: str, scheduler_key: str, *, reason: str, correlation_id: str) -> SupportCase:
    """Make the case of a due occurrence that failed for good."""
    return _of_occurrence(SupportKind.DEAD_LETTER, tenant_id, scheduler_key, reason, correlation_id)


def _of_occurrence(
    kind: SupportKind, tenant_id: str, scheduler_key: str, reason: str, correlation_id: str
) -> SupportCase:
    return _case(
        kind,
        tenant_id,
        record=AutomationScheduler.__name__,
        key=(scheduler_key,),
        details={"reason": _shortened(reason)},
        correlation_id=correlation_id,
    )


def _shortened(reason: str) -> str:
    return reply.storable(reason, bytes_max=_REASON_BYTES_MAX)


def _case(
    kind: SupportKind,
    tenant_id: str,
    *,
    record: str,
    key: tuple[str, ...],
    details: dict[str, object],
    correlation_id: str,
) -> SupportCase:
    return SupportCase(
        case_id=derived_id.support_case_id(tenant_id=tenant_id, kind=kind, parts=[record, *key]),
        kind=kind,
        record=record,
        record_key=msgspec.json.encode(key).decode(),
        details=msgspec.json.encode(details).decode(),
        correlation_id=correlation_id,
    )
