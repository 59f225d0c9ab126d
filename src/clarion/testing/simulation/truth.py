"""The truth: what may have become of each message of a run, worked out without a look at the database.

It knows what clients and people asked for (`notes`), what providers did (`ledger`) and what workers were handed and
wrote down (`Claim`). Every method answers one question in the same way: None where it may be so, and otherwise a
sentence that says why it cannot be. Who compares the answers with what the database shows is `truth_invariant` (after
every commit), `calling` (at every call) and `ending`.

The numbers of the design stand here a second time, on purpose: a program that gets one of them wrong must not be judged
by the same number.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final
from uuid import UUID

from clarion.domain.call import Accepted, Deferred, NotCalled, Refused, Unknown
from clarion.domain.definition import Definition
from clarion.domain.identity import Channel, Lane
from clarion.domain.notification import Stage
from clarion.domain.outgoing import OutgoingStatus, UncertainPolicy
from clarion.testing.simulation import content
from clarion.testing.simulation.directory import Addressee
from clarion.testing.simulation.entitled import DEFINITIONS as _DEFINITIONS
from clarion.testing.simulation.entitled import Entitled, Message, Window
from clarion.testing.simulation.ledger import Ledger, LedgerCall, Receipt, RowName
from clarion.testing.simulation.notes import Notes
from clarion.testing.simulation.option import JobPlan, Options
from clarion.testing.simulation.reminding import Reminding
from clarion.testing.simulation.scene import Claim

ATTEMPTS: Final = 8
"""Calls of a message that its provider puts off every time; then it is given up."""

ATTEMPTS_LOST: Final = 20
"""Claims of a message whose workers are lost in the middle of its calls; then nobody tries again."""

CALL_SECONDS: Final = 20.0
"""How long a worker waits for a reply."""

WINDOW_SECONDS: Final = 900.0
"""A provider that de-duplicates for less than this is taken for one that does not."""

MARGIN_SECONDS: Final = 300.0
"""How long before a window's end nothing is replayed any more."""


class Truth:
    """What may be shown of the messages of one run."""

    def __init__(self, options: Options, ledger: Ledger) -> None:
        """Judge a run of these options by this ledger, and by the notes that are made of what is asked for."""
        self.notes = Notes(types=tuple(_DEFINITIONS))
        self.ledger = ledger
        self.entitled = Entitled(self.notes)
        self.slots = options.slots
        self.plans = {plan.number: plan for plan in options.jobs}
        self.reminding = None if options.agenda is None else Reminding(options.agenda)
        self._windows = {
            channel: 0.0 if window is None else window.total_seconds() for channel, window in options.dedupe.items()
        }

    # What became of a job, or of a message that was not sent

    def skipped(self, plan: JobPlan, stage: Stage, window: Window) -> str | None:
        """Answer for a job that is skipped: its type was off or, at the second stage, it found nobody to go to."""
        if stage is Stage.SCHEDULE:
            off = False in self.entitled.enabled(plan, window)
            return None if off else f"the type {plan.type} was on all the time"
        return None if self.entitled.nobody(plan, window) else "there was somebody to send it to"

    def made(self, plan: JobPlan, made: Counter[Message | None], window: Window) -> str | None:
        """Answer for the messages of a job that is done: those that must be there, each once, and none that may not."""
        expected = self.entitled.expected(plan, window)
        if missing := expected.must - made.keys():
            return f"it has no {' and no '.join(map(str, sorted(missing, key=str)))}"
        if wrong := [one for one, count in made.items() if count > 1 or one not in expected.may]:
            return f"it has {' and '.join(map(str, wrong))}, which may not be, or not twice"
        return None

    def listed(self, plan: JobPlan, listed: set[Addressee | None], window: Window) -> str | None:
        """Answer for those who are noted to have a job: its recipients, and nobody else."""
        must, may = self.entitled.recipients(plan, window)
        missing, wrong = must - listed, listed - may
        return (
            f"of its history {missing or 'nobody'} is missing, and {wrong or 'nobody'} too much"
            if missing or wrong
            else None
        )

    def refused_before(self, plan: JobPlan, message: Message, *, now: float) -> str | None:
        """Answer for a claim of a message: nothing surely spoke against it then."""
        refused = self.entitled.refused(_DEFINITIONS[plan.type], message, Window(now, now))
        return None if False in refused else f"{message} had surely been refused or suppressed before"

    def suppressed(self, plan: JobPlan, message: Message | None, window: Window) -> str | None:
        """Answer for a message that is suppressed: something may have spoken against it."""
        if message is None:
            return "nobody knows whom it is for"
        refused = self.entitled.refused(_DEFINITIONS[plan.type], message, window)
        return None if True in refused else f"nothing spoke against {message}"

    def canceled(self, job_id: UUID, plan: JobPlan | None = None) -> str | None:
        """Answer for a job that is canceled, or for a message of a plan: a person asked for that.

        A message is canceled with its job, or with the broadcast that it belongs to.
        """
        subjects = [f"job {job_id}"]
        if plan is not None and plan.broadcast:
            subjects.append(f"broadcast {content.BROADCAST}")
        asked = any(any(self.notes.of("cancel", subject)) for subject in subjects)
        return None if asked else "nobody canceled it"

    def expired(self, plan: JobPlan, *, store_now: float) -> str | None:
        """Answer for a message that expired: its time to live is over, counted from when it was first asked for."""
        ttl = _DEFINITIONS[plan.type].ttl_seconds
        if ttl is None:
            return f"the type {plan.type} never expires"
        left = self._earliest_start(plan) + ttl - store_now
        return None if left <= _ROUNDING else f"it has {left:.3f} s left"

    def failed(self, claims: Sequence[Claim]) -> str | None:
        """Answer for a message that failed: its provider refused it for good, or put it off until nobody tries more."""
        if not claims:
            return "nobody called its provider"
        last, calls = claims[-1].recorded, sum(not isinstance(claim.recorded, NotCalled) for claim in claims)
        if isinstance(last, Refused):
            return None
        if isinstance(last, Deferred) and calls >= ATTEMPTS:
            return None
        return f"after {calls} calls the last outcome is {type(last).__name__}"

    def denied(self, claims: Sequence[Claim]) -> str | None:
        """Answer for a message that is shown as not sent: each of its calls is known not to have been taken."""
        if any(isinstance(claim.recorded, Accepted) for claim in claims):
            return "its provider has accepted it, and its worker wrote that down"
        return "a call of it may have arrived" if any_may_have_arrived(claims) else None

    # What became of a message that may have been sent

    def uncertain(self, claims: Sequence[Claim]) -> str | None:
        """Answer for a message that is uncertain: of one of its claims nobody knows what came of it."""
        if any(isinstance(claim.recorded, Accepted) for claim in claims):
            return "its provider has accepted it, and its worker wrote that down"
        return None if any(map(was_once_unknown, claims)) else "every call of it is known to be refused"

    def left_uncertain(
        self, plan: JobPlan, job_id: UUID, channel: Channel, claims: Sequence[Claim], *, store_now: float
    ) -> str | None:
        """Answer for a message that is not replayed, and so stays uncertain.

        That is right after a cancel and after its time; where its replay was refused for good, or too many calls were
        in vain; and where a second call may be a second message, unless its type prefers that to a loss and has not had
        its one replay.
        """
        if self.canceled(job_id, plan) is None or self.expired(plan, store_now=store_now) is None:
            return None
        made = [claim for claim in claims if not isinstance(claim.recorded, NotCalled)]
        if made and isinstance(made[-1].recorded, Refused):
            return None
        if sum(isinstance(claim.recorded, Unknown) for claim in made) >= ATTEMPTS or len(made) >= ATTEMPTS_LOST:
            return None
        first = next((claim for claim in claims if was_once_unknown(claim)), None)
        if first is None:
            return "every call of it is known to be refused"
        window = self._windows[channel]
        left = first.store_at + window - MARGIN_SECONDS - store_now
        if window >= WINDOW_SECONDS and left > self.notes.set_back + _ROUNDING:
            return "its provider de-duplicates, and it was not replayed"
        prefers = _DEFINITIONS[plan.type].uncertain_policy is UncertainPolicy.PREFER_DUPLICATE
        if prefers and claims[-1] is first:
            return "its type prefers a duplicate, and it was not replayed"
        return None

    def evident(self, row: RowName, status: OutgoingStatus) -> str | None:
        """Answer for a message of which a report is shown: its provider sent that report, or accepted it at least."""
        if not self.ledger.accepted(row):
            return "no provider accepted it"
        if status is OutgoingStatus.SENT_TO_PROVIDER or any(
            one.status is status for one in self.ledger.receipts_of(row)
        ):
            return None
        return f"its provider never reported {status}"

    def visible(self, receipt: Receipt, claims: Sequence[Claim]) -> bool:
        """Tell whether a receipt must be seen on its message: the platform can tell which message it is about.

        It names our own id, or an id of the provider that a worker has heard and written down.
        """
        if receipt.taken_at is None:
            return False
        ids = [claim.recorded.provider_message_id for claim in claims if isinstance(claim.recorded, Accepted)]
        return receipt.names_ours or receipt.provider_message_id in ids

    # What was sent

    def called(self, plan: JobPlan, *, now: float, store_now: float) -> str | None:
        """Answer for a claim of a message: its type was not off all the time, and it is neither too early nor late."""
        if self.entitled.enabled(plan, Window(self._first(plan), now)) == {False}:
            return f"the type {plan.type} was off all the time"
        early = self._earliest_start(plan) - store_now
        if early > _ROUNDING:
            return f"it was asked for {early:.3f} s later"
        ttl, latest = _DEFINITIONS[plan.type].ttl_seconds, self._latest_start(plan)
        if ttl is not None and latest is not None and store_now > latest + ttl + _ROUNDING:
            return f"its time was over {store_now - latest - ttl:.3f} s before"
        return None

    def content(self, plan: JobPlan, call: LedgerCall) -> str | None:
        """Answer for the content of a call: what the client gave, in the edition that held when it was accepted."""
        sends = self.notes.sends_of(plan.number)
        promised = [send for send in sends if send.promised_at is not None]
        payloads = {send.payload for send in promised or sends}
        editions = self.notes.edition[plan.type].may_have_been(
            since=self._first(plan), until=min((send.promised_at or call.at for send in promised), default=call.at)
        )
        texts = [
            content.merged(
                plan,
                content.text_of(plan, payload),
                edition,
                channel=call.row.channel,
                destination=call.destination,
            )
            for payload in sorted(payloads)
            for edition in sorted(editions)
        ]
        seen = content.seen(call.content)
        return None if seen in texts else f"it says {seen}, and not {' or '.join(map(str, texts))}"

    def destination(self, plan: JobPlan, call: LedgerCall, window: Window) -> str | None:
        """Answer for the destination of a call: where somebody who may get it was reached when that was decided."""
        if self.addressee(plan, call, window) is not None:
            return None
        return f"it goes to {call.destination}, where nobody is reached who may get it"

    def addressee(self, plan: JobPlan, call: LedgerCall, window: Window) -> Addressee | None:
        """Find the recipient whom a call reaches."""
        for one in sorted(self.entitled.expected(plan, window).may, key=str):
            if (one.channel, one.destination) == (call.row.channel, call.destination):
                return one.to
        return None

    def _first(self, plan: JobPlan) -> float:
        """Say when a notification was first asked for."""
        return self.notes.sends_of(plan.number)[0].at

    def _earliest_start(self, plan: JobPlan) -> float:
        """Say from when on a notification may be sent, by the store's clock; its time to live counts from there."""
        sends = self.notes.sends_of(plan.number)
        return min(max(send.store_at - self.notes.set_back, send.store_not_before) for send in sends)

    def _latest_start(self, plan: JobPlan) -> float | None:
        """Say when a notification was accepted and could be sent at the latest; None if nobody was promised it."""
        sends = self.notes.sends_of(plan.number)
        promised = [send.store_promised_at for send in sends if send.promised_at is not None]
        if not promised:
            return None
        return max(min(promised) + self.notes.set_back, *(send.store_not_before for send in sends))


_ROUNDING: Final = 0.001
"""Seconds by which instants may round apart."""


def lane_of(plan: JobPlan) -> Lane:
    """Say in which lane the messages of a notification are."""
    return _DEFINITIONS[plan.type].lane


def definition_of(plan: JobPlan) -> Definition:
    """Return the type of a notification."""
    return _DEFINITIONS[plan.type]


def any_may_have_arrived(claims: Sequence[Claim]) -> bool:
    """Tell whether nobody knows what came of some claim of a message."""
    return any(may_have_arrived(claim) for claim in claims)


def may_have_arrived(claim: Claim) -> bool:
    """Tell whether nobody knows what came of a claim: its outcome was not written down, or is unknown."""
    return claim.recorded is None or isinstance(claim.recorded, Unknown)


def was_once_unknown(claim: Claim) -> bool:
    """Tell whether at any time nobody knew what came of a claim, even if a late reply has told since."""
    return may_have_arrived(claim) or claim.rescued_at is not None
