"""Rude replies: what can be stored of whatever a provider says is, and so are the others of its batch (X-30)."""

from typing import Final

import pytest

from clarion.domain.call import Accepted, CallOutcome, Deferred, Misconfigured, NotCalled, Refused, Unknown
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.reply import PROVIDER_ID_BYTES_MAX, RAW_BYTES_MAX, REASON_BYTES_MAX
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.contracts.pump import BROADCAST, Pump, result
from clarion.testing.contracts.receipts import event, make_sent, track
from clarion.testing.row import WebhookEvent

REASONS: Final = {
    "nul": ("no\0pe", "nope"),
    "half-a-pair": ("half \ud83d", "half ?"),
    "too-long": ("x" * 100_000, "x" * REASON_BYTES_MAX),
    "cut-in-a-character": ("x" + "ä" * 5000, "x" + "ä" * (REASON_BYTES_MAX // 2 - 1)),
    "quotes": ('{"a",\\b,NULL}', '{"a",\\b,NULL}'),
    "escaped-in-json": ("\x01" * 5000, "\x01" * REASON_BYTES_MAX),
}
IDS: Final = {
    "nul": ("a\0b", "ab"),
    "half-a-pair": ("a\ud83d", "a?"),
    "too-long": ("🎉" * 200, "🎉" * (PROVIDER_ID_BYTES_MAX // 4)),
    "nothing-left": ("\0", None),
    "empty": ("", None),
}
each_reason = pytest.mark.parametrize("said, kept", REASONS.values(), ids=REASONS)
each_id = pytest.mark.parametrize("said, kept", IDS.values(), ids=IDS)
ENDS: Final = {
    Deferred: OutgoingStatus.RETRY_READY,
    Misconfigured: OutgoingStatus.RETRY_READY,
    Refused: OutgoingStatus.FAILED_FINAL,
    Unknown: OutgoingStatus.UNCERTAIN,
}


class RudeReplyContract:
    """What no column can hold."""

    @pytest.mark.parametrize("kind", ENDS, ids=lambda kind: kind.__name__)
    @each_reason
    async def test_a_reason_is_kept_as_far_as_it_can_be(
        self,
        harness: StoreHarness,
        kind: type[Deferred | Misconfigured | Refused | Unknown],
        said: str,
        kept: str,
    ) -> None:
        """On the row, on its line and on its attempt."""
        pump = Pump(harness, broadcast=BROADCAST)
        rude = await _record_among_others(harness, pump, kind(reason=said), ends=ENDS[kind])
        seen = await pump.seen(rude)
        assert [seen.entry.reason, seen.lines[-1].reason, seen.attempts[-1].reason] == [kept] * 3

    @each_id
    async def test_a_providers_id_is_kept_as_far_as_it_can_be(
        self, harness: StoreHarness, said: str, kept: str | None
    ) -> None:
        """On the row and on its attempt; one of which nothing is left is none."""
        pump = Pump(harness, broadcast=BROADCAST)
        outcome = Accepted(provider_message_id=said)
        rude = await _record_among_others(harness, pump, outcome, ends=OutgoingStatus.SENT_TO_PROVIDER)
        seen = await pump.seen(rude)
        assert [seen.entry.provider_message_id, seen.attempts[-1].provider_message_id] == [kept] * 2

    @each_reason
    async def test_a_row_that_is_never_called_opens_its_case_whatever_the_reason(
        self, harness: StoreHarness, said: str, kept: str
    ) -> None:
        """Its details are bounded, and JSON may write a byte as six."""
        pump = Pump(harness, broadcast=BROADCAST)
        message = await pump.message()
        never = NotCalled(reason=said, leads_to=OutgoingStatus.FAILED_FINAL)
        await pump.record(never, await pump.claim_one())
        assert (await pump.seen(message.id)).entry.reason == kept
        assert len(await harness.store.list_support_cases(harness.tenant_id)) == 1

    @each_id
    async def test_an_event_finds_its_message_by_an_id_that_was_cleaned(
        self, harness: StoreHarness, said: str, kept: str | None
    ) -> None:
        """By the same id as the call was answered with; by none, no message is found."""
        pump = Pump(harness, broadcast=BROADCAST)
        message = await make_sent(pump, provider_message_id=said)
        told = event(None, OutgoingStatus.DELIVERED, provider_message_id=said)
        assert await track(harness, pump, told) == (0 if kept is None else 1)
        expected = OutgoingStatus.SENT_TO_PROVIDER if kept is None else OutgoingStatus.DELIVERED
        assert await pump.status(message) is expected

    @each_id
    async def test_an_event_about_an_uncertain_send_leaves_an_id_that_can_be_stored(
        self, harness: StoreHarness, said: str, kept: str | None
    ) -> None:
        """The attempt takes the id of the event that proves it, and the text of the event is kept in part."""
        pump = Pump(harness, broadcast=BROADCAST)
        message = await pump.message()
        await pump.record(Unknown(reason="lost"), await pump.claim_one())
        raw = "\0\ud83d" + "x" * RAW_BYTES_MAX
        told = event(message, OutgoingStatus.DELIVERED, provider_message_id=said, raw=raw)
        assert await track(harness, pump, told) == 1
        seen = await pump.seen(message.id)
        assert [seen.entry.provider_message_id, seen.attempts[-1].provider_message_id] == [kept] * 2
        (stored,) = await harness.rows(harness.tenant_id, WebhookEvent)
        assert stored.raw == "?" + "x" * (RAW_BYTES_MAX - 1)


async def _record_among_others(harness: StoreHarness, pump: Pump, outcome: CallOutcome, *, ends: OutgoingStatus) -> int:
    """Record an outcome in one batch with two that are in order; give its row."""
    await pump.campaign(3)
    before, rude, after = await pump.claim()
    polite = Accepted(provider_message_id="p-1")
    results = [result(before, polite), result(rude, outcome), result(after, polite)]
    await harness.store.record_outgoing(results, actor="worker-1")
    await pump.check()
    sent = OutgoingStatus.SENT_TO_PROVIDER
    assert [(await pump.seen(one.id)).status for one in (before, rude, after)] == [sent, ends, sent]
    return rude.id
