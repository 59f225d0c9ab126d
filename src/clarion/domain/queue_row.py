"""An outgoing row as the queue reads it under its lock, and a ruling: what is to be written of it.

The only two shapes in which a rule and a store speak of a row. The rules themselves are in `ruling`. Nothing here
reads or writes anything.
"""

from datetime import timedelta
from enum import Enum, auto
from typing import NamedTuple
from uuid import UUID

import msgspec

from clarion.domain.attempt import Attempt
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.suppression import Signal


class LockedRow(msgspec.Struct, frozen=True, gc=False):
    """One outgoing row whose lock is held, so that nobody else changes it before the ruling is written.

    It has no instants: what depends on the time was judged by the store's clock when the row was read.
    The fields stand in the order of the columns of the statement that reads it, because rows are made by the thousand.
    """

    bucket: int
    id: int
    tenant_id: str
    pk: str
    message_id: str  # as text: only a support case names it
    correlation_id: str
    flow_id: int
    has_broadcast: bool
    order_key: str | None
    status: OutgoingStatus
    reason_class: str
    version: int
    attempts: int
    claim_token: UUID | None
    account: str | None
    may_have_arrived: bool  # a call was made of which nobody knows whether it arrived
    replay_authorised: bool
    waits_for_decision: bool  # it is `Uncertain`, and nobody has decided what becomes of it
    is_called_off: bool
    cancel_actor: str | None
    is_out_of_time: bool
    in_line: bool  # it waits for another row of its order key
    channel: str  # as text: a rule only compares it
    category: str | None  # the one that its recipient may refuse, written as in a scope


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider reports about a row, through which account; `event_id` is the provider's name for the report.

    `signal` is what it says besides the status, which is nothing about the row but about its recipient.
    """

    account: str
    event_id: str
    status: OutgoingStatus
    provider_message_id: str | None
    signal: Signal | None = None


class Step(NamedTuple):
    """One change of state, and why."""

    to: OutgoingStatus
    reason: str | None = None


class Trouble(Enum):
    """What a person should look at. `trouble` makes the support case of each."""

    NEVER_CALLED = auto()
    FAULTY_ACCOUNT = auto()
    GIVEN_UP = auto()
    LEFT_UNCERTAIN = auto()
    DEFECT = auto()


class Ruling(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What becomes of a row.

    What is not said stays as it is, except for what belongs to a state: a due time, a lease, a wait for a decision, an
    authorised replay and a reason class end with the state, and the new state has them only if the ruling says so.
    """

    steps: tuple[Step, ...] = ()  # almost always one; several receipts may raise a row by several at once
    reason_class: str = ""
    delay: timedelta | None = None  # due again so long from now
    in_line: bool = False  # it keeps its state, waits for another row of its order key, and looks again after `delay`
    settles: bool = False  # it waits for a decision from now on
    pins: bool = False  # to the flow of its account; unknown since its claim, unless it was so before
    frees: bool = False  # back to the flow of no account: every call of it is proven refused
    is_taken_back: bool = False  # the claim came to no call, so its attempt does not count
    is_not_called: bool = False  # one more of the claims that came to no call and end a row when they are too many
    is_forgiven: bool = False  # claims that came to no call are counted from nought again
    is_authorised: bool = False  # the next call may be made though an earlier one may have arrived
    is_duplicate: bool = False  # it is replayed though it may arrive twice, which is counted
    is_called_off: bool = False
    provider_message_id: str | None = None
    content_hash: str | None = None
    attempts: tuple[Attempt, ...] = ()  # to be written as they are here
    dropped_attempt: int | None = None
    troubles: tuple[Trouble, ...] = ()

    @property
    def to(self) -> OutgoingStatus | None:
        """The state that it leads to, or None where the row keeps its own."""
        return self.steps[-1].to if self.steps else None

    @property
    def reason(self) -> str | None:
        """Why, if it moves the row."""
        return self.steps[-1].reason if self.steps else None
