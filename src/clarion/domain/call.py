"""A provider call: what goes out, and what came of it, in our own terms and not in the codes of a vendor.

The outcome is one closed union. *Accepted*, *refused* and *deferred* are proven by a complete reply of the provider, or
by a connection that never stood; *unknown* is everything that may have been accepted; *not called* means that no byte
left. Adapters translate, the pipeline decides. Pure values.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final
from uuid import UUID

import msgspec

from clarion.domain.content import Content
from clarion.domain.hint import Hints
from clarion.domain.identity import Channel
from clarion.domain.outgoing import OutgoingStatus

REASON_CHARS_MAX: Final = 300
"""A reason is a sentence for a person, not a vendor's whole reply."""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One message for one destination, ready to go; `idempotency_key` is the same for every attempt of its row.

    `headers` are for a mail's head. `hints` are as the sender gave them; a provider uses those that it knows.
    """

    idempotency_key: str
    message_id: UUID
    tenant_id: str
    channel: Channel
    destination: str
    content: Content
    headers: Mapping[str, str] = {}
    hints: Hints | None = None
    attempt: int
    correlation_id: str
    traceparent: str | None = None


class Accepted(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The provider has it; some give no id."""

    provider_message_id: str | None = None


class Deferred(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The provider did not take it now (429, 503, a refused connection): try again, not before `retry_after`.

    `throttled` says that the account is asked too much, so that it is left alone for a moment and asked less.
    """

    reason: str
    retry_after: timedelta | None = None
    throttled: bool = False


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The provider will never take it.

    With `recipient_not_found` it does not know the destination, or knows it no longer (an unregistered push token):
    recording that retires the contact, so that nothing else is sent there.
    """

    reason: str
    recipient_not_found: bool = False


class Misconfigured(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The account is at fault (credentials, sender): the message waits until somebody mends it."""

    reason: str


class Unknown(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """It may have been accepted: bytes left and no complete reply came."""

    reason: str


class NotCalled(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """No byte left, so the attempt does not count: the row waits for the next one, unless it leads elsewhere.

    It leads to `FailedFinal` where no call can ever be made of it or none could be for too often, and to `Uncertain`
    where an earlier one may have arrived and must not be repeated. It `counts` towards too often unless the message had
    no part in it: its merge never began, or its call had no time left.

    With `is_defect` something went wrong that cannot happen, so a person is told and the row waits until it is mended.
    With `is_held` its template version is quarantined, or the installation lacks a setting that it needs; the row waits
    likewise, and never ends by it.
    """

    reason: str
    leads_to: OutgoingStatus = OutgoingStatus.RETRY_READY
    counts: bool = True
    is_defect: bool = False
    is_held: bool = False


CallOutcome = Accepted | Deferred | Refused | Misconfigured | Unknown | NotCalled


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """Whether an account may be asked again after an unknown outcome (I-10).

    `dedupe_window` is how long the provider de-duplicates by our key; `replaces` means that a second one takes the
    first one's place on the device. With neither, an uncertain message is not sent again by itself.
    """

    dedupe_window: timedelta | None = None
    replaces: bool = False

    def allows(self, *, unknown_for: timedelta) -> bool:
        """Tell whether a replay is harmless so long after the first call of which nobody knows."""
        if self.replaces:
            return True
        window = self.dedupe_window
        return window is not None and window >= WINDOW_MIN and unknown_for < window - MARGIN


WINDOW_MIN: Final = timedelta(minutes=15)
"""A shorter window can pass while a worker is paused between its check and its call (I-10)."""

MARGIN: Final = timedelta(minutes=5)
"""Longer than a process may stand still between its check and its call (garbage collection, a busy machine)."""
