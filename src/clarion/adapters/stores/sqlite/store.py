"""The store's surface: every method of the ports, each a work that a runner runs in its thread.

A table of who does what, and how urgently: what is ensured first, because an empty set asks nobody, then all the rest
in one line each. What the methods do lives in the modules that are named here.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeVar

from clarion.adapters.stores.shared.outgoing import ensure_outgoing_messages
from clarion.adapters.stores.shared.store import SharedStore, Urgency
from clarion.adapters.stores.shared.store import Work as SharedWork
from clarion.adapters.stores.shared.transaction import finished
from clarion.adapters.stores.sqlite.core import SqliteCore, Work
from clarion.adapters.stores.sqlite.outgoing import insert_messages
from clarion.adapters.stores.sqlite.queue import claim, stage
from clarion.adapters.stores.sqlite.runner import Runner
from clarion.adapters.stores.sqlite.session import Transaction
from clarion.domain.ensured import Ensured
from clarion.domain.identity import Lane
from clarion.domain.outgoing import OutgoingItem, OutgoingMessage
from clarion.ports.ensure import bounded
from clarion.ports.snapshot import TableCopy

R = TypeVar("R")
P = ParamSpec("P")
T = TypeVar("T")


def _reads(
    work: Callable[Concatenate[Transaction, P], T],
) -> Callable[Concatenate["SqliteStore", P], Coroutine[Any, Any, T]]:
    """Make a method of a work that writes nothing."""

    async def method(store: "SqliteStore", /, *args: P.args, **named: P.kwargs) -> T:
        return await store.read(lambda transaction: work(transaction, *args, **named))

    return method


def _writes(
    urgency: Urgency, work: Callable[Concatenate[Transaction, P], T]
) -> Callable[Concatenate["SqliteStore", P], Coroutine[Any, Any, T]]:
    """Make a method of a work that is a transaction."""

    async def method(store: "SqliteStore", /, *args: P.args, **named: P.kwargs) -> T:
        return await store.write(lambda transaction: work(transaction, *args, **named), urgency=urgency)

    return method


class SqliteStore(SharedStore):
    """All records of all tenants, in one SQLite database."""

    def __init__(self, core: SqliteCore, *, runner: Runner) -> None:
        """Serve a core in the thread of a runner, which is this store's from now on."""
        self._core = core
        self._runner = runner

    async def open(self) -> None:
        """Open the database, or raise and leave nothing open."""
        try:
            await self._runner.run(self._core.open)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Close the connection and end the runner, after what was asked for before."""
        try:
            await self._runner.run(self._core.close, urgency=Urgency.LAST)
        finally:
            await self._runner.close()

    async def read(self, work: Work[T]) -> T:
        """Run a work that writes nothing."""
        return await self._runner.read(self._core, work)

    async def write(self, work: Work[T], *, urgency: Urgency) -> T:
        """Run a work as a transaction, and answer when it is committed."""
        return await self._runner.write(self._core, work, urgency=urgency)

    async def run(self, work: SharedWork[T], urgency: Urgency | None) -> T:
        """Run a shared work in the runner's thread."""
        if urgency is None:
            return await self.read(lambda transaction: finished(work(transaction)))
        return await self.write(lambda transaction: finished(work(transaction)), urgency=urgency)

    async def ensure_outgoing_messages(
        self, tenant_id: str, items: Sequence[OutgoingItem]
    ) -> list[Ensured[OutgoingMessage]]:
        """Insert the rows that are missing; a campaign's give way to everybody else's."""
        if not bounded(items):
            return []
        urgency = Urgency.LATER if all(item.lane is Lane.BULK for item in items) else Urgency.SOON
        return await self.run(
            lambda one: ensure_outgoing_messages(one, tenant_id, items, insert=partial(insert_messages, one)), urgency
        )

    async def paste_tenant(self, tables: Mapping[str, TableCopy]) -> None:
        """Put the rows of a snapshot in, in one transaction."""

        def paste(transaction: Transaction) -> None:
            for table, copy in tables.items():
                if copy.rows:
                    transaction.paste(table, copy.columns, copy.rows)

        await self.write(paste, urgency=Urgency.SOON)

    claim_stage = _writes(Urgency.SOON, stage.claim_stage)
    discover_flows = _reads(claim.discover_flows)
    claim_outgoing = _writes(Urgency.CLAIM, claim.claim_outgoing)
