"""A broadcast: its gate, which rows stand behind it, and what must hold while it is closed (I-16).

No producer of broadcasts is there yet. So a layer in front of the store makes the rows of some jobs part of one, as a
campaign's producer will; everything behind that is the real thing: flows, claims, counts and the sweep of what was
canceled.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final

import msgspec

from clarion.domain.claim import Gate
from clarion.domain.ensured import Ensured
from clarion.domain.outgoing import DUE, OutgoingItem, OutgoingMessage, OutgoingStatus
from clarion.testing.simulation import content
from clarion.testing.simulation.option import Options
from clarion.testing.simulation.scene import Change, Scene
from clarion.testing.simulation.verdict import Check, Evidence, Violation

Ensure = Callable[[str, Sequence[OutgoingItem]], Awaitable[list[Ensured[OutgoingMessage]]]]


class Broadcasting:
    """A store in which the rows of some jobs belong to the broadcast."""

    def __init__(self, store: object, options: Options, scene: Scene) -> None:
        """Stand in front of a store."""
        self._store = store
        self._scene = scene
        self._jobs = frozenset(plan.correlation_id for plan in options.jobs if plan.broadcast)

    def __getattr__(self, name: str) -> object:
        """Return what the store has."""
        return getattr(self._store, name)

    async def ensure_outgoing_messages(
        self, tenant_id: str, items: Sequence[OutgoingItem]
    ) -> list[Ensured[OutgoingMessage]]:
        """Ensure rows, those of the broadcast as such."""
        ensure: Ensure = self._store.ensure_outgoing_messages  # type: ignore[attr-defined]  # of any store
        return await ensure(tenant_id, [self._stamped(item) for item in items])

    def _stamped(self, item: OutgoingItem) -> OutgoingItem:
        """Put a row behind the gate, if it is of a job of the broadcast; the same for every retry."""
        mine = any(
            one.artifact_rk == item.notification_job and one.correlation_id in self._jobs
            for one in self._scene.schedulers.values()
        )
        return msgspec.structs.replace(item, broadcast=content.BROADCAST) if mine else item


def note(change: Change, evidence: Evidence) -> None:
    """Take down how the gate stands after a commit."""
    deed, scene = change.deed, evidence.scene
    if deed.method != "set_gate" or deed.answer is not True:
        return
    gate = Gate(str(deed.given["gate"]))
    waited = any(
        row.broadcast and row.state in DUE and row.due_at is not None and row.due_at <= change.at
        for row in scene.outgoing.values()
    )
    if scene.gate is Gate.PAUSED and gate is Gate.OPEN and waited:
        evidence.coverage.met("I-16: opened to rows that had waited behind it")
    scene.gate = gate
    scene.gate_was_canceled |= gate is Gate.CANCELED


def a_closed_gate_lets_nothing_through(change: Change, evidence: Evidence) -> Iterator[Violation]:
    """I-16: no row of a broadcast is claimed while its gate is closed, and none ends by it unless it was canceled."""
    scene = evidence.scene
    for old, new in change.outgoing:
        if not new.broadcast or old is None or old.status == new.status:
            continue
        if new.state is OutgoingStatus.SENDING and scene.gate is not Gate.OPEN:
            yield Violation("I-16", f"{change.deed} claimed row {new.id} while its broadcast was {scene.gate}")
        if new.state is OutgoingStatus.CANCELED and change.deed.method == "sweep_canceled" and new.cancel_at is None:
            evidence.coverage.met("I-16: canceled with its broadcast")
            if scene.gate is not Gate.CANCELED:
                yield Violation("I-16", f"{change.deed} canceled row {new.id} while its broadcast was {scene.gate}")


CHECKS: Final[tuple[Check, ...]] = (a_closed_gate_lets_nothing_through,)
