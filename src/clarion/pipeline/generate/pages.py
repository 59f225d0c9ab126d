"""A job with a large set, one bounded step at a time: first its pages, then their manifest, then its rows.

Between two steps the job's row is Ready again, with a cursor, so no lease is longer than a step, and other jobs come in
between. Every part of a step can be done again by whoever takes over: a page or a manifest that is stored is read and
never written again, what is frozen in the job's row stands, and rows are ensured. So the set is the same however often
a worker was lost, and no row is made before the whole of it is frozen.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from clarion.domain import recipient
from clarion.domain.claim import StageResult
from clarion.domain.key import recipient_job_key
from clarion.domain.notification import NotificationStatus, Stage
from clarion.domain.recipient import PAGE_SIZE, FrozenRecipient, FrozenSet, Manifest, RecipientJob, Totals
from clarion.domain.seal import TenantKeys
from clarion.pipeline.generate import cursor
from clarion.pipeline.generate.cursor import Cursor, Expanding, Paging
from clarion.pipeline.generate.plan import Plan, fail
from clarion.pipeline.generate.rows import Made, Rows, unmade_in_words
from clarion.pipeline.generate.sizes import Sizes
from clarion.pipeline.generate.whom import Whom
from clarion.ports.ensure import ITEMS_MAX
from clarion.ports.queue import QueueStore
from clarion.sealing.recipients import RecipientSets

STEP_SIZE: Final = ITEMS_MAX
"""Recipients whose rows are made in one step: as many as the largest set that is made at once."""


class LargeSets:
    """The steps of jobs whose sets lie in pages."""

    def __init__(
        self, *, queue: QueueStore, sets: RecipientSets, whom: Whom, rows: Rows, sizes: Sizes | None = None
    ) -> None:
        """Keep pages in `sets`, decide with `whom` and make `rows`, so many at a time."""
        self._page_size = PAGE_SIZE if sizes is None else sizes.page
        self._step_size = STEP_SIZE if sizes is None else sizes.step
        self._queue = queue
        self._sets = sets
        self._whom = whom
        self._rows = rows

    async def step(self, keys: TenantKeys, plan: Plan) -> StageResult | None:
        """Do the next step of a job, and say how it goes on; None where it was canceled or taken over."""
        place, frozen = cursor.cursor_of(plan.claim), plan.claim.job.recipients
        if frozen is not None:
            return await self._expand(keys, plan, place if isinstance(place, Expanding) else Expanding(), frozen)
        return await self._page(keys, plan, place if isinstance(place, Paging) else Paging())

    async def _page(self, keys: TenantKeys, plan: Plan, place: Paging) -> StageResult:
        """Write the next page of the set or, behind the last one, its manifest."""
        so_far = place.manifest
        page = await self._next_page(keys, plan, so_far)
        if page:
            so_far = Manifest(totals=so_far.totals + recipient.totals_of(page), pages=(*so_far.pages, _last(page)))
        if len(page) == self._page_size:
            return _goes_on(plan, Paging(so_far), f"{so_far.totals.recipients} recipients so far")
        manifest = await self._sets.put_manifest(keys.tenant_id, plan.claim.job.guid, so_far)
        frozen = FrozenSet(job_id=plan.job_id, job_key=job_key(plan), text=recipient.encode_manifest(manifest))
        await self._queue.freeze_recipients(keys.tenant_id, [frozen])
        return _goes_on(plan, Expanding(), f"{manifest.totals.recipients} recipients")

    async def _next_page(self, keys: TenantKeys, plan: Plan, so_far: Manifest) -> tuple[FrozenRecipient, ...]:
        """Give the page after those that are written: as somebody stored it, or as it is decided now."""
        guid, number = plan.claim.job.guid, len(so_far.pages)
        stored = await self._sets.find_page(keys.tenant_id, guid, number)
        if stored is not None:
            return stored
        (circle,) = await self._whom.circles(keys, [plan], look=False)
        after = so_far.pages[-1] if so_far.pages else ""
        page = await self._whom.decide_page(keys, circle, after=after, limit=self._page_size)
        return await self._sets.put_page(keys.tenant_id, guid, number, page) if page else ()

    async def _expand(self, keys: TenantKeys, plan: Plan, place: Expanding, frozen: str) -> StageResult | None:
        """Make the rows of the next recipients."""
        try:
            totals = _totals(frozen)
            part = await self._sets.part(keys.tenant_id, plan.claim.job, after=place.after, limit=self._step_size)
        except msgspec.DecodeError as error:
            return fail(plan.claim, f"its recipients cannot be read: {error}")
        if not await self._queue.note_recipients(keys.tenant_id, plan.claim.hold, lines_of(plan, part)):
            return None
        made = (await self._rows.make(keys, [plan], {plan.job_id: part}))[plan.job_id]
        if isinstance(made, StageResult):
            return made
        await self._rows.store(keys.tenant_id, [made])
        now = Expanding(
            after=made.until or (_last(part) if part else place.after),
            made=place.made + made.number,
            unmade=place.unmade + made.unmade,
            why=place.why or made.why,
        )
        if len(part) == self._step_size or made.until is not None:
            return _goes_on(plan, now, totals.in_words)
        reasons = [unmade_in_words(now.unmade, now.why)] if now.unmade else []
        if reasons and not now.made:
            return fail(plan.claim, reasons[0])
        reason = ", ".join([totals.in_words, *reasons])
        return plan.claim.ended(NotificationStatus.DONE, stage=Stage.GENERATE, reason=reason)


def begin(plan: Plan, *, inline_max: int) -> StageResult:
    """Give a job back whose set turned out to be large: it lies in pages now, whatever becomes of its groups."""
    return _goes_on(plan, Paging(), f"more than {inline_max} recipients")


def rest_later(plan: Plan, made: Made) -> StageResult:
    """Give a job back of which the rows of some recipients are made: the others' lines were not merged in time."""
    place = Expanding(after=made.until or "", made=made.number, unmade=made.unmade, why=made.why)
    return _goes_on(plan, place, "some of its inbox lines are made, and the others take longer")


def job_key(plan: Plan) -> str:
    """Name a job among all that one person got."""
    return recipient_job_key(source_at=plan.claim.job.source_at, job_guid=plan.claim.job.guid)


def lines_of(plan: Plan, recipients: Sequence[FrozenRecipient]) -> list[RecipientJob]:
    """Note that recipients have a job."""
    key = job_key(plan)
    return [
        RecipientJob(recipient_id_hash=one.recipient_id_hash, job_key=key, job_id=plan.job_id) for one in recipients
    ]


def _totals(frozen: str) -> Totals:
    found = recipient.read(frozen)
    return found.totals if isinstance(found, Manifest) else recipient.totals_of(found)


def _last(recipients: Sequence[FrozenRecipient]) -> str:
    return recipients[-1].recipient_id_hash


def _goes_on(plan: Plan, place: Cursor, reason: str) -> StageResult:
    return plan.claim.ended(NotificationStatus.READY, stage=Stage.GENERATE, reason=reason, cursor=cursor.encode(place))
