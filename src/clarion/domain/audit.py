"""The audit log's chain: the hash of every entry covers the entry itself and the hash of the one before it.

So nobody changes, removes or reorders an entry without breaking every one behind it. Pure: stores compute the hash in
the transaction that appends, and whoever verifies a log computes it again.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Final, Protocol

from clarion.domain import hashing

FIRST_PREVIOUS: Final = ""
"""What the first entry of a tenant is chained to."""


class Link(Protocol):
    """An entry as it is stored."""

    @property
    def seq(self) -> int:
        """The place in the tenant's log, counted from 1."""
        ...

    @property
    def at(self) -> datetime:
        """When it was written."""
        ...

    @property
    def actor(self) -> str:
        """Who did it."""
        ...

    @property
    def act(self) -> str:
        """What was done."""
        ...

    @property
    def subject(self) -> str:
        """To what."""
        ...

    @property
    def reason(self) -> str | None:
        """Why."""
        ...

    @property
    def details(self) -> str:
        """More about it, as canonical JSON."""
        ...

    @property
    def hash(self) -> str:
        """The link of the chain."""
        ...


def chained_hash(
    previous_hash: str,
    *,
    tenant_id: str,
    seq: int,
    at: datetime,
    actor: str,
    act: str,
    subject: str,
    reason: str | None,
    details: str,
) -> str:
    """Hash one entry together with the hash of the entry before it."""
    return hashing.digest([previous_hash, tenant_id, seq, at, actor, act, subject, reason, details])


def broken_link(tenant_id: str, entries: Iterable[Link], *, after: Link | None = None) -> int | None:
    """Return the number of the first entry that does not fit behind the one before it, or None if the chain holds.

    The entries are the tenant's, in order and without gaps, beginning behind `after`.
    """
    seq, previous_hash = (0, FIRST_PREVIOUS) if after is None else (after.seq, after.hash)
    for entry in entries:
        seq += 1
        expected = chained_hash(
            previous_hash,
            tenant_id=tenant_id,
            seq=seq,
            at=entry.at,
            actor=entry.actor,
            act=entry.act,
            subject=entry.subject,
            reason=entry.reason,
            details=entry.details,
        )
        if entry.seq != seq or entry.hash != expected:
            return seq
        previous_hash = entry.hash
    return None
