"""The pump: claim due messages for the call slots that are free, start their calls, record their outcomes.

A step records the outcomes that came in, claims for the free slots and starts those calls; it never waits for the
slowest. Whatever a call needs is in memory before the claim; a message whose template is not goes back as *not called*
and the template is fetched before the next claim.

Where merging is done apart from this process, a step does not wait for it either: what was claimed of each flow is
called when it is merged, and until then nothing more is claimed of that flow. So a tenant whose merges take long, or
never end, keeps no other tenant waiting.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

import structlog

from clarion.domain.backoff import not_called
from clarion.domain.call_times import CALL_TIMES, CallTimes
from clarion.domain.claim import CallResult, ClaimedMessage, FlowHead, FlowQuota, LowMark
from clarion.domain.identity import Lane
from clarion.domain.share import Share
from clarion.errors import ClarionError, OperatorError
from clarion.pipeline.distribute.claim_size import ClaimSizes
from clarion.pipeline.distribute.open_calls import OpenCalls
from clarion.pipeline.distribute.prepare import Preparation, Prepared
from clarion.ports.clock import Clock, Ids
from clarion.ports.queue import QueueStore

DISCOVER_EVERY: Final = 0.25
"""Seconds between two looks for flows, unless a hint asks for one at once."""

LOW_MARKS_FOR: Final = 10.0
"""Seconds a low mark is trusted: a row that was pushed behind it is found after that at the latest."""

COMMITTED_WITHIN: Final = timedelta(seconds=1)
"""A row is due from when its transaction began, and seen when it is committed. Once a flow has nothing more to give,
its low mark goes back by this much, so that such a row is found at the next look."""

log = structlog.get_logger("clarion.pipeline")


class Distribute:
    """The third stage, for the routes of one worker."""

    def __init__(
        self,
        *,
        queue: QueueStore,
        routes: Mapping[str, str],
        preparation: Preparation,
        calls: OpenCalls,
        clock: Clock,
        ids: Ids,
        times: CallTimes = CALL_TIMES,
    ) -> None:
        """Serve these routes (route → account), a row under a lease that outlasts its call and its record (I-20)."""
        self._queue = queue
        self._routes = routes
        self._preparation = preparation
        self._calls = calls
        self._clock = clock
        self._ids = ids
        self._times = times
        self._claim_sizes = ClaimSizes()
        self._heads: dict[int, FlowHead] = {}
        self._discovered = float("-inf")
        self._next_due = float("inf")
        self._lows: dict[int, LowMark] = {}
        self._lows_since = 0.0
        self._share = Share()
        self._held: dict[tuple[UUID, int], tuple[Lane, str]] = {}  # whose the slots are, by claim token and row
        self._merging: set[int] = set()  # flows whose claim is being made ready
        self._stopping = False

    @property
    def idle(self) -> bool:
        """Whether no call is open and nothing waits to be recorded."""
        return self._calls.busy == 0

    @property
    def rest(self) -> float:
        """Seconds until this pump has something to do by itself; an outcome or a hint comes earlier."""
        until_record = self._calls.until_record
        if until_record is not None:
            return until_record
        if self._stopping or self._is_full:
            return float("inf")  # nothing can be claimed before an outcome comes, even if rows are due
        return max(0.0, self._next_due - self._clock.monotonic(), self._until_discovery())

    def stop(self) -> None:
        """Claim nothing more; calls that are open go on to their end and are recorded."""
        self._stopping = True
        self._calls.hurry()

    def hint(self) -> None:
        """Look for flows at once instead of waiting for the next round."""
        self._discovered = float("-inf")
        self._calls.wake.set()

    async def step(self) -> int:
        """Record what came back and claim for the free slots; return how many messages were touched."""
        self._calls.give_up()
        done = await self._record()
        return done if self._stopping else done + await self._claim()

    @property
    def _is_full(self) -> bool:
        return self._calls.busy >= self._calls.slots.count

    async def _record(self) -> int:
        """Record the outcomes that came in, if it is worth a statement; they are kept until they are recorded."""
        results = self._calls.to_record()
        if not results:
            return 0
        try:
            await self._queue.record_outgoing(results, actor="distribute")
        except OperatorError:
            raise  # the loop tries again; a row whose lease ends before that becomes Uncertain
        except ClarionError:
            await self._record_apart(results)
        self._calls.recorded(len(results))
        for result in results:
            del self._held[result.claim_token, result.id]
        if self._heads:
            self._next_due = self._clock.monotonic()  # a closed row may have made the next of its order key due
        else:
            self._discovered = float("-inf")
        return len(results)

    async def _record_apart(self, results: Sequence[CallResult]) -> None:
        """Record outcomes one by one, so that only the one which cannot be stored is left to become Uncertain."""
        for result in results:
            try:
                await self._queue.record_outgoing([result], actor="distribute")
            except OperatorError:
                raise
            except ClarionError:
                log.exception("an outcome cannot be recorded", outgoing_id=result.id)

    async def _claim(self) -> int:
        """Claim as many rows as there are free slots, and start their calls."""
        if self._is_full:
            return 0
        await self._discover()
        if not (quotas := self._quotas()):
            if self.idle:
                self._calls.slots.rest()
            return 0
        token, asked_at = self._ids.new_guid(), self._clock.monotonic()
        claimed = await self._queue.claim_outgoing(quotas, token=token, lease=self._times.lease, actor="distribute")
        self._calls.take(len(claimed))
        self._calls.slots.claimed(len(claimed), asked=sum(quota.quota for quota in quotas))
        self._after_claim(quotas, claimed)
        if self._preparation.is_apart:
            for flow_id, messages in _by_flow(claimed).items():
                self._merging.add(flow_id)
                self._calls.beside(self._make_ready(messages, asked_at))
        else:
            await self._make_ready(claimed, asked_at)
        return len(claimed) or len(self._heads)  # where flows gave nothing, others have their part without a rest

    async def _make_ready(self, claimed: Sequence[ClaimedMessage], asked_at: float) -> None:
        """Prepare the calls of claimed messages and start them, all of them before the first leaves.

        An HTTP client's thread that gets its calls one right after the other does not go to sleep in between.
        """
        try:
            prepared = await self._preparation.prepare(claimed, asked_at=asked_at, merge_max=self._times.merge_max)
        except Exception:  # a defect; without an outcome the slots would never be free again
            log.exception("a claim could not be prepared")
            none = [(message, not_called(message, reason="it could not be prepared")) for message in claimed]
            prepared = Prepared([*none], {}, out_of_time=False)
        finally:
            self._merging -= {message.flow_id for message in claimed}
        begin_until = asked_at + self._times.begins_within.total_seconds()
        for message, ready in prepared.messages:
            self._calls.start(message, ready, begin_until=begin_until)
        self._claim_sizes.learn(
            prepared, merge_max=self._times.merge_max.total_seconds(), slots=self._calls.slots.count
        )
        if self._preparation.is_apart:
            self._calls.wake.set()  # its flow may be claimed from again

    async def _discover(self) -> None:
        """Bring into memory what the next claim and its calls need: flows with work, keys and templates."""
        now = self._clock.monotonic()
        if now - self._lows_since > LOW_MARKS_FOR:
            self._lows, self._lows_since = {}, now
        if not self._until_discovery():
            self._discovered = now
            found = await self._queue.discover_flows(routes=tuple(self._routes), lows=self._lows)
            self._heads = {head.flow_id: head for head in found.heads}
            until_due = float("inf") if found.next_due_in is None else found.next_due_in.total_seconds()
            self._next_due = self._clock.monotonic() + until_due
        broken = await self._preparation.open_tenants({head.tenant_id for head in self._heads.values()})
        if broken:  # left out, so that other tenants need not wait
            self._heads = {flow_id: head for flow_id, head in self._heads.items() if head.tenant_id not in broken}
        await self._preparation.fetch()

    def _until_discovery(self) -> float:
        """Return the seconds until flows are looked up again; the pump rests no less, or it would never rest."""
        return max(0.0, self._discovered + DISCOVER_EVERY - self._clock.monotonic())

    def _quotas(self) -> list[FlowQuota]:
        """Share the free slots out among the flows whose account is at work."""
        heads = [
            head
            for head in self._heads.values()
            if head.flow_id not in self._merging and self._calls.accounts.is_at_work(self._account(head))
        ]
        shares = self._share.allot(heads, slots=self._calls.slots.count, held=Counter(self._held.values()))
        return [
            FlowQuota(
                flow_id=flow_id,
                quota=min(self._claim_sizes.at_most(flow_id, quota), self._at_once),
                account=self._account(self._heads[flow_id]),
                low=self._lows.get(flow_id),
            )
            for flow_id, quota in shares.items()
        ]

    @property
    def _at_once(self) -> int:
        """How many messages of one flow are made ready at once: apart, half of the slots stay for all the others."""
        return max(1, self._calls.slots.count // 2) if self._preparation.is_apart else self._calls.slots.count

    def _account(self, head: FlowHead) -> str:
        """Return the account that a flow is pinned to, or else its route's."""
        return head.account or self._routes[head.route]

    def _after_claim(self, quotas: list[FlowQuota], claimed: list[ClaimedMessage]) -> None:
        """Note whose the slots are now, move low marks on, and forget the flows that gave less than asked for."""
        for message in claimed:
            self._held[message.claim_token, message.id] = self._heads[message.flow_id].lane, message.tenant_id
        got = Counter(message.flow_id for message in claimed)
        last = {message.flow_id: message for message in claimed}
        for flow_id, message in last.items():
            if self._heads[flow_id].lane is not Lane.CRITICAL:
                self._lows[flow_id] = LowMark(due_at=message.was_due_at, id=message.id)
        for quota in quotas:
            self._share.count(self._heads[quota.flow_id], got[quota.flow_id])
            if got[quota.flow_id] < quota.quota:
                self._heads.pop(quota.flow_id, None)
                if low := self._lows.get(quota.flow_id):
                    self._lows[quota.flow_id] = LowMark(due_at=low.due_at - COMMITTED_WITHIN, id=low.id)


def _by_flow(claimed: Sequence[ClaimedMessage]) -> Mapping[int, list[ClaimedMessage]]:
    flows: dict[int, list[ClaimedMessage]] = {}
    for message in claimed:
        flows.setdefault(message.flow_id, []).append(message)
    return flows
