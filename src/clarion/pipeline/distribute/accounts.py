"""The accounts that one process calls through: their providers, and which of them are left alone for a while."""

from collections.abc import Mapping
from datetime import timedelta

import structlog

from clarion.ports.clock import Clock
from clarion.ports.provider import Provider

log = structlog.get_logger("clarion.pipeline")


class Accounts:
    """Shared by the pumps of a process, so that an account at fault rests on every channel."""

    def __init__(self, providers: Mapping[str, Provider], *, clock: Clock) -> None:
        """Call through these providers, by account."""
        self.providers = providers
        self._clock = clock
        self._resting_until: dict[str, float] = {}

    def rest(self, account: str, pause: timedelta) -> None:
        """Leave an account alone for so long at least."""
        until = self._clock.monotonic() + pause.total_seconds()
        self._resting_until[account] = max(until, self._resting_until.get(account, 0.0))

    def is_at_work(self, account: str) -> bool:
        """Tell whether calls can be made through an account; one that is not served here is left to other workers."""
        if account not in self.providers and account not in self._resting_until:
            self._resting_until[account] = float("inf")  # so that it is logged once
            log.warning("messages are bound to an account that is not served here", account=account)
        return self._resting_until.get(account, 0.0) <= self._clock.monotonic()
