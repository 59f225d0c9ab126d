"""The memory store: every port method in plain dicts, as the readable specification and the oracle of the others.

A method runs without giving way to anybody, so it is one transaction by nature. Rows live by tenant, record type and
key; nothing is sealed or opened here, and nothing survives the process. `store` lists the methods, each answered by a
function of the module that is named after what it does; every change of an outgoing row's state is `moving.move`.
"""

from clarion.testing.memory.record import (
    DeliveryAttempt,
    FlowCount,
    Key,
    QueueEntry,
    Transition,
    WebhookEvent,
)
from clarion.testing.memory.store import MemoryStore

__all__ = ["DeliveryAttempt", "FlowCount", "Key", "MemoryStore", "QueueEntry", "Transition", "WebhookEvent"]
