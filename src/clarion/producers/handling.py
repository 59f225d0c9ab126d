"""Handling: claims events that wait, has every post-processor handle them, and writes how each of them ended.

Events are handled apart from each other and beside the next steps, so that a plugin that hangs or raises keeps nobody's
events waiting but its own. What may pass is tried again, later each time; what cannot be handled as it is fails, and
opens its support case. A worker that is lost leaves its claims to their lease. Reads and writes events; each one that
is over has its line in its entity's history.
"""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

import msgspec
import structlog

from clarion.domain.entity_event import EVENT_LEASE, EntityHistory, EventStatus, handled_line, wait_after_event_failure
from clarion.errors import BrokenInvariant, CallerError, OperatorError, Superseded, TooManyAtOnce
from clarion.ports.automation import AutomationStore
from clarion.ports.source import EventClaim, EventEnd, EventStore
from clarion.producers.post_processing import PostProcessors
from clarion.sealing.keyring import Keyring
from clarion.sealing.sources import opened_event_data

BATCH: Final = 100
"""Claimed at once: what changes together is planned together, and a worker that dies leaves little behind."""

CLAIMS_MAX: Final = 500
"""Held at once: enough that some which hang for half a minute leave room for the others."""

PATIENCE: Final = 0.05
"""Seconds that a step waits for what is under way: an ordinary batch takes about as long."""

log = structlog.get_logger("clarion.producers")


class _Handled(msgspec.Struct, frozen=True):
    """A claimed event, and how its handling ended."""

    claim: EventClaim
    end: EventEnd


class Handling:
    """The worker of events."""

    def __init__(
        self,
        *,
        store: EventStore,
        automation: AutomationStore,
        keyring: Keyring,
        processors: PostProcessors,
        lease: timedelta = EVENT_LEASE,
    ) -> None:
        """Claim from this store, open with these keys, and hand to these processors; write history to `automation`."""
        self._store = store
        self._automation = automation
        self._keyring = keyring
        self._processors = processors
        self._lease = lease
        self._tasks: set[asyncio.Task[_Handled]] = set()
        self._stopping = False

    def stop(self) -> None:
        """Claim nothing more; what is under way comes to its end."""
        self._stopping = True

    @property
    def idle(self) -> bool:
        """Whether nothing is under way."""
        return not self._tasks

    async def step(self) -> int:
        """Take events, and write down how those that are handled ended; return how many are at work or just were."""
        before = len(self._tasks)
        room = min(BATCH, CLAIMS_MAX - before)
        claims = [] if self._stopping or room <= 0 else await self._store.claim_events(limit=room, lease=self._lease)
        self._tasks |= {asyncio.get_running_loop().create_task(self._handle(claim)) for claim in claims}
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=PATIENCE)
        done = {task for task in self._tasks if task.done()}
        await self._finish([task.result() for task in done])
        self._tasks -= done  # not before: what the store could not take is given to it again by the next step
        return len(claims) + before

    async def _handle(self, claim: EventClaim) -> _Handled:
        """Have one event handled, and say how that ended."""
        try:
            told = opened_event_data(await self._keyring.get(claim.tenant_id), claim.event)
            counts = await self._processors.process(claim.tenant_id, claim.event, told)
        except (OperatorError, Superseded, TooManyAtOnce) as error:
            end = _again(claim, str(error))
        except CallerError as error:
            end = _end(claim, EventStatus.FAILED, reason=str(error))
        except Exception as error:  # a defect at one event is no reason to forget how the others ended
            log.exception("handling an event failed by a defect", event_type=claim.event.event_type)
            end = _again(claim, f"a defect of the program ({type(error).__name__}); its log has more")
        else:
            end = _end(claim, EventStatus.DONE, metrics=msgspec.json.encode(dict(counts), order="sorted").decode())
        return _Handled(claim, end)

    async def _finish(self, handled: Sequence[_Handled]) -> None:
        """Write down how events ended."""
        lines: defaultdict[str, list[EntityHistory]] = defaultdict(list)
        for one in handled:
            if one.end.to is not EventStatus.READY:
                event = one.claim.event
                lines[one.claim.tenant_id].append(handled_line(event, _in_words(one), at=event.occurred_at))
        for tenant_id, some in lines.items():
            await self._automation.write_history(tenant_id, some)
        if handled:
            await self._store.finish_events([one.end for one in handled])


def _in_words(one: _Handled) -> str:
    """Say what became of an event, for people."""
    if one.end.to is EventStatus.FAILED:
        return f"{one.claim.event.event_type} could not be handled: {one.end.reason}"
    counts: Mapping[str, int] = msgspec.json.decode(one.end.metrics or "{}", type=dict[str, int])
    said = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    return f"{one.claim.event.event_type} was handled: {said or 'nothing to do'}"


def _again(claim: EventClaim, reason: str) -> EventEnd:
    """Have an event handled again later, or fail where that has been tried often enough."""
    delay = wait_after_event_failure(claim.event.retry_count)
    if delay is None:
        return _end(claim, EventStatus.FAILED, reason=reason)
    return _end(claim, EventStatus.READY, reason=reason, delay=delay)


def _end(
    claim: EventClaim,
    to: EventStatus,
    *,
    reason: str | None = None,
    metrics: str | None = None,
    delay: timedelta = timedelta(),
) -> EventEnd:
    if claim.event.id is None:
        raise BrokenInvariant("a claimed event has no id")
    return EventEnd(
        tenant_id=claim.tenant_id,
        event_id=claim.event.id,
        version=claim.event.version,
        to=to,
        delay=delay,
        reason=reason,
        metrics=metrics,
    )
