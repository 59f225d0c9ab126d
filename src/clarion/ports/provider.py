"""Providers: whoever carries a message the last mile.

An adapter makes one call for one message and says what came of it; it never retries, never waits for a slot and never
raises what a vendor raised. Credentials are in memory before the first call. An account that takes only so many calls
at once is `Limited` too, one that can be tried without a message is `Probed`, and one whose provider says later what
became of messages is a `Reporter`.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, Protocol, runtime_checkable

from clarion.domain.call import Call, CallOutcome, Replay
from clarion.domain.identity import Channel
from clarion.ports.track import ProviderEvent

EVERY_CHANNEL: Final = frozenset(Channel) - {Channel.INBOX}
"""For a provider that can carry any content. Inbox messages are shown by Clarion itself and need no provider."""


class Provider(Protocol):
    """One account with one provider."""

    @property
    def channels(self) -> frozenset[Channel]:
        """The channels that it can carry."""
        ...

    @property
    def replay(self) -> Replay:
        """What asking again after an unknown outcome would do."""
        ...

    async def send(self, call: Call) -> CallOutcome:
        """Make the call once. Whatever may have been accepted is `Unknown`, a vendor's error is never raised."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


@runtime_checkable
class Limited(Protocol):
    """An account that takes only so many calls at once, such as the connections of a mail server."""

    @property
    def calls_max(self) -> int:
        """How many calls one process makes at once at most."""
        ...


@runtime_checkable
class Probed(Protocol):
    """An account that can be tried without sending anything."""

    async def probe(self) -> str | None:
        """Connect as the next call would, as far as can be without a message; say what is in the way, or None."""
        ...


@runtime_checkable
class Reporter(Protocol):
    """An account whose provider reports back."""

    def check_headers(self, headers: Mapping[str, str], *, now: datetime) -> None:
        """Raise SignatureRefused where the headers alone show that a request is not the provider's.

        It is asked before the body is read, so that whoever does not even look like the provider is not waited for.
        """
        ...

    async def read_reports(
        self, account: str, headers: Mapping[str, str], body: bytes, *, now: datetime
    ) -> Mapping[str, Sequence[ProviderEvent]]:
        """Give what a request of the provider reports, by tenant; the names of headers are in lower case.

        The raw bytes are verified before anything reads them (X-08). Raises SignatureRefused where they are not the
        provider's, and InvalidInput where they say nothing that can be read.
        """
        ...
