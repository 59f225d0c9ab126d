"""Replanning: goes through the sources of a setting that was changed, page by page, and plans them anew.

A setting is claimed under a lease, one page of the sources of its type is planned, and the place behind it is kept, so
that another worker goes on there. A setting that changes meanwhile begins anew. Settings that another edition of the
time zone database planned are noted when a worker starts. Reads settings and sources; writes plans and how far they
have come.
"""

from datetime import timedelta
from typing import Final

from clarion.domain.local_time import TZDATA_VERSION
from clarion.ports.source import ReminderStore, SettingClaim, SourceScan
from clarion.producers.pages import plan_page, side_by_side
from clarion.producers.planning import Planning
from clarion.producers.sources import Sources

BATCH: Final = 10
"""Settings at once: each is a page of sources, and nobody waits for it as for an event."""

EDITIONS_MAX: Final = 100
"""Settings of another edition of the time zone database that are noted at once, when a worker has started."""

LEASE: Final = timedelta(minutes=5)
"""Five hundred sources take seconds; a plugin that answers nothing takes half a minute."""


class Replanning:
    """The worker of changed settings."""

    def __init__(self, *, store: ReminderStore, planning: Planning, sources: Sources, lease: timedelta = LEASE) -> None:
        """Claim from this store, and plan what these sources tell."""
        self._store = store
        self._planning = planning
        self._sources = sources
        self._lease = lease
        self._knows_edition = False

    async def step(self) -> int:
        """Plan one page of each setting that is claimed; return how many settings."""
        if not self._knows_edition:
            marked = await self._store.replan_other_editions(TZDATA_VERSION, limit=EDITIONS_MAX)
            self._knows_edition = marked < EDITIONS_MAX
        claims = await self._store.claim_settings(limit=BATCH, lease=self._lease)
        await side_by_side("replan", [self._page(claim) for claim in claims])
        return len(claims)

    async def _page(self, claim: SettingClaim) -> None:
        setting = claim.record.setting
        bounds = self._sources.bounds(setting.source_type)
        scan = SourceScan(
            source_type=setting.source_type, units=bounds.units, after=claim.cursor, limit=bounds.batch_size
        )
        page = await self._sources.scan(claim.tenant_id, scan)
        cause = f"setting {setting.guid} {claim.record.version}"
        await plan_page(self._planning, claim.tenant_id, setting.source_type, page, cause=cause)
        await self._store.finish_setting(claim, cursor=page.cursor)
