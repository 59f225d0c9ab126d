"""Pages of sources: plans those of one page, and keeps work for several tenants apart.

Sources that cannot be planned, such as one whose id is too long for any key, are logged and left out: the others of
their page go on. Reads and writes what `planning` does.
"""

import asyncio
from collections.abc import Coroutine, Sequence

import structlog

from clarion.domain.planning import PlanCounts
from clarion.errors import ClarionError
from clarion.ports.reminding import ScanPage
from clarion.producers.planning import Ask, Planning

log = structlog.get_logger("clarion.producers")


async def plan_page(planning: Planning, tenant_id: str, source_type: str, page: ScanPage, *, cause: str) -> PlanCounts:
    """Plan the sources of a page, each once, and add up what that came to."""
    sources = dict.fromkeys(facts.source for facts in page.facts)
    asks = [Ask(source=source, cause=cause, correlation_id=cause) for source in sources]
    answers = await planning.plan_all(tenant_id, source_type, asks)
    refused = [one.refused for one in answers if one.refused is not None]
    if refused:
        log.warning("sources cannot be planned", type=source_type, count=len(refused), error=str(refused[0]))
    return sum((one.counts for one in answers), PlanCounts())


async def side_by_side(name: str, works: Sequence[Coroutine[None, None, None]]) -> None:
    """Do all of them at once; what goes wrong with one is logged, and is tried again when its lease has run out.

    A defect is raised once all of them have come to their end.
    """
    found = await asyncio.gather(*works, return_exceptions=True)
    for error in found:
        if isinstance(error, ClarionError):
            log.warning("could not go on, trying again", step=name, code=error.code, error=str(error))
    for error in found:
        if isinstance(error, BaseException) and not isinstance(error, ClarionError):
            raise error
