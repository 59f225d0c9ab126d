"""Lists of notifications, each with its result; and the list of the latest, with its filters.

A result is not stored: it follows from the messages, which change long after their job was made. So a filter is asked
of one page of jobs after the other, newest first, and a request looks at a bounded number of them. A page that ends
early says how far back it looked and has the cursor to go on. A time is no such filter: it is where the list begins and
ends, by the key.
"""

from collections.abc import Sequence
from typing import Final

from clarion.client import wire
from clarion.domain.key import reverse_ticks
from clarion.domain.result import overall
from clarion.operations import page
from clarion.ports.insights import PAGE_MAX, InsightStore, JobLine

LOOKED_MAX: Final = 2000
"""Jobs that one request looks at for a filter: some 100 ms of a store that is asked for nothing else."""


async def lines_of(store: InsightStore, tenant_id: str, jobs: Sequence[JobLine]) -> tuple[wire.NotificationLine, ...]:
    """Give jobs as lines of a list, with what came of each."""
    standings = await store.find_standings(tenant_id, [job.guid for job in jobs])
    return tuple(
        wire.NotificationLine(
            job_id=job.guid,
            type=job.event_type,
            result=overall(standings[job.guid]),
            status=standings[job.guid].work,
            accepted_at=job.source_at,
        )
        for job in jobs
        if job.guid in standings
    )


async def latest(store: InsightStore, tenant_id: str, query: wire.NotificationQuery) -> wire.NotificationPage:
    """List a tenant's notifications, the newest first, those that the filters let through."""
    filters = {"type": query.type, "result": query.result, "since": query.since_at, "until": query.until_at}
    name = " ".join(["notifications", *(f"{key}={value}" for key, value in filters.items() if value is not None)])
    after = page.read(name, query.cursor, start="")
    if query.until_at is not None:
        after = max(after, reverse_ticks(query.until_at))
    is_searched = query.type is not None or query.result is not None
    size = PAGE_MAX if is_searched else query.limit + 1
    found: list[tuple[str, wire.NotificationLine]] = []
    looked = 0
    while True:
        jobs = await store.list_latest_jobs(tenant_id, after=after, limit=size)
        asked_for = {job.guid: job.row_key for job in jobs if _is_asked_for(job, query)}
        lines = await lines_of(store, tenant_id, [job for job in jobs if job.guid in asked_for])
        found += [(asked_for[line.job_id], line) for line in lines if query.result in (None, line.result)]
        shown, following = page.cut(name, found, query.limit, lambda one: one[0])
        items = tuple(line for _, line in shown)
        is_end = len(jobs) < size or (query.since_at is not None and jobs[-1].source_at < query.since_at)
        if following is not None or is_end:
            return wire.NotificationPage(items=items, next_cursor=following)
        after, looked = jobs[-1].row_key, looked + len(jobs)
        if looked >= LOOKED_MAX:
            following = page.write(name, after)
            return wire.NotificationPage(items=items, next_cursor=following, searched_to_at=jobs[-1].source_at)


def _is_asked_for(job: JobLine, query: wire.NotificationQuery) -> bool:
    return (
        query.type in (None, job.event_type)
        and (query.since_at is None or query.since_at <= job.source_at)
        and (query.until_at is None or job.source_at < query.until_at)
    )
