"""Trouble that the queue finds: which support case each kind of it opens, one for each cause.

Pure values, shared by every store, so that the same trouble is the same case wherever it is stored. The case itself and
the one of a conflict are in `support`.
"""

from typing import Final
from uuid import UUID

import msgspec

from clarion.domain import derived_id, reply
from clarion.domain.notification import NotificationScheduler
from clarion.domain.support import SupportCase, SupportKind

_REASON_BYTES_MAX: Final = 600
"""Of a reason in a case, whose details have 4096 bytes: JSON may write each of its bytes as six."""


def poisoned_job(tenant_id: str, scheduler: NotificationScheduler, *, rescues: int) -> SupportCase:
    """Make the case of a pending job whose workers die again and again (I-23)."""
    return _case(
        SupportKind.DEAD_LETTER,
        tenant_id,
        record=type(scheduler).__name__,
        key=scheduler.key,
        details={"stage": scheduler.stage, "rescues": rescues, "reason": "every worker that took it was lost"},
        correlation_id=scheduler.correlation_id,
    )


def never_called(tenant_id: str, *, pk: str, message_id: UUID, reason: str, correlation_id: str) -> SupportCase:
    """Make the case of a job whose messages cannot be called with: one for all of its recipients."""
    return _case(
        SupportKind.DEAD_LETTER,
        tenant_id,
        record="OutgoingMessage",
        key=(pk,),
        details=_last(message_id, reason),
        correlation_id=correlation_id,
    )


def given_up(tenant_id: str, *, account: str, message_id: UUID, reason: str, correlation_id: str) -> SupportCase:
    """Make the case of messages that an account did not take in all of their attempts: one for the account."""
    return _case(
        SupportKind.DEAD_LETTER,
        tenant_id,
        record="ProviderAccount",
        key=(account,),
        details=_last(message_id, reason),
        correlation_id=correlation_id,
    )


def left_uncertain(tenant_id: str, *, account: str, message_id: UUID, reason: str, correlation_id: str) -> SupportCase:
    """Make the case of messages that may have arrived through an account and rest so: one for the account."""
    return _case(
        SupportKind.UNCERTAIN,
        tenant_id,
        record="ProviderAccount",
        key=(account,),
        details=_last(message_id, reason),
        correlation_id=correlation_id,
    )


def faulty_account(tenant_id: str, *, account: str, message_id: UUID, reason: str, correlation_id: str) -> SupportCase:
    """Make the case of a provider account that somebody must mend."""
    return _case(
        SupportKind.MISCONFIGURATION,
        tenant_id,
        record="ProviderAccount",
        key=(account,),
        details=_last(message_id, reason),
        correlation_id=correlation_id,
    )


def failed_job(tenant_id: str, scheduler: NotificationScheduler) -> SupportCase:
    """Make the case of a pending job that failed for good; the same case as where its workers died of it."""
    return _case(
        SupportKind.DEAD_LETTER,
        tenant_id,
        record=type(scheduler).__name__,
        key=scheduler.key,
        details={"stage": scheduler.stage, "reason": _shortened(scheduler.reason or "")},
        correlation_id=scheduler.correlation_id,
    )


def _last(message_id: UUID, reason: str) -> dict[str, object]:
    """Say of a case that stands for many messages which was the last, and why."""
    return {"message_id": str(message_id), "reason": _shortened(reason)}


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
