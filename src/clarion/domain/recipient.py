"""The recipients of a job: as its caller names them, and as the decision about them is stored.

The stored set says who gets the job where, with the reason for every skip. It is frozen when rows are first generated;
retries and fallback read it and never the directory again (I-06). It holds no addresses, only the ids of address
versions. Up to `INLINE_MAX` recipients stand in the job's own row; a larger set lies in pages in the blob store, and
the row has its manifest, which says how many there are and where each page ends. The decision itself is in `decision`,
reading and writing of pages in `sealing.recipients`. Pure.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from clarion.domain.identity import Channel, Identity, IdentityDomain
from clarion.domain.skip import SkipRule

NAMED_MAX: Final = 20
"""How many recipients one request may name. Whoever wants to reach more names a group, or has a campaign."""

INLINE_MAX: Final = 1000
"""A job's row holds its set up to here, 150 to 320 kB; a larger one lies in pages."""

PAGE_SIZE: Final = 5000
"""Of a set in pages: 1 to 2 MB a page, as much as is held in memory at once."""

COUNTED_BY: Final = '"recipient_id_hash":'
"""Stands once for each recipient in a set in a row, and nowhere else: inside a text, JSON writes a backslash before a
quote. So a store can count recipients without reading a set of 300 kB as JSON, and a damaged one stops no list."""

MANIFEST_BEGINS: Final = "{"
"""A manifest is an object of JSON, a set in a row is an array."""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A recipient as the caller names it; a bare address says its channel."""

    identity: Identity
    channel: Channel | None = None


class Decision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One channel of one recipient: the address version that it goes to, or why it goes nowhere.

    With both, `rule` tells: after `POLICY` it goes there if the channels before it fail (`cascade`), after any other it
    does not go there, and the address only says which one was meant. `skipped` says why in words. Sets that were frozen
    before there were rules have the words only.
    """

    channel: Channel
    address_id: int | None = None
    skipped: str | None = None
    rule: SkipRule | None = None

    @property
    def goes_out(self) -> bool:
        """Whether a message is made for a provider."""
        return self.skipped is None and self.address_id is not None

    @property
    def goes_in(self) -> bool:
        """Whether a line is made in an inbox."""
        return self.skipped is None and self.channel is Channel.INBOX


class FrozenRecipient(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One recipient; the identity is kept for people, whose inbox is found by it, and never for a bare address.

    `person_version_id`, `locale` and `tz_id` are what their messages are merged with besides the data of the job.
    """

    recipient_id_hash: str
    domain: IdentityDomain
    person_id: str | None = None
    person_version_id: int | None = None
    locale: str | None = None
    tz_id: str | None = None
    decisions: tuple[Decision, ...]

    @property
    def inbox_identity(self) -> Identity | None:
        """Whose inbox the message goes to, if anybody's."""
        return None if self.person_id is None else Identity(domain=self.domain, id=self.person_id)


class Totals(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a set comes to: how many recipients, for how many of them there is a message, and what was decided.

    `outgoing` and `inbox` count messages to be made, `skipped` the decisions that lead nowhere, by their rule.
    """

    recipients: int = 0
    addressed: int = 0
    outgoing: int = 0
    inbox: int = 0
    skipped: Mapping[SkipRule, int] = {}

    def __add__(self, other: "Totals") -> "Totals":
        """Add those of another page."""
        return Totals(
            recipients=self.recipients + other.recipients,
            addressed=self.addressed + other.addressed,
            outgoing=self.outgoing + other.outgoing,
            inbox=self.inbox + other.inbox,
            skipped=dict(sorted((Counter(self.skipped) + Counter(other.skipped)).items())),
        )

    @property
    def messages(self) -> int:
        """How many messages there are to be made."""
        return self.outgoing + self.inbox

    @property
    def in_words(self) -> str:
        """Say in one line how many get it and how many do not; each skip has its own reason in its decision."""
        text = f"{_counted(self.recipients, 'recipient')}, {_counted(self.messages, 'message')}"
        skipped = sum(self.skipped.values())
        return text if not skipped else f"{text}, {skipped} skipped"


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a set in pages comes to, and the last recipient of each page; it freezes the set, so it is created last."""

    totals: Totals = Totals()
    pages: tuple[str, ...] = ()


class FrozenSet(msgspec.Struct, frozen=True, kw_only=True):
    """A set to be stored in the row of its job, and who is in it, so that each of them is found to have the job.

    `recipients` is empty for a manifest: those who are in its pages are noted page by page.
    """

    job_id: int
    job_key: str
    text: str
    recipients: Sequence[str] = ()


class RecipientJob(msgspec.Struct, frozen=True, kw_only=True):
    """A recipient has a job: one line of everything that a person got, or was left out of."""

    recipient_id_hash: str
    job_key: str
    job_id: int


def encode(recipients: tuple[FrozenRecipient, ...]) -> str:
    """Write a set as it is stored in a job's row or, page by page, in blobs: sorted by recipient."""
    return msgspec.json.encode(sorted(recipients, key=lambda one: one.recipient_id_hash)).decode()


def decode(text: str | bytes) -> tuple[FrozenRecipient, ...]:
    """Read a set from a job's row, or one page of a larger one."""
    return msgspec.json.decode(text, type=tuple[FrozenRecipient, ...])


def encode_manifest(manifest: Manifest) -> str:
    """Write a manifest as it is stored in a blob and in a job's row."""
    return msgspec.json.encode(manifest).decode()


def decode_manifest(text: str | bytes) -> Manifest:
    """Read a stored manifest."""
    return msgspec.json.decode(text, type=Manifest)


def read(text: str) -> tuple[FrozenRecipient, ...] | Manifest:
    """Read what a job's row has: its set, or the manifest of a set in pages."""
    return decode_manifest(text) if text.startswith(MANIFEST_BEGINS) else decode(text)


def how_many(text: str | None) -> int:
    """Count the recipients of a stored set; none where it is not decided yet."""
    if text is None:
        return 0
    return decode_manifest(text).totals.recipients if text.startswith(MANIFEST_BEGINS) else text.count(COUNTED_BY)


def totals_of(recipients: Sequence[FrozenRecipient]) -> Totals:
    """Count what was decided about some recipients."""
    addressed = outgoing = inbox = 0
    skipped: Counter[SkipRule] = Counter()
    for one in recipients:
        before = outgoing + inbox
        for each in one.decisions:
            if each.skipped is not None:
                skipped[each.rule or SkipRule.OTHER] += 1
            elif each.goes_in:
                inbox += 1
            elif each.goes_out:
                outgoing += 1
        addressed += outgoing + inbox > before
    return Totals(
        recipients=len(recipients),
        addressed=addressed,
        outgoing=outgoing,
        inbox=inbox,
        skipped=dict(sorted(skipped.items())),
    )


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
