"""Distribute: claim due messages for the call slots that are free, merge, call, record. A pump that waits for nobody.

A step records the outcomes that came in, claims for the free slots and starts those calls; it never waits for the
slowest. Between the claim's commit and the call nothing is read and nothing is waited for (I-14): providers, keys and
bundles are in memory before the claim, and a message whose bundle is not goes back as *not called* while it is fetched.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

import msgspec
import structlog

from clarion.domain.backoff import MISCONFIGURED_FOR, attempts_max, delay_after, not_called
from clarion.domain.call import Call, CallOutcome, Deferred, Misconfigured, NotCalled, Unknown
from clarion.domain.call_times import CALL_TIMES, CallTimes
from clarion.domain.claim import CallResult, ClaimedMessage, FlowHead, FlowQuota, LowMark
from clarion.domain.content import Content
from clarion.domain.hashing import keyed_digest
from clarion.domain.identity import Channel, Lane
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.seal import TenantKeys
from clarion.domain.share import allot
from clarion.errors import ClarionError, OperatorError, RenderFailed, SealBroken
from clarion.pipeline.distribute.calling import call_of, merge_data
from clarion.ports.clock import Clock, Ids
from clarion.ports.ensure import ITEMS_MAX
from clarion.ports.provider import Provider
from clarion.ports.queue import QueueStore
from clarion.ports.renderer import Bundle, Renderer
from clarion.ports.templates import TemplateName, Templates
from clarion.sealing.keyring import Keyring

RECORD_AFTER: Final = 0.02
"""Seconds an outcome may wait for others to share its statement."""

RECORD_AT_ONCE: Final = 0.25
"""The share of the slots whose outcomes are worth a statement without waiting."""

DISCOVER_EVERY: Final = 0.25
"""Seconds between two looks for flows, unless a hint asks for one at once."""

SHORTEST_WATCH: Final = 0.001
"""Seconds until the oldest call is looked at again: an event loop's timer may fire that much too early."""

LOW_MARKS_FOR: Final = 10.0
"""Seconds a low mark is trusted: a row that was pushed behind it is found after that at the latest."""

CONTENTS_MAX: Final = 200
"""Merged contents that are held for the next recipient of the same job: a few megabytes of mail."""

log = structlog.get_logger("clarion.pipeline")

CallObserver = Callable[[ClaimedMessage, CallOutcome, float], None]
"""Hears of every outcome and how many seconds it took, for those who count; it must not fail."""


class Distribute:
    """The third stage, for the channels of one worker."""

    def __init__(
        self,
        *,
        queue: QueueStore,
        keyring: Keyring,
        templates: Templates,
        renderer: Renderer,
        accounts: Mapping[str, str],
        providers: Mapping[str, Provider],
        slots: int,
        spawn: Callable[[Coroutine[None, None, None]], object],
        clock: Clock,
        ids: Ids,
        wake: asyncio.Event,
        times: CallTimes = CALL_TIMES,
        observe: CallObserver = lambda _message, _outcome, _took: None,
        resting: dict[str, float] | None = None,
    ) -> None:
        """Serve the routes in `accounts` (route → account) with at most `slots` calls at once.

        `spawn` starts a call beside the others, `wake` is set when there is something to record, and `observe` hears of
        every outcome. `resting` says until when each account at fault is left alone; the pumps of a process share it.
        """
        self._observe = observe
        self._queue = queue
        self._keyring = keyring
        self._templates = templates
        self._renderer = renderer
        self._accounts = accounts
        self._providers = providers
        self._slots = slots
        self._spawn = spawn
        self._clock = clock
        self._ids = ids
        self._wake = wake
        self._times = times
        self._timeout = times.timeout.total_seconds()
        self._in_flight = 0
        self._open: dict[asyncio.Task[object], float] = {}  # until when, the oldest first
        self._timer: asyncio.TimerHandle | None = None
        self._done: list[CallResult] = []
        self._oldest_done = 0.0
        self._heads: dict[int, FlowHead] = {}
        self._discovered = float("-inf")
        self._lows: dict[int, LowMark] = {}
        self._lows_since = 0.0
        self._wanted: set[TemplateName] = set()
        self._missing: set[TemplateName] = set()  # asked for, and not there
        self._contents: dict[tuple[UUID, Channel], tuple[Content, str]] = {}
        self._resting = {} if resting is None else resting
        self._turns = dict.fromkeys(Lane, 0)
        self._stopping = False
        self._next_due = float("inf")

    @property
    def idle(self) -> bool:
        """Whether no call is open and nothing waits to be recorded."""
        return self._in_flight == 0 and not self._done

    @property
    def _busy(self) -> int:
        """How many slots are taken: one is free again when its outcome is recorded, so a kill leaves no more (I-14)."""
        return self._in_flight + len(self._done)

    def stop(self) -> None:
        """Claim nothing more; calls that are open go on to their end and are recorded."""
        self._stopping = True

    @property
    def rest(self) -> float:
        """Seconds until this pump has something to do by itself; an outcome or a hint comes earlier."""
        if self._done:
            return self._until_record()
        if self._stopping or self._busy >= self._slots:
            return float("inf")  # an outcome must come first; a due time that has passed meanwhile is no reason to look
        return max(0.0, self._next_due - self._clock.monotonic(), self._until_discovery())

    def hint(self) -> None:
        """Look for flows at once instead of waiting for the next round."""
        self._discovered = float("-inf")
        self._wake.set()

    async def step(self) -> int:
        """Record what came back and claim for the free slots; return how many messages were touched."""
        self._give_up()
        done = await self._record()
        return done if self._stopping else done + await self._claim()

    async def _record(self) -> int:
        """Record the outcomes that came in, if it is worth a statement; they are kept until they are recorded."""
        if not self._done or not self._is_worth_recording():
            return 0
        results = self._done[:ITEMS_MAX]
        try:
            await self._queue.record_outgoing(results, actor="distribute")
        except OperatorError:
            raise  # the store will be asked again; should a lease run out before, its row is in doubt
        except ClarionError:
            await self._record_apart(results)
        now = self._clock.monotonic()
        del self._done[: len(results)]
        self._oldest_done = now  # of what came in meanwhile
        if self._heads:
            self._next_due = now  # what was closed may have made the next of its order key due
        else:
            self._discovered = float("-inf")
        return len(results)

    async def _record_apart(self, results: Sequence[CallResult]) -> None:
        """Record outcomes one by one, so that one which cannot be stored costs no other; its row will be in doubt."""
        for result in results:
            try:
                await self._queue.record_outgoing([result], actor="distribute")
            except OperatorError:
                raise
            except ClarionError:
                log.exception("an outcome cannot be recorded", outgoing_id=result.id)

    def _is_worth_recording(self) -> bool:
        """Tell whether outcomes are many, have waited long enough for others, or have none to wait for."""
        many = len(self._done) >= self._slots * RECORD_AT_ONCE
        return many or self._stopping or not self._in_flight or not self._until_record()

    async def _claim(self) -> int:
        """Claim as many rows as there are free slots, and start their calls."""
        if self._busy >= self._slots:
            return 0
        await self._prepare()
        if not (quotas := self._quotas()):
            return 0
        token, asked_at = self._ids.new_guid(), self._clock.monotonic()
        claimed = await self._queue.claim_outgoing(quotas, token=token, lease=self._times.lease, actor="distribute")
        # All are made ready before the first leaves: a client's thread that gets calls one after the other stays awake.
        for message, ready in [(message, self._ready(message, asked_at)) for message in claimed]:
            self._in_flight += 1
            if isinstance(ready, NotCalled):
                self._finish(message, ready)
            else:
                self._spawn(self._call(message, *ready))
        self._after_claim(quotas, claimed)
        return len(claimed)

    async def _prepare(self) -> None:
        """Bring into memory what calls will need: flows with work, their tenants' keys, bundles asked for before."""
        now = self._clock.monotonic()
        if now - self._lows_since > LOW_MARKS_FOR:
            self._lows, self._lows_since = {}, now
        if not self._until_discovery():
            self._discovered = now
            found = await self._queue.discover_flows(routes=tuple(self._accounts), lows=self._lows)
            self._heads = {head.flow_id: head for head in found.heads}
            until_due = float("inf") if found.next_due_in is None else found.next_due_in.total_seconds()
            self._next_due = self._clock.monotonic() + until_due
        for tenant_id in {head.tenant_id for head in self._heads.values()}:
            await self._open_tenant(tenant_id)
        if self._wanted:
            loaded = await self._templates.load(self._wanted)
            self._missing = (self._missing | self._wanted) - loaded.keys()
            self._wanted = set()

    async def _open_tenant(self, tenant_id: str) -> None:
        """Bring a tenant's keys into memory; one whose keys do not open is passed over, and keeps nobody waiting."""
        try:
            await self._keyring.get(tenant_id)
        except SealBroken as error:
            log.warning("a tenant's keys do not open", tenant_id=tenant_id, error=str(error))
            self._heads = {flow_id: head for flow_id, head in self._heads.items() if head.tenant_id != tenant_id}

    def _give_up(self) -> None:
        """End the calls that got no reply in time. One timer, for the oldest call, instead of one for each."""
        now = self._clock.monotonic()
        while self._open:
            task, until = next(iter(self._open.items()))
            if until > now:
                self._watch(until - now)
                return
            del self._open[task]
            task.cancel()

    def _watch(self, seconds: float) -> None:
        """Look at the oldest call again after so long, also while a step waits for the store."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(max(seconds, SHORTEST_WATCH), self._give_up)

    def _until_record(self) -> float:
        """Say how long outcomes may still wait for others to share their statement."""
        return max(0.0, self._oldest_done + RECORD_AFTER - self._clock.monotonic())

    def _until_discovery(self) -> float:
        """Say how long until flows are looked up again; a shorter rest would let the pump go round and round."""
        return max(0.0, self._discovered + DISCOVER_EVERY - self._clock.monotonic())

    def _quotas(self) -> list[FlowQuota]:
        """Share the free slots out among the flows whose account is at work."""
        now = self._clock.monotonic()
        heads = [head for head in self._heads.values() if self._is_at_work(self._account(head), now)]
        shares = allot(heads, slots=self._slots, busy=self._busy, turns=self._turns)
        for lane in {self._heads[flow_id].lane for flow_id in shares}:
            self._turns[lane] += 1
        return [
            FlowQuota(
                flow_id=flow_id,
                quota=quota,
                account=self._account(self._heads[flow_id]),
                low=self._lows.get(flow_id),
            )
            for flow_id, quota in shares.items()
        ]

    def _is_at_work(self, account: str, now: float) -> bool:
        """Tell whether calls can be made through an account: another worker's flows wait for that one."""
        if account not in self._providers and account not in self._resting:
            self._resting[account] = float("inf")
            log.warning("messages are bound to an account that is not served here", account=account)
        return self._resting.get(account, 0.0) <= now

    def _account(self, head: FlowHead) -> str:
        """Return the account that a flow is pinned to, or else its route's."""
        return head.account or self._accounts[head.route]

    def _after_claim(self, quotas: list[FlowQuota], claimed: list[ClaimedMessage]) -> None:
        """Move low marks on, and forget the flows that gave less than they were asked for."""
        got = Counter(message.flow_id for message in claimed)
        last = {message.flow_id: message for message in claimed}
        for flow_id, message in last.items():
            if self._heads[flow_id].lane is not Lane.CRITICAL:
                self._lows[flow_id] = LowMark(due_at=message.was_due_at, id=message.id)
        for quota in quotas:
            if got[quota.flow_id] < quota.quota:
                self._heads.pop(quota.flow_id, None)

    async def _call(self, message: ClaimedMessage, call: Call, content_hash: str) -> None:
        """Make one call; whatever happens, one result comes of it."""
        started, task = self._clock.monotonic(), asyncio.current_task()
        outcome: CallOutcome = Unknown(reason="the adapter broke in the middle of the call")
        try:
            if task is not None:
                self._open[task] = started + self._timeout
            if len(self._open) == 1:
                self._watch(self._timeout)
            outcome = await self._providers[message.account].send(call)
        except asyncio.CancelledError:
            if task not in self._open:  # we gave it up
                outcome = Unknown(reason=f"no reply within {self._timeout:g} s")
            raise
        finally:
            if task is not None:
                self._open.pop(task, None)
            self._finish(message, outcome, content_hash=content_hash, took=self._clock.monotonic() - started)

    def _ready(self, message: ClaimedMessage, asked_at: float) -> tuple[Call, str] | NotCalled:
        """Return a call and its content's hash, or say why there is none; no byte has left so far."""
        try:
            return self._put_together(message, asked_at)
        except RenderFailed as error:
            return NotCalled(reason=str(error), leads_to=OutgoingStatus.FAILED_FINAL)
        except ClarionError as error:
            return not_called(message, reason=str(error))
        except Exception:
            log.exception("a call could not be prepared", outgoing_id=message.id)
            return not_called(message, reason="it could not be prepared")

    def _put_together(self, message: ClaimedMessage, asked_at: float) -> tuple[Call, str] | NotCalled:
        """Open and merge in memory, and look whether the call may be made; the claim was asked for at `asked_at`."""
        keys = self._keyring.held(message.tenant_id)
        name = message.template_key or message.event_type
        bundle = self._templates.held(message.tenant_id, name, message.template_version or 0)
        if keys is None:
            return not_called(message, reason="the tenant's keys were not in memory yet")
        if bundle is None:
            template = (message.tenant_id, name, message.template_version)
            self._wanted.add(template)
            if template in self._missing:
                return not_called(message, reason=f"there is no template {name!r} in its version")
            return NotCalled(reason="the template was not in memory yet")  # however often: a young worker has none
        content, content_hash = self._merged(keys, bundle, message)
        if message.content_hash not in (None, content_hash):
            return NotCalled(
                reason="a retry repeats the same bytes or nothing, and these would differ (I-15)",
                leads_to=OutgoingStatus.FAILED_FINAL,
            )
        if not self._may_call(message, asked_at):
            return NotCalled(
                reason="not repeated: an earlier call may have arrived, and a second one would not be harmless now",
                leads_to=OutgoingStatus.UNCERTAIN,
            )
        return call_of(keys, message, content), content_hash

    def _merged(self, keys: TenantKeys, bundle: Bundle, message: ClaimedMessage) -> tuple[Content, str]:
        """Merge a job's data once for all of its recipients on a channel; job, data and version never change."""
        place = (message.job_guid, message.channel)
        merged = self._contents.get(place)
        if merged is None:
            content = self._renderer.render(bundle, message.channel, merge_data(keys, message))
            merged = content, keyed_digest(keys.identity_key, msgspec.to_builtins(content))
            if len(self._contents) >= CONTENTS_MAX:
                del self._contents[next(iter(self._contents))]
            self._contents[place] = merged
        return merged

    def _may_call(self, message: ClaimedMessage, asked_at: float) -> bool:
        """Tell whether a call would repeat none of which nobody knows, or could do so without harm."""
        if message.unproven_for is None or message.replay_authorised:
            return True
        # By the store's clock and what has passed since the claim was asked for: this host's own may be wrong.
        since_claim = timedelta(seconds=self._clock.monotonic() - asked_at)
        return self._providers[message.account].replay.allows(unproven_for=message.unproven_for + since_claim)

    def _finish(
        self, message: ClaimedMessage, outcome: CallOutcome, *, content_hash: str | None = None, took: float = 0.0
    ) -> None:
        """Put one outcome where the next step records it."""
        now = self._clock.monotonic()
        self._in_flight -= 1
        if isinstance(outcome, Misconfigured):
            self._resting[message.account] = now + MISCONFIGURED_FOR.total_seconds()
        if not self._done:
            self._oldest_done = now
        called = not isinstance(outcome, NotCalled)
        self._done.append(
            CallResult(
                id=message.id,
                bucket=message.bucket,
                claim_token=message.claim_token,
                attempt=message.attempts,
                outcome=outcome,
                delay=delay_after(message, outcome),
                final=isinstance(outcome, Deferred) and message.attempts >= attempts_max(message),
                content_hash=content_hash if called else None,
                latency_ms=round(took * 1000) if called else None,
            )
        )
        if len(self._done) == 1 or self._is_worth_recording():
            self._wake.set()  # the first one sets the time until all are recorded, those that follow change nothing
        self._observe(message, outcome, took)
