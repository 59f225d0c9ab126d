"""Recording what came back from calls, by row and claim token, merged by rank (F-28 to F-37).

A result finds its row in one of three ways: still claimed by its token; in doubt and last claimed by its token; or
moved on, by a receipt or another claim. Only in the first two may it move the row otherwise than by evidence. Four
statements for any number of results: rows read, rows, attempts and lines written. Trouble takes one more, however much
of it there is: support cases, attempts that were none, the first doubt about an account.
"""

from collections import Counter
from collections.abc import Sequence
from typing import assert_never

from clarion.adapters.stores.sqlite.clock import MICROSECOND
from clarion.adapters.stores.sqlite.queue.move import Attempt, Moves, Row, Wanted
from clarion.adapters.stores.sqlite.session import Transaction
from clarion.domain import trouble
from clarion.domain.attempt import AttemptStatus, attempt_status
from clarion.domain.call import Accepted, Deferred, Misconfigured, NotCalled, Refused, Unknown
from clarion.domain.claim import CallResult, Recorded
from clarion.domain.outgoing import RANK, OutgoingStatus, ReasonClass
from clarion.ports.ensure import bounded


def record_outgoing(transaction: Transaction, results: Sequence[CallResult], *, actor: str) -> list[Recorded]:
    """Record what came back, one result after the other, and write it at once."""
    moves = Moves(transaction, actor=actor)
    given = [result.storable() for result in bounded(results)]
    recorder = _Recorder(moves, given)
    answers = [Recorded(id=result.id, status=recorder.record(result)) for result in given]
    moves.write()
    return answers


class _Recorder:
    """The rows of one set of results, and what must be known of them besides."""

    def __init__(self, moves: Moves, results: Sequence[CallResult]) -> None:
        """Read the rows, and of those that may be late what is known of their attempts."""
        self._moves = moves
        self._tokens = {result.claim_token: str(result.claim_token) for result in results}
        times = Counter(result.id for result in results)
        doubtful = {result.id for result in results if isinstance(result.outcome, Unknown)}
        wanted = {
            result.id: Wanted(
                id=result.id,
                is_doubtful=result.id in doubtful,
                claim_token=self._tokens[result.claim_token] if times[result.id] == 1 else "",
            )
            for result in results
        }
        self._rows = moves.read(wanted.values())
        self._known = {row.id: Attempt.known(row) for row in self._rows.values() if row.tried is not None}

    def record(self, result: CallResult) -> OutgoingStatus | None:
        """Record one result; return where it left its row, or None where it was another claim's and moved nothing."""
        row = self._rows.get(result.id)
        if row is None or row.bucket != result.bucket:
            return None
        attempt = self._write_attempt(row, result)
        own, before = row.claim_token == self._tokens[result.claim_token], row.status
        if own and row.status == OutgoingStatus.SENDING:
            self._return(row, result)
        elif own and row.status == OutgoingStatus.UNCERTAIN:
            self._settle(row, result, attempt)
        elif isinstance(result.outcome, Accepted):
            self._moves.show(row, OutgoingStatus.SENT_TO_PROVIDER)
            self._prove(row, result)
        return OutgoingStatus(row.status) if own or row.status != before else None

    def _return(self, row: Row, result: CallResult) -> None:
        """Move a row that is in flight, or in doubt, to where its outcome leads."""
        match result.outcome:
            case Accepted() if row.status == OutgoingStatus.SENDING:
                self._moves.accept(row)
            case Accepted():
                self._moves.move(row, OutgoingStatus.SENT_TO_PROVIDER)
            case Deferred(reason=reason, throttled=throttled):
                self._wait(row, result, reason=reason, reason_class=ReasonClass.THROTTLED if throttled else "")
            case Misconfigured(reason=reason):
                self._moves.report(row, trouble.faulty_account, reason, account=row.account or "")
                self._wait(row, result, reason=reason)
            case Refused(reason=reason, recipient_not_found=not_found):
                reason_class = ReasonClass.RECIPIENT_NOT_FOUND if not_found else ""
                self._end(row, reason=reason, reason_class=reason_class)
            case Unknown(reason=reason):
                self._moves.doubt(row, reason=reason)
            case NotCalled():
                self._take_back(row, result, result.outcome)
                return
            case _:
                assert_never(result.outcome)
        self._prove(row, result)

    def _wait(self, row: Row, result: CallResult, *, reason: str, reason_class: str = "") -> None:
        """Let a row that was not taken wait for its next attempt, or end it where its attempts are used up."""
        if result.final:
            self._moves.report(row, trouble.given_up, reason, account=row.account or "")
            self._end(row, reason=reason)
            return
        self._moves.move(row, OutgoingStatus.RETRY_READY, reason=reason, reason_class=reason_class)
        row.due_at = self._moves.transaction.now + result.delay // MICROSECOND

    def _take_back(self, row: Row, result: CallResult, outcome: NotCalled) -> None:
        """Take back a claim that came to no call."""
        authorised = row.replay_authorised  # the word of a person is not used up by no call
        to, reason = outcome.leads_to, outcome.reason
        row.attempts -= 1
        row.not_called += 1
        if to is OutgoingStatus.UNCERTAIN and row.first_unproven_at is not None:
            self._moves.move(row, to, reason=reason)
            row.settle_at = self._moves.transaction.now
            return
        if to is OutgoingStatus.FAILED_FINAL:
            self._moves.report(row, trouble.never_called, reason, pk=row.pk)
            self._end(row, reason=reason)
            return
        self._moves.move(row, OutgoingStatus.RETRY_READY, reason=reason)
        row.due_at = self._moves.transaction.now + result.delay // MICROSECOND
        row.replay_authorised = authorised

    def _end(self, row: Row, *, reason: str, reason_class: str = "") -> None:
        """End a row that is not taken; of one with a call of which nobody knows, nobody can say that it failed."""
        to = OutgoingStatus.FAILED_FINAL if row.first_unproven_at is None else OutgoingStatus.UNCERTAIN
        self._moves.move(row, to, reason=reason, reason_class=reason_class)

    def _settle(self, row: Row, result: CallResult, attempt: Attempt | None) -> None:
        """Settle a row in doubt by the late reply of its own claim; what it proves refused is in doubt no more."""
        if isinstance(result.outcome, Unknown):
            return
        if isinstance(result.outcome, NotCalled) and attempt is not None:
            self._moves.drop(attempt)
            self._known[row.id].remove(attempt)
        refused = not isinstance(result.outcome, Accepted)
        if refused and not any(one.status == AttemptStatus.UNKNOWN for one in self._known.get(row.id, ())):
            # Every attempt of it is proven refused, so any account may try again.
            self._moves.unpin(row)
        self._return(row, result)

    def _prove(self, row: Row, result: CallResult) -> None:
        """Keep on the row what a call leaves there, whatever came of it; what is there already stays."""
        if not row.attempts:
            return
        if isinstance(result.outcome, Accepted):
            row.provider_message_id = row.provider_message_id or result.outcome.provider_message_id
        row.content_hash = row.content_hash or result.content_hash
        self._moves.change(row)

    def _write_attempt(self, row: Row, result: CallResult) -> Attempt | None:
        """Write the attempt of a call, or settle the one that is there; a call that was never made leaves none."""
        status, token = attempt_status(result.outcome), self._tokens[result.claim_token]
        known = next((one for one in self._known.get(row.id, ()) if one.attempt == result.attempt), None)
        if known is None:
            if row.claim_token != token or status is None:
                return None
            if status is AttemptStatus.UNKNOWN and row.status in RANK and not self._has_accepted(row):
                status = AttemptStatus.ACCEPTED  # a receipt has shown it already
            known = self._moves.new_attempt(row, status, number=result.attempt)
            if row.id in self._known:
                self._known[row.id].append(known)
        elif known.claim_token == token:
            # What stood as unknown and was not accepted is proven refused; of how, the reason tells.
            known.settle(status if status in (AttemptStatus.ACCEPTED, AttemptStatus.UNKNOWN) else AttemptStatus.REFUSED)
            self._moves.keep(known)
        else:
            return None
        _add_details(known, result)
        return known

    def _has_accepted(self, row: Row) -> bool:
        """Tell whether an earlier call of a row is known to be accepted, so that what is shown may be that one's."""
        return any(one.status == AttemptStatus.ACCEPTED for one in self._known.get(row.id, ()))


def _add_details(attempt: Attempt, result: CallResult) -> None:
    """Add to an attempt what a result knows of it and it does not yet say."""
    if isinstance(result.outcome, Accepted):
        attempt.provider_message_id = attempt.provider_message_id or result.outcome.provider_message_id
        attempt.reason = None
    else:
        attempt.reason = attempt.reason or result.outcome.reason
    attempt.content_hash = attempt.content_hash or result.content_hash
    if result.latency_ms is not None:
        attempt.latency_ms = result.latency_ms
