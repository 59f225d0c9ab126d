"""Apart: where the code of a plugin runs, so that it can neither block our event loop nor keep the program from ending.

A plugin answers in a daemon thread with an event loop of its own. What is not answered in time is canceled; a thread
that does not give it up even then is left to itself and replaced. So many may be left, then nothing more is asked until
one of them comes back. A plugin that answers nothing rests for a while, so that those who are served with it do not
wait for it again and again. Reads and writes nothing; what an answer means is judged in `plugin`.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import timedelta
from pathlib import PurePath
from threading import Thread
from typing import Any, Final, TypeVar, cast

import msgspec

from clarion.errors import PluginFailed

ANSWER_MAX: Final = timedelta(seconds=10)
"""A plugin asks a database or another program; whoever needs longer reads ahead in a thread of its own."""

GIVE_UP_MAX: Final = timedelta(seconds=1)
"""How long a canceled question may take to end: what awaits something ends at once."""

STUCK_MAX: Final = 3
"""Threads of one plugin that may be left to themselves, each in a question that nobody waits for any more."""

UNANSWERED_MAX: Final = 3
"""Questions in a row. One source that a plugin cannot answer about is no reason to leave its others alone."""

REST: Final = timedelta(minutes=1)
"""Shorter than the first retry of what failed meanwhile."""

T = TypeVar("T")

Question = Callable[[], Coroutine[Any, Any, T]]
"""What is asked: called and awaited in the plugin's thread."""


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """For how long a plugin is waited for, and how many of its threads may be stuck."""

    answer_max: timedelta = ANSWER_MAX
    give_up_max: timedelta = GIVE_UP_MAX
    stuck_max: int = STUCK_MAX
    unanswered_max: int = UNANSWERED_MAX
    rest: timedelta = REST


PATIENCE: Final = Patience()


class Apart:
    """The threads of one plugin; used from one event loop, which it never blocks."""

    def __init__(self, name: str, *, patience: Patience = PATIENCE) -> None:
        """Be the threads of the plugin of this name; the first starts when it is first asked something."""
        self._name = name
        self._patience = patience
        self._room: _Room | None = None
        self._stuck: set[_Room] = set()
        self._unanswered = 0
        self._rests_until = float("-inf")

    async def ask(self, what: str, question: Question[T]) -> T:
        """Return what the plugin answers; raise PluginFailed where it raises, takes too long or is not asked any more.

        `what` names the question for people. When its asker is canceled, the question is canceled as well.
        """
        room = self._ready()
        asked = _Asked(room, question, ended=lambda: self._let_go(room))
        try:
            async with asyncio.timeout(self._patience.answer_max.total_seconds()):
                found = await asked.answer
        except TimeoutError:
            asked.cancel()
            self._note_unanswered(room)
            await self._leave_unless_over(room, asked)
            seconds = f"{self._patience.answer_max.total_seconds():g} seconds"
            raise self.failure(f"did not answer within {seconds} when it was asked {what}") from None
        except asyncio.CancelledError:
            asked.cancel()
            raise
        self._unanswered = 0
        match found:
            case _Raised(error=PluginFailed() as failure):
                raise failure
            case _Raised(error=error):
                raise self.failure(f"raised {_named(error)} when it was asked {what}")
            case _:
                return cast(T, found)

    def failure(self, what: str) -> PluginFailed:
        """Make the error that says what this plugin did."""
        return PluginFailed(f"the plugin {self._name!r} {what}", hint="mend the plugin; what needs it is tried again")

    async def close(self) -> None:
        """End its threads; one that is stuck is left behind, and ends with the program at the latest."""
        rooms = [room for room in (self._room, *self._stuck) if room is not None]
        self._room = None
        for room in rooms:
            room.stop()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience.give_up_max.total_seconds()):
                for room in rooms:
                    if room not in self._stuck:
                        await room.gone.wait()

    def _ready(self) -> "_Room":
        """Return the thread that answers; raise where too many do not, or where it rests."""
        if asyncio.get_running_loop().time() < self._rests_until:
            raise self.failure("rests for a while: it did not answer again and again")
        if self._room is None or self._room.gone.is_set():
            if len(self._stuck) >= self._patience.stuck_max:
                raise self.failure(f"is not asked any more: {len(self._stuck)} of its threads are stuck")
            self._room = _Room(self._name)
        return self._room

    def _note_unanswered(self, room: "_Room") -> None:
        """Count a question that was not answered; after a rest the first such one begins the next."""
        self._unanswered += 1
        if self._unanswered >= self._patience.unanswered_max:
            self._unanswered = self._patience.unanswered_max - 1
            self._rests_until = room.home.time() + self._patience.rest.total_seconds()

    def _let_go(self, room: "_Room") -> None:
        """End a thread that was replaced, once nothing is under way in it any more."""
        if room in self._stuck and not room.open:
            self._stuck.discard(room)
            room.stop()

    async def _leave_unless_over(self, room: "_Room", asked: "_Asked") -> None:
        """Wait a moment for a canceled question to end, and replace its thread where it does not."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience.give_up_max.total_seconds()):
                await asked.over.wait()
                return
        self._stuck.add(room)
        if self._room is room:
            self._room = None


class _Room:
    """One daemon thread with an event loop of its own; `open` counts the questions in it that have not ended."""

    def __init__(self, name: str) -> None:
        self.open = 0
        self.home = asyncio.get_running_loop()
        self.loop = asyncio.new_event_loop()
        self.gone = asyncio.Event()
        self._stop = asyncio.Event()
        Thread(target=self._serve, name=f"clarion-plugin-{name}", daemon=True).start()

    def stop(self) -> None:
        """End it as soon as it is back; what is under way in it is canceled."""
        _call(self.loop, self._stop.set)

    def _serve(self) -> None:
        """Serve questions until told to stop, or until the plugin ends the thread by itself."""
        with asyncio.Runner(loop_factory=lambda: self.loop) as runner, suppress(KeyboardInterrupt, SystemExit):
            runner.run(self._wait())
        _call(self.home, self.gone.set)

    async def _wait(self) -> None:
        await self._stop.wait()


class _Raised(msgspec.Struct, frozen=True):
    """What a question raised instead of answering."""

    error: BaseException


class _Asked:
    """One question under way: `answer` has what came of it, `over` is set when it has ended."""

    def __init__(self, room: _Room, question: Question[object], *, ended: Callable[[], None]) -> None:
        """Have it answered in this thread; `ended` is called in the asker's loop."""
        self.answer: asyncio.Future[object] = room.home.create_future()
        self.over = asyncio.Event()
        self._room = room
        self._question = question
        self._ended = ended
        self._task: asyncio.Task[object] | None = None
        room.open += 1
        if not _call(room.loop, self._begin):
            self._end(_Raised(SystemExit()))  # the thread has ended between two questions

    def cancel(self) -> None:
        """Cancel it; whether it heeds that is the plugin's."""
        _call(self._room.loop, lambda: self._task is not None and self._task.cancel())

    def _begin(self) -> None:
        self._task = self._room.loop.create_task(self._run())
        self._task.add_done_callback(self._tell)

    async def _run(self) -> object:
        """Ask, and take whatever is raised for an answer: a plugin must not end the thread that others wait for."""
        try:
            return await self._question()
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return _Raised(error)
        except BaseException as error:  # noqa: BLE001  a stranger's code may raise anything, and it is all answered
            return _Raised(error)

    def _tell(self, task: asyncio.Task[object]) -> None:
        found = _Raised(asyncio.CancelledError()) if task.cancelled() else task.result()
        _call(self._room.home, lambda: self._end(found))

    def _end(self, found: object) -> None:
        self._room.open -= 1
        self.over.set()
        if not self.answer.done():
            self.answer.set_result(found)
        self._ended()


def _call(loop: asyncio.AbstractEventLoop, what: Callable[[], object]) -> bool:
    """Have something called in a loop of another thread; False where that loop has ended."""
    try:
        loop.call_soon_threadsafe(what)
    except RuntimeError:
        return False
    return True


def _named(error: BaseException) -> str:
    """Name what was raised, and where: not in its own words, which may hold what is private."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    code = None if trace is None else trace.tb_frame.f_code
    where = "" if trace is None or code is None else f" at {PurePath(code.co_filename).name}:{trace.tb_lineno}"
    return type(error).__name__ + where
