"""Claiming: flows with work are discovered and rows taken out of them, never more than asked, never one twice.

What is promised about the order of one recipient's rows is in `ordering`, gates and cancels are in `canceling`.
"""

import asyncio
from datetime import timedelta
from typing import Final

import msgspec
import pytest

from clarion.domain.address import AddressVersion
from clarion.domain.call import Accepted, Deferred, NotCalled, Unknown
from clarion.domain.claim import ClaimedMessage, FlowHead, FlowQuota, LowMark, Settlement
from clarion.domain.identity import Channel, Lane
from clarion.domain.outgoing import OutgoingStatus
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.contracts.pump import ACCOUNT, ACCOUNTS, LEASE, PAYLOAD, ROUTE, Pump, low_mark, near
from clarion.testing.factories import guid, person_version

HOUR: Final = timedelta(hours=1)


class ClaimContract:
    """Rows that go out."""

    async def test_a_claimed_row_is_sending_under_a_lease(self, harness: StoreHarness) -> None:
        """Principle 3: a committed change of state precedes the call."""
        pump = Pump(harness)
        message = await pump.message()
        claimed = await pump.claim_one(account="mail-1")
        seen = await pump.seen(message.id)
        assert (seen.status, seen.message.version) == (OutgoingStatus.SENDING, 2)
        entry = seen.entry
        assert (entry.due_at, entry.claim_token, entry.account, entry.attempts) == (
            None,
            claimed.claim_token,
            "mail-1",
            1,
        )
        assert near(entry.lease_until, await harness.now() + LEASE)
        (line,) = seen.lines
        assert (line.from_status, line.to_status, line.actor, line.version) == (
            OutgoingStatus.CREATED,
            OutgoingStatus.SENDING,
            "worker-1",
            2,
        )
        assert near(line.at, await harness.now())
        assert seen.attempts == []

    async def test_a_claim_carries_all_that_its_call_needs(self, harness: StoreHarness) -> None:
        """I-14: between the claim and the call nothing is read."""
        pump = Pump(harness)
        due_at = await harness.now() - timedelta(seconds=5)
        (version,) = await harness.store.ensure_person_versions(harness.tenant_id, [person_version(1)])
        message = await pump.message(
            due_at=due_at,
            attempt_no=2,
            attempts_max=3,
            person_version_id=version.record.id,
            locale="de-AT",
            tz_id="Europe/Vienna",
        )
        job, (address,) = await pump.job(), await harness.rows(harness.tenant_id, AddressVersion)
        (head,) = await pump.heads()
        claimed = await pump.claim_one()
        assert claimed == ClaimedMessage(
            id=message.id or 0,
            bucket=message.bucket,
            tenant_id=harness.tenant_id,
            flow_id=head.flow_id,
            message_id=message.message_id,
            channel=Channel.EMAIL,
            attempt_no=2,
            attempts=1,
            not_called=0,
            claim_token=claimed.claim_token,
            account=ACCOUNT,
            was_due_at=due_at,
            recipient_id_hash=address.recipient_id_hash,
            key_hash=address.key_hash,
            address_serial=1,
            ciphertext=address.ciphertext,
            job_guid=job.guid,
            event_type=job.event_type,
            template_key="welcome",
            template_version=2,
            payload=PAYLOAD,
            blob_hash=None,
            attempts_max=3,
            locale="de-AT",
            tz_id="Europe/Vienna",
            person_version_id=version.record.id,
            profile_hash=version.record.profile_hash,
            profile=version.record.profile,
            created_at=claimed.created_at,
            content_hash=None,
            replay_authorised=False,
            unknown_for=None,
            correlation_id=job.correlation_id,
            traceparent="00-trace",
        )
        assert near(claimed.created_at, await harness.now())

    async def test_a_campaigns_row_carries_what_its_messaging_job_says(self, harness: StoreHarness) -> None:
        """Its content lies in a blob, so there is no payload."""
        pump = Pump(harness)
        (message,) = await pump.campaign(1)
        claimed = await pump.claim_one()
        assert (str(claimed.job_guid), claimed.template_key, claimed.template_version, claimed.payload) == (
            message.pk,
            "newsletter",
            3,
            None,
        )

    async def test_flows_with_a_due_row_are_discovered_with_their_names(self, harness: StoreHarness) -> None:
        """Of the routes asked for only, each once however many rows it has."""
        pump = Pump(harness)
        for n in (1, 2, 3):
            await pump.message(n, lane=Lane.CRITICAL)
        await pump.message(4, route="sms:default")
        (sent,) = await pump.campaign(1)
        critical, campaign = await pump.heads()
        assert critical == FlowHead(
            flow_id=critical.flow_id,
            tenant_id=harness.tenant_id,
            lane=Lane.CRITICAL,
            route=ROUTE,
            broadcast="",
            account="",
        )
        assert (campaign.lane, campaign.broadcast) == (Lane.BULK, sent.pk)
        assert [head.route for head in await pump.heads("sms:default", "push:default")] == ["sms:default"]
        assert len(await pump.heads(ROUTE, "sms:default")) == 3
        assert (await harness.store.discover_flows(routes=(), lows={})).heads == ()

    async def test_a_flow_whose_rows_are_all_claimed_is_discovered_no_more(self, harness: StoreHarness) -> None:
        """And nothing is waiting then."""
        pump = Pump(harness)
        await pump.message()
        await pump.claim_one()
        found = await harness.store.discover_flows(routes=(ROUTE,), lows={})
        assert (found.heads, found.next_due_in) == ((), None)

    async def test_a_row_whose_time_has_not_come_is_neither_discovered_nor_claimed(self, harness: StoreHarness) -> None:
        """Not-before is a later due time; how long until then is told."""
        pump = Pump(harness)
        first = await pump.message(1)
        (head,) = await pump.heads()
        await pump.claim_one()
        later = await pump.message(2, due_at=await harness.now() + HOUR)
        found = await harness.store.discover_flows(routes=(ROUTE,), lows={})
        assert found.heads == ()
        assert found.next_due_in is not None
        assert HOUR - timedelta(minutes=1) < found.next_due_in <= HOUR
        assert await pump.take([FlowQuota(flow_id=head.flow_id, quota=9, account=ACCOUNT)]) == []
        await harness.elapse(HOUR + timedelta(seconds=1))
        assert [one.id for one in await pump.claim()] == [later.id]
        assert await pump.status(first) is OutgoingStatus.SENDING

    async def test_a_quota_is_never_exceeded_and_the_oldest_go_first(self, harness: StoreHarness) -> None:
        """By due time, not by the order in which they were made."""
        pump = Pump(harness)
        now = await harness.now()
        messages = {age: await pump.message(age, due_at=now - timedelta(seconds=age)) for age in (3, 9, 1, 7, 5)}
        assert [one.id for one in await pump.claim(quota=2)] == [messages[9].id, messages[7].id]
        assert await pump.claim(quota=0) == []
        assert [one.id for one in await pump.claim(quota=2)] == [messages[5].id, messages[3].id]
        assert [one.id for one in await pump.claim(quota=2)] == [messages[1].id]

    async def test_each_flow_has_its_own_quota_and_account(self, harness: StoreHarness) -> None:
        """In one claim."""
        pump = Pump(harness)
        for n in range(1, 5):
            await pump.message(n)
            await pump.message(n + 10, route="sms:default")
        mail, text = await pump.heads(ROUTE, "sms:default")
        quotas = [
            FlowQuota(flow_id=mail.flow_id, quota=1, account="mail-1"),
            FlowQuota(flow_id=text.flow_id, quota=3, account="text-1"),
            FlowQuota(flow_id=2**40, quota=3, account="nobody"),
        ]
        claimed = await pump.take(quotas)
        assert sorted((one.flow_id, one.account) for one in claimed) == sorted(
            [(mail.flow_id, "mail-1"), *[(text.flow_id, "text-1")] * 3]
        )
        assert await pump.take([]) == []

    async def test_rows_before_the_low_mark_are_passed_over(self, harness: StoreHarness) -> None:
        """A worker that knows what it took starts behind it; another one still finds the rest."""
        pump = Pump(harness)
        now = await harness.now()
        messages = [await pump.message(n, due_at=now - timedelta(seconds=60 - n)) for n in range(1, 7)]
        (head,) = await pump.heads()
        quota = FlowQuota(flow_id=head.flow_id, quota=2, account=ACCOUNT)
        first, second = await pump.take([quota])
        await pump.record(NotCalled(reason="not ready"), first)  # it is due again, later than all others
        behind = msgspec.structs.replace(quota, low=low_mark(second))
        assert [one.id for one in await pump.take([behind])] == [messages[2].id, messages[3].id]
        after_five = LowMark(due_at=now - timedelta(seconds=55), id=messages[4].id or 0)
        far = msgspec.structs.replace(quota, low=after_five)
        assert [one.id for one in await pump.take([far])] == [messages[5].id, messages[0].id]
        assert [one.id for one in await pump.take([quota])] == [messages[4].id]

    async def test_a_low_mark_tells_rows_due_at_the_same_instant_apart(self, harness: StoreHarness) -> None:
        """By their ids: a whole campaign is due at once."""
        pump = Pump(harness)
        due_at = await harness.now() - timedelta(seconds=5)
        messages = await pump.campaign(5, due_at=due_at)
        (head,) = await pump.heads()
        low = LowMark(due_at=due_at, id=messages[2].id or 0)
        assert await pump.heads(lows={head.flow_id: low}) == [head]
        claimed = await pump.take([FlowQuota(flow_id=head.flow_id, quota=9, account=ACCOUNT, low=low)])
        assert [one.id for one in claimed] == [messages[3].id, messages[4].id]
        last = LowMark(due_at=due_at, id=messages[4].id or 0)
        assert await pump.heads(lows={head.flow_id: last}) == []
        assert await pump.heads(lows={head.flow_id + 1: last}) == [head]

    async def test_two_claims_at_once_never_share_a_row(self, harness: StoreHarness) -> None:
        """F-26, I-08: every row goes out under one token."""
        pump = Pump(harness)
        await pump.campaign(30)
        (head,) = await pump.heads()
        quota = FlowQuota(flow_id=head.flow_id, quota=9, account=ACCOUNT)
        claims = await asyncio.gather(
            *(
                harness.store.claim_outgoing([quota], token=guid(n, "racing-token"), lease=LEASE, actor=f"worker-{n}")
                for n in range(4)
            )
        )
        taken = [one.id for claim in claims for one in claim]
        assert len(taken) == len(set(taken))
        rest = [one.id for one in await pump.claim()]
        assert len(taken) + len(rest) == 30
        assert not set(taken) & set(rest)

    @pytest.mark.parametrize("attempted", [False, True], ids=["new", "retried"])
    async def test_an_expired_row_is_never_sent(self, harness: StoreHarness, attempted: bool) -> None:
        """I-16: its time to live ended before the claim, and the row says so."""
        pump = Pump(harness)
        message = await pump.message(expires_at=await harness.now() + HOUR)
        if attempted:
            await pump.record(Deferred(reason="later"), await pump.claim_one())
        await harness.elapse(HOUR + timedelta(seconds=1))
        assert await pump.claim() == []
        seen = await pump.seen(message.id)
        assert seen.status is OutgoingStatus.EXPIRED
        assert seen.entry.reason
        assert (seen.lines[-1].actor, bool(seen.lines[-1].reason)) == ("worker-1", True)
        assert await pump.heads() == []

    async def test_an_expired_row_that_waits_for_a_replay_stays_uncertain(self, harness: StoreHarness) -> None:
        """Nobody can say that it was not sent, so nothing may say `Expired`."""
        pump = Pump(harness)
        message = await pump.message(expires_at=await harness.now() + HOUR)
        await pump.record(Unknown(reason="lost"), await pump.claim_one())
        (send,) = await harness.store.find_uncertain(accounts=ACCOUNTS, limit=10)
        settlement = Settlement(id=send.id, bucket=send.bucket, version=send.version, replay=True, reason="again")
        await harness.store.settle_uncertain([settlement], actor="settle")
        await harness.elapse(2 * HOUR)
        assert await pump.claim() == []
        seen = await pump.seen(message.id)
        assert (seen.status, seen.entry.due_at, seen.entry.settle_at) == (OutgoingStatus.UNCERTAIN, None, None)
        assert seen.lines[-1].reason == "its time ran out, and an earlier call may have arrived"
        await pump.check()

    async def test_a_row_that_has_not_expired_is_sent(self, harness: StoreHarness) -> None:
        """And one that expires while it is in flight is not touched."""
        pump = Pump(harness)
        message = await pump.message(expires_at=await harness.now() + timedelta(seconds=30))
        claimed = await pump.claim_one()
        await harness.elapse(timedelta(seconds=31))
        assert await pump.record(Accepted(), claimed) == [OutgoingStatus.SENT_TO_PROVIDER]
        assert (await pump.seen(message.id)).way[-1] is OutgoingStatus.SENT_TO_PROVIDER

    async def test_expired_rows_in_a_batch_do_not_hold_up_the_others(self, harness: StoreHarness) -> None:
        """One claim rules about all that it picked."""
        pump = Pump(harness)
        soon = await harness.now() + timedelta(seconds=30)
        messages = [await pump.message(n, expires_at=soon if n % 2 else None) for n in range(1, 7)]
        await harness.elapse(timedelta(seconds=31))
        assert [one.id for one in await pump.claim()] == [message.id for message in messages[1::2]]
        assert [await pump.status(message) for message in messages[::2]] == [OutgoingStatus.EXPIRED] * 3

    async def test_every_attempt_is_claimed_under_a_number_and_token_of_its_own(self, harness: StoreHarness) -> None:
        """A retry is the same row: same message, one more attempt."""
        pump = Pump(harness)
        message = await pump.message()
        claims = []
        for _ in range(3):
            claims.append(await pump.claim_one())
            await pump.record(Deferred(reason="busy"), claims[-1])
        assert [one.attempts for one in claims] == [1, 2, 3]
        assert {(one.id, one.message_id) for one in claims} == {(message.id, message.message_id)}
        assert len({one.claim_token for one in claims}) == 3
        assert [line.version for line in (await pump.seen(message.id)).lines] == [2, 3, 4, 5, 6, 7]

    async def test_rows_of_all_tenants_are_claimed_and_say_whose_they_are(self, harness: StoreHarness) -> None:
        """A flow is one tenant's."""
        pump = Pump(harness)
        await pump.message()
        theirs = f"{harness.tenant_id}-2"
        await Pump(harness, tenant_id=theirs).message()
        heads = await pump.heads()
        assert sorted(head.tenant_id for head in heads) == [harness.tenant_id, theirs]
        claimed = await pump.claim()
        assert {one.flow_id: one.tenant_id for one in claimed} == {head.flow_id: head.tenant_id for head in heads}
        assert len(claimed) == 2
