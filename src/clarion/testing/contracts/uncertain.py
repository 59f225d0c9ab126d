"""Uncertain sends: an expired claim is `Uncertain`, and is settled by a rule, by evidence or by a person."""

from datetime import timedelta
from typing import Final

import msgspec
import pytest

from clarion.domain.attempt import AttemptStatus
from clarion.domain.call import Accepted, CallOutcome, Deferred, NotCalled, Refused, Unknown
from clarion.domain.claim import FlowQuota, Settlement, UncertainSend
from clarion.domain.outgoing import OutgoingMessage, OutgoingStatus, UncertainPolicy
from clarion.domain.support import SupportCase, SupportKind
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.contracts.late_replies import replay
from clarion.testing.contracts.pump import ACCOUNT, ACCOUNTS, LEASE, Pump, near

HOUR: Final = timedelta(hours=1)
HARMLESS: Final = "replayed: the provider makes a second one harmless"


async def make_uncertain(pump: Pump, account: str = ACCOUNT, **fields: object) -> OutgoingMessage:
    """Store a row of which nobody knows whether it arrived."""
    message = await pump.message(**fields)  # type: ignore[arg-type]  # the row's fields, by name
    await pump.record(Unknown(reason="lost"), await pump.claim_one(account=account))
    assert await pump.status(message) is OutgoingStatus.UNCERTAIN
    return message


def settlement(send: UncertainSend, **fields: object) -> Settlement:
    """Make a settlement of an uncertain send."""
    plain = Settlement(id=send.id, bucket=send.bucket, version=send.version, replay=True, reason=HARMLESS)
    return msgspec.structs.replace(plain, **fields)


class UncertainContract:
    """Rows of which nobody knows whether they were sent."""

    async def test_a_row_in_flight_is_not_rescued_before_its_lease_ran_out(self, harness: StoreHarness) -> None:
        """I-19: the store's clock decides."""
        pump = Pump(harness)
        message = await pump.message()
        await pump.claim_one()
        assert await pump.rescue(after=LEASE - timedelta(seconds=20)) == 0
        assert await pump.status(message) is OutgoingStatus.SENDING

    async def test_an_expired_claim_becomes_uncertain_with_an_attempt_of_unknown_outcome(
        self, harness: StoreHarness
    ) -> None:
        """F-27, F-36: it may have been sent, so it is not tried again by itself."""
        pump = Pump(harness)
        message = await pump.message()
        claimed = await pump.claim_one(account="mail-1")
        assert await pump.rescue() == 1
        seen = await pump.seen(message.id)
        assert (seen.status, seen.entry.account, seen.entry.attempts) == (OutgoingStatus.UNCERTAIN, "mail-1", 1)
        assert seen.entry.reason
        assert seen.lines[-1].reason
        (attempt,) = seen.attempts
        assert (attempt.attempt, attempt.status, attempt.claim_token, attempt.account) == (
            1,
            AttemptStatus.UNKNOWN,
            claimed.claim_token,
            "mail-1",
        )
        assert await pump.claim() == []
        assert await pump.rescue() == 0

    async def test_a_rescue_takes_no_more_rows_than_asked_and_the_rest_next_time(self, harness: StoreHarness) -> None:
        """After many workers died at once; those still in their lease are left."""
        pump = Pump(harness)
        await pump.campaign(5)
        await pump.claim()
        await harness.elapse(LEASE + timedelta(seconds=1))
        await pump.message(9)
        await pump.claim()
        assert [await harness.store.rescue_outgoing(limit=2) for _ in range(4)] == [2, 2, 1, 0]
        await pump.check()

    async def test_an_uncertain_send_tells_what_a_decision_needs(self, harness: StoreHarness) -> None:
        """Account, policy, calls and replays so far, and since when by the store's clock."""
        pump = Pump(harness)
        message = await make_uncertain(
            pump, "mail-1", uncertain_policy=UncertainPolicy.PREFER_DUPLICATE, attempts_max=3
        )
        (send,) = await harness.store.find_uncertain(accounts=ACCOUNTS, limit=10)
        seen = await pump.seen(message.id)
        assert send == UncertainSend(
            id=message.id or 0,
            bucket=message.bucket,
            tenant_id=harness.tenant_id,
            version=seen.message.version,
            account="mail-1",
            message_id=message.message_id,
            channel=message.channel,
            attempts=1,
            attempts_max=3,
            unanswered=0,
            uncertain_policy=UncertainPolicy.PREFER_DUPLICATE,
            replays=0,
            unknown_for=send.unknown_for,
            is_over=False,
        )
        assert near(seen.entry.first_unknown_at, await harness.now() - send.unknown_for)

    async def test_an_uncertain_send_is_shown_only_to_those_who_serve_its_account(self, harness: StoreHarness) -> None:
        """I-10: whoever does not know what a provider promises must not judge by it."""
        pump = Pump(harness)
        message = await make_uncertain(pump, "mail-1")
        assert await harness.store.find_uncertain(accounts=("mail-2",), limit=10) == []
        assert await harness.store.find_uncertain(accounts=(), limit=10) == []
        (send,) = await harness.store.find_uncertain(accounts=("mail-2", "mail-1"), limit=10)
        assert send.id == message.id

    async def test_an_uncertain_send_counts_the_calls_that_were_not_answered(self, harness: StoreHarness) -> None:
        """A call whose worker died is not counted: nobody was left to wait for the answer."""
        pump = Pump(harness)
        message = await pump.message()
        await pump.claim_one()
        assert await pump.rescue() == 1
        await replay(harness, message)
        await pump.record(Unknown(reason="lost"), await pump.claim_one(), latency_ms=20_000)
        (send,) = await harness.store.find_uncertain(accounts=ACCOUNTS, limit=10)
        assert (send.attempts, send.unanswered) == (2, 1)

    async def test_an_uncertain_send_says_when_its_message_is_out_of_time(self, harness: StoreHarness) -> None:
        """Otherwise it would be replayed, and the claim would then refuse to send it."""
        pump = Pump(harness)
        await make_uncertain(pump, expires_at=await harness.now() + HOUR)
        (send,) = await harness.store.find_uncertain(accounts=ACCOUNTS, limit=10)
        assert not send.is_over
        await harness.elapse(2 * HOUR)
        (send,) = await harness.store.find_uncertain(accounts=ACCOUNTS, limit=10)
        assert send.is_over

    async def test_what_is_let_rest_opens_one_case_for_its_account(self, harness: StoreHarness) -> None:
        """However many messages it has; a replay opens none."""
        pump = Pump(harness)
        messages = [await make_uncertain(pump, "mail-1", job=n) for n in (1, 2, 3)]
        replayed, *resting = await harness.store.find_uncertain(accounts=ACCOUNTS, limit=10)
        settlements = [settlement(replayed), *[settlement(one, replay=False, reason="so be it") for one in resting]]
        await harness.store.settle_uncertain(settlements, actor="settle")
        (case,) = await harness.rows(harness.tenant_id, SupportCase)
        assert (case.kind, case.record, case.seen_count) == (SupportKind.UNCERTAIN, "ProviderAccount", 2)
        assert "mail-1" in case.record_key
        assert str(messages[-1].message_id) in case.details
        assert "so be it" in case.details

    async def test_the_window_of_an_uncertain_send_begins_with_its_call_and_not_with_its_rescue(
        self, harness: StoreHarness
    ) -> None:
        """All workers were down for an hour: the provider's window has run for that hour too (I-10)."""
        pump = Pump(harness)
        message = await pump.message()
        await pump.claim_one()
        assert await pump.rescue(after=HOUR) == 1
        seen = await pump.seen(message.id)
        (send,) = await harness.store.find_uncertain(accounts=ACCOUNTS, limit=10)
        assert near(seen.lines[0].at, await harness.now() - send.unknown_for)
        assert send.unknown_for >= HOUR - LEASE - timedelta(seconds=1)

    async def test_a_row_that_is_uncertain_again_keeps_the_first_time(self, harness: StoreHarness) -> None:
        """The window is counted from the first attempt that is not proven refused."""
        pump = Pump(harness)
        message = await make_uncertain(pump)
        first_at = (await pump.seen(message.id)).entry.first_unknown_at
        await replay(harness, message)
        if harness.clock is not None:
            await harness.elapse(timedelta(minutes=10))
        await pump.record(Unknown(reason="lost again"), await pump.claim_one())
        seen = await pump.seen(message.id)
        assert seen.entry.first_unknown_at == first_at is not None
        assert [one.status for one in seen.attempts] == [AttemptStatus.UNKNOWN] * 2

    async def test_uncertain_sends_are_found_oldest_first_and_no_more_than_asked(self, harness: StoreHarness) -> None:
        """Of all tenants; sent and failed rows are none."""
        pump = Pump(harness)
        messages = []
        for n in range(1, 4):
            messages.append(await make_uncertain(pump, job=n))
            await harness.elapse(timedelta(seconds=1))
        await pump.message(9)
        await pump.record(Accepted(), await pump.claim_one())
        assert [send.id for send in await harness.store.find_uncertain(accounts=ACCOUNTS, limit=2)] == [
            one.id for one in messages[:2]
        ]
        assert len(await harness.store.find_uncertain(accounts=ACCOUNTS, limit=10)) == 3

    async def test_a_replay_is_due_after_its_delay_and_only_through_the_same_account(
        self, harness: StoreHarness
    ) -> None:
        """F-35: another provider must not pick up what this one may have sent."""
        pump = Pump(harness)
        (message,) = await pump.campaign(1)
        (open_flow,) = await pump.heads()
        await pump.record(Unknown(reason="lost"), await pump.claim_one(account="mail-1"))
        (send,) = await harness.store.find_uncertain(accounts=ACCOUNTS, limit=10)
        settlements = [settlement(send, delay=timedelta(seconds=30))]
        assert await harness.store.settle_uncertain(settlements, actor="settle") == {message.id}
        await pump.check()
        seen = await pump.seen(message.id)
        line = seen.lines[-1]
        assert (line.to_status, line.actor, line.reason) == (OutgoingStatus.RETRY_READY, "settle", HARMLESS)
        assert near(seen.entry.due_at, await harness.now() + timedelta(seconds=30))
        assert await pump.heads() == []
        await harness.elapse(timedelta(seconds=31))
        (pinned,) = await pump.heads()
        assert (pinned.account, pinned.broadcast) == ("mail-1", open_flow.broadcast)
        for flow_id in (open_flow.flow_id, pinned.flow_id):
            assert await pump.take([FlowQuota(flow_id=flow_id, quota=9, account="mail-2")]) == []
        (again,) = await pump.take([FlowQuota(flow_id=pinned.flow_id, quota=9, account="mail-1")])
        assert (again.id, again.attempts) == (message.id, 2)
        assert again.unknown_for is not None
        first_at = (await pump.seen(message.id)).entry.first_unknown_at
        assert near(first_at, await harness.now() - again.unknown_for)

    @pytest.mark.parametrize("outcome", [Deferred(reason="later"), Unknown(reason="lost"), None], ids=repr)
    async def test_an_authorised_replay_is_authorised_for_one_call(
        self, harness: StoreHarness, outcome: CallOutcome | None
    ) -> None:
        """I-10: every call uses it up, even one whose worker died; a claim without a call does not."""
        pump = Pump(harness)
        message = await make_uncertain(pump)
        (send,) = await harness.store.find_uncertain(accounts=ACCOUNTS, limit=10)
        await harness.store.settle_uncertain([settlement(send, counts_as_duplicate=True)], actor="settle")
        for _ in range(2):
            claimed = await pump.claim_one()
            assert claimed.replay_authorised
            await pump.record(NotCalled(reason="not ready"), claimed)
        claimed = await pump.claim_one()
        assert claimed.replay_authorised
        if outcome is None:
            await pump.rescue()
        else:
            await pump.record(outcome, claimed)
        if await pump.status(message) is OutgoingStatus.UNCERTAIN:
            await replay(harness, message)
        assert not (await pump.claim_one()).replay_authorised

    async def test_a_replay_within_the_providers_window_is_not_authorised_beyond_it(
        self, harness: StoreHarness
    ) -> None:
        """I-10, F-33: the window is looked at again right before the call, and may have closed by then."""
        pump = Pump(harness)
        message = await make_uncertain(pump)
        await replay(harness, message)
        assert not (await pump.claim_one()).replay_authorised

    async def test_only_a_replay_that_may_be_a_duplicate_is_counted(self, harness: StoreHarness) -> None:
        """I-09: the one of `prefer_duplicate` is counted apart."""
        pump = Pump(harness)
        await make_uncertain(pump)
        counted = []
        for counts_as_duplicate in (False, True, False):
            (send,) = await harness.store.find_uncertain(accounts=ACCOUNTS, limit=10)
            counted.append(send.replays)
            again = settlement(send, counts_as_duplicate=counts_as_duplicate)
            await harness.store.settle_uncertain([again], actor="settle")
            await pump.record(Unknown(reason="lost again"), await pump.claim_one())
        (send,) = await harness.store.find_uncertain(accounts=ACCOUNTS, limit=10)
        assert [*counted, send.replays] == [0, 0, 1, 1]

    async def test_an_uncertain_send_that_is_left_to_rest_keeps_the_decision_and_is_asked_about_no_more(
        self, harness: StoreHarness
    ) -> None:
        """`prefer_loss`: it stays where it is, and its row and its timeline say who decided, when and why."""
        pump = Pump(harness)
        message = await make_uncertain(pump)
        (send,) = await harness.store.find_uncertain(accounts=ACCOUNTS, limit=10)
        rest = settlement(send, replay=False, reason="left as it is")
        assert await harness.store.settle_uncertain([rest], actor="settle") == {message.id}
        await pump.check()
        seen = await pump.seen(message.id)
        assert (seen.status, seen.entry.reason) == (OutgoingStatus.UNCERTAIN, "left as it is")
        assert seen.way[-2:] == [OutgoingStatus.UNCERTAIN] * 2
        line = seen.lines[-1]
        assert (line.actor, line.reason) == ("settle", "left as it is")
        assert near(line.at, await harness.now())
        assert await harness.store.find_uncertain(accounts=ACCOUNTS, limit=10) == []
        assert await pump.claim() == []

    async def test_an_uncertain_send_at_rest_is_still_settled_by_a_late_reply(self, harness: StoreHarness) -> None:
        """A late reply is evidence, and evidence settles a row whatever was decided before."""
        pump = Pump(harness)
        message = await pump.message()
        claimed = await pump.claim_one()
        await pump.rescue()
        (send,) = await harness.store.find_uncertain(accounts=ACCOUNTS, limit=10)
        await harness.store.settle_uncertain([settlement(send, replay=False)], actor="settle")
        assert await pump.record(Accepted(), claimed) == [OutgoingStatus.SENT_TO_PROVIDER]
        assert await pump.status(message) is OutgoingStatus.SENT_TO_PROVIDER

    async def test_a_settlement_of_a_row_that_has_moved_on_changes_nothing(self, harness: StoreHarness) -> None:
        """F-48: a worker was paused before it settled, or two settle at once. Other rows are still settled."""
        pump = Pump(harness)
        first = await pump.message(1)
        claimed = await pump.claim_one()
        await pump.record(Unknown(reason="lost"), claimed)
        second = await make_uncertain(pump, job=2)
        stale, fresh = await harness.store.find_uncertain(accounts=ACCOUNTS, limit=10)
        await pump.record(Accepted(), claimed)
        settlements = [settlement(stale), settlement(fresh), settlement(fresh, id=2**40)]
        assert await harness.store.settle_uncertain(settlements, actor="settle") == {second.id}
        assert await harness.store.settle_uncertain(settlements, actor="settle") == set()
        await pump.check()
        assert await pump.status(first) is OutgoingStatus.SENT_TO_PROVIDER
        assert await harness.store.settle_uncertain([], actor="settle") == set()

    async def test_a_settlement_of_an_earlier_uncertain_send_does_not_settle_the_present_one(
        self, harness: StoreHarness
    ) -> None:
        """F-48: replayed and lost again while the reconciler slept; its version says which uncertain send it judged."""
        pump = Pump(harness)
        message = await make_uncertain(pump)
        (first,) = await harness.store.find_uncertain(accounts=ACCOUNTS, limit=10)
        await replay(harness, message)
        await pump.record(Unknown(reason="lost again"), await pump.claim_one())
        for stale in (settlement(first), settlement(first, replay=False)):
            assert await harness.store.settle_uncertain([stale], actor="settle") == set()
        (second,) = await harness.store.find_uncertain(accounts=ACCOUNTS, limit=10)
        assert second.version > first.version
        assert await pump.status(message) is OutgoingStatus.UNCERTAIN


class RetryContract:
    """Retries that a person asks for."""

    @pytest.mark.parametrize("failed", [True, False], ids=["failed", "uncertain"])
    async def test_a_person_returns_a_failed_or_uncertain_row_to_be_sent_again(
        self, harness: StoreHarness, failed: bool
    ) -> None:
        """The same row is due at once, for one call; its line says who asked for it and why."""
        pump = Pump(harness)
        message = await pump.message()
        outcome = Refused(reason="no") if failed else Unknown(reason="lost")
        await pump.record(outcome, await pump.claim_one())
        version = (await pump.seen(message.id)).message.version
        retried = await harness.store.retry_outgoing(
            harness.tenant_id, message.id or 0, version=version, actor="sam", reason="the address was mended"
        )
        assert retried
        await pump.check()
        seen = await pump.seen(message.id)
        line = seen.lines[-1]
        assert (line.to_status, line.actor, line.reason) == (
            OutgoingStatus.RETRY_READY,
            "sam",
            "the address was mended",
        )
        assert await harness.store.find_uncertain(accounts=ACCOUNTS, limit=10) == []
        claimed = await pump.claim_one()
        assert (claimed.id, claimed.attempts, claimed.replay_authorised) == (message.id, 2, True)
        assert await pump.record(Accepted(), claimed) == [OutgoingStatus.SENT_TO_PROVIDER]

    async def test_a_double_click_is_one_retry(self, harness: StoreHarness) -> None:
        """F-51: the version is the token."""
        pump = Pump(harness)
        message = await pump.message()
        await pump.record(Refused(reason="no"), await pump.claim_one())
        version = (await pump.seen(message.id)).message.version
        clicks = [
            await harness.store.retry_outgoing(
                harness.tenant_id, message.id or 0, version=version, actor="sam", reason="again"
            )
            for _ in range(2)
        ]
        assert clicks == [True, False]
        assert len(await pump.claim()) == 1

    async def test_a_retry_of_a_row_that_has_moved_on_is_refused(self, harness: StoreHarness) -> None:
        """F-51: after evidence came, with an older version, from another tenant, or for a row that does not exist."""
        pump = Pump(harness)
        message = await pump.message()
        claimed = await pump.claim_one()
        await pump.record(Unknown(reason="lost"), claimed)
        version = (await pump.seen(message.id)).message.version
        word = {"actor": "sam", "reason": "again"}
        store, row = harness.store, message.id or 0
        assert not await store.retry_outgoing(harness.tenant_id, row, version=version - 1, **word)
        assert not await store.retry_outgoing(harness.tenant_id, row, version=version + 1, **word)
        assert not await store.retry_outgoing(f"{harness.tenant_id}-2", row, version=version, **word)
        assert not await store.retry_outgoing(harness.tenant_id, 2**40, version=version, **word)
        await pump.record(Accepted(), claimed)
        for present in (version, version + 1):
            assert not await store.retry_outgoing(harness.tenant_id, row, version=present, **word)
        assert await pump.status(message) is OutgoingStatus.SENT_TO_PROVIDER

    @pytest.mark.parametrize("claimed", [True, False], ids=["in-flight", "waiting"])
    async def test_what_is_on_its_way_cannot_be_retried(self, harness: StoreHarness, claimed: bool) -> None:
        """Only what failed or is uncertain."""
        pump = Pump(harness)
        message = await pump.message()
        if claimed:
            await pump.claim_one()
        version = (await pump.seen(message.id)).message.version
        assert not await harness.store.retry_outgoing(
            harness.tenant_id, message.id or 0, version=version, actor="sam", reason="again"
        )
