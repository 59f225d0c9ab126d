"""People: what somebody asks of a running installation besides notifications.

A person cancels, retries, edits an address, publishes, switches a type off, pauses a broadcast, each at one of the
doors. When, is decided in `moment`.
"""

from typing import Final
from uuid import UUID

from clarion.dispatch.request import Trace
from clarion.domain.claim import Gate
from clarion.domain.outgoing import OutgoingStatus
from clarion.testing.simulation import content, society
from clarion.testing.simulation.asking import Asking
from clarion.testing.simulation.client import Clients
from clarion.testing.simulation.moment import Act
from clarion.testing.simulation.node import Node
from clarion.testing.simulation.option import Fault
from clarion.testing.simulation.world import World

GATE_ACTS: Final = {Gate.OPEN: "open", Gate.PAUSED: "pause", Gate.CANCELED: "cancel"}
"""What the audit log calls the setting of a gate."""


class People(Asking):
    """Everybody who has a say in one run."""

    def __init__(self, world: World, clients: Clients) -> None:
        """Act on a world, for the jobs of these clients."""
        super().__init__(world, chance="people")
        self._clients = clients
        self._edition = 1
        self._addresses = dict.fromkeys(range(society.PEOPLE), 1)

    @property
    def acts(self) -> dict[Fault, Act]:
        """What people do, by kind."""
        return {
            Fault.CANCEL: self._begin(self._cancel),
            Fault.RETRY: self._begin(self._retry),
            Fault.ADDRESS_EDIT: self._begin(self._edit_address),
            Fault.PUBLISH: self._begin(self._publish),
            Fault.SWITCH_OFF: self._begin(self._switch),
            Fault.GATE: self._begin(self._set_gate),
        }

    async def _cancel(self) -> None:
        """Cancel a job that somebody was promised: any, or one that seems to be stuck."""
        promised = list(self._clients.promises)
        if not promised:
            return
        stuck = [job_id for job_id in promised if self._is_stuck(job_id)]
        job_id = self._chance.choice(stuck if stuck and self._chance.random() < 0.5 else promised)
        self._world.trace(f"person: cancel job {job_id}")
        await self._ask(
            lambda door: door.platform.store.cancel_job(content.TENANT, job_id, actor="person"),
            self._notes("cancel", f"job {job_id}"),
        )

    def _is_stuck(self, job_id: UUID) -> bool:
        """Tell whether a message of a job is to be sent again."""
        scene = self._world.scene
        job = next((job for job in scene.jobs.values() if job.guid == str(job_id)), None)
        return job is not None and any(row.state is OutgoingStatus.RETRY_READY for row in scene.rows_of(job))

    async def _retry(self) -> None:
        """Retry a message that failed or is uncertain, as it looks to the person now."""
        failed = (OutgoingStatus.FAILED_FINAL, OutgoingStatus.UNCERTAIN)
        rows = [row for row in self._world.scene.outgoing.values() if row.status in failed]
        if not rows:
            return
        row = self._chance.choice(rows)
        self._world.trace(f"person: retry row {row.id} at version {row.version}")
        await self._ask(
            lambda door: door.platform.store.retry_outgoing(
                content.TENANT, row.id, version=row.version, actor="person", reason="please"
            ),
            self._notes("retry", f"outgoing {row.id}"),
        )

    async def _edit_address(self) -> None:
        """Let a person move to another address on every channel."""
        number = self._chance.randrange(society.PEOPLE)
        self._addresses[number] += 1
        edition = self._addresses[number]
        entry = society.person(number, edition=edition)
        self._world.directory.learn(number, edition=edition)
        self._world.trace(f"person: u{number} moves to {entry.contacts[0].destination}")

        async def edit(door: Node) -> None:
            await door.people.put(content.TENANT, [entry], trace=Trace(correlation_id="edit"))
            self._world.scene.edited_at[self._world.directory.hash_of(number)] = self._world.loop.time()

        asked = self._notes("move", f"user u{number}")
        self._world.truth.notes.address[number].change(asked, edition)
        await self._ask(edit, asked)

    async def _publish(self) -> None:
        """Publish every type anew."""
        edition = self._edition = 3 - self._edition
        asked = {one.key: self._notes("publish", f"template {one.key}") for one in content.DEFINITIONS}
        for key, one in asked.items():
            self._world.truth.notes.edition[key].change(one, edition)

        def published(key: str, version: int) -> None:
            asked[key].done(version, at=self._world.loop.time())
            self._world.scene.published_at[key] = self._world.loop.time()

        await self._ask(lambda door: self._world.publish(door.platform.store, edition=edition, published=published))

    async def _switch(self) -> None:
        """Switch a type off, or on again."""
        key = self._chance.choice(content.DEFINITIONS).key
        enabled = self._chance.random() < 0.5
        asked = self._notes("enable" if enabled else "disable", f"type {key}")
        self._world.truth.notes.enabled[key].change(asked, enabled)
        await self._ask(
            lambda door: door.platform.store.set_type_enabled(content.TENANT, key, enabled=enabled, actor="person"),
            asked,
        )

    async def _set_gate(self) -> None:
        """Pause the broadcast, open it again, or cancel it."""
        now, others = self._world.scene.gate, (Gate.PAUSED, Gate.PAUSED, Gate.OPEN, Gate.OPEN, Gate.CANCELED)
        gate = self._chance.choice([one for one in others if one is not now])
        self._world.trace(f"person: the broadcast shall be {gate}")
        await self._ask(
            lambda door: door.platform.store.set_gate(content.TENANT, content.BROADCAST, gate, actor="person"),
            self._notes(GATE_ACTS[gate], f"broadcast {content.BROADCAST}"),
        )
