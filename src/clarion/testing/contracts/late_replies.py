"""Late replies: what a call came to is never lost, and never taken for more than it proves (F-31, F-36, F-37)."""

from typing import Final

import msgspec
import pytest

from clarion.domain.attempt import AttemptStatus
from clarion.domain.call import Accepted, CallOutcome, Deferred, Misconfigured, NotCalled, Refused, Unknown
from clarion.domain.claim import ClaimedMessage, Settlement
from clarion.domain.outgoing import OutgoingMessage, OutgoingStatus
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.contracts.pump import ACCOUNTS, BROADCAST, Pump, near

# What a reply that proves that nothing was sent makes of an uncertain row.
PROVEN: Final[tuple[tuple[CallOutcome, bool, OutgoingStatus], ...]] = (
    (Refused(reason="no"), False, OutgoingStatus.FAILED_FINAL),
    (Deferred(reason="later"), False, OutgoingStatus.RETRY_READY),
    (Deferred(reason="later"), True, OutgoingStatus.FAILED_FINAL),
    (Misconfigured(reason="bad password"), False, OutgoingStatus.RETRY_READY),
    (NotCalled(reason="not ready"), False, OutgoingStatus.RETRY_READY),
)
each_proof = pytest.mark.parametrize(
    "outcome, final, status", PROVEN, ids=["refused", "deferred", "used-up", "misconfigured", "not-called"]
)
NO_EVIDENCE: Final[tuple[CallOutcome, ...]] = (
    Refused(reason="no"),
    Deferred(reason="later"),
    Misconfigured(reason="bad password"),
    NotCalled(reason="not ready"),
    Unknown(reason="lost"),
)

REPLIES: Final[tuple[CallOutcome, ...]] = (
    Accepted(provider_message_id="p-1"),
    *NO_EVIDENCE,
    NotCalled(reason="too late", leads_to=OutgoingStatus.UNCERTAIN),
    NotCalled(reason="never", leads_to=OutgoingStatus.FAILED_FINAL),
)


async def replay(harness: StoreHarness, message: OutgoingMessage) -> None:
    """Let an uncertain row be sent again."""
    (send,) = [
        send for send in await harness.store.find_uncertain(accounts=ACCOUNTS, limit=10) if send.id == message.id
    ]
    settlement = Settlement(id=send.id, bucket=send.bucket, version=send.version, replay=True, reason="again")
    assert await harness.store.settle_uncertain([settlement], actor="settle") == {send.id}


async def make_overtaken(harness: StoreHarness, pump: Pump) -> tuple[OutgoingMessage, ClaimedMessage, ClaimedMessage]:
    """Store a row that was rescued, replayed and claimed again; give the lost claim and the one that stands."""
    message = await pump.message()
    lost = await pump.claim_one()
    assert await pump.rescue() == 1
    await replay(harness, message)
    return message, lost, await pump.claim_one()


class LateReplyContract:
    """Replies that find their row elsewhere."""

    @pytest.mark.parametrize("rescued", [False, True], ids=["unknown", "rescued"])
    async def test_a_late_acceptance_settles_an_uncertain_send(self, harness: StoreHarness, rescued: bool) -> None:
        """Unknown and then accepted under one token: the row is sent, its attempt accepted."""
        pump = Pump(harness, broadcast=BROADCAST)
        message = await pump.message()
        claimed = await pump.claim_one()
        if rescued:
            assert await pump.rescue() == 1
        else:
            await pump.record(Unknown(reason="lost"), claimed)
        late = await pump.record(Accepted(provider_message_id="p-1"), claimed, latency_ms=70_000)
        assert late == [OutgoingStatus.SENT_TO_PROVIDER]
        seen = await pump.seen(message.id)
        assert seen.way[-2:] == [OutgoingStatus.UNCERTAIN, OutgoingStatus.SENT_TO_PROVIDER]
        assert (seen.entry.provider_message_id, seen.entry.settle_at) == ("p-1", None)
        (attempt,) = seen.attempts
        assert (attempt.status, attempt.provider_message_id, attempt.latency_ms) == (
            AttemptStatus.ACCEPTED,
            "p-1",
            70_000,
        )
        assert await harness.store.find_uncertain(accounts=ACCOUNTS, limit=10) == []

    @each_proof
    async def test_a_late_reply_that_proves_that_nothing_was_sent_ends_the_uncertainty(
        self, harness: StoreHarness, outcome: CallOutcome, final: bool, status: OutgoingStatus
    ) -> None:
        """Rescued too early, or only slow: no attempt stays unknown, and nothing stays uncertain."""
        pump = Pump(harness, broadcast=BROADCAST)
        message = await pump.message()
        claimed = await pump.claim_one()
        await pump.rescue()
        assert await pump.record(outcome, claimed, final=final) == [status]
        seen = await pump.seen(message.id)
        assert (seen.status, seen.entry.settle_at, seen.entry.reason) == (status, None, outcome.reason)  # type: ignore[union-attr]  # each of them has one
        assert AttemptStatus.UNKNOWN not in [one.status for one in seen.attempts]
        assert await harness.store.find_uncertain(accounts=ACCOUNTS, limit=10) == []

    @pytest.mark.parametrize("outcome", [Deferred(reason="later"), NotCalled(reason="x")], ids=["deferred", "not"])
    async def test_a_row_that_was_proven_unsent_is_sent_as_if_it_had_never_been_uncertain(
        self, harness: StoreHarness, outcome: CallOutcome
    ) -> None:
        """F-28: a refused attempt opens no window; the next one is accepted under a number of its own."""
        pump = Pump(harness, broadcast=BROADCAST)
        message = await pump.message()
        claimed = await pump.claim_one()
        await pump.rescue()
        await pump.record(outcome, claimed)
        again = await pump.claim_one()
        assert (again.id, again.unknown_for) == (message.id, None)
        assert await pump.record(Accepted(), again) == [OutgoingStatus.SENT_TO_PROVIDER]
        seen = await pump.seen(message.id)
        assert [one.status for one in seen.attempts if one.claim_token == again.claim_token] == [AttemptStatus.ACCEPTED]

    async def test_an_unknown_outcome_after_the_rescue_changes_nothing(self, harness: StoreHarness) -> None:
        """The row is uncertain already."""
        pump = Pump(harness, broadcast=BROADCAST)
        message = await pump.message()
        claimed = await pump.claim_one()
        await pump.rescue()
        before = await pump.seen(message.id)
        await pump.record(Unknown(reason="lost"), claimed)
        after = await pump.seen(message.id)
        assert (after.message, after.lines) == (before.message, before.lines)
        assert [one.status for one in after.attempts] == [AttemptStatus.UNKNOWN]

    async def test_an_acceptance_under_an_older_token_is_evidence(self, harness: StoreHarness) -> None:
        """The row is sent though another claim holds it, whose token stays; its own attempt is the one settled."""
        pump = Pump(harness, broadcast=BROADCAST)
        message, lost, present = await make_overtaken(harness, pump)
        assert await pump.record(Accepted(provider_message_id="p-1"), lost) == [OutgoingStatus.SENT_TO_PROVIDER]
        seen = await pump.seen(message.id)
        assert (seen.entry.claim_token, seen.entry.provider_message_id) == (present.claim_token, "p-1")
        assert [(one.attempt, one.status) for one in seen.attempts] == [(1, AttemptStatus.ACCEPTED)]

    @pytest.mark.parametrize("outcome", [*NO_EVIDENCE, Accepted(provider_message_id="p-2")], ids=repr)
    async def test_after_such_evidence_the_present_claims_result_only_writes_its_attempt(
        self, harness: StoreHarness, outcome: CallOutcome
    ) -> None:
        """Whatever the result is, the row stays sent and keeps the id of the first acceptance."""
        pump = Pump(harness, broadcast=BROADCAST)
        message, lost, present = await make_overtaken(harness, pump)
        await pump.record(Accepted(provider_message_id="p-1"), lost)
        await pump.record(outcome, present, latency_ms=5)
        seen = await pump.seen(message.id)
        assert (seen.status, seen.entry.provider_message_id) == (OutgoingStatus.SENT_TO_PROVIDER, "p-1")
        assert seen.attempts[0].status is AttemptStatus.ACCEPTED
        own = [one for one in seen.attempts if one.claim_token == present.claim_token]
        assert len(own) == (0 if isinstance(outcome, NotCalled) else 1)
        assert all(one.latency_ms == 5 for one in own)
        accepted = [one for one in own if one.status is AttemptStatus.ACCEPTED]
        assert len(accepted) == isinstance(outcome, Accepted)  # what was sent first says nothing of this call

    @pytest.mark.parametrize("outcome", NO_EVIDENCE, ids=repr)
    async def test_anything_else_under_an_older_token_only_settles_its_own_attempt(
        self, harness: StoreHarness, outcome: CallOutcome
    ) -> None:
        """F-37: the claim that stands is not disturbed."""
        pump = Pump(harness, broadcast=BROADCAST)
        message, lost, present = await make_overtaken(harness, pump)
        before = await pump.seen(message.id)
        assert await pump.record(outcome, lost) == [OutgoingStatus.SENDING]
        seen = await pump.seen(message.id)
        assert (seen.message, seen.entry, seen.lines) == (before.message, before.entry, before.lines)
        left = [one.status for one in seen.attempts if one.claim_token == lost.claim_token]
        assert (AttemptStatus.UNKNOWN in left) == isinstance(outcome, Unknown)
        assert AttemptStatus.ACCEPTED not in left
        assert await pump.record(Accepted(), present) == [OutgoingStatus.SENT_TO_PROVIDER]

    async def test_an_acceptance_that_comes_while_the_row_waits_for_its_replay_is_evidence(
        self, harness: StoreHarness
    ) -> None:
        """I-09: then it is not sent again."""
        pump = Pump(harness, broadcast=BROADCAST)
        message = await pump.message()
        lost = await pump.claim_one()
        await pump.rescue()
        await replay(harness, message)
        assert await pump.record(Accepted(), lost) == [OutgoingStatus.SENT_TO_PROVIDER]
        assert await pump.claim() == []

    async def test_an_acceptance_under_the_first_of_many_tokens_settles_its_own_attempt(
        self, harness: StoreHarness
    ) -> None:
        """Two attempts are unknown, and the reply proves the first."""
        pump = Pump(harness, broadcast=BROADCAST)
        message, lost, present = await make_overtaken(harness, pump)
        await pump.record(Unknown(reason="lost again"), present)
        await pump.record(Accepted(), lost)
        seen = await pump.seen(message.id)
        assert seen.status is OutgoingStatus.SENT_TO_PROVIDER
        assert [(one.attempt, one.status) for one in seen.attempts] == [
            (1, AttemptStatus.ACCEPTED),
            (2, AttemptStatus.UNKNOWN),
        ]

    async def test_a_refusal_of_one_of_two_uncertain_attempts_leaves_the_other_uncertain(
        self, harness: StoreHarness
    ) -> None:
        """Its window is still counted from the first attempt that is not proven refused."""
        pump = Pump(harness, broadcast=BROADCAST)
        message, _, present = await make_overtaken(harness, pump)
        first_unknown_at = (await pump.seen(message.id)).entry.first_unknown_at
        await pump.record(Deferred(reason="later"), present)
        again = await pump.claim_one()
        assert (again.id, again.account) == (message.id, present.account)
        assert again.unknown_for is not None
        assert near(first_unknown_at, await harness.now() - again.unknown_for)
        assert (await pump.seen(message.id)).entry.first_unknown_at == first_unknown_at

    @pytest.mark.parametrize("final", [False, True], ids=["", "used-up"])
    @pytest.mark.parametrize("outcome", REPLIES, ids=repr)
    async def test_a_result_that_is_recorded_twice_is_recorded_once(
        self, harness: StoreHarness, outcome: CallOutcome, final: bool
    ) -> None:
        """F-36: whoever did not hear that its results were stored records them again, also of an uncertain row."""
        pump = Pump(harness, broadcast=BROADCAST)
        message, _, present = await make_overtaken(harness, pump)
        status = await pump.record(outcome, present, final=final)
        before = await pump.seen(message.id)
        assert await pump.record(outcome, present, final=final) == status
        assert await pump.seen(message.id) == before

    @pytest.mark.parametrize("outcome", [Accepted(), *NO_EVIDENCE], ids=repr)
    async def test_a_canceled_row_that_was_never_sent_is_moved_by_no_reply(
        self, harness: StoreHarness, outcome: CallOutcome
    ) -> None:
        """A row without an attempt has nothing that a reply could be about."""
        pump = Pump(harness, broadcast=BROADCAST)
        await pump.message(1)
        claimed = await pump.claim_one()
        other = await pump.message(2)
        assert await harness.store.cancel_job(harness.tenant_id, (await pump.job(2)).guid, actor="sam")
        await harness.store.sweep_canceled(limit=10)
        before = await pump.seen(other.id)
        stray = msgspec.structs.replace(claimed, id=other.id or 0)
        assert await pump.record(outcome, stray) == [OutgoingStatus.CANCELED]
        assert await pump.seen(other.id) == before
