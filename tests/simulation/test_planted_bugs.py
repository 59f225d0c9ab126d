"""The simulation can fail: each of these bugs, planted in front of the store or the provider, is caught by it.

A bug is caught where a run of one of the first seeds reports a violation of an invariant that it breaks, and the same
run without the bug is clean.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from uuid import UUID

import msgspec
import pytest

from clarion.adapters.stores.query import Query
from clarion.adapters.stores.sqlite import SqliteStore
from clarion.adapters.stores.sqlite.session import Session
from clarion.domain.call import Accepted, Call, CallOutcome, NotCalled, Replay, Unknown
from clarion.domain.claim import CallResult, ClaimedMessage, FlowQuota, Settlement, StageResult
from clarion.domain.identity import Channel
from clarion.domain.outgoing import OutgoingStatus
from clarion.ports.provider import EVERY_CHANNEL, Provider
from clarion.testing.clock import SeededIds
from clarion.testing.simulation.option import Fault, Options
from clarion.testing.simulation.run import run

SEEDS_MAX = 60
"""Seeds to try for each bug. Each is caught within a few; needing more means that the simulation finds less."""


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


class UnconditionalClaim(Planted):
    """Takes what another worker holds, as an update without its WHERE would."""

    async def claim_outgoing(
        self, quotas: Sequence[FlowQuota], *, token: UUID, lease: timedelta, actor: str
    ) -> list[ClaimedMessage]:
        self.sql(
            "UPDATE outgoing_message SET status = 'RetryReady', due_at = clarion_now(), lease_until = NULL"
            " WHERE status = 'Sending'"
        )
        return await self.real.claim_outgoing(quotas, token=token, lease=lease, actor=actor)


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


class CancelIsForgotten(Planted):
    """Claims what a person has canceled."""

    async def claim_outgoing(
        self, quotas: Sequence[FlowQuota], *, token: UUID, lease: timedelta, actor: str
    ) -> list[ClaimedMessage]:
        self.sql("UPDATE outgoing_message SET cancel_at = NULL WHERE due_at IS NOT NULL")
        return await self.real.claim_outgoing(quotas, token=token, lease=lease, actor=actor)

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


class UnknownIsSuccess(Planted):
    """Believes that what may have been sent was sent."""

    async def record_outgoing(self, results: Sequence[CallResult], *, actor: str) -> None:
        await self.real.record_outgoing(
            [
                msgspec.structs.replace(one, outcome=Accepted()) if isinstance(one.outcome, Unknown) else one
                for one in results
            ],
            actor=actor,
        )


class GivesUpEarly(Planted):
    """Ends a message that one worker could not call with."""

    async def record_outgoing(self, results: Sequence[CallResult], *, actor: str) -> None:
        never = NotCalled(reason="one worker could not call", leads_to=OutgoingStatus.FAILED_FINAL)
        await self.real.record_outgoing(
            [
                msgspec.structs.replace(one, outcome=never) if isinstance(one.outcome, NotCalled) else one
                for one in results
            ],
            actor=actor,
        )


class RandomKey:
    """Calls under a new key every time."""

    channels = EVERY_CHANNEL

    def __init__(self, account: Provider) -> None:
        self._account = account
        self._ids = SeededIds("random key")

    @property
    def replay(self) -> Replay:
        return self._account.replay

    async def send(self, call: Call) -> CallOutcome:
        return await self._account.send(msgspec.structs.replace(call, idempotency_key=f"{self._ids.new_guid()}:x:y"))

    async def close(self) -> None:
        await self._account.close()


def broken_by(
    *,
    store: Callable[[SqliteStore, Session], object] | None = None,
    provider: Callable[[Provider], Provider] | None = None,
    rates: Mapping[Fault, float] = {},
) -> set[str]:
    """Run seeds until one fails; return the invariants that it found broken."""
    for options in map(Options.of, range(SEEDS_MAX)):
        dealt = msgspec.structs.replace(options, rates={**options.rates, **rates})
        report = run(dealt, change_store=store, change_provider=provider)
        if report.failed:
            assert not run(dealt).failed
            return {violation.partition(":")[0] for violation in report.violations}
    return set()


@pytest.mark.parametrize(
    "bug, invariants, rates",
    [
        (UnconditionalClaim, {"I-19"}, {}),
        (UnfencedFinish, {"I-17"}, {Fault.STALL: 0.2}),
        (RescueIsRetry, {"I-13"}, {}),
        (CancelIsForgotten, {"I-16"}, {Fault.CANCEL: 0.5, Fault.DEFER: 0.5}),
        (GateIsForgotten, {"I-16"}, {Fault.GATE: 0.5}),
        (UnknownIsSuccess, {"I-11"}, {}),
        (GivesUpEarly, {"F-55"}, {}),
    ],
)
def test_a_bug_of_the_store_is_caught(
    bug: Callable[[SqliteStore, Session], object], invariants: set[str], rates: Mapping[Fault, float]
) -> None:
    assert broken_by(store=bug, rates=rates) & invariants


def test_a_random_key_is_caught() -> None:
    assert broken_by(provider=RandomKey) & {"I-15"}
