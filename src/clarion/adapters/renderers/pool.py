"""Merging in processes of their own, so that no template can hurt anybody but its own messages.

A few warm processes are asked through pipes (`process`, `child`); tenants take turns (`turns`). A process that ends in
the middle, because a merge ran on, because it needed too much memory or because somebody killed it, is replaced. What
it had answered stands; of the rest nobody knows which one it was, so each is answered by itself now; where a process
ends again, the item that it ended over is tried alone. Only an item of an accepted message that ends a process alone
counts against its template version, and three such ends quarantine it: from then on nothing is merged into it, and its
messages wait. A check or a preview that does so is refused.

Compiling, and the part of a check that merges nothing, stay in this process. Writes nothing; whoever opens the pool
hears of a quarantine and stores it.
"""

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

import msgspec
import structlog

from clarion.adapters.renderers.frame import ENCODER, Answer, Broken, Checked, Lacks, Refused, Request, Work, merged
from clarion.adapters.renderers.process import MODULE, Process
from clarion.adapters.renderers.renderer import LiquidRenderer
from clarion.adapters.renderers.turns import Batch, Care, Item, Turns
from clarion.domain.identity import Channel
from clarion.errors import InvalidInput, TooManyAtOnce
from clarion.ports.renderer import ENDING, LATE, QUARANTINED, Bundle, Merge, Merged, NotMerged, ending

TURN: Final = 0.05
"""Seconds of one turn: about what the heaviest merge takes that the step limits allow."""

WAITING_MAX: Final = 10_000
"""Items that wait at once; a pump has a thousand slots, and a server as many requests."""

KILLS_MAX: Final = 3
"""Merges that ended a process alone, until the template version is quarantined."""

KILLS_FOR: Final = 3600.0
"""Seconds for which such an end counts."""

FORBIDDEN_FOR: Final = 60.0
"""Seconds for which a pool itself merges nothing into a version that it quarantined: until it is stored, and everybody
asks the store. From then on the store alone decides, so a case that is resolved counts within a minute."""

SUSPECT_FOR: Final = 60.0
"""Seconds after an end for which its tenant has one process at most, so that the others are free for everybody else."""

START_AGAIN_AFTER: Final = 1.0
"""Seconds until a process is started in place of one that ended before it was ready."""

CLOSE_MAX: Final = 2.0
"""Seconds in which idle processes end by themselves when the pool is closed."""

PROCESSES_MAX: Final = 8
"""Of one pool. A thousand mails a second need no more."""

CHECK_MAX: Final = 5.0
"""Seconds for a check at the door, which answers after 8 whatever happens."""

COUNTED: Final = frozenset({Work.MERGE, Work.MISSING})
"""What messages wait for that were accepted. Only its ends count: with a check or a preview, anybody who may ask for
one could have a good template quarantined."""

HELD: Final = NotMerged(QUARANTINED, is_held=True)

ENDED: Final = "its merge ended the process that made it"

_NOTHING: Final[Mapping[str, object]] = {}

log = structlog.get_logger("clarion.renderers")


def processes_wanted() -> int:
    """Say how many processes this machine has use for: two at least, so that one may hang."""
    return min(max(2, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2), PROCESSES_MAX)


class PoolRenderer:
    """Liquid and MJML, merged elsewhere."""

    is_apart = True

    def __init__(
        self,
        *,
        processes: int | None = None,
        quarantined: Callable[[str, Bundle], None] = lambda _tenant_id, _bundle: None,
        module: str = MODULE,
    ) -> None:
        """Have so many processes, or as many as the machine has use for, each running a module.

        `quarantined` hears of each template version that is not merged any more.
        """
        self._module = module
        self._local = LiquidRenderer()
        self._most = processes or processes_wanted()
        self._quarantined = quarantined
        self._processes: dict[Process, list[Item]] = {}  # with what each is at work on
        self._turns = Turns()
        self._waiting = 0
        self._kills: dict[tuple[str, str], list[float]] = {}
        self._suspects: dict[str, float] = {}
        self._forbidden: dict[tuple[str, str], float] = {}  # until when
        self._starts: set[asyncio.Task[None]] = set()  # held, or else they could be collected while they run
        self._start_from = 0.0
        self._closed = False
        self.compile = self._local.compile
        self.check = self._local.check
        self.missing = self._local.missing

    @property
    def pids(self) -> list[int]:
        """The ids of the processes."""
        return [process.pid for process in self._processes if process.pid is not None]

    def warm(self) -> None:
        """Start a process before there is anything to merge; the others are started when they are needed."""
        self._start_one()

    async def close(self) -> None:
        """Answer for what waits, and end every process."""
        self._closed = True
        for item in [*self._turns.clear(), *(item for items in self._processes.values() for item in items)]:
            item.answer(NotMerged(ENDING))
        for start in self._starts:
            start.cancel()
        await asyncio.gather(*self._starts, return_exceptions=True)
        await asyncio.gather(*(process.close(seconds_max=CLOSE_MAX) for process in [*self._processes]))

    async def render(
        self,
        bundle: Bundle,
        channel: Channel,
        merges: Sequence[Merge],
        *,
        tenant_id: str,
        seconds_max: float,
        is_preview: bool = False,
    ) -> list[Merged]:
        """Have merges made, and say of each what came of it."""
        work = Work.PREVIEW if is_preview else Work.MERGE
        answers = await self._ask(work, bundle, channel, merges, tenant_id=tenant_id, seconds_max=seconds_max)
        return [merged(answer) for answer in answers]

    async def check_request(
        self,
        bundle: Bundle,
        data: Mapping[str, object],
        *,
        entity: Mapping[str, object] = _NOTHING,
        tenant_id: str,
        briefly: bool,
    ) -> bool:
        """Raise InvalidInput where the data cannot be merged; with `briefly` return False where that is not told soon.

        What can be told without a merge is told here, everything else by a process.
        """
        if briefly:
            if not self._local.is_parsed_soon(bundle):
                await self._local.parse(bundle)
            if self._local.is_certain(bundle, data, entity=entity):
                return True
        work = Work.LOOK if briefly else Work.CHECK
        merges = [Merge(data, entity=entity)]
        (answer,) = await self._ask(work, bundle, None, merges, tenant_id=tenant_id, seconds_max=CHECK_MAX)
        match answer:
            case Checked(told=told):
                return told
            case Refused():
                raise answer.error()
            case NotMerged(reason=reason) if reason == LATE:
                raise TooManyAtOnce(
                    "too many notifications are being checked whose templates take long to merge",
                    hint="try again in a moment, with fewer at once",
                )
            case NotMerged(reason=reason) if reason == ENDING:
                raise ending()
            case NotMerged(reason=reason) if reason == QUARANTINED:
                raise _cannot(reason, hint="publish a corrected version, or resolve the support case of this one")
            case NotMerged(reason=reason):
                raise _cannot(reason, hint="try again in a moment")
            case _:
                raise _cannot("the check failed")

    async def find_missing(
        self,
        bundle: Bundle,
        data: Sequence[Mapping[str, object]],
        *,
        entities: Sequence[Mapping[str, object]] = (),
        tenant_id: str,
        seconds_max: float,
    ) -> list[tuple[str, ...] | NotMerged]:
        """Name what each data lacks, with its entity, that the bundle's channels need."""
        each = zip(data, entities or [_NOTHING] * len(data), strict=True)
        merges = [Merge(one, entity=entity) for one, entity in each]
        answers = await self._ask(Work.MISSING, bundle, None, merges, tenant_id=tenant_id, seconds_max=seconds_max)
        found = [answer.names if isinstance(answer, Lacks) else merged(answer) for answer in answers]
        return [one if isinstance(one, (tuple, NotMerged)) else NotMerged("it could not be looked at") for one in found]

    async def _ask(
        self,
        work: Work,
        bundle: Bundle,
        channel: Channel | None,
        merges: Sequence[Merge],
        *,
        tenant_id: str,
        seconds_max: float,
    ) -> list[Answer | NotMerged]:
        """Put a batch in line and wait for its answers, but no longer than is of use."""
        if self._is_forbidden(tenant_id, bundle):
            return [HELD] * len(merges)
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds_max
        batch = Batch(work, bundle, channel, tenant_id=tenant_id, count=len(merges), until=until)
        items = [Item(batch, position, b"") for position in range(len(merges))]
        if seconds_max <= 0 or self._closed or self._waiting + len(items) > WAITING_MAX:
            return [NotMerged(ENDING if self._closed else LATE)] * len(merges)
        for item, merge in zip(items, merges, strict=True):
            try:
                item.data = ENCODER.encode(merge)
            except (OverflowError, TypeError, ValueError, RecursionError):
                item.answer(self._unwritable(work, bundle, merge))
        if not batch.open:
            return _answers(batch)
        self._waiting += len(items)
        try:
            self._turns.add(item for item in items if not item.is_answered)
            self._fill()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(until):
                    await batch.done
        finally:
            self._waiting -= len(items)
            for item in items:
                item.answer(NotMerged(LATE))
        return _answers(batch)

    def _unwritable(self, work: Work, bundle: Bundle, merge: Merge) -> Answer:
        """Answer for data that no frame can hold; it is larger or stranger than anything that can be merged."""
        try:
            if work is Work.MISSING:
                return Lacks(())
            for names in (merge.data, merge.entity, merge.recipient):
                self._local.check_data(names)
        except InvalidInput as error:
            return Refused.of(error)
        return Broken("data that cannot be written")

    def _fill(self) -> None:
        """Give every idle process something to do, and start one more where something is left."""
        now = asyncio.get_running_loop().time()
        self._suspects = {tenant_id: until for tenant_id, until in self._suspects.items() if until > now}
        busy = Counter(items[0].batch.tenant_id for items in self._processes.values() if items)
        for process in [process for process in self._processes if process.is_idle]:
            turn = self._next(busy, now)
            if not turn:
                return
            busy[turn[0].batch.tenant_id] += 1
            self._ask_process(process, turn)
        if self._turns and all(process.was_ready for process in self._processes):
            self._start_one()  # one after the other: each needs a processor for half a second

    def _next(self, busy: Counter[str], now: float) -> list[Item]:
        """Take the next turn in which something is left to do."""
        while turn := self._turns.take(lambda tenant_id: not (busy[tenant_id] and tenant_id in self._suspects)):
            wanted = [item for item in turn if not item.is_answered or _is_to_be_judged(item)]
            first = wanted[0].batch if wanted else None
            if first and not self._is_forbidden(first.tenant_id, first.bundle):  # a turn is of one bundle
                return wanted
            for item in wanted:
                item.answer(HELD)
        return []

    def _ask_process(self, process: Process, turn: list[Item]) -> None:
        """Ask a process for a turn."""
        first = turn[0]
        self._processes[process] = turn
        request = Request(
            work=first.batch.work,
            content_hash=first.batch.bundle.content_hash,
            bundle=None,
            channel=first.batch.channel,
            items=[msgspec.Raw(item.data) for item in turn],
            seconds=TURN,
            each=first.care is not Care.NONE,
        )
        process.ask(request, first.batch.bundle, partial(self._answered, process))

    def _answered(self, process: Process, answers: list[Answer]) -> None:
        """Pass a process's answers on to those who wait for them."""
        items = self._processes[process]
        for item, answer in zip(items, answers, strict=False):
            if isinstance(answer, Broken):
                log.error("a merge broke", error=answer.where)
            item.answer(answer)
        self._processes[process] = items[len(answers) :]

    def _idle(self, process: Process) -> None:
        """Have what a process did not begin wait for its tenant's next turn, and give the process something else."""
        left, self._processes[process] = self._processes[process], []
        self._turns.put_back(left)
        if not self._closed:
            self._fill()

    def _ended(self, process: Process) -> None:
        """Have another process take over from one that ended, with more care."""
        left = self._processes.pop(process)
        if self._closed:
            return
        if left:
            now = asyncio.get_running_loop().time()
            log.warning("a process that merges ended in the middle", tenant_id=left[0].batch.tenant_id, count=len(left))
            self._suspects[left[0].batch.tenant_id] = now + SUSPECT_FOR
            self._judge(left, now)
        if not process.was_ready:
            log.error("a process that merges ended before it was ready")
            self._start_later()
        self._start_one()
        self._fill()

    def _judge(self, left: list[Item], now: float) -> None:
        """Decide how the items are tried again that a process ended over; the first is the one that it was at."""
        first = left[0]
        if first.care is Care.ALONE:
            if first.batch.work in COUNTED:
                first.answer(NotMerged(ENDED))
                self._count_kill(first.batch, now)
            else:
                first.answer(Refused.of(_cannot(ENDED)))
            return
        if first.care is Care.EACH or len(left) == 1:
            first.care = Care.ALONE
        else:
            for item in left:
                item.care = Care.EACH
        self._turns.put_back(left)

    def _count_kill(self, batch: Batch, now: float) -> None:
        """Count an end against a template version, and quarantine it at the third."""
        version = (batch.tenant_id, batch.bundle.content_hash)  # another tenant may have published the same content
        recent = [at for at in self._kills.get(version, []) if at > now - KILLS_FOR]
        self._kills[version] = [*recent, now]
        if len(recent) + 1 >= KILLS_MAX:
            del self._kills[version]
            self._forbidden[version] = now + FORBIDDEN_FOR
            log.error("a template version is quarantined", tenant_id=batch.tenant_id)
            self._quarantined(batch.tenant_id, batch.bundle)

    def _is_forbidden(self, tenant_id: str, bundle: Bundle) -> bool:
        until = self._forbidden.get((tenant_id, bundle.content_hash))
        return until is not None and until > asyncio.get_running_loop().time()

    def _start_one(self) -> None:
        """Start a process unless there are enough."""
        is_early = asyncio.get_running_loop().time() < self._start_from
        if self._closed or is_early or len(self._processes) >= self._most:
            return
        process = Process(idle=self._idle, ended=self._ended)
        self._processes[process] = []
        start = asyncio.get_running_loop().create_task(self._begin(process))
        self._starts.add(start)
        start.add_done_callback(self._starts.discard)

    async def _begin(self, process: Process) -> None:
        """Start a process; try again later where the machine does not let us."""
        try:
            await process.start(self._module)
        except OSError as error:
            log.error("a process that merges cannot be started", error=str(error))  # noqa: TRY400  (not a defect)
            del self._processes[process]
            self._start_later()

    def _start_later(self) -> None:
        """Start no process for a while: what went wrong with this one goes wrong with the next."""
        loop = asyncio.get_running_loop()
        self._start_from = loop.time() + START_AGAIN_AFTER
        loop.call_at(self._start_from, self._start_one)


def _answers(batch: Batch) -> list[Answer | NotMerged]:
    return [answer or NotMerged(LATE) for answer in batch.answers]


def _is_to_be_judged(item: Item) -> bool:
    """Whether it is tried though nobody waits for it any more: alone, so that its end counts."""
    return item.care is Care.ALONE and item.batch.work in COUNTED


def _cannot(why: str, *, hint: str = "simplify the template or send less data") -> InvalidInput:
    return InvalidInput(f"it cannot be merged: {why}", field="data", hint=hint)
