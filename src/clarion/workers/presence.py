"""A process as others see it: its heartbeat, and the health of the accounts that it calls.

Writes a heartbeat every few seconds and whenever an account begins to fail or is well again, and takes it back when the
process stops. An account that fails is logged once, and once more when it is well; meanwhile every tenant whose
messages it keeps waiting has a support case, one for the account, which is resolved when the account is well. Where the
provider says that the account itself is at fault, the case is opened with the message (`domain.ruling`), not here.
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import Final
from uuid import UUID

import structlog

import clarion
from clarion.domain.call import CallOutcome, NotCalled
from clarion.domain.claim import ClaimedMessage
from clarion.domain.health import Health, after
from clarion.domain.identity import Channel
from clarion.domain.trouble import failing_account
from clarion.domain.worker import BEAT, Heartbeat, state_of
from clarion.errors import OperatorError
from clarion.ports.clock import Clock
from clarion.ports.store import Store

TENANTS_MAX: Final = 1000
"""Whose messages one account keeps waiting: so many get a case of their own."""

ACTOR: Final = "workers"
"""Who resolves a case, as the audit log shows it."""

log = structlog.get_logger("clarion.workers")


class _Account:
    """One account: its health, whether it was said to fail, who waits for it (with a request), and who has a case."""

    def __init__(self) -> None:
        self.health = Health()
        self.said = False
        self.waiting: dict[str, str] = {}
        self.cases: dict[str, UUID] = {}


class Presence:
    """What one process tells of itself."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        worker_id: UUID,
        name: str,
        channels: Iterable[Channel],
        accounts: Iterable[str],
    ) -> None:
        """Speak for a process that serves these channels through these accounts."""
        self._store = store
        self._clock = clock
        self._worker_id = worker_id
        self._name = name
        self._channels = tuple(channels)
        self._accounts = {account: _Account() for account in sorted(set(accounts))}
        self._next = float("-inf")

    def observe(self, message: ClaimedMessage, outcome: CallOutcome, _took: float) -> None:
        """Hear of the outcome of a call."""
        if isinstance(outcome, NotCalled):
            return
        one = self._accounts.setdefault(message.account, _Account())
        one.health = after(one.health, outcome, now=self._clock.monotonic())
        if not one.health.failures:
            one.waiting.clear()
        elif message.tenant_id in one.waiting or len(one.waiting) < TENANTS_MAX:
            one.waiting[message.tenant_id] = message.correlation_id

    async def step(self) -> int:
        """Say how the accounts are, where that has changed, and write the heartbeat, where that or its time has come.

        Returns 0: there is nothing that anybody else could go on with.
        """
        for name, one in self._accounts.items():
            self._tell(name, one)
        if self._clock.monotonic() >= self._next:
            await self._store.note_heartbeat(self._heartbeat())
            self._next = self._clock.monotonic() + BEAT.total_seconds()
        for name, one in self._accounts.items():
            await (self._open_cases(name, one) if one.said else self._resolve_cases(one))
        return 0

    async def end(self) -> None:
        """Take the heartbeat back; a store that does not answer keeps it until it is swept."""
        with suppress(OperatorError):
            await self._store.end_worker(self._worker_id)

    def _tell(self, name: str, one: _Account) -> None:
        """Log that an account has begun to fail, or is well again, and have the heartbeat tell it at once."""
        failing = one.health.is_failing(now=self._clock.monotonic())
        if failing == one.said:
            return
        one.said = failing
        self._next = float("-inf")  # should the heartbeat that tells it fail, the next step writes it
        if failing:
            said = "an account fails: nothing that it was given lately was taken"
            log.warning(said, account=name, error=one.health.reason or "", count=one.health.failures)
        else:
            log.warning("an account is well again", account=name)

    def _heartbeat(self) -> Heartbeat:
        now = self._clock.monotonic()
        return Heartbeat(
            worker_id=self._worker_id,
            name=self._name,
            program=clarion.__version__,
            channels=self._channels,
            accounts=tuple(state_of(name, one.health, now=now) for name, one in self._accounts.items()),
        )

    async def _open_cases(self, name: str, one: _Account) -> None:
        """Open the case of every tenant that waits for a failing account and has none."""
        if one.health.at_fault:
            return
        for tenant_id in [tenant_id for tenant_id in one.waiting if tenant_id not in one.cases]:
            case = failing_account(
                tenant_id,
                account=name,
                reason=one.health.reason or "",
                failures=one.health.failures,
                correlation_id=one.waiting[tenant_id],
            )
            await self._store.open_support_cases(tenant_id, [case])
            one.cases[tenant_id] = case.case_id

    async def _resolve_cases(self, one: _Account) -> None:
        """Resolve the cases that this process opened, unless somebody has done so already."""
        while one.cases:
            tenant_id, case_id = next(iter(one.cases.items()))
            await self._store.resolve_support_case(
                tenant_id, case_id, actor=ACTOR, resolution="the account takes messages again"
            )
            del one.cases[tenant_id]
