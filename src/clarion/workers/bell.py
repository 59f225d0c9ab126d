"""The bell: whoever commits work rings it, whoever does that work wakes.

Inside a process it is a call, so an idle worker starts at once. Across processes a ring may be forwarded (on
PostgreSQL by a notification of its own, sent after the commit); a lost ring costs only the wait for the next poll.
"""

from collections.abc import Callable
from enum import StrEnum


class Topic(StrEnum):
    """What there is to do."""

    STAGES = "stages"  # pending jobs
    OUTGOING = "outgoing"  # due messages
    EVENTS = "events"  # receipts to apply
    DOUBTS = "doubts"  # sends to settle
    JANITOR = "janitor"  # nobody rings for it: it looks by itself


class Bell:
    """Wakes those who listen."""

    def __init__(self, forward: Callable[[Topic], None] | None = None) -> None:
        """Ring here, and through `forward` elsewhere."""
        self._forward = forward
        self._listeners: dict[Topic, list[Callable[[], None]]] = {topic: [] for topic in Topic}

    def listen(self, topic: Topic, hear: Callable[[], None]) -> None:
        """Call `hear` at every ring of the topic."""
        self._listeners[topic].append(hear)

    def ring(self, topic: Topic) -> None:
        """Wake this process's listeners and tell the others."""
        self.hear(topic)
        if self._forward is not None:
            self._forward(topic)

    def hear(self, topic: Topic) -> None:
        """Wake this process's listeners only: the ring came from elsewhere."""
        for hear in self._listeners[topic]:
            hear()
