"""Suppression: who must not get what. A bounce, STOP, unsubscribing and a preference that is off are all alike.

One row says that a subject gets nothing under a scope. The subject is the index of a destination or the hash of a
recipient. The scope is `*` for everything, a category, or a category on one channel, each written as `domain.key` does.
Every claim asks for the rows of its messages, and `domain.ruling.at_claim` decides by what is here. A required message
has no category, so only `*` stops it.

Pure. The table is the store's, the verbs are in `catalog.suppression` and `catalog.preferences`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final

import msgspec

from clarion.domain.identity import Channel
from clarion.domain.key import suppression_scope
from clarion.domain.outgoing import OutgoingStatus

EVERYTHING: Final = "*"

NOTE_BYTES_MAX: Final = 512
"""Of what was said about a suppression: a sentence or two."""

RECIPIENT: Final = "recipient"
"""Who acts where nobody is logged in: whoever holds a link or answers STOP speaks for themselves."""


class Cause(StrEnum):
    """What a suppression came from, the weakest first: a stronger one takes a row over, a weaker one leaves it alone.

    So any order of the same causes ends in the same row. `stop` is the weakest because START lifts it, and what was
    suppressed for another reason too must outlast that.
    """

    STOP = "stop"
    BOUNCE = "bounce"
    COMPLAINT = "complaint"
    UNSUBSCRIBE = "unsubscribe"
    PREFERENCE = "preference"
    MANUAL = "manual"

    def takes_over(self, stored: "Cause") -> bool:
        """Tell whether a row of that cause becomes one of this."""
        return _STRENGTH[self] > _STRENGTH[stored]


_STRENGTH: Final = {cause: place for place, cause in enumerate(Cause)}

IN_WORDS: Final = {
    Cause.STOP: "the recipient answered STOP",
    Cause.BOUNCE: "the address bounced",
    Cause.COMPLAINT: "the recipient complained",
    Cause.UNSUBSCRIBE: "the recipient unsubscribed",
    Cause.PREFERENCE: "the recipient switched it off",
    Cause.MANUAL: "somebody suppressed it by hand",
}
"""What people read of a cause."""


class Signal(StrEnum):
    """What a provider's event says besides its status: of what kind a bounce is, or what the recipient answered."""

    SOFT_BOUNCE = "soft_bounce"
    STOP = "stop"
    START = "start"


WORDS: Final = frozenset({Signal.STOP, Signal.START})
"""What recipients answer; the latest of them counts."""


class Word(msgspec.Struct, frozen=True, kw_only=True):
    """STOP or START as somebody answered it, and when; `account` and `event_id` are its event's."""

    account: str
    event_id: str
    signal: Signal
    happened_at: datetime
    received_at: datetime

    @property
    def said_at(self) -> datetime:
        """When it was said; what a provider dates later than it came was said when it came."""
        return min(self.happened_at, self.received_at)


Scope = tuple[str, Cause]
"""A scope under which a subject gets nothing, and why."""

SuppressionKey = tuple[str, str]
"""Subject and scope: what is unique within the tenant."""


def note_of(said: str) -> str:
    """Cut what was said to what a suppression keeps of it; the audit log has all that a person gave as a reason."""
    return said.encode()[:NOTE_BYTES_MAX].decode(errors="ignore")


class Suppression(msgspec.Struct, frozen=True, kw_only=True):
    """That a subject gets nothing under a scope, since when, and why; the store fills in who and when."""

    subject: str
    scope: str
    cause: Cause
    note: str | None = None
    created_by: str = ""
    created_at: datetime | None = None

    @property
    def key(self) -> SuppressionKey:
        """What is unique within the tenant."""
        return (self.subject, self.scope)


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One preference as somebody wants it: a category on a channel, or (`channel` is None) on all of them."""

    category: str
    channel: Channel | None = None
    on: bool


def scope_of(category: str | None = None, channel: Channel | None = None) -> str:
    """Write the scope of everything, of a category by its name, or of a category on a channel."""
    return suppression_scope(category=category, channel=channel)


def optional_category(category: str, *, may_unsubscribe: bool) -> str | None:
    """Write what an outgoing row keeps of its type's category: the scope of one that may be refused, or None."""
    return scope_of(category) if may_unsubscribe else None


def scopes_that_apply(category: str | None, channel: Channel) -> frozenset[str]:
    """Give the scopes that stop a message of a category, by its name; None is a required one, which only `*` stops."""
    return scopes_of_row(None if category is None else scope_of(category), channel)


def scopes_of_row(written: str | None, channel: str) -> frozenset[str]:
    """Give the scopes that stop an outgoing row, whose category is written as in a scope already."""
    return frozenset({EVERYTHING} if written is None else {EVERYTHING, written, f"{written}:{channel}"})


def in_force(found: Iterable[Scope], *, written: str | None, channel: str) -> Scope | None:
    """Give what stops a row, of the scopes and causes that are known of its subjects: the widest, then the strongest.

    None where nothing does.
    """
    applying = scopes_of_row(written, channel)
    stopping = [one for one in found if one[0] in applying]
    return min(stopping, key=lambda one: (len(one[0]), one[0], -_STRENGTH[one[1]]), default=None)


def stored_after(stored: Collection[str], changes: Sequence[Change]) -> tuple[frozenset[str], frozenset[str]]:
    """Say which scopes a recipient is to have, and which no more, where these preferences are set one after the other.

    Only the categories that the changes name are touched. One whole category that is off is one row; to switch one of
    its channels on leaves it off on every other channel there is, also on those that no type of it has yet.
    """
    put: set[str] = set()
    lifted: set[str] = set()
    for category in dict.fromkeys(change.category for change in changes):
        whole, cells = scope_of(category), {scope_of(category, channel): channel for channel in Channel}
        before = {scope for scope in stored if scope == whole or scope in cells}
        after = set(before)
        for change in [one for one in changes if one.category == category]:
            cell = whole if change.channel is None else scope_of(category, change.channel)
            if change.channel is None:
                after = set() if change.on else {whole}
            elif not change.on:
                after |= set() if whole in after else {cell}
            else:
                after = (set(cells) if whole in after else after) - {cell}
        put |= after - before
        lifted |= before - after
    return frozenset(put), frozenset(lifted)


def cause_of(status: OutgoingStatus, signal: Signal | None) -> Cause | None:
    """Say why an event suppresses its destination, or None where it does not; a soft bounce may go away by itself."""
    match signal:
        case Signal.STOP:
            return Cause.STOP
        case Signal.START:
            return None
        case Signal.SOFT_BOUNCE | None if status is OutgoingStatus.COMPLAINED:
            return Cause.COMPLAINT
        case None if status is OutgoingStatus.BOUNCED:
            return Cause.BOUNCE
        case _:
            return None


def last_word(words: Iterable[Word]) -> Word:
    """Give the latest of what somebody answered; of STOP and START at one moment STOP counts."""
    return max(words, key=lambda word: (word.said_at, word.signal is Signal.STOP, word.account, word.event_id))


def category_of(scope: str) -> str:
    """Give the category of a scope, as it is written there; of everything, `*`."""
    return scope.partition(":")[0]


def is_off(stored: Collection[str], category: str, channel: Channel) -> bool:
    """Tell whether a category is off on a channel, by the scopes that are stored of a recipient."""
    return scope_of(category) in stored or scope_of(category, channel) in stored


def is_held(stored: Mapping[str, Cause], category: str, channel: Channel) -> bool:
    """Tell whether an administrator has switched a category off by hand: its recipient does not switch it on again."""
    return Cause.MANUAL in (stored.get(scope_of(category)), stored.get(scope_of(category, channel)))
