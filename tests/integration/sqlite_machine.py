"""A machine with a file of SQLite on it, whose processes have wall clocks that may be wrong."""

from datetime import timedelta
from pathlib import Path

from clarion.adapters.stores.sqlite import InlineRunner, SqliteStore, open_store
from clarion.testing.clock import START_AT, ManualClock, ManualMachine


class Machine:
    """A machine that is started again and again, with a wall clock that may be wrong, and one file on it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.true_at = START_AT
        self._machine = ManualMachine("start 0")

    def clock(self, *, off_by: timedelta = timedelta()) -> ManualClock:
        """The clock of a process that is started now."""
        return ManualClock(self.true_at + off_by, machine=self._machine)

    def elapse(self, by: timedelta) -> None:
        self.true_at += by
        self._machine.elapsed += by

    def start_again(self, name: str = "start 1") -> None:
        self._machine = ManualMachine(name)

    async def open(self, *, off_by: timedelta = timedelta()) -> SqliteStore:
        return await self.open_with(self.clock(off_by=off_by))

    async def open_with(self, clock: ManualClock) -> SqliteStore:
        return await open_store(f"sqlite:///{self.path}", clock=clock, runner=InlineRunner())
