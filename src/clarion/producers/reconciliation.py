"""Reconciliation: finds what no event told, within bounds, and plans it by the same rule and under the same keys.

Every provider says how far a round may look: what changed since the watermark, less an overlap, what has a date within
its window, and of which business units. A round goes page by page, one page a step, with its cursor in the store. The
watermark moves when its last page is planned, and then to the beginning of the round. The overlap is longer than the
transactions of its provider take, so that the watermark leaves none behind that had not committed when it was read.
Reads sources; writes plans and how far they have come.
"""

import asyncio
from collections import defaultdict
from collections.abc import Coroutine
from datetime import timedelta
from functools import partial
from typing import Final

from clarion.domain.local_time import UTC_NAME, local_date
from clarion.ports.clock import Clock
from clarion.ports.source import ReminderStore, RepairClaim, SourceScan
from clarion.producers.pages import plan_page, side_by_side
from clarion.producers.planning import Planning
from clarion.producers.records import BOUNDS
from clarion.producers.sources import Sources

BATCH: Final = 10
"""Rounds at once: each is a page of sources, and there is all the time until the next one."""

LOOK: Final = timedelta(minutes=1)
"""How long it rests where nothing is due: rounds are hours apart, and whether one is due costs a question for each."""

LEASE: Final = timedelta(minutes=5)
"""A thousand sources take seconds; a plugin that answers nothing takes half a minute."""

_DAY: Final = timedelta(days=1)


class Reconciliation:
    """The worker of repairs."""

    def __init__(
        self, *, store: ReminderStore, planning: Planning, sources: Sources, clock: Clock, lease: timedelta = LEASE
    ) -> None:
        """Claim from this store, and plan what these sources tell."""
        self._store = store
        self._planning = planning
        self._sources = sources
        self._clock = clock
        self._lease = lease
        self._rests_until = float("-inf")

    async def step(self) -> int:
        """Plan one page of each round that is claimed; return how many rounds."""
        if self._clock.monotonic() < self._rests_until:
            return 0
        claims = [claim for some in await asyncio.gather(*self._asked()) for claim in some]
        await side_by_side("reconcile", [self._page(claim) for claim in claims])
        if not claims:
            self._rests_until = self._clock.monotonic() + LOOK.total_seconds()
        return len(claims)

    def _asked(self) -> list[Coroutine[None, None, list[RepairClaim]]]:
        """Ask for the rounds that are due: of each plugin's type, and of all that are stored here."""
        intervals: defaultdict[timedelta, list[str]] = defaultdict(list)
        provided = sorted(self._sources.provided)
        for source_type in provided:
            intervals[self._sources.bounds(source_type).every].append(source_type)
        claim = partial(self._store.claim_repairs, limit=BATCH, lease=self._lease)
        of_plugins = [claim(types, every=every) for every, types in intervals.items()]
        return [*of_plugins, claim(None, besides=provided, every=BOUNDS.every)]

    async def _page(self, claim: RepairClaim) -> None:
        bounds = self._sources.bounds(claim.source_type)
        today = local_date(claim.round_at, UTC_NAME)
        scan = SourceScan(
            source_type=claim.source_type,
            changed_since=claim.watermark_at - bounds.overlap,
            due_from=today - _DAY,  # which it still is in some zones
            due_until=today + bounds.window_days * _DAY,
            units=bounds.units,
            after=claim.cursor or "",
            limit=bounds.batch_size,
        )
        page = await self._sources.scan(claim.tenant_id, scan)
        cause = f"repair {claim.round_at:%Y-%m-%dT%H:%M:%S.%fZ}"
        await plan_page(self._planning, claim.tenant_id, claim.source_type, page, cause=cause)
        watermark_at = claim.round_at if page.cursor is None else claim.watermark_at
        await self._store.finish_repair(claim, cursor=page.cursor, watermark_at=watermark_at)
