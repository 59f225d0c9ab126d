"""Stores, providers and callers with a bug each, for the simulation to find. No product file changes.

A bug of the store stands behind the weather and the watch, as a bug of the real one would; a bug of a process stands in
front of both. `planted` says what must find each of them.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from uuid import UUID

import msgspec

from clarion.adapters.stores.query import Query
from clarion.adapters.stores.sqlite import SqliteStore
from clarion.adapters.stores.sqlite.session import Session
from clarion.domain.call import Accepted, Call, CallOutcome, Deferred, NotCalled, Replay, Unknown
from clarion.domain.claim import CallResult, ClaimedMessage, FlowQuota, Settlement, StageResult
from clarion.domain.ensured import Ensured
from clarion.domain.identity import Channel
from clarion.domain.notification import NotificationStatus
from clarion.domain.one_time_code import Erasure
from clarion.domain.outgoing import OutgoingItem, OutgoingMessage, OutgoingStatus
from clarion.errors import OperatorError
from clarion.ports.provider import EVERY_CHANNEL, Provider
from clarion.ports.store import Store
from clarion.ports.track import ProviderEvent
from clarion.testing.clock import SeededIds


class Planted:
    """A store with a bug: what is not overridden is the real one's."""

    def __init__(self, store: SqliteStore, session: Session) -> None:
        self.real = store
        self.session = session

    def __getattr__(self, name: str) -> Callable[..., Awaitable[object]]:
        method: Callable[..., Awaitable[object]] = getattr(self.real, name)
        return method

    def sql(self, text: str, **parameters: int | str) -> list[tuple[object, ...]]:
        with self.session.transaction() as transaction:
            return transaction.rows(Query(name="planted", reason="a bug", sql=text), **parameters)


class BeforeClaim(Planted):
    """Does something to the rows before every claim."""

    text = ""

    async def claim_outgoing(
        self, quotas: Sequence[FlowQuota], *, token: UUID, lease: timedelta, actor: str
    ) -> list[ClaimedMessage]:
        if self.text:
            self.sql(self.text)
        return await self.real.claim_outgoing(self.changed(quotas), token=token, lease=lease, actor=actor)

    def changed(self, quotas: Sequence[FlowQuota]) -> Sequence[FlowQuota]:
        return quotas


class OtherResults(Planted):
    """Records something else than what came back."""

    async def record_outgoing(self, results: Sequence[CallResult], *, actor: str) -> None:
        await self.real.record_outgoing([self.changed(one) for one in results], actor=actor)

    def changed(self, one: CallResult) -> CallResult:
        return one


class OtherSettlements(Planted):
    """Decides otherwise about uncertain sends."""

    async def settle_uncertain(self, settlements: Sequence[Settlement], *, actor: str) -> set[int]:
        left = {"replay": False, "counts_as_duplicate": False}
        return await self.real.settle_uncertain(
            [msgspec.structs.replace(one, **left) if self.forgets(one.id) else one for one in settlements], actor=actor
        )

    def forgets(self, row_id: int) -> bool:
        return True


class UnconditionalClaim(BeforeClaim):
    """Takes what another worker holds, as an update without its WHERE would."""

    text = (
        "UPDATE outgoing_message SET status = 'RetryReady', due_at = clarion_now(), lease_until = NULL"
        " WHERE status = 'Sending'"
    )


class CancelIsForgotten(BeforeClaim):
    """Claims what a person has canceled."""

    text = "UPDATE outgoing_message SET cancel_at = NULL WHERE due_at IS NOT NULL"

    async def sweep_canceled(self, *, limit: int) -> int:
        return 0


class GateIsForgotten(Planted):
    """Claims what stands behind a closed gate."""

    async def claim_outgoing(
        self, quotas: Sequence[FlowQuota], *, token: UUID, lease: timedelta, actor: str
    ) -> list[ClaimedMessage]:
        closed = [str(gate) for (gate,) in self.sql("SELECT gate FROM broadcast")]
        self.sql("UPDATE broadcast SET gate = 'Open'")
        claimed = await self.real.claim_outgoing(quotas, token=token, lease=lease, actor=actor)
        for gate in closed:  # there is one broadcast at most
            self.sql("UPDATE broadcast SET gate = :gate", gate=gate)
        return claimed


class CancelsUnasked(BeforeClaim):
    """Cancels every fifth row, though nobody canceled it."""

    text = "UPDATE outgoing_message SET cancel_at = clarion_now() WHERE due_at IS NOT NULL AND id % 5 = 0"


class ExpiresEarly(BeforeClaim):
    """Ends what has less than a minute left."""

    text = (
        "UPDATE outgoing_message SET expires_at = clarion_now()"
        " WHERE due_at IS NOT NULL AND expires_at < clarion_now() + 60000000"
    )


class TenTimesTheSlots(BeforeClaim):
    """Claims ten times as many rows as there are call slots."""

    def changed(self, quotas: Sequence[FlowQuota]) -> Sequence[FlowQuota]:
        return [msgspec.structs.replace(one, quota=one.quota * 10) for one in quotas]


class UnfencedFinish(Planted):
    """Records results and finishes stages whoever holds the row by now."""

    async def finish_stage(self, results: Sequence[StageResult]) -> set[int]:
        now = {row[0]: row[1] for row in self.sql("SELECT id, version FROM notification_scheduler")}
        return await self.real.finish_stage(
            [msgspec.structs.replace(one, version=now.get(one.scheduler_id, one.version)) for one in results]
        )

    async def record_outgoing(self, results: Sequence[CallResult], *, actor: str) -> None:
        now = {row[0]: row[1] for row in self.sql("SELECT id, claim_token FROM outgoing_message")}
        await self.real.record_outgoing(
            [msgspec.structs.replace(one, claim_token=UUID(str(now[one.id]))) for one in results], actor=actor
        )


class AThirdSkipped(Planted):
    """Skips a third of all jobs."""

    async def finish_stage(self, results: Sequence[StageResult]) -> set[int]:
        return await self.real.finish_stage([self._skipped(one) for one in results])

    def _skipped(self, one: StageResult) -> StageResult:
        if one.to is not NotificationStatus.READY or one.scheduler_id % 3:
            return one
        return msgspec.structs.replace(one, to=NotificationStatus.SKIPPED, reason="it was a third one")


class RescueIsRetry(Planted):
    """Sends again what a dead worker may have sent."""

    async def rescue_outgoing(self, *, limit: int) -> int:
        rescued = await self.real.rescue_outgoing(limit=limit)
        uncertain = await self.real.find_uncertain(accounts=tuple(Channel), limit=limit)
        settlements = [
            Settlement(id=one.id, bucket=one.bucket, version=one.version, replay=True, reason="again")
            for one in uncertain
        ]
        await self.real.settle_uncertain(settlements, actor="janitor")
        return rescued


class UnknownIsSuccess(OtherResults):
    """Believes that what may have been sent was sent."""

    def changed(self, one: CallResult) -> CallResult:
        return msgspec.structs.replace(one, outcome=Accepted()) if isinstance(one.outcome, Unknown) else one


class FailsAtFirstDeferral(OtherResults):
    """Gives a message up that was put off once."""

    def changed(self, one: CallResult) -> CallResult:
        return msgspec.structs.replace(one, final=one.final or isinstance(one.outcome, Deferred))


class GivesUpEarly(OtherResults):
    """Ends a message that one worker could not call with."""

    def changed(self, one: CallResult) -> CallResult:
        never = NotCalled(reason="one worker could not call", leads_to=OutgoingStatus.FAILED_FINAL)
        return msgspec.structs.replace(one, outcome=never) if isinstance(one.outcome, NotCalled) else one


class NeverReplays(OtherSettlements):
    """Leaves everything uncertain, though its provider de-duplicates."""


class ReplaysHalf(OtherSettlements):
    """Replays only every second one."""

    def forgets(self, row_id: int) -> bool:
        return row_id % 2 == 0


class DropsReceipts(Planted):
    """Takes every receipt, and keeps every second one."""

    async def keep_events(self, tenant_id: str, events: Sequence[ProviderEvent]) -> int:
        kept = [event for event in events if int(event.event_id[1:]) % 2]
        return await self.real.keep_events(tenant_id, kept) if kept else len(events)


class ErasesTheAuditLog(Planted):
    """Clears the audit log away with what was canceled."""

    async def sweep_canceled(self, *, limit: int) -> int:
        self.sql("DELETE FROM audit_log")
        return await self.real.sweep_canceled(limit=limit)


class CodesAreKept(Planted):
    """Never erases the data of a one-time code."""

    async def erase_codes(self, *, after: int, limit: int) -> Erasure:
        return Erasure(0, 0)


class CodesAreErasedEarly(Planted):
    """Erases the data of one-time codes that are still to be sent."""

    async def erase_codes(self, *, after: int, limit: int) -> Erasure:
        self.sql(
            "UPDATE notification_job SET payload = NULL WHERE one_time_code AND recipients IS NOT NULL RETURNING id"
        )
        return await self.real.erase_codes(after=after, limit=limit)


class IgnoresOrderKeys(Planted):
    """Makes rows that keep no order."""

    async def ensure_outgoing_messages(
        self, tenant_id: str, items: Sequence[OutgoingItem]
    ) -> list[Ensured[OutgoingMessage]]:
        return await self.real.ensure_outgoing_messages(
            tenant_id, [msgspec.structs.replace(item, order_key=None) for item in items]
        )


class OtherCalls:
    """Calls with something else than was asked for."""

    channels = EVERY_CHANNEL

    def __init__(self, account: Provider) -> None:
        self._account = account

    @property
    def replay(self) -> Replay:
        return self._account.replay

    async def send(self, call: Call) -> CallOutcome:
        return await self._account.send(self.changed(call))

    async def close(self) -> None:
        await self._account.close()

    def changed(self, call: Call) -> Call:
        return call


class RandomKey(OtherCalls):
    """Calls under a new key every time."""

    def __init__(self, account: Provider) -> None:
        super().__init__(account)
        self._ids = SeededIds("random key")

    def changed(self, call: Call) -> Call:
        return msgspec.structs.replace(call, idempotency_key=f"{self._ids.new_guid()}:x:y")


class WrongDestination(OtherCalls):
    """Sends each message to the recipient of the one before."""

    def __init__(self, account: Provider) -> None:
        super().__init__(account)
        self._last: str | None = None

    def changed(self, call: Call) -> Call:
        self._last, destination = call.destination, self._last or call.destination
        return msgspec.structs.replace(call, destination=destination)


class EmptyContent(OtherCalls):
    """Sends nothing but the shape of a message."""

    def changed(self, call: Call) -> Call:
        empty = type(call.content)(**dict.fromkeys(call.content.__struct_fields__, ""))
        return msgspec.structs.replace(call, content=empty)


class DropsOutcomes:
    """Forgets outcomes that the store did not take, instead of recording them again."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    async def record_outgoing(self, results: Sequence[CallResult], *, actor: str) -> None:
        try:
            await self._store.record_outgoing(results, actor=actor)
        except OperatorError:
            return
