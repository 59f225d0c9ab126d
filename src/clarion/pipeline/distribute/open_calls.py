"""Open calls: started beside each other, ended by their reply or their time-out, kept until they are recorded."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Final

from structlog.contextvars import bind_contextvars

from clarion.domain.backoff import delay_after, is_last, rest_after
from clarion.domain.call import Call, CallOutcome, NotCalled, Unknown
from clarion.domain.call_times import CALL_TIMEOUT
from clarion.domain.claim import CallResult, ClaimedMessage
from clarion.pipeline.distribute.accounts import Accounts
from clarion.pipeline.distribute.prepare import Ready
from clarion.pipeline.distribute.slots import Slots
from clarion.ports.clock import Clock
from clarion.ports.ensure import ITEMS_MAX

RECORD_AFTER: Final = 0.02
"""Seconds an outcome may wait for others to share its statement."""

RECORD_AT_ONCE: Final = 0.25
"""The share of the slots whose outcomes are worth a statement without waiting."""

SHORTEST_WATCH: Final = 0.001
"""Seconds until the oldest call is looked at again: an event loop's timer may fire that much too early."""

CallObserver = Callable[[ClaimedMessage, CallOutcome, float], None]
"""Hears of every outcome and how many seconds it took, for those who count; it must not fail."""


class OpenCalls:
    """The calls of one pump, at most as many at once as it has slots.

    A slot is taken from the claim until the outcome is recorded, not only until the reply: so a kill leaves at most so
    many rows of which nobody knows whether they were sent (I-14).
    """

    def __init__(
        self,
        *,
        accounts: Accounts,
        slots: Slots,
        spawn: Callable[[Coroutine[None, None, None]], object],
        clock: Clock,
        wake: asyncio.Event,
        timeout: timedelta = CALL_TIMEOUT,
        observe: CallObserver = lambda _message, _outcome, _took: None,
    ) -> None:
        """Call through these accounts; `spawn` starts a call beside the others, `wake` is set when there is work."""
        self.accounts = accounts
        self.slots = slots
        self.wake = wake
        self._spawn = spawn
        self._clock = clock
        self._timeout = timeout.total_seconds()
        self._observe = observe
        self._in_flight = 0
        self._ends: dict[asyncio.Task[object], float] = {}  # when each call times out, the oldest first
        self._timer: asyncio.TimerHandle | None = None
        self._done: list[CallResult] = []
        self._oldest_done = 0.0
        self._hurried = False

    @property
    def busy(self) -> int:
        """How many slots are taken."""
        return self._in_flight + len(self._done)

    @property
    def until_record(self) -> float | None:
        """Seconds until outcomes are recorded even if no others come to share their statement; None where none wait."""
        return max(0.0, self._oldest_done + RECORD_AFTER - self._clock.monotonic()) if self._done else None

    def hurry(self) -> None:
        """Let outcomes wait for no others from now on."""
        self._hurried = True

    def take(self, count: int) -> None:
        """Take slots for messages that were claimed; each is started when its call is ready."""
        self._in_flight += count

    def beside(self, work: Coroutine[None, None, None]) -> None:
        """Do something beside the calls, such as making others ready."""
        self._spawn(work)

    def start(self, message: ClaimedMessage, ready: Ready, *, begin_until: float) -> None:
        """Start the call of a message that has its slot, or take down why there is none.

        After `begin_until`, by the monotonic clock, its lease could end before its outcome is recorded.
        """
        if isinstance(ready, NotCalled):
            self._finish(message, ready)
        else:
            self._spawn(self._call(message, *ready, begin_until=begin_until))

    def give_up(self) -> None:
        """End the calls that got no reply in time. One timer, for the oldest call, instead of one for each."""
        now = self._clock.monotonic()
        while self._ends:
            task, until = next(iter(self._ends.items()))
            if until > now:
                self._watch(until - now)
                return
            del self._ends[task]
            task.cancel()

    def to_record(self) -> list[CallResult]:
        """Return the outcomes that came in, if they are worth a statement; they are kept until they are `recorded`."""
        return self._done[:ITEMS_MAX] if self._done and self._is_worth_recording() else []

    def recorded(self, count: int) -> None:
        """Forget the oldest outcomes, which are stored now, and free their slots."""
        del self._done[:count]
        self._oldest_done = self._clock.monotonic()  # what came in meanwhile waits from now on

    def _is_worth_recording(self) -> bool:
        """Tell whether outcomes are many, have waited long enough for others, or have none to wait for."""
        many = len(self._done) >= self.slots.count * RECORD_AT_ONCE
        return many or self._hurried or not self._in_flight or not self.until_record

    def _watch(self, seconds: float) -> None:
        """Look at the oldest call again after so long, also while a step of the pump waits for the store."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(max(seconds, SHORTEST_WATCH), self.give_up)

    async def _call(self, message: ClaimedMessage, call: Call, content_hash: str, *, begin_until: float) -> None:
        """Make one call; whatever happens, one result comes of it."""
        bind_contextvars(correlation_id=message.correlation_id)  # in every line that is logged in this call's task
        started, task = self._clock.monotonic(), asyncio.current_task()
        if started > begin_until:  # the process stood still since the claim, or did something else
            self._finish(message, NotCalled(reason="too little was left of its lease", counts=False))
            return
        outcome: CallOutcome = Unknown(reason="the adapter broke in the middle of the call")
        try:
            if task is not None:
                self._ends[task] = started + self._timeout
            if len(self._ends) == 1:
                self._watch(self._timeout)
            outcome = await self.accounts.providers[message.account].send(call)
        except asyncio.CancelledError:
            if task not in self._ends:  # `give_up` ended it
                outcome = Unknown(reason=f"no reply within {self._timeout:g} s")
            raise
        finally:
            if task is not None:
                self._ends.pop(task, None)
            self._finish(message, outcome, content_hash=content_hash, took=self._clock.monotonic() - started)

    def _finish(
        self, message: ClaimedMessage, outcome: CallOutcome, *, content_hash: str | None = None, took: float = 0.0
    ) -> None:
        """Put one outcome where the next step records it."""
        self._in_flight -= 1
        if (pause := rest_after(outcome)) is not None:
            self.accounts.rest(message.account, pause)
        if not self._done:
            self._oldest_done = self._clock.monotonic()
        called = not isinstance(outcome, NotCalled)
        if called:
            self.slots.answered(outcome, seconds=took)
        self._done.append(
            CallResult(
                id=message.id,
                bucket=message.bucket,
                claim_token=message.claim_token,
                attempt=message.attempts,
                outcome=outcome,
                delay=delay_after(message, outcome),
                final=is_last(message, outcome),
                content_hash=content_hash if called else None,
                latency_ms=round(took * 1000) if called else None,
            )
        )
        if len(self._done) == 1 or self._is_worth_recording():
            self.wake.set()  # the first outcome sets the time of the record, those until then need wake nobody
        self._observe(message, outcome, took)
