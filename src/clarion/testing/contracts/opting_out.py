"""What is suppressed when a claim comes is not called any more, however long it has been waiting (I-16).

How suppressions are kept is in `suppressing`; the order of the rules of a claim is the law of `domain.ruling`.
"""

from typing import Any, Final

import pytest

from clarion.domain.call import Accepted, Refused, Unknown
from clarion.domain.claim import Settlement
from clarion.domain.identity import Channel
from clarion.domain.outgoing import OutgoingMessage, OutgoingStatus, ReasonClass
from clarion.domain.suppression import IN_WORDS, Cause, Change, Suppression
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.contracts.pump import ACCOUNTS, BROADCAST, ORDER_KEY, Pump
from clarion.testing.factories import address_version

NEWS: Final[dict[str, Any]] = {"category": "news"}


def on_subject(subject: str, scope: str, cause: Cause = Cause.MANUAL) -> Suppression:
    """Make a suppression."""
    return Suppression(subject=subject, scope=scope, cause=cause)


class OptOutContract:
    """Who does not want it, or cannot get it, is not called."""

    async def suppress(self, harness: StoreHarness, n: int, scope: str, *, by: str = "recipient") -> None:
        """Suppress the n-th person, by who they are or by where they are reached."""
        of = address_version(n)
        subject = of.recipient_id_hash if by == "recipient" else of.destination_index
        await harness.store.put_suppressions(harness.tenant_id, [on_subject(subject, scope)], actor="sam")

    @pytest.mark.parametrize("by", ["recipient", "destination"])
    @pytest.mark.parametrize(
        "scope, category, is_stopped",
        [
            ("*", "news", True),
            ("*", None, True),
            ("news", "news", True),
            ("news", None, False),
            ("news", "offers", False),
            ("news", "newsroom", False),
            ("newsroom", "news", False),
            ("news:email", "news", True),
            ("news:email", None, False),
            ("news:sms", "news", False),
        ],
    )
    async def test_what_waits_is_stopped_by_what_applies_to_it(
        self, harness: StoreHarness, by: str, scope: str, category: str | None, is_stopped: bool
    ) -> None:
        """A required message, which has no category, by `*` alone; with a line that says why."""
        pump = Pump(harness, broadcast=BROADCAST)
        message = await pump.message(category=category)
        await self.suppress(harness, 1, scope, by=by)
        claimed = await pump.claim()
        seen = await pump.seen(message.id)
        if not is_stopped:
            assert [one.id for one in claimed] == [message.id]
            return
        assert claimed == []
        (line,) = seen.lines
        assert (line.to_status, line.actor, line.reason) == (
            OutgoingStatus.SUPPRESSED,
            "worker-1",
            IN_WORDS[Cause.MANUAL],
        )
        refused = "" if scope == "*" else ReasonClass.PREFERENCE
        assert (seen.entry.reason, seen.entry.reason_class, seen.entry.attempts) == (line.reason, refused, 0)

    async def test_others_are_sent_in_the_same_claim(self, harness: StoreHarness) -> None:
        """Whoever is suppressed holds up nobody, nor does a suppression of another tenant stop anybody."""
        pump = Pump(harness, broadcast=BROADCAST)
        messages = {n: await pump.message(n, **NEWS) for n in (1, 2, 3, 4)}
        await self.suppress(harness, 2, "news")
        await self.suppress(harness, 3, "*", by="destination")
        same = address_version(1)
        theirs = [on_subject(subject, "*") for subject in (same.destination_index, same.recipient_id_hash)]
        await harness.store.put_suppressions(f"{harness.tenant_id}-2", theirs, actor="sam")
        assert {one.id for one in await pump.claim()} == {messages[1].id, messages[4].id}
        assert [await pump.status(messages[n]) for n in (2, 3)] == [OutgoingStatus.SUPPRESSED] * 2

    async def test_what_is_lifted_before_the_claim_is_sent(self, harness: StoreHarness) -> None:
        """A preference that is on again has no row."""
        pump = Pump(harness)
        message = await pump.message(**NEWS)
        subject = address_version(1).recipient_id_hash
        for on in (False, True):
            change = Change(category="news", channel=Channel.EMAIL, on=on)
            await harness.store.set_preferences(harness.tenant_id, subject, [change], actor="recipient")
        assert [one.id for one in await pump.claim()] == [message.id]

    async def test_a_call_that_is_under_way_is_not_undone(self, harness: StoreHarness) -> None:
        """It was claimed before; what comes of it is recorded as ever."""
        pump = Pump(harness)
        await pump.message()
        claimed = await pump.claim_one()
        await self.suppress(harness, 1, "*")
        assert await pump.record(Accepted(provider_message_id="p"), claimed) == [OutgoingStatus.SENT_TO_PROVIDER]

    async def test_a_retry_by_hand_is_stopped_too(self, harness: StoreHarness) -> None:
        """A person may ask for it again, and the recipient has the last word."""
        pump = Pump(harness)
        message = await pump.message()
        await pump.record(Refused(reason="no"), await pump.claim_one())
        await self.suppress(harness, 1, "*")
        version = (await pump.seen(message.id)).message.version
        assert await harness.store.retry_outgoing(
            harness.tenant_id, message.id or 0, version=version, reason="again", actor="sam"
        )
        assert await pump.claim() == []
        assert await pump.status(message) is OutgoingStatus.SUPPRESSED

    async def uncertain(self, harness: StoreHarness, pump: Pump) -> OutgoingMessage:
        """Make a message with a call of which nobody knows, and suppress its recipient."""
        message = await pump.message(**NEWS)
        await pump.record(Unknown(reason="lost"), await pump.claim_one())
        await self.suppress(harness, 1, "news")
        return message

    async def test_a_replay_is_stopped_and_the_message_stays_uncertain(self, harness: StoreHarness) -> None:
        """An earlier call may have arrived, so nobody can say that it was kept from anybody."""
        pump = Pump(harness, broadcast=BROADCAST)
        message = await self.uncertain(harness, pump)
        (found,) = await harness.store.find_uncertain(accounts=ACCOUNTS, limit=10)
        replay = Settlement(id=found.id, bucket=found.bucket, version=found.version, replay=True, reason="harmless")
        await harness.store.settle_uncertain([replay], actor="settle")
        assert await pump.status(message) is OutgoingStatus.RETRY_READY
        assert await pump.claim() == []
        seen = await pump.seen(message.id)
        assert seen.status is OutgoingStatus.UNCERTAIN
        assert seen.entry.reason == f"{IN_WORDS[Cause.MANUAL]}, and an earlier call may have arrived"
        assert (len(seen.attempts), seen.entry.settle_at, seen.entry.reason_class) == (1, None, "")

    async def test_a_retry_by_hand_of_an_uncertain_message_is_stopped_too(self, harness: StoreHarness) -> None:
        """As its replay is."""
        pump = Pump(harness)
        message = await self.uncertain(harness, pump)
        version = (await pump.seen(message.id)).message.version
        assert await harness.store.retry_outgoing(
            harness.tenant_id, message.id or 0, version=version, reason="again", actor="sam"
        )
        assert await pump.claim() == []
        assert await pump.status(message) is OutgoingStatus.UNCERTAIN

    async def test_whoever_waits_behind_one_that_is_stopped_goes_next(self, harness: StoreHarness) -> None:
        """It is closed, so it holds up nobody of its order key."""
        pump = Pump(harness)
        first = await pump.message(1, to=1, order_key=ORDER_KEY, **NEWS)
        second = await pump.message(2, to=1, order_key=ORDER_KEY)
        await self.suppress(harness, 1, "news")
        claimed = [one.id for one in await pump.claim()] or [one.id for one in await pump.claim()]
        assert claimed == [second.id]
        assert await pump.status(first) is OutgoingStatus.SUPPRESSED
