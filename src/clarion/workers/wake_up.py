"""Wake-ups: whoever has committed work wakes those who do it.

Inside a process it is a call, so an idle worker starts at once. Across processes a wake-up may be forwarded (on
PostgreSQL by a notification of its own, sent after the commit); a lost wake-up costs only the wait for the next poll.
"""

from collections.abc import Callable
from enum import StrEnum


class Topic(StrEnum):
    """What there is to do."""

    STAGES = "stages"  # pending jobs
    OUTGOING = "outgoing"  # due messages
    EVENTS = "events"  # what was told: receipts to apply, events to handle
    SETTINGS = "settings"  # reminder settings and report subscriptions to plan anew
    DUE = "due"  # occurrences that may have fallen due
    UNCERTAIN = "uncertain"  # sends to settle
    JANITOR = "janitor"  # nobody is woken for it: it looks by itself


class WakeUp:
    """Wakes those who listen."""

    def __init__(self, forward: Callable[[Topic], None] | None = None) -> None:
        """Wake listeners here, and through `forward` elsewhere."""
        self._forward = forward
        self._listeners: dict[Topic, list[Callable[[], None]]] = {topic: [] for topic in Topic}

    def listen(self, topic: Topic, hear: Callable[[], None]) -> None:
        """Call `hear` at every wake-up of the topic."""
        self._listeners[topic].append(hear)

    def wake(self, topic: Topic) -> None:
        """Wake this process's listeners and tell the others."""
        self.hear(topic)
        if self._forward is not None:
            self._forward(topic)

    def hear(self, topic: Topic) -> None:
        """Wake this process's listeners only: the wake-up came from elsewhere."""
        for hear in self._listeners[topic]:
            hear()
