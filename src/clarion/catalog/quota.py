"""Quotas at the door: what each key and tenant uses is counted in memory, and told to the store once a second.

A request costs no round trip. What this process counted is added to the store's counts by one statement, which gives
back what all processes have counted; a request is judged by that and by what was counted here since. So several
processes together may let through more than a quota allows: what comes in at the others within a second. A key or
tenant that this process has not met yet is read before its first request is judged.

What was counted and not told when a process is killed is lost; what was told without an answer may count twice.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Final, Protocol

import structlog

from clarion.domain.duration import spoken
from clarion.domain.quota import Amount, Limits, Shortage, Usage, left_of_day, shortage
from clarion.errors import OperatorError, QuotaExceeded
from clarion.ports.catalog import Used
from clarion.ports.clock import Clock
from clarion.ports.ensure import ITEMS_MAX

TELL_EVERY: Final = 1.0
"""Seconds between two statements, and so how old the counts of other processes are at most."""

ACCOUNTS_MAX: Final = 20_000
"""Keys and tenants held in memory, some hundred bytes each: as many as keys are held by `Access`, and their tenants."""

REQUEST: Final = Amount(requests=1)
NO_LIMITS: Final = Limits()

log = structlog.get_logger("clarion.api")

Place = tuple[str, str]
"""Of what is counted: a tenant, and one of its keys or nothing."""


class UsageStore(Protocol):
    """What is asked of the store here."""

    async def count_usage(self, uses: Sequence[Used]) -> Sequence[Usage]:
        """Add what was used, and return what all processes have counted of the same."""
        ...

    async def list_usage(self, tenant_id: str) -> Sequence[Usage]:
        """Return what a tenant and its keys may use and have used."""
        ...


class _Account:
    """One key or tenant: its limits, what the store had counted, and what was counted here since."""

    def __init__(self) -> None:
        self.is_met = False  # whether the store was asked for it
        self.limits = Limits()
        self.stored = Amount()
        self.opens = 0.0  # when the stored counts start again, by the clock that does not go back
        self.told = Amount()  # on its way to the store
        self.pending = Amount()
        self.held = Amount()  # of sends that are being accepted
        self.refused = False  # since the store was asked last

    def learn(self, usage: Usage, now: float) -> None:
        """Take in what the store has counted."""
        self.limits, self.stored = usage.limits, usage.used
        self.opens = now + left_of_day(usage.now).total_seconds()
        self.refused = False

    def used(self, now: float) -> Amount:
        """Give all that is known to be used today."""
        stored = self.stored if now < self.opens else Amount()
        return stored + self.told + self.pending + self.held

    @property
    def is_quiet(self) -> bool:
        """Tell whether nothing would be lost with it."""
        return self.told + self.pending + self.held == Amount()


class Meter:
    """Counts what callers use, and refuses what their quotas do not allow."""

    def __init__(self, store: UsageStore, *, clock: Clock) -> None:
        """Start without having met anybody."""
        self._store = store
        self._clock = clock
        self._accounts: dict[Place, _Account] = {}
        self._telling = asyncio.Lock()

    async def count_request(self, tenant_id: str, key_id: str) -> None:
        """Count a request with a key, or raise QuotaExceeded; one that is refused is not counted."""
        await self.meet(tenant_id, key_id)
        places = _places(tenant_id, key_id)
        self._require(places, REQUEST)
        for place in places:
            account = self._accounts[place]
            account.pending = account.pending + REQUEST

    async def meet(self, tenant_id: str, key_id: str) -> None:
        """Read what is known of a key and its tenant, unless it is in memory; forget others, where there are many.

        To be asked again after whatever was waited for: meanwhile they may have been forgotten. Nothing is written
        here: a store that takes no writes still answers those who read.
        """
        places = _places(tenant_id, key_id)
        if all(place in self._accounts and self._accounts[place].is_met for place in places):
            return
        if len(self._accounts) >= ACCOUNTS_MAX:
            quiet = [place for place, account in self._accounts.items() if account.is_quiet]
            for place in quiet[: ACCOUNTS_MAX // 10]:
                del self._accounts[place]
        found = {(one.tenant_id, one.key_id): one for one in await self._store.list_usage(tenant_id)}
        for place in places:
            account = self._accounts.setdefault(place, _Account())
            if not account.is_met:
                account.is_met = True
                if place in found:
                    account.learn(found[place], self._clock.monotonic())

    def find_shortage(self, tenant_id: str, key_id: str, *, recipients: int) -> QuotaExceeded | None:
        """Say why one more notification to so many recipients cannot be accepted, or None where it can."""
        try:
            self._require(_places(tenant_id, key_id), Amount(notifications=1, recipients=recipients))
        except QuotaExceeded as error:
            return error
        return None

    @contextmanager
    def accepting(self, tenant_id: str, key_id: str, *, recipients: int) -> Iterator[list[bool]]:
        """Hold the room for one notification while it is accepted.

        It is counted if the block has put True into the list that it is given: what was refused, or accepted before
        under the same key, is not.
        """
        amount, counted = Amount(notifications=1, recipients=recipients), list[bool]()
        accounts = [self._accounts.setdefault(place, _Account()) for place in _places(tenant_id, key_id)]
        for account in accounts:
            account.held = account.held + amount
        try:
            yield counted
        finally:
            for account in accounts:
                account.held = account.held - amount
                if any(counted):
                    account.pending = account.pending + amount

    async def run(self) -> None:
        """Tell the store every second what was counted, until canceled; then `tell` tells the rest."""
        while True:
            await asyncio.sleep(TELL_EVERY)
            try:
                await self.tell()
            except OperatorError as error:
                log.warning("what callers used could not be stored, trying again", code=error.code, error=str(error))

    async def tell(self) -> None:
        """Tell the store what was counted and not told yet, and learn what others have counted.

        Where something was refused the store is asked too: what is used up counts nothing, and may have been raised.
        """
        async with self._telling:
            waiting = [place for place, account in self._accounts.items() if account.pending != Amount()]
            for start in range(0, len(waiting), ITEMS_MAX):
                await self._tell(waiting[start : start + ITEMS_MAX])
            for tenant_id in {place[0] for place, account in self._accounts.items() if account.refused}:
                for one in await self._store.list_usage(tenant_id):
                    if (account := self._accounts.get((one.tenant_id, one.key_id))) is not None:
                        account.learn(one, self._clock.monotonic())

    async def _tell(self, places: Sequence[Place]) -> None:
        accounts = [self._accounts[place] for place in places]
        for account in accounts:
            account.told, account.pending = account.pending, Amount()
        uses = [
            Used(tenant_id=tenant_id, key_id=key_id, amount=account.told)
            for (tenant_id, key_id), account in zip(places, accounts, strict=True)
        ]
        try:
            found = await self._store.count_usage(uses)
        except BaseException:
            for account in accounts:
                account.told, account.pending = Amount(), account.pending + account.told
            raise
        for one in found:
            account = self._accounts[one.tenant_id, one.key_id]
            account.learn(one, self._clock.monotonic())
            account.told = Amount()

    def _require(self, places: Sequence[Place], asked: Amount) -> None:
        now = self._clock.monotonic()
        for place in places:
            account = self._accounts.get(place)
            if account is None or account.limits == NO_LIMITS:
                continue
            found = shortage(account.limits, used=account.used(now), asked=asked)
            if found is not None:
                account.refused = True
                raise _exceeded(found, of="key" if place[1] else "tenant", opens_in=account.opens - now)


def _places(tenant_id: str, key_id: str) -> tuple[Place, Place]:
    """Say where what a key uses is counted: as its own, and as its tenant's."""
    return (tenant_id, key_id), (tenant_id, "")


def _exceeded(found: Shortage, *, of: str, opens_in: float) -> QuotaExceeded:
    wait = timedelta(seconds=max(1.0, opens_in))
    left = f"has {found.left} left" if found.left else "is used up"
    return QuotaExceeded(
        f"the {of}'s quota of {found.limit} {found.what} a day {left}",
        hint=f"it opens again at midnight UTC, in {spoken(wait)}; whoever runs this installation can raise it",
        retry_after=wait,
    )
