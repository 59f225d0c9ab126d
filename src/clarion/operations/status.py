"""What runs, what is in trouble and what waits, on one screen; and what of it a sender should know at once."""

import asyncio
from collections.abc import Iterable
from typing import Final

from clarion.client import wire_status
from clarion.domain.worker import served, summarise
from clarion.errors import OperatorError
from clarion.operations.shape import as_wire
from clarion.ports.clock import Clock
from clarion.ports.store import Store

BELIEVED_FOR: Final = 1.0
"""Seconds for which a process believes what it read of the workers, so that a send costs no read of its own."""


class Status:
    """How the installation stands."""

    def __init__(self, store: Store, *, clock: Clock) -> None:
        """Ask this store."""
        self._store = store
        self._clock = clock
        self._served: frozenset[str] = frozenset()
        self._read = float("-inf")
        self._reading = asyncio.Lock()

    async def show(self) -> wire_status.Status:
        """Say what runs, what is in trouble and what waits."""
        workers, gauge = await self._store.list_workers(), await self._store.measure()
        waiting = await self._store.measure_routes()
        channels = served(workers)
        return wire_status.Status(
            at=await self._store.now(),
            workers=tuple(
                as_wire(
                    one.heartbeat,
                    wire_status.WorkerLine,
                    started_at=one.started_at,
                    seen_at=one.seen_at,
                    lost=one.is_lost,
                )
                for one in workers
            ),
            accounts=tuple(as_wire(one, wire_status.AccountLine) for one in summarise(workers)),
            waiting=tuple(
                wire_status.ChannelLine(
                    channel=one.route, oldest_seconds=one.oldest_seconds, served=one.route in channels
                )
                for one in waiting
            ),
            notifications_waiting=gauge.stages_waiting,
            oldest_notification_seconds=gauge.oldest_stage_seconds,
            messages_waiting=gauge.outgoing_waiting,
            oldest_message_seconds=gauge.oldest_outgoing_seconds,
            sending=gauge.sending,
            uncertain=gauge.uncertain,
            open_support_cases=gauge.open_support_cases,
            occurrences_due=gauge.occurrences_due,
            oldest_occurrence_seconds=gauge.oldest_occurrence_seconds,
            occurrences_held=gauge.occurrences_held,
            occurrences_failed=gauge.occurrences_failed,
        )

    async def warnings(self, channels: Iterable[str]) -> tuple[str, ...]:
        """Say on which of these channels nobody sends now; nothing where the store cannot tell."""
        if self._clock.monotonic() - self._read >= BELIEVED_FOR:
            try:
                await self._read_workers()
            except OperatorError:
                return ()  # what was accepted is accepted all the same
        return tuple(
            f"no worker sends on {channel} now: what goes there waits for `clarion serve` or `clarion work`"
            for channel in dict.fromkeys(channels)
            if channel not in self._served
        )

    async def _read_workers(self) -> None:
        """Find out who sends now: of many who send at once one asks, and the others wait for its answer."""
        async with self._reading:
            if self._clock.monotonic() - self._read >= BELIEVED_FOR:
                self._served = served(await self._store.list_workers())
                self._read = self._clock.monotonic()
