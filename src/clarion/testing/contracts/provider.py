"""What every provider must do, as tests to inherit.

A plugin author derives a class, overrides the `stage` fixture and lets pytest collect it. A stage is the provider and a
real peer of it, a server or a file, which behaves as the first word of the destination says (`fail`, `nobody`, `defer`,
`unknown`, anything else accepts) and counts what it was given. What an adapter does besides (codes, connections, its
URL) is tested beside it.
"""

import asyncio
from abc import ABC, abstractmethod
from typing import Protocol
from uuid import UUID

import pytest

from clarion.domain.call import REASON_CHARS_MAX, Accepted, Call, CallOutcome, Deferred, Refused, Unknown
from clarion.domain.content import Content, EmailContent
from clarion.domain.identity import Channel
from clarion.ports.provider import EVERY_CHANNEL, Provider

CONTENT = EmailContent(subject="Quarterly canary", html="<p>canary</p>", text="canary")


class Stage(Protocol):
    """A provider, and what its peer has seen."""

    @property
    def provider(self) -> Provider:
        """The provider, open."""
        ...

    async def calls(self) -> int:
        """Count the calls that reached the peer, whatever came of them."""
        ...

    async def deliveries(self, key: str) -> int:
        """Count how often the peer took a message with this idempotency key."""
        ...


def call_to(
    word: str, *, key: str = "key-1", channel: Channel = Channel.EMAIL, content: Content = CONTENT, attempt: int = 1
) -> Call:
    """Make a call whose destination asks for a behaviour."""
    return Call(
        idempotency_key=key,
        message_id=UUID(int=1),
        tenant_id="school",
        channel=channel,
        destination=f"{word}@example.com",
        content=content,
        attempt=attempt,
        correlation_id="correlation-1",
    )


class ProviderContract(ABC):
    """The promises of `ports.provider.Provider`."""

    @pytest.fixture
    @abstractmethod
    def stage(self) -> Stage:
        """Open a provider and its peer, which has seen nothing yet."""

    async def test_it_carries_what_the_contract_sends_and_never_the_inbox(self, stage: Stage) -> None:
        """Channels are given to it by what it says."""
        assert Channel.EMAIL in stage.provider.channels <= EVERY_CHANNEL

    async def test_what_is_accepted_was_delivered_once(self, stage: Stage) -> None:
        """The simple case."""
        outcome = await stage.provider.send(call_to("ann"))
        assert isinstance(outcome, Accepted)
        assert outcome.provider_message_id is None or 0 < len(outcome.provider_message_id) <= 200
        assert (await stage.calls(), await stage.deliveries("key-1")) == (1, 1)

    async def test_a_recipient_that_does_not_exist_is_refused_as_such(self, stage: Stage) -> None:
        """Only then may an address be struck off."""
        outcome = await stage.provider.send(call_to("nobody"))
        assert isinstance(outcome, Refused)
        assert outcome.recipient_not_found
        assert (await stage.calls(), await stage.deliveries("key-1")) == (1, 0)

    async def test_what_will_never_be_taken_is_refused(self, stage: Stage) -> None:
        """And says nothing about the recipient."""
        outcome = await stage.provider.send(call_to("fail"))
        assert isinstance(outcome, Refused)
        assert not outcome.recipient_not_found
        assert await stage.deliveries("key-1") == 0

    async def test_what_is_not_taken_now_is_deferred_and_not_tried_again(self, stage: Stage) -> None:
        """The pipeline owns every attempt."""
        assert isinstance(await stage.provider.send(call_to("defer")), Deferred)
        assert (await stage.calls(), await stage.deliveries("key-1")) == (1, 0)

    async def test_a_lost_reply_is_unknown_and_not_tried_again(self, stage: Stage) -> None:
        """The message was taken; nobody but the peer knows."""
        assert isinstance(await stage.provider.send(call_to("unknown")), Unknown)
        assert (await stage.calls(), await stage.deliveries("key-1")) == (1, 1)

    @pytest.mark.parametrize("word", ["nobody", "fail", "defer", "unknown"])
    async def test_a_failure_is_over_with_its_call(self, stage: Stage, word: str) -> None:
        """What comes after it goes out."""
        await stage.provider.send(call_to(word, key="first"))
        for number in range(3):
            assert isinstance(await stage.provider.send(call_to("ann", key=f"later-{number}")), Accepted)
            assert await stage.deliveries(f"later-{number}") == 1

    async def test_calls_at_once_do_not_mix(self, stage: Stage) -> None:
        """Each has its own outcome, and each message is delivered once."""
        words = ["ann", "nobody", "bob", "defer", "eve", "fail"] * 5
        calls = [call_to(word, key=f"key-{number}") for number, word in enumerate(words)]
        outcomes = await asyncio.gather(*map(stage.provider.send, calls))
        kinds: dict[str, type[CallOutcome]] = {"nobody": Refused, "defer": Deferred, "fail": Refused}
        assert [type(outcome) for outcome in outcomes] == [kinds.get(word, Accepted) for word in words]
        for number, word in enumerate(words):
            assert await stage.deliveries(f"key-{number}") == (word not in kinds)

    async def test_a_repeated_key_is_delivered_again_unless_the_account_says_otherwise(self, stage: Stage) -> None:
        """What the account promises about replays is what its peer does (I-10)."""
        first = await stage.provider.send(call_to("ann"))
        second = await stage.provider.send(call_to("ann", attempt=2))
        assert isinstance(first, Accepted)
        assert isinstance(second, Accepted)
        dedupes = stage.provider.replay.dedupe_window is not None
        assert await stage.deliveries("key-1") == (1 if dedupes else 2)
        if dedupes:
            assert first == second

    @pytest.mark.parametrize("word", ["nobody", "fail", "defer", "unknown"])
    async def test_a_reason_is_one_short_line_without_address_and_content(self, stage: Stage, word: str) -> None:
        """It ends in timelines and logs (X-22)."""
        outcome = await stage.provider.send(call_to(word))
        assert isinstance(outcome, Refused | Deferred | Unknown)
        assert 0 < len(outcome.reason) <= REASON_CHARS_MAX
        assert len(outcome.reason.splitlines()) == 1
        assert "example.com" not in outcome.reason
        assert "canary" not in outcome.reason
