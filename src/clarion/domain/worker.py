"""A worker as the others see it: one process, what it serves, and when it was last heard of. Pure values.

A process writes its heartbeat every few seconds. Whoever wants to know what runs reads those of all processes.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec

from clarion.domain.health import Health
from clarion.domain.identity import Channel

BEAT: Final = timedelta(seconds=10)
"""Between two heartbeats: one small write. People who look wait no longer than that for the truth."""

LOST_AFTER: Final = 3 * BEAT
"""Without a heartbeat: one may be late where the store is slow, and a second; a process that stops says so itself."""

KEPT_FOR: Final = timedelta(hours=1)
"""The heartbeat of a process that was lost stays so long, for whoever asks what ran; then it is swept."""


class AccountState(msgspec.Struct, frozen=True, kw_only=True):
    """One account as one process finds it; the seconds count back from the heartbeat that it stands in."""

    account: str
    failing: bool = False
    failures: int = 0
    failing_seconds: int | None = None
    called_seconds: int | None = None
    reason: str | None = None


class Heartbeat(msgspec.Struct, frozen=True, kw_only=True):
    """What a process says of itself."""

    worker_id: UUID
    name: str
    program: str
    channels: tuple[str, ...]
    accounts: tuple[AccountState, ...]


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """A process's last heartbeat, and when it came by the store's clock; `now` is when it was read."""

    heartbeat: Heartbeat
    started_at: datetime
    seen_at: datetime
    now: datetime

    @property
    def is_lost(self) -> bool:
        """Tell whether nothing was heard of it for too long, so that it does not count as running."""
        return self.now - self.seen_at >= LOST_AFTER


def state_of(account: str, health: Health, *, now: float) -> AccountState:
    """Write an account's health as a heartbeat carries it."""
    return AccountState(
        account=account,
        failing=health.is_failing(now=now),
        failures=health.failures,
        failing_seconds=None if health.failing_since is None else int(now - health.failing_since),
        called_seconds=None if health.called is None else int(now - health.called),
        reason=health.reason,
    )


class AccountSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One account as all running processes together find it; `workers` is how many of them call it."""

    account: str
    workers: int
    failing: bool
    failing_since_at: datetime | None
    called_at: datetime | None
    reason: str | None


def summarise(workers: Sequence[Worker]) -> list[AccountSummary]:
    """Say how each served account is: failing if any process finds it so, since the earliest time that one did."""
    found: dict[str, list[tuple[datetime, AccountState]]] = {}
    for worker in workers:
        if not worker.is_lost:
            for state in worker.heartbeat.accounts:
                found.setdefault(state.account, []).append((worker.seen_at, state))
    return [_summary(account, states) for account, states in sorted(found.items())]


def _summary(account: str, states: Sequence[tuple[datetime, AccountState]]) -> AccountSummary:
    failing = [(_before(seen_at, state.failing_seconds), state) for seen_at, state in states if state.failing]
    called = [at for seen_at, state in states if (at := _before(seen_at, state.called_seconds)) is not None]
    return AccountSummary(
        account=account,
        workers=len(states),
        failing=bool(failing),
        failing_since_at=min((at for at, _ in failing if at is not None), default=None),
        called_at=max(called, default=None),
        reason=failing[0][1].reason if failing else None,
    )


def _before(at: datetime, seconds: int | None) -> datetime | None:
    return None if seconds is None else at - timedelta(seconds=seconds)


def served(workers: Iterable[Worker]) -> frozenset[str]:
    """Give the channels on which a process sends now; nobody has to send on the inbox."""
    alive = {channel for worker in workers if not worker.is_lost for channel in worker.heartbeat.channels}
    return frozenset({*alive, Channel.INBOX})
