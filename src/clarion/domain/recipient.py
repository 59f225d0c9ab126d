"""The recipients of a job: as its caller names them, and as the decision about them is stored.

The stored set says who gets the job where, with the reason for every skip. It is frozen when rows are first generated;
retries and fallback read it and never the directory again (I-06). It holds no addresses, only the ids of address
versions, so it needs no sealing. The decision itself is in `decision`. Pure.
"""

from typing import Final

import msgspec

from clarion.domain.identity import Channel, Identity, IdentityDomain
from clarion.domain.skip import SkipRule
from clarion.errors import InvalidInput

NAMED_MAX: Final = 20
"""How many recipients one request may name. Whoever wants to reach more names a group, or has a campaign."""

RECIPIENTS_MAX: Final = 1000
"""A job's row holds its set up to here, 150 to 320 kB; a larger audience is a campaign's, whose set lies in blobs."""


COUNTED_BY: Final = '"recipient_id_hash":'
"""Stands once for each recipient in a stored set, and nowhere else: inside a text, JSON writes a backslash before a
quote. So a store can count recipients without reading a set of 300 kB as JSON, and a damaged one stops no list."""


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


def encode(recipients: tuple[FrozenRecipient, ...]) -> str:
    """Write a set as it is stored, sorted by recipient."""
    if len(recipients) > RECIPIENTS_MAX:
        raise InvalidInput(
            f"the notification has {len(recipients)} recipients",
            field="to",
            hint=f"a direct notification reaches at most {RECIPIENTS_MAX}; send a campaign to a larger audience",
        )
    return msgspec.json.encode(sorted(recipients, key=lambda one: one.recipient_id_hash)).decode()


def decode(text: str) -> tuple[FrozenRecipient, ...]:
    """Read a stored set."""
    return msgspec.json.decode(text, type=tuple[FrozenRecipient, ...])


def how_many(text: str | None) -> int:
    """Count the recipients of a stored set; none where it is not decided yet."""
    return 0 if text is None else text.count(COUNTED_BY)
