"""The stage: freezes a job's recipients, then ensures inbox rows and outgoing rows.

Reads templates, people and groups in sets, never job by job; who gets what is decided by `domain.decision`; writes
through dispatch.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, assert_never
from uuid import UUID

import msgspec
import structlog

from clarion.dispatch import DeliveryDispatcher
from clarion.dispatch.message import outgoing_item
from clarion.dispatch.request import Destination, InboxEntry, Payload, Trace
from clarion.domain import recipient
from clarion.domain.claim import StageClaim, StageResult
from clarion.domain.decision import decide, in_their_form, nearest, summary, terms_of
from clarion.domain.identity import Channel, Identity, IdentityDomain, Lane
from clarion.domain.key import require_key_version
from clarion.domain.notification import STAGE_LEASE, NotificationStatus, Stage
from clarion.domain.outgoing import OutgoingItem
from clarion.domain.person import Contact
from clarion.domain.recipient import FrozenRecipient
from clarion.domain.seal import TenantKeys
from clarion.domain.suppression import optional_category
from clarion.errors import CallerError, SealBroken, UnknownVersion
from clarion.pipeline.generate.facts import load_known
from clarion.pipeline.generate.inbox import Inbox
from clarion.pipeline.generate.plan import TENANT_RESTS_FOR, Plan, by_bundle, fail, not_merged, put_off, rest
from clarion.pipeline.generate.underway import JOBS_MAX, Underway
from clarion.ports.clock import Clock
from clarion.ports.ensure import in_sets
from clarion.ports.facts import FactStore
from clarion.ports.queue import QueueStore
from clarion.ports.renderer import QUARANTINED, NotMerged, Renderer
from clarion.ports.templates import TemplateName, Templates
from clarion.sealing.keyring import Keyring
from clarion.sealing.place import payload_place

BATCH: Final = 200
"""As in schedule: statements are shared, and a worker that dies leaves little behind."""

ALONE_FOR: Final = timedelta(milliseconds=20)
"""About what one job takes. Jobs that are to be made alone are put off by multiples of it, to come back one by one."""

MERGE_SHARE: Final = 4
"""Looking at the data of a tenant's jobs, and merging their inbox lines, has one part in so many of the lease each."""

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
        clock: Clock,
        lease: timedelta = STAGE_LEASE,
        public_url: str | None = None,
    ) -> None:
        """Work on this queue, with these facts, through this dispatcher; links begin with this URL."""
        self._queue = queue
        self._facts = facts
        self._templates = templates
        self._renderer = renderer
        self._dispatcher = dispatcher
        self._keyring = keyring
        self._lease = lease
        self._merging_max = lease.total_seconds() / MERGE_SHARE
        self._clock = clock
        self._underway = Underway()
        self._stopping = False
        self._inbox = Inbox(
            facts=facts,
            renderer=renderer,
            clock=clock,
            merging_max=self._merging_max,
            public_url=public_url or "",
        )

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
        try:
            results = await self._generate(tenant_id, claims)
        except (CallerError, SealBroken) as error:
            log.warning("a tenant's jobs cannot be made", tenant_id=tenant_id, error=str(error))
            results = [put_off(claim, TENANT_RESTS_FOR, str(error)) for claim in claims]
        if results:
            await self._queue.finish_stage(results)

    async def _generate(self, tenant_id: str, claims: Sequence[StageClaim]) -> list[StageResult]:
        """Make the rows of one tenant's jobs; a job that cannot be made fails by itself."""
        keys = await self._keyring.get(tenant_id)
        plans, results = await self._plan(tenant_id, keys, claims)
        sets = await self._freeze(tenant_id, keys, plans, results)
        plans = [plan for plan in plans if plan.job_id in sets]
        inbox = await self._inbox.make(keys, plans, sets)
        entered: list[InboxEntry] = []
        sends: list[OutgoingItem] = []
        for plan in plans:
            lines = inbox[plan.job_id]
            if isinstance(lines, StageResult):
                results.append(lines)
                continue
            outgoing = _outgoing(tenant_id, plan, sets[plan.job_id])
            if lines.failures and not lines.entries and not outgoing:
                results.append(fail(plan.claim, ", ".join(lines.failures)))
                continue
            entered += lines.entries
            sends += outgoing
            reason = ", ".join([summary(sets[plan.job_id]), *lines.failures])
            results.append(plan.claim.ended(NotificationStatus.DONE, stage=Stage.GENERATE, reason=reason))
        # A job that was canceled or taken over meanwhile gets no rows; finishing it then changes nothing either.
        for entries in in_sets(entered):
            await self._dispatcher.ensure_user_messages(tenant_id, entries)
        for items in in_sets(sends):
            await self._dispatcher.ensure_outgoing_messages(tenant_id, items)
        return results

    async def _plan(
        self, tenant_id: str, keys: TenantKeys, claims: Sequence[StageClaim]
    ) -> tuple[list[Plan], list[StageResult]]:
        """Open each job's payload and find its bundle; fail those that lack one, or data that their templates need."""
        names = {claim.job.guid: _template_name(claim) for claim in claims}
        bundles = await self._templates.load(set(names.values()), also_quarantined=True)
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
            plan = Plan(claim=claim, bundle=found[1], payload=payload, claimed_at=self._claimed_at(claim))
            if self._templates.is_quarantined((tenant_id, names[claim.job.guid][1], found[0])):
                failed.append(rest(plan, QUARANTINED))
                continue
            plans.append(plan)
        return await self._covered(tenant_id, plans, failed), failed

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
        self, tenant_id: str, keys: TenantKeys, plans: Sequence[Plan], results: list[StageResult]
    ) -> dict[int, tuple[FrozenRecipient, ...]]:
        """Decide who gets what where, unless that was decided before; what is stored first stands for ever."""
        fresh = [plan for plan in plans if plan.claim.job.recipients is None]
        resolved = await self._resolve(tenant_id, keys, fresh)
        texts: dict[int, str] = {}
        for plan in fresh:
            try:
                texts[plan.job_id] = recipient.encode(resolved[plan.job_id])
            except CallerError as error:
                results.append(fail(plan.claim, str(error)))
        stored = await self._queue.freeze_recipients(texts) if texts else {}
        stored |= {plan.job_id: plan.claim.job.recipients for plan in plans if plan.claim.job.recipients is not None}
        sets: dict[int, tuple[FrozenRecipient, ...]] = {}
        for plan in [plan for plan in plans if plan.job_id in stored]:
            try:
                sets[plan.job_id] = recipient.decode(stored[plan.job_id])
            except msgspec.DecodeError as error:
                results.append(fail(plan.claim, f"its recipients cannot be read: {error}"))
        return sets

    async def _resolve(
        self, tenant_id: str, keys: TenantKeys, plans: Sequence[Plan]
    ) -> dict[int, tuple[FrozenRecipient, ...]]:
        """Resolve the recipients of several jobs at once: groups to people, people to contacts."""
        groups = {UUID(t.identity.id) for p in plans for t in p.payload.to if t.identity.domain is IdentityDomain.GROUP}
        members = await self._facts.find_members(tenant_id, groups) if groups else {}
        people, bare = {one for group in members.values() for one in group}, set()
        for identity in {target.identity for plan in plans for target in plan.payload.to}:
            match identity.domain:
                case IdentityDomain.USER | IdentityDomain.EMPLOYEE:
                    people.add(keys.hash_of(identity))
                case IdentityDomain.ADDRESS:
                    bare.add(keys.hash_of(identity))
                case IdentityDomain.GROUP:
                    pass  # its members are people
                case _:
                    assert_never(identity.domain)
        addresses = await self._addresses(tenant_id, plans)
        known = await load_known(self._facts, tenant_id, people, bare=bare, addresses=addresses)
        known = msgspec.structs.replace(known, members=members)
        units = {plan.payload.business_unit for plan in plans if plan.payload.business_unit is not None}
        forms = await self._facts.find_local_forms(tenant_id, units) if plans else {}
        settings = await self._facts.find_settings({_setting_name(plan) for plan in plans}) if plans else {}
        resolved: dict[int, tuple[FrozenRecipient, ...]] = {}
        for plan in plans:
            definition, payload = plan.bundle.definition, plan.payload
            decided = decide(
                payload.to,
                terms=terms_of(definition, channels=payload.channels, setting=settings[_setting_name(plan)]),
                known=known,
                hash_of=keys.hash_of,
            )
            resolved[plan.job_id] = in_their_form(
                decided,
                people=known.people,
                asked=payload.locale,
                others=nearest(forms, payload.business_unit),
                locales=definition.locales,
            )
        return resolved

    async def _addresses(self, tenant_id: str, plans: Sequence[Plan]) -> dict[tuple[Channel, str], Contact]:
        """Ensure an address version for every bare address; return them by channel and address."""
        bare = {
            (target.channel, target.identity.id): plan.claim.job.correlation_id
            for plan in plans
            for target in plan.payload.to
            if target.identity.domain is IdentityDomain.ADDRESS and target.channel is not None
        }
        given = [
            Destination(
                identity=Identity.address(address),
                channel=channel,
                destination=address,
                trace=Trace(correlation_id=correlation_id),
            )
            for (channel, address), correlation_id in bare.items()
        ]
        stored: dict[tuple[Channel, str], Contact] = {}
        for chunk in in_sets(given):
            answers = await self._dispatcher.ensure_address_versions(tenant_id, chunk)
            for one, answer in zip(chunk, answers, strict=True):
                if answer.proceeds and answer.record.id is not None:
                    stored[one.channel, one.identity.id] = Contact(
                        channel=one.channel,
                        address_id=answer.record.id,
                        destination_index=answer.record.destination_index,
                    )
        return stored


def _outgoing(tenant_id: str, plan: Plan, recipients: Sequence[FrozenRecipient]) -> list[OutgoingItem]:
    """Make the outgoing rows of a job from its frozen set."""
    claim, definition, expires_at = plan.claim, plan.bundle.definition, plan.expires_at
    return [
        outgoing_item(
            tenant_id,
            claim.job,
            recipient_id_hash=one.recipient_id_hash,
            channel=decision.channel,
            address_id=decision.address_id,
            lane=claim.scheduler.lane,
            hold=plan.claim.hold,
            expires_at=expires_at,
            uncertain_policy=definition.uncertain_policy,
            attempts_max=definition.attempts_max,
            person_version_id=one.person_version_id,
            locale=one.locale,
            tz_id=one.tz_id,
            category=optional_category(definition.category, may_unsubscribe=definition.may_unsubscribe),
        )
        for one in recipients
        for decision in one.decisions
        if decision.address_id is not None and decision.skipped is None
    ]


def _setting_name(plan: Plan) -> tuple[str, str, UUID | None]:
    return plan.claim.tenant_id, plan.claim.job.event_type, plan.payload.business_unit


def _template_name(claim: StageClaim) -> TemplateName:
    return (claim.tenant_id, claim.job.template_key or claim.job.event_type, claim.job.template_version)
