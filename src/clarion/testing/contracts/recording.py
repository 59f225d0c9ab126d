"""Recording: every outcome of a call, under the token of a claim that still stands, leads to its one state.

What a reply does that comes after its claim was lost is in `late_replies`.
"""

from datetime import timedelta
from typing import Final

import msgspec
import pytest

from clarion.domain.attempt import AttemptStatus
from clarion.domain.backoff import NOT_CALLED_MAX
from clarion.domain.call import Accepted, CallOutcome, Deferred, Misconfigured, NotCalled, Refused, Unknown
from clarion.domain.outgoing import OutgoingStatus, ReasonClass
from clarion.domain.support import SupportCase, SupportKind, SupportStatus
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.contracts.late_replies import replay
from clarion.testing.contracts.pump import ACCOUNTS, BROADCAST, LEASE, Pump, near, other_token, result
from clarion.testing.factories import TEXT, guid
from clarion.testing.row import FlowCount

DELAY: Final = timedelta(seconds=40)
LATENCY_MS: Final = 1234
HASH: Final = "k1:" + "ab" * 32


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """An outcome, and what must become of the row and its attempt."""

    outcome: CallOutcome
    final: bool = False
    status: OutgoingStatus
    attempt: AttemptStatus | None

    def __str__(self) -> str:
        """Name the case in a test's id."""
        return f"{type(self.outcome).__name__}{'-final' if self.final else ''}"


CASES: Final = (
    Case(
        outcome=Accepted(provider_message_id="p-1"),
        status=OutgoingStatus.SENT_TO_PROVIDER,
        attempt=AttemptStatus.ACCEPTED,
    ),
    Case(outcome=Deferred(reason=TEXT), status=OutgoingStatus.RETRY_READY, attempt=AttemptStatus.DEFERRED),
    Case(outcome=Deferred(reason=TEXT), final=True, status=OutgoingStatus.FAILED_FINAL, attempt=AttemptStatus.DEFERRED),
    Case(outcome=Misconfigured(reason=TEXT), status=OutgoingStatus.RETRY_READY, attempt=AttemptStatus.MISCONFIGURED),
    Case(
        outcome=Misconfigured(reason=TEXT),
        final=True,
        status=OutgoingStatus.FAILED_FINAL,
        attempt=AttemptStatus.MISCONFIGURED,
    ),
    Case(outcome=Refused(reason=TEXT), status=OutgoingStatus.FAILED_FINAL, attempt=AttemptStatus.REFUSED),
    Case(outcome=Unknown(reason=TEXT), status=OutgoingStatus.UNCERTAIN, attempt=AttemptStatus.UNKNOWN),
    Case(outcome=NotCalled(reason=TEXT), status=OutgoingStatus.RETRY_READY, attempt=None),
)
each_case = pytest.mark.parametrize("case", CASES, ids=str)


class RecordContract:
    """What comes back."""

    @each_case
    async def test_an_outcome_leads_to_its_state(self, harness: StoreHarness, case: Case) -> None:
        """With the reason that the provider gave, on the row and on its line."""
        pump = Pump(harness, broadcast=BROADCAST)
        message = await pump.message()
        claimed = await pump.claim_one()
        assert await pump.record(case.outcome, claimed, delay=DELAY, final=case.final) == [case.status]
        seen = await pump.seen(message.id)
        assert (seen.status, seen.entry.lease_until) == (case.status, None)
        line, reason = seen.lines[-1], getattr(case.outcome, "reason", None)
        assert (line.from_status, line.to_status, line.version) == (
            OutgoingStatus.SENDING,
            case.status,
            3,
        )
        assert (line.actor, line.reason) == ("worker-1", reason)
        assert near(line.at, await harness.now())
        assert seen.entry.reason == reason
        assert seen.entry.claim_token == claimed.claim_token

    @each_case
    async def test_an_outcome_leaves_its_attempt(self, harness: StoreHarness, case: Case) -> None:
        """All of what is known about the call; a call that was never made leaves none."""
        pump = Pump(harness, broadcast=BROADCAST)
        message = await pump.message()
        claimed = await pump.claim_one(account="mail-1")
        details = {"content_hash": HASH, "latency_ms": LATENCY_MS} if case.attempt else {}
        await pump.record(case.outcome, claimed, delay=DELAY, final=case.final, **details)
        seen = await pump.seen(message.id)
        if case.attempt is None:
            assert seen.attempts == []
            return
        (attempt,) = seen.attempts
        assert (attempt.attempt, attempt.status, attempt.claim_token, attempt.account) == (
            1,
            case.attempt,
            claimed.claim_token,
            "mail-1",
        )
        assert (attempt.reason, attempt.provider_message_id) == (
            getattr(case.outcome, "reason", None),
            getattr(case.outcome, "provider_message_id", None),
        )
        assert (attempt.content_hash, attempt.latency_ms) == (HASH, LATENCY_MS)
        assert (attempt.correlation_id, attempt.traceparent) == (claimed.correlation_id, "00-trace")
        assert near(attempt.at, await harness.now())

    @each_case
    async def test_recording_the_same_result_again_changes_nothing(self, harness: StoreHarness, case: Case) -> None:
        """The first call was committed but its answer was lost, so the worker calls again."""
        pump = Pump(harness, broadcast=BROADCAST)
        message = await pump.message()
        claimed = await pump.claim_one()
        how = {"delay": DELAY, "final": case.final, "content_hash": HASH}
        await pump.record(case.outcome, claimed, **how)
        before = await pump.seen(message.id)
        if harness.clock is not None:
            await harness.elapse(timedelta(seconds=5))
        await pump.record(case.outcome, claimed, **how)
        assert await pump.seen(message.id) == before

    @each_case
    async def test_a_result_for_another_row_or_bucket_or_under_a_token_of_nobody_moves_nothing(
        self, harness: StoreHarness, case: Case
    ) -> None:
        """Nor does it open a case: a token never given out, a row never claimed, an id that does not exist."""
        pump = Pump(harness, broadcast=BROADCAST)
        waiting = await pump.message(2, due_at=await harness.now() + timedelta(hours=1))
        await pump.message(1)
        claimed = await pump.claim_one()
        strangers = [
            msgspec.structs.replace(claimed, id=waiting.id or 0),
            msgspec.structs.replace(claimed, bucket=claimed.bucket + 1),
        ]
        before = await pump.seen(waiting.id), await pump.seen(claimed.id)
        for stranger in strangers:
            await pump.record(case.outcome, stranger, delay=DELAY, final=case.final)
        nobody = result(msgspec.structs.replace(claimed, id=2**40), case.outcome)
        await harness.store.record_outgoing([nobody], actor="worker-1")
        assert (await pump.seen(waiting.id), await pump.seen(claimed.id)) == before
        assert await harness.rows(harness.tenant_id, SupportCase) == []

    async def test_an_accepted_call_leaves_the_providers_id_and_the_content_on_the_row(
        self, harness: StoreHarness
    ) -> None:
        """F-32: some give no id, and it is accepted all the same."""
        pump = Pump(harness, broadcast=BROADCAST)
        messages = [await pump.message(1), await pump.message(2)]
        first, second = await pump.claim()
        await pump.record(Accepted(provider_message_id="p-1"), first, content_hash=HASH)
        await pump.record(Accepted(), second)
        entries = [(await pump.seen(message.id)).entry for message in messages]
        assert [(entry.provider_message_id, entry.content_hash) for entry in entries] == [("p-1", HASH), (None, None)]

    @pytest.mark.parametrize("case", [CASES[1], CASES[3], CASES[7]], ids=str)
    async def test_a_row_that_comes_back_waits_for_its_delay(self, harness: StoreHarness, case: Case) -> None:
        """And is claimed again after it, by any worker."""
        pump = Pump(harness, broadcast=BROADCAST)
        message = await pump.message()
        await pump.record(case.outcome, await pump.claim_one(), delay=DELAY)
        assert near((await pump.seen(message.id)).entry.due_at, await harness.now() + DELAY)
        assert await Pump(harness).claim() == []
        await harness.elapse(DELAY + timedelta(seconds=1))
        claimed = await Pump(harness, actor="worker-2").claim_one()
        assert claimed.id == message.id
        assert claimed.attempts == (1 if case.attempt is None else 2)

    async def test_a_retry_carries_the_hash_of_what_was_sent_first(self, harness: StoreHarness) -> None:
        """I-15: a retry sends the same bytes or nothing, so the first hash is kept."""
        pump = Pump(harness, broadcast=BROADCAST)
        await pump.message()
        await pump.record(Deferred(reason="busy"), await pump.claim_one(), content_hash=HASH)
        again = await pump.claim_one()
        assert again.content_hash == HASH
        await pump.record(Accepted(), again, content_hash="k1:" + "cd" * 32)
        assert (await pump.seen(again.id)).entry.content_hash == HASH

    async def test_an_attempt_that_was_not_called_is_not_counted(self, harness: StoreHarness) -> None:
        """However often that happens, calls that were made are numbered without a gap."""
        pump = Pump(harness, broadcast=BROADCAST)
        message = await pump.message()
        for outcome in (NotCalled(reason="a"), Deferred(reason="b"), NotCalled(reason="c"), Accepted()):
            await pump.record(outcome, await pump.claim_one())
        seen = await pump.seen(message.id)
        assert seen.entry.attempts == 2
        assert [(one.attempt, one.status) for one in seen.attempts] == [
            (1, AttemptStatus.DEFERRED),
            (2, AttemptStatus.ACCEPTED),
        ]

    async def test_a_row_that_is_never_called_opens_a_case(self, harness: StoreHarness) -> None:
        """The case names the message. The bound is the caller's; a retry by a person starts the count again."""
        pump = Pump(harness, broadcast=BROADCAST)
        message = await pump.message()
        for times in range(NOT_CALLED_MAX + 1):
            claimed = await pump.claim_one()
            assert claimed.not_called == times
            assert await pump.record(NotCalled(reason="not ready"), claimed) == [OutgoingStatus.RETRY_READY]
        assert await harness.store.list_support_cases(harness.tenant_id) == []
        never = NotCalled(reason="not ready", leads_to=OutgoingStatus.FAILED_FINAL)
        assert await pump.record(never, await pump.claim_one()) == [OutgoingStatus.FAILED_FINAL]
        seen = await pump.seen(message.id)
        assert (seen.entry.attempts, seen.attempts, seen.entry.reason) == (0, [], "not ready")
        (case,) = await harness.store.list_support_cases(harness.tenant_id)
        assert (case.kind, case.record, case.correlation_id) == (
            SupportKind.DEAD_LETTER,
            "OutgoingMessage",
            message.correlation_id,
        )
        assert await harness.store.retry_outgoing(
            harness.tenant_id, message.id or 0, version=seen.message.version, actor="sam", reason="mended"
        )
        assert (await pump.claim_one()).not_called == 0

    async def test_what_was_not_called_for_no_reason_of_its_own_is_not_held_against_it(
        self, harness: StoreHarness
    ) -> None:
        """Nor is its attempt counted, and what was counted before stays so."""
        pump = Pump(harness, broadcast=BROADCAST)
        message = await pump.message()
        await pump.record(NotCalled(reason="not ready"), await pump.claim_one())
        for _ in range(NOT_CALLED_MAX):
            claimed = await pump.claim_one()
            assert (claimed.not_called, claimed.attempts) == (1, 1)
            outcome = NotCalled(reason="no time was left", counts=False)
            assert await pump.record(outcome, claimed) == [OutgoingStatus.RETRY_READY]
        await pump.record(NotCalled(reason="not ready"), await pump.claim_one())
        seen = await pump.seen(message.id)
        assert (seen.entry.not_called, seen.entry.attempts, seen.attempts) == (2, 0, [])

    async def test_what_can_never_be_called_with_ends_without_an_attempt(self, harness: StoreHarness) -> None:
        """No call was made, so none is written; the job's messages are one case."""
        pump = Pump(harness, broadcast=BROADCAST)
        messages = await pump.campaign(2)
        outcome = NotCalled(reason="cannot be merged", leads_to=OutgoingStatus.FAILED_FINAL)
        assert await pump.record(outcome, *await pump.claim()) == [OutgoingStatus.FAILED_FINAL] * 2
        for message in messages:
            seen = await pump.seen(message.id)
            assert (seen.entry.attempts, seen.attempts, seen.entry.reason) == (0, [], "cannot be merged")
        (case,) = await harness.store.list_support_cases(harness.tenant_id)
        assert (case.kind, case.record, case.seen_count) == (SupportKind.DEAD_LETTER, "OutgoingMessage", 2)
        await pump.check()

    async def test_messages_whose_attempts_are_used_up_are_one_case_of_their_account(
        self, harness: StoreHarness
    ) -> None:
        """A dead letter: somebody should look at the account, or send them again."""
        pump = Pump(harness, broadcast=BROADCAST)
        messages = await pump.campaign(2)
        claims = await pump.claim(account="mail-1")
        assert await pump.record(Deferred(reason="busy"), *claims, final=True) == [OutgoingStatus.FAILED_FINAL] * 2
        (case,) = await harness.store.list_support_cases(harness.tenant_id)
        assert (case.kind, case.record, case.seen_count) == (SupportKind.DEAD_LETTER, "ProviderAccount", 2)
        assert "mail-1" in case.record_key
        assert any(str(message.message_id) in case.details for message in messages)

    @pytest.mark.parametrize("outcome", [Accepted(), Refused(reason="no"), Unknown(reason="lost")])
    async def test_only_a_call_that_would_be_repeated_is_given_up(
        self, harness: StoreHarness, outcome: CallOutcome
    ) -> None:
        """`final` says that no attempt is left. A call that was accepted, refused or lost would not be repeated."""
        pump = Pump(harness, broadcast=BROADCAST)
        await pump.message()
        await pump.record(outcome, await pump.claim_one(), final=True)
        assert list(await harness.store.list_support_cases(harness.tenant_id)) == []

    async def test_a_refusal_of_a_replay_leaves_the_first_call_uncertain(self, harness: StoreHarness) -> None:
        """The refusal is about the second call: the provider may have refused it because it took the first."""
        pump = Pump(harness, broadcast=BROADCAST)
        message = await pump.message()
        await pump.record(Unknown(reason="lost"), await pump.claim_one())
        await replay(harness, message)
        refusal = Refused(reason="554 duplicate message")
        assert await pump.record(refusal, await pump.claim_one()) == [OutgoingStatus.UNCERTAIN]
        seen = await pump.seen(message.id)
        assert (seen.entry.settle_at, seen.entry.reason) == (None, "554 duplicate message")
        assert [one.status for one in seen.attempts] == [AttemptStatus.UNKNOWN, AttemptStatus.REFUSED]
        await pump.check()

    async def test_a_row_with_an_unknown_call_that_is_given_up_rests_uncertain(self, harness: StoreHarness) -> None:
        """Nobody can say that it was not sent, so nothing may say `FailedFinal`; nobody replays it by itself either."""
        pump = Pump(harness, broadcast=BROADCAST)
        message = await pump.message()
        await pump.record(Unknown(reason="lost"), await pump.claim_one())
        await replay(harness, message)
        outcome = NotCalled(reason="not ready", leads_to=OutgoingStatus.FAILED_FINAL)
        assert await pump.record(outcome, await pump.claim_one()) == [OutgoingStatus.UNCERTAIN]
        seen = await pump.seen(message.id)
        assert (seen.entry.settle_at, seen.entry.attempts, len(seen.attempts)) == (None, 1, 1)
        await pump.check()

    async def test_a_last_deferral_leaves_a_row_with_an_unknown_call_uncertain(self, harness: StoreHarness) -> None:
        """The same where attempts are used up."""
        pump = Pump(harness, broadcast=BROADCAST)
        message = await pump.message()
        await pump.record(Unknown(reason="lost"), await pump.claim_one())
        await replay(harness, message)
        assert await pump.record(Deferred(reason="busy"), await pump.claim_one(), final=True) == [
            OutgoingStatus.UNCERTAIN
        ]
        assert (await pump.seen(message.id)).entry.settle_at is None

    async def test_a_replay_that_came_too_late_is_uncertain_again_without_an_attempt(
        self, harness: StoreHarness
    ) -> None:
        """I-10: no call was made, and the row is judged once more."""
        pump = Pump(harness, broadcast=BROADCAST)
        message = await pump.message()
        await pump.record(Unknown(reason="lost"), await pump.claim_one())
        await replay(harness, message)
        outcome = NotCalled(reason="too late", leads_to=OutgoingStatus.UNCERTAIN)
        assert await pump.record(outcome, await pump.claim_one()) == [OutgoingStatus.UNCERTAIN]
        seen = await pump.seen(message.id)
        assert (seen.entry.attempts, len(seen.attempts), seen.entry.reason) == (1, 1, "too late")
        (send,) = await harness.store.find_uncertain(accounts=ACCOUNTS, limit=10)
        assert (send.id, send.attempts) == (message.id, 1)
        await pump.check()

    async def test_a_faulty_account_is_one_case_however_many_rows_find_it(self, harness: StoreHarness) -> None:
        """The case belongs to the account: the next row raises its count. Another account has another case."""
        pump = Pump(harness, broadcast=BROADCAST)
        await pump.campaign(3)
        claims = await pump.claim(account="mail-1")
        await pump.record(Misconfigured(reason="bad password"), *claims, delay=timedelta(0))
        (case,) = await harness.store.list_support_cases(harness.tenant_id)
        assert (case.kind, case.status, case.seen_count) == (SupportKind.MISCONFIGURATION, SupportStatus.OPEN, 3)
        assert "mail-1" in case.record_key
        assert "bad password" in case.details
        again = await pump.claim(account="mail-2", quota=1)
        await pump.record(Misconfigured(reason="no sender"), *again)
        assert len(await harness.store.list_support_cases(harness.tenant_id)) == 2

    async def test_results_of_many_rows_are_recorded_together(self, harness: StoreHarness) -> None:
        """Each to its own state, whatever their order."""
        pump = Pump(harness, broadcast=BROADCAST)
        messages = await pump.campaign(len(CASES))
        claims = {one.id: one for one in await pump.claim()}
        results = [
            result(claims[message.id or 0], case.outcome, final=case.final, delay=DELAY)
            for message, case in zip(messages, CASES, strict=True)
        ]
        await harness.store.record_outgoing(results[::-1], actor="worker-1")
        await pump.check()
        assert [await pump.status(message) for message in messages] == [case.status for case in CASES]
        await harness.store.record_outgoing([], actor="worker-1")

    async def test_reasons_that_are_told_apart_are_counted_apart(self, harness: StoreHarness) -> None:
        """A row counts as throttled while it waits for its retry, and as recipient-not-found once it has failed."""
        pump = Pump(harness, broadcast=BROADCAST)
        await pump.campaign(3)
        first, second, third = await pump.claim()
        await pump.record(Deferred(reason="429", throttled=True), first, delay=DELAY)
        await pump.record(Deferred(reason="503"), second, delay=DELAY)
        await pump.record(Refused(reason="404", recipient_not_found=True), third)
        assert await _counts(harness) == {
            (OutgoingStatus.RETRY_READY, ReasonClass.THROTTLED): 1,
            (OutgoingStatus.RETRY_READY, ""): 1,
            (OutgoingStatus.FAILED_FINAL, ReasonClass.RECIPIENT_NOT_FOUND): 1,
        }
        await harness.elapse(DELAY + timedelta(seconds=1))
        await pump.record(Accepted(), *await pump.claim())
        assert await _counts(harness) == {
            (OutgoingStatus.SENT_TO_PROVIDER, ""): 2,
            (OutgoingStatus.FAILED_FINAL, ReasonClass.RECIPIENT_NOT_FOUND): 1,
        }

    async def test_a_result_under_an_unknown_token_does_not_end_a_claim(self, harness: StoreHarness) -> None:
        """Nor is anything but an acceptance taken for evidence."""
        pump = Pump(harness, broadcast=BROADCAST)
        await pump.message()
        claimed = await pump.claim_one()
        stranger = other_token(claimed, guid(1, "stranger"))
        for outcome in (Refused(reason="no"), Deferred(reason="later"), Unknown(reason="lost"), NotCalled(reason="x")):
            assert await pump.record(outcome, stranger) == [OutgoingStatus.SENDING]
        seen = await pump.seen(claimed.id)
        assert (seen.status, seen.attempts, seen.entry.attempts) == (OutgoingStatus.SENDING, [], 1)
        assert near(seen.entry.lease_until, await harness.now() + LEASE)


async def _counts(harness: StoreHarness) -> dict[tuple[str, str], int]:
    """Read the counters that are not nought."""
    counts = await harness.rows(harness.tenant_id, FlowCount)
    return {(one.status, one.reason_class): one.n for one in counts if one.n}
