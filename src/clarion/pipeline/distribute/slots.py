"""Call slots: how many calls of one pump may be open at once.

A pump begins with a few. Calls are looked at in rounds, one round being as many answers as there are slots. After a
round the slots are

- halved, if the provider said that it is asked too much;
- halved, but not below those of the beginning, if its answers took longer than a second on average;
- doubled, if they took less than half a second, all of them were answers, and more rows wait than there are slots.

So no more calls are open than the provider answers in about a second, and a kill leaves no more than that uncertain
(I-14). Once nothing is left to do, a pump has no more slots than in the beginning. Memory of one pump; pure otherwise.
"""

from typing import Final

from clarion.domain.call import CallOutcome, Deferred, Unknown

SLOTS_AT_FIRST: Final = 32
"""Enough for the few hundred messages a second that most installations ever send."""

SLOTS_MAX: Final = 1000
"""More bring nothing on the machines that were measured."""

PROMPT: Final = 0.5
"""Seconds, on average, in which a provider answers that has room for twice as many calls."""

SLOW: Final = 1.0
"""Seconds, on average, in which a provider answers that has too many calls; twice as long as `PROMPT`, so that slots
which were just doubled are not halved again."""


class Slots:
    """The call slots of one pump."""

    def __init__(self, given: int | None = None, *, calls_max: int | None = None) -> None:
        """Have as many slots as were given, or as many as turn out to be of use; at most `calls_max`."""
        most = SLOTS_MAX if given is None else given
        self._most = most if calls_max is None else min(most, calls_max)
        self._first = min(SLOTS_AT_FIRST if given is None else given, self._most)
        self._is_short = False
        self._begin(self._first)

    def claimed(self, count: int, *, asked: int) -> None:
        """Hear how many rows came of a claim for the free slots: with fewer than asked for, none is left waiting."""
        self._is_short = count == asked

    def rest(self) -> None:
        """Begin anew with few slots: no call is open and no row waits."""
        if self.count > self._first:
            self._begin(self._first)

    def answered(self, outcome: CallOutcome, *, seconds: float) -> None:
        """Hear what came of a call."""
        self._answers += 1
        self._seconds += seconds
        self._is_throttled |= isinstance(outcome, Deferred) and outcome.throttled
        self._is_unanswered |= isinstance(outcome, Unknown)
        if self._answers < self.count:
            return
        mean = self._seconds / self._answers
        if self._is_throttled:
            self._begin(max(1, self.count // 2))
        elif mean > SLOW:
            self._begin(max(min(self.count, self._first), self.count // 2))
        elif mean < PROMPT and self._is_short and not self._is_unanswered:
            self._begin(min(self.count * 2, self._most))
        else:
            self._begin(self.count)

    def _begin(self, count: int) -> None:
        """Begin a round with so many slots."""
        self.count = count
        self._answers, self._seconds = 0, 0.0
        self._is_throttled = self._is_unanswered = False
