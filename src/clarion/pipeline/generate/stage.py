"""The stage: freezes a job's recipients, then ensures inbox rows and outgoing rows.

Reads templates, people and groups in sets, never job by job; who gets what is decided by `domain.decision`; writes
through dispatch.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec
import structlog

from clarion.dispatch import DeliveryDispatcher
from clarion.dispatch.request import Payload
from clarion.domain import recipient
from clarion.domain.claim import StageClaim, StageResult
from clarion.domain.fingerprint import Fingerprint
from clarion.domain.identity import Lane
from clarion.domain.key import require_key_version
from clarion.domain.notification import STAGE_LEASE, NotificationStatus, Stage
from clarion.domain.recipient import FrozenRecipient, FrozenSet
from clarion.domain.seal import TenantKeys
from clarion.errors import CallerError, OperatorError, SealBroken, UnknownVersion
from clarion.pipeline.generate.inbox import Inbox
from clarion.pipeline.generate.pages import LargeSets, begin, job_key, rest_later
from clarion.pipeline.generate.plan import TENANT_RESTS_FOR, Plan, by_bundle, fail, nobody, not_merged, put_off, rest
from clarion.pipeline.generate.rows import Made, Rows, unmade_in_words
from clarion.pipeline.generate.sizes import Sizes
from clarion.pipeline.generate.underway import JOBS_MAX, Underway
from clarion.pipeline.generate.whom import Circle, Whom
from clarion.ports.clock import Clock
from clarion.ports.ensure import ITEMS_MAX
from clarion.ports.facts import FactStore
from clarion.ports.queue import QueueStore
from clarion.ports.renderer import QUARANTINED, NotMerged, Renderer
from clarion.ports.templates import TemplateName, Templates
from clarion.sealing.contents import OTHER_CONTENT, ContentName, MessagingContents
from clarion.sealing.keyring import Keyring
from clarion.sealing.place import payload_place
from clarion.sealing.recipients import RecipientSets

BATCH: Final = 200
"""As in schedule: statements are shared, and a worker that dies leaves little behind."""

ALONE_FOR: Final = timedelta(milliseconds=20)
"""About what one job takes. Jobs that are to be made alone are put off by multiples of it, to come back one by one."""

MERGE_SHARE: Final = 4
"""Looking at the data of a tenant's jobs, and merging their inbox lines, has one part in so many of the lease each."""

LARGE_FOR: Final = timedelta(seconds=1)
"""How long a tenant's jobs with large sets go on at once: those of its jobs that are quickly made wait so long."""

log = structlog.get_logger("clarion.pipeline")


class Generate:
    """The second stage."""

    def __init__(
        self,
        *,
        queue: QueueStore,
        facts: FactStore,
        templates: Templates,
        renderer: Renderer,
        dispatcher: DeliveryDispatcher,
        keyring: Keyring,
        sets: RecipientSets,
        contents: MessagingContents,
        clock: Clock,
        lease: timedelta = STAGE_LEASE,
        public_url: str | None = None,
        sizes: Sizes | None = None,
    ) -> None:
        """Work on this queue, with these facts, through this dispatcher; links begin with this URL."""
        self._queue = queue
        self._templates = templates
        self._renderer = renderer
        self._keyring = keyring
        self._contents = contents
        self._lease = lease
        self._merging_max = lease.total_seconds() / MERGE_SHARE
        self._clock = clock
        self._underway = Underway()
        self._stopping = False
        inbox = Inbox(
            facts=facts,
            renderer=renderer,
            clock=clock,
            merging_max=self._merging_max,
            public_url=public_url or "",
        )
        self._whom = Whom(facts=facts, dispatcher=dispatcher, sizes=sizes)
        self._rows = Rows(inbox=inbox, dispatcher=dispatcher)
        self._large = LargeSets(queue=queue, sets=sets, whom=self._whom, rows=self._rows, sizes=sizes)

    def stop(self) -> None:
        """Claim nothing more; what is at work comes to its end."""
        self._stopping = True

    @property
    def idle(self) -> bool:
        """Whether nothing is at work."""
        return not self._underway

    async def step(self) -> int:
        """Make the rows of a batch of jobs; return how many jobs were claimed or are at work since an earlier step.

        Merging may take long, and no step waits for the slowest tenant: what is not made in a moment goes on beside the
        next steps, which leave that tenant's other jobs until then. So nobody else's job waits for it, in whichever
        lane it is.

        A job over which a worker was lost before is made after the others, and never beside another such job. If it
        kills every worker that takes it, the jobs beside it would otherwise be rescued as often as it is, and fail with
        it in the end (F-13).
        """
        before = self._underway.count
        claims = await self._claim(min(BATCH, JOBS_MAX - before))
        rescued = sorted(
            (claim for claim in claims if claim.scheduler.rescue_count), key=lambda claim: claim.scheduler.rescue_count
        )
        alone = [] if self._underway.is_alone else rescued[:1]
        if later := rescued[len(alone) :]:
            why = "waits to be made alone: a worker was lost over it"
            await self._queue.finish_stage([put_off(one, n * ALONE_FOR, why) for n, one in enumerate(later, 1)])
        by_tenant: dict[str, list[StageClaim]] = defaultdict(list)
        for claim in claims:
            if not claim.scheduler.rescue_count:
                by_tenant[claim.tenant_id].append(claim)
        for tenant_id, mine in sorted(by_tenant.items(), key=lambda one: len(one[1])):  # those with few jobs first
            await self._underway.begin(tenant_id, self._make(tenant_id, mine), count=len(mine))
        for one in alone:
            await self._underway.begin(one.tenant_id, self._make(one.tenant_id, [one]), count=1, is_alone=True)
        if not claims and self._underway:
            await self._underway.wait()
        self._underway.collect()
        return len(claims) + before

    async def _claim(self, limit: int) -> list[StageClaim]:
        """Take jobs of tenants that are not at work, if there is room."""
        if self._stopping or limit <= 0:
            return []
        return await self._queue.claim_stage(
            Stage.GENERATE, lanes=tuple(Lane), limit=limit, lease=self._lease, without=self._underway.tenants
        )

    async def _make(self, tenant_id: str, claims: Sequence[StageClaim]) -> None:
        """Make the rows of a tenant's jobs and finish these.

        If something is wrong with the whole tenant, such as keys that do not open, its jobs are put off.
        """
        large: list[Plan] = []
        try:
            results, large = await self._generate(await self._keyring.get(tenant_id), claims)
        except (CallerError, SealBroken) as error:
            log.warning("a tenant's jobs cannot be made", tenant_id=tenant_id, error=str(error))
            results = [put_off(claim, TENANT_RESTS_FOR, str(error)) for claim in claims]
        if results:
            await self._queue.finish_stage(results)
        await self._continue(large)

    async def _generate(self, keys: TenantKeys, claims: Sequence[StageClaim]) -> tuple[list[StageResult], list[Plan]]:
        """Make the rows of one tenant's jobs; a job that cannot be made fails by itself. Those of large sets are left.

        Their steps take longer, and come after all that is quickly done.
        """
        plans, results = await self._plan(keys, claims)
        large = [plan for plan in plans if plan.is_large]
        plans = [plan for plan in plans if not plan.is_large]
        sets = await self._freeze(keys, plans, results)
        plans = [plan for plan in plans if plan.job_id in sets]
        made: list[Made] = []
        for plan, rows in zip(plans, (await self._rows.make(keys, plans, sets)).values(), strict=True):
            if isinstance(rows, StageResult):
                results.append(rows)
                continue
            if rows.until is not None:
                made.append(rows)
                results.append(rest_later(plan, rows))
                continue
            unmade = [unmade_in_words(rows.unmade, rows.why)] if rows.unmade else []
            if unmade and not rows.number:
                results.append(fail(plan.claim, unmade[0]))
                continue
            made.append(rows)
            reason = ", ".join([recipient.totals_of(sets[plan.job_id]).in_words, *unmade])
            results.append(plan.claim.ended(NotificationStatus.DONE, stage=Stage.GENERATE, reason=reason))
        # A job that was canceled or taken over meanwhile gets no rows; finishing it then changes nothing either.
        await self._rows.store(keys.tenant_id, made)
        return results, large

    async def _continue(self, plans: Sequence[Plan]) -> None:
        """Do a step of each job with a large set, as long as there is time; give the others back as they are."""
        until = self._clock.monotonic() + LARGE_FOR.total_seconds()
        for place, plan in enumerate(plans):
            if place and self._clock.monotonic() >= until:
                why = "waits its turn among others with many recipients"
                await self._queue.finish_stage([put_off(one.claim, timedelta(), why) for one in plans[place:]])
                return
            result = await self._step_of(plan)
            if result is not None:
                await self._queue.finish_stage([result])

    async def _step_of(self, plan: Plan) -> StageResult | None:
        """Do a step of a job with a large set; where its pages cannot be read or written now, it waits."""
        try:
            return await self._large.step(await self._keyring.get(plan.claim.tenant_id), plan)
        except (CallerError, OperatorError) as error:
            log.warning("a job's recipients cannot be made", tenant_id=plan.claim.tenant_id, error=str(error))
            return put_off(plan.claim, TENANT_RESTS_FOR, str(error))

    async def _plan(self, keys: TenantKeys, claims: Sequence[StageClaim]) -> tuple[list[Plan], list[StageResult]]:
        """Open each job's payload and find its bundle; fail those that lack one, or data that their templates need."""
        names = {claim.job.guid: _template_name(claim) for claim in claims}
        bundles = await self._templates.load(set(names.values()), also_quarantined=True)
        broken = await self._contents.load({name for claim in claims if (name := _content_name(claim)) is not None})
        plans: list[Plan] = []
        failed: list[StageResult] = []
        for claim in claims:
            found = bundles.get(names[claim.job.guid])
            try:
                require_key_version(claim.job.key_version)
            except UnknownVersion as error:
                failed.append(put_off(claim, TENANT_RESTS_FOR, str(error)))  # left to the newer program that made it
                continue
            if claim.job.payload is None:
                failed.append(fail(claim, "its recipients and data are not stored any more"))
                continue
            if found is None:
                failed.append(fail(claim, f"the notification type {claim.job.event_type!r} is not published"))
                continue
            try:
                opened = payload_place(claim.job.guid).open(keys, claim.job.payload)
                payload = msgspec.json.decode(opened, type=Payload)
            except (SealBroken, msgspec.DecodeError) as error:
                failed.append(fail(claim, f"its recipients and data cannot be opened: {error}"))
                continue
            if (content := _content_name(claim)) is not None:
                held = self._contents.held(*content)
                if held is None:
                    failed.append(put_off(claim, TENANT_RESTS_FOR, broken.get(content, "its content waits to be read")))
                    continue
                if payload.blob_hash is None or not held.fingerprint.agrees(Fingerprint.stored(payload.blob_hash)):
                    failed.append(fail(claim, OTHER_CONTENT))
                    continue
                payload = msgspec.structs.replace(payload, data=held.content.data, entity=held.content.entity)
            plan = Plan(claim=claim, bundle=found[1], payload=payload, claimed_at=self._claimed_at(claim))
            if self._templates.is_quarantined((keys.tenant_id, names[claim.job.guid][1], found[0])):
                failed.append(rest(plan, QUARANTINED))
                continue
            plans.append(plan)
        return await self._covered(keys.tenant_id, plans, failed), failed

    def _claimed_at(self, claim: StageClaim) -> datetime | None:
        return None if claim.scheduler.lease_until is None else claim.scheduler.lease_until - self._lease

    async def _covered(self, tenant_id: str, plans: Sequence[Plan], failed: list[StageResult]) -> list[Plan]:
        """Fail the jobs whose data does not cover their templates, and return the others, in their order."""
        covered: set[int] = set()
        until = self._clock.monotonic() + self._merging_max
        for batch in by_bundle(plans):
            data = [plan.payload.data for plan in batch]
            found = await self._renderer.find_missing(
                batch[0].bundle,
                data,
                entities=[plan.payload.entity for plan in batch],
                tenant_id=tenant_id,
                seconds_max=until - self._clock.monotonic(),
            )
            for plan, missing in zip(batch, found, strict=True):
                if isinstance(missing, NotMerged):
                    failed.append(not_merged(plan, missing))
                elif missing:
                    why = f"the data has no {', '.join(missing)}, which the templates need"
                    failed.append(fail(plan.claim, why))
                else:
                    covered.add(plan.job_id)
        return [plan for plan in plans if plan.job_id in covered]

    async def _freeze(
        self, keys: TenantKeys, plans: Sequence[Plan], results: list[StageResult]
    ) -> dict[int, tuple[FrozenRecipient, ...]]:
        """Decide who gets what where, unless that was decided before; what is stored first stands for ever."""
        stored = {plan.job_id: plan.claim.job.recipients for plan in plans if plan.claim.job.recipients is not None}
        fresh = [plan for plan in plans if plan.job_id not in stored]
        circles: list[Circle] = []
        for circle in await self._whom.circles(keys, fresh) if fresh else []:
            if circle.is_empty:
                results.append(nobody(circle.plan.claim, circle.nobody))
            elif circle.is_large:
                results.append(begin(circle.plan, inline_max=circle.inline_max))
            else:
                circles.append(circle)
        if circles:
            stored |= await self._store(keys.tenant_id, circles, await self._whom.decide(keys, circles))
        sets: dict[int, tuple[FrozenRecipient, ...]] = {}
        for plan in [plan for plan in plans if plan.job_id in stored]:
            try:
                sets[plan.job_id] = recipient.decode(stored[plan.job_id])
            except msgspec.DecodeError as error:
                results.append(fail(plan.claim, f"its recipients cannot be read: {error}"))
        return sets

    async def _store(
        self, tenant_id: str, circles: Sequence[Circle], decided: Sequence[tuple[FrozenRecipient, ...]]
    ) -> dict[int, str]:
        """Freeze sets, in transactions of a bounded number of recipients; return those that stand."""
        stored: dict[int, str] = {}
        batch: list[FrozenSet] = []
        size = 0
        for circle, recipients in zip(circles, decided, strict=True):
            if size + len(recipients) > ITEMS_MAX:
                stored |= await self._queue.freeze_recipients(tenant_id, batch)
                batch, size = [], 0
            size += len(recipients)
            frozen = FrozenSet(
                job_id=circle.plan.job_id,
                job_key=job_key(circle.plan),
                text=recipient.encode(recipients),
                recipients=[one.recipient_id_hash for one in recipients],
            )
            batch.append(frozen)
        return stored | await self._queue.freeze_recipients(tenant_id, batch)


def _content_name(claim: StageClaim) -> ContentName | None:
    """Name the content that a job tells of; None where its payload is all there is."""
    content_of = claim.job.content_of
    return None if content_of is None else (claim.tenant_id, content_of)


def _template_name(claim: StageClaim) -> TemplateName:
    return (claim.tenant_id, claim.job.template_key or claim.job.event_type, claim.job.template_version)
