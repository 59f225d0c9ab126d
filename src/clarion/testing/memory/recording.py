"""Recording: what came back from a call, by row and claim token, merged by rank (F-28 to F-37).

A result finds its row in one of three ways: still claimed by its token; no longer in flight but last claimed by its
token (rescued, or already advanced by a receipt); or claimed by another since. Only the first two may move the row
otherwise than by evidence.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import assert_never

import msgspec

from clarion.domain import trouble
from clarion.domain.attempt import AttemptStatus, attempt_status
from clarion.domain.call import Accepted, Deferred, Misconfigured, NotCalled, Refused, Unknown
from clarion.domain.claim import CallResult, Recorded
from clarion.domain.outgoing import RANK, OutgoingStatus, ReasonClass
from clarion.domain.support import SupportCase
from clarion.testing.memory import moving
from clarion.testing.memory.moving import Row
from clarion.testing.memory.record import DeliveryAttempt
from clarion.testing.memory.tables import Tables


def record_outgoing(tables: Tables, results: Sequence[CallResult], *, actor: str) -> list[Recorded]:
    """Record what came back, one result after the other."""
    return [Recorded(id=result.id, status=_record(tables, result.storable(), actor=actor)) for result in results]


def _record(tables: Tables, result: CallResult, *, actor: str) -> OutgoingStatus | None:
    """Record one result; return where it left its row, or None where it was another claim's and changed no state."""
    row = moving.find(tables, result.id)
    if row is None or row.message.bucket != result.bucket:
        return None
    own = row.entry.claim_token == result.claim_token
    if own and row.status is OutgoingStatus.SENDING:
        _write_attempt(tables, row, result)
        return _return(tables, row, result, actor=actor).status
    if own and row.status is OutgoingStatus.UNCERTAIN:
        return _settle(tables, row, result, actor=actor).status
    _write_attempt(tables, row, result)
    if isinstance(result.outcome, Accepted):
        shown = moving.show(tables, row, OutgoingStatus.SENT_TO_PROVIDER, actor=actor)
        if row.entry.attempts:
            shown = moving.change(tables, shown, **_proof(shown, result))
        return shown.status if own or shown.status is not row.status else None
    return row.status if own else None


def _return(tables: Tables, row: Row, result: CallResult, *, actor: str) -> Row:
    """Move a row that is in flight, or uncertain, to where its outcome leads."""
    match result.outcome:
        case Accepted():
            changes = _proof(row, result)
            return moving.move(tables, row, OutgoingStatus.SENT_TO_PROVIDER, actor=actor, changes=changes)
        case Deferred(reason=reason, throttled=throttled):
            return _wait(tables, row, result, actor=actor, reason=reason, throttled=throttled)
        case Misconfigured(reason=reason):
            report(tables, row, trouble.faulty_account, reason, account=row.entry.account or "")
            return _wait(tables, row, result, actor=actor, reason=reason)
        case Refused(reason=reason, recipient_not_found=not_found):
            reason_class = ReasonClass.RECIPIENT_NOT_FOUND if not_found else None
            changes = _proof(row, result)
            return _end(tables, row, actor=actor, reason=reason, reason_class=reason_class, changes=changes)
        case Unknown(reason=reason):
            return make_uncertain(tables, moving.change(tables, row, **_proof(row, result)), actor=actor, reason=reason)
        case NotCalled():
            return _take_back(tables, row, result, result.outcome, actor=actor)
        case _:
            assert_never(result.outcome)


def _wait(tables: Tables, row: Row, result: CallResult, *, actor: str, reason: str, throttled: bool = False) -> Row:
    """Let a row that was not taken wait for its next attempt, or end it where its attempts are used up."""
    changes = _proof(row, result)
    if result.final:
        report(tables, row, trouble.given_up, reason, account=row.entry.account or "")
        return _end(tables, row, actor=actor, reason=reason, changes=changes)
    return moving.move(
        tables,
        row,
        OutgoingStatus.RETRY_READY,
        actor=actor,
        reason=reason,
        reason_class=ReasonClass.THROTTLED if throttled else None,
        changes={**changes, "due_at": tables.now() + result.delay},
    )


def _take_back(tables: Tables, row: Row, result: CallResult, outcome: NotCalled, *, actor: str) -> Row:
    """Take back a claim that came to no call."""
    counts = {"attempts": row.entry.attempts - 1, "not_called": row.entry.not_called + 1}
    to, reason = outcome.leads_to, outcome.reason
    if to is OutgoingStatus.UNCERTAIN and row.entry.first_unknown_at is not None:
        changes = {**counts, "settle_at": tables.now()}
        return moving.move(tables, row, to, actor=actor, reason=reason, changes=changes)
    if to is OutgoingStatus.FAILED_FINAL:
        report(tables, row, trouble.never_called, reason, pk=row.message.pk)
        return _end(tables, row, actor=actor, reason=reason, changes=counts)
    kept = {"replay_authorised": row.entry.replay_authorised}  # the word of a person is not used up by no call
    changes = {**counts, **kept, "due_at": tables.now() + result.delay}
    return moving.move(tables, row, OutgoingStatus.RETRY_READY, actor=actor, reason=reason, changes=changes)


def _end(
    tables: Tables,
    row: Row,
    *,
    actor: str,
    reason: str,
    reason_class: ReasonClass | None = None,
    changes: Mapping[str, object],
) -> Row:
    """End a row that is not taken; of one with a call of which nobody knows, nobody can say that it failed."""
    to = OutgoingStatus.FAILED_FINAL if row.entry.first_unknown_at is None else OutgoingStatus.UNCERTAIN
    return moving.move(tables, row, to, actor=actor, reason=reason, reason_class=reason_class, changes=changes)


def make_uncertain(tables: Tables, row: Row, *, actor: str, reason: str) -> Row:
    """Move a row in flight to `Uncertain`, into the flow that is pinned to its account."""
    changes = {
        "settle_at": tables.now(),
        "first_unknown_at": row.entry.first_unknown_at or moving.claimed_at(tables, row),
        "pinned": row.entry.account or "",
    }
    return moving.move(tables, row, OutgoingStatus.UNCERTAIN, actor=actor, reason=reason, changes=changes)


def _settle(tables: Tables, row: Row, result: CallResult, *, actor: str) -> Row:
    """Settle an uncertain row by the late reply of its own claim; what it proves refused is uncertain no more."""
    _write_attempt(tables, row, result)
    if isinstance(result.outcome, Unknown):
        return row
    if isinstance(result.outcome, NotCalled):
        tables.of(row.tenant_id, DeliveryAttempt).pop((str(row.id), str(result.attempt)), None)
    if not isinstance(result.outcome, Accepted) and not any(
        one.status is AttemptStatus.UNKNOWN for one in moving.attempts(tables, row)
    ):
        # Taken out of its flow before it moves, so that the counters of both flows are right at every step.
        row = _unpin(tables, row)
    return _return(tables, row, result, actor=actor)


def _unpin(tables: Tables, row: Row) -> Row:
    """Let a row go back to its flow: every attempt of it is proven refused, so any account may try again."""
    tables.count(moving.flow_of(tables, row), row.status, row.entry.reason_class, by=-1)
    row = moving.change(tables, row, pinned="", first_unknown_at=None)
    tables.count(moving.flow_of(tables, row), row.status, row.entry.reason_class, by=1)
    return row


def _write_attempt(tables: Tables, row: Row, result: CallResult) -> None:
    """Write the attempt of a call, or settle the one that is there; a call that was never made leaves none."""
    status = attempt_status(result.outcome)
    known = tables.of(row.tenant_id, DeliveryAttempt).get((str(row.id), str(result.attempt)))
    if known is not None and known.claim_token == result.claim_token:
        # What stood as unknown and was not accepted is proven refused; of how, the reason tells.
        proven = status if status in (AttemptStatus.ACCEPTED, AttemptStatus.UNKNOWN) else AttemptStatus.REFUSED
        settled = moving.settle_attempt(tables, row, known, proven)
        _store_attempt(tables, row, msgspec.structs.replace(settled, **_details(settled, result)))
    elif known is None and row.entry.claim_token == result.claim_token and status is not None:
        attempts = tables.of(row.tenant_id, DeliveryAttempt).values()
        accepted = any(one.outgoing_id == row.id and one.status is AttemptStatus.ACCEPTED for one in attempts)
        if status is AttemptStatus.UNKNOWN and row.status in RANK and not accepted:
            status = AttemptStatus.ACCEPTED  # a receipt has shown it already
        attempt = new_attempt(tables, row, status, number=result.attempt)
        _store_attempt(tables, row, msgspec.structs.replace(attempt, **_details(attempt, result)))


def new_attempt(tables: Tables, row: Row, status: AttemptStatus, *, number: int) -> DeliveryAttempt:
    """Make the attempt of a row's last claim."""
    if row.entry.claim_token is None:
        raise AssertionError("an attempt belongs to a claim")
    attempt = DeliveryAttempt(
        outgoing_id=row.id,
        attempt=number,
        claim_token=row.entry.claim_token,
        account=row.entry.account or "",
        status=status,
        at=tables.now(),
        correlation_id=row.message.correlation_id,
        traceparent=row.entry.traceparent,
    )
    _store_attempt(tables, row, attempt)
    return attempt


def _store_attempt(tables: Tables, row: Row, attempt: DeliveryAttempt) -> None:
    tables.of(row.tenant_id, DeliveryAttempt)[attempt.key] = attempt


def _details(attempt: DeliveryAttempt, result: CallResult) -> dict[str, object]:
    """Add to an attempt what a result knows of it and it does not yet say."""
    outcome, latency_ms = result.outcome, result.latency_ms
    pid = outcome.provider_message_id if isinstance(outcome, Accepted) else None
    return {
        "provider_message_id": attempt.provider_message_id or pid,
        "reason": None if isinstance(outcome, Accepted) else attempt.reason or outcome.reason,
        "content_hash": attempt.content_hash or result.content_hash,
        "latency_ms": attempt.latency_ms if latency_ms is None else latency_ms,
    }


def _proof(row: Row, result: CallResult) -> dict[str, object]:
    """Give what a call leaves on its row, whatever came of it; what is there already stays."""
    outcome = result.outcome
    pid = outcome.provider_message_id if isinstance(outcome, Accepted) else None
    return {
        "provider_message_id": row.entry.provider_message_id or pid,
        "content_hash": row.entry.content_hash or result.content_hash,
    }


def report(tables: Tables, row: Row, case_of: Callable[..., SupportCase], reason: str, **what: str) -> None:
    """Open the case of some trouble with a row."""
    message = row.message
    case = case_of(
        row.tenant_id, message_id=message.message_id, reason=reason, correlation_id=message.correlation_id, **what
    )
    tables.open_cases(row.tenant_id, [case])
