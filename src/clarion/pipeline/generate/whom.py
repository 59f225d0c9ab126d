"""Whom jobs are for: those whom a send names, or whom the settings name for it, and what is decided about them.

Reads settings, groups, people and contacts in sets, for a batch of jobs or for one page of a large one, and ensures an
address version for every bare address. Decides by `domain.decision`; freezes nothing.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final
from uuid import UUID

import msgspec

from clarion.dispatch import DeliveryDispatcher
from clarion.dispatch.request import Destination, Trace
from clarion.domain.audience import Audience, audience_of
from clarion.domain.decision import Known, decide, decide_people, in_their_form, nearest, terms_of
from clarion.domain.identity import Channel, Identity, IdentityDomain
from clarion.domain.person import Contact, LocalForm
from clarion.domain.recipient import INLINE_MAX, FrozenRecipient, Target
from clarion.domain.seal import TenantKeys
from clarion.domain.setting import EffectiveSetting
from clarion.pipeline.generate.facts import load_known
from clarion.pipeline.generate.plan import Plan
from clarion.pipeline.generate.sizes import Sizes
from clarion.ports.ensure import in_sets
from clarion.ports.facts import FactStore

AUDIENCES_MAX: Final = 20
"""Audiences that are asked for together: 20,000 recipients at most, some megabytes."""


class Circle(msgspec.Struct, frozen=True, kw_only=True):
    """Whom one job is for, before anything is decided.

    `named` are the people and bare addresses that its send names, by their hashes; one address may be named for two
    channels. `first` are the first of its audience, more than `inline_max` only where the job's set lies in pages.
    """

    plan: Plan
    setting: EffectiveSetting
    named: Sequence[tuple[str, Target]]
    audience: Audience
    inline_max: int
    first: Sequence[str] = ()

    @property
    def is_large(self) -> bool:
        """Whether the set lies in pages."""
        return len({*self.first, *(hashed for hashed, _ in self.named)}) > self.inline_max

    @property
    def is_empty(self) -> bool:
        """Whether there is nobody."""
        return not self.first and not self.named

    @property
    def nobody(self) -> str:
        """Say why there is nobody."""
        to, own, asked = self.plan.payload.to, self.plan.payload.addressees, self.setting.recipients
        if own:
            return f"nobody to send it to: it is for {', '.join(map(str, own))}, and nobody is there"
        if to:
            return "nobody to send it to: no group that it names has members"
        if asked:
            return f"nobody to send it to: the settings name {', '.join(map(str, asked))}, and nobody is there"
        return "nobody to send it to: it names nobody, and neither do the settings"


class Whom:
    """Finds out whom jobs are for, and decides what they get."""

    def __init__(self, *, facts: FactStore, dispatcher: DeliveryDispatcher, sizes: Sizes | None = None) -> None:
        """Ask these facts, and ensure addresses through this dispatcher; large sets begin at these sizes."""
        self._facts = facts
        self._inline_max = INLINE_MAX if sizes is None else sizes.inline
        self._dispatcher = dispatcher

    async def circles(self, keys: TenantKeys, plans: Sequence[Plan], *, look: bool = True) -> list[Circle]:
        """Say whom jobs are for, and look at the beginning of each audience."""
        settings = await self._facts.find_settings({_asked(plan) for plan in plans})
        circles = [_circle(keys, plan, settings[_asked(plan)], inline_max=self._inline_max) for plan in plans]
        audiences = list(dict.fromkeys(one.audience for one in circles if one.audience)) if look else []
        first: dict[Audience, Sequence[str]] = {}
        for start in range(0, len(audiences), AUDIENCES_MAX):
            chunk = audiences[start : start + AUDIENCES_MAX]
            found = await self._facts.find_audiences(keys.tenant_id, chunk, limit=self._inline_max + 1)
            first.update(zip(chunk, found, strict=True))
        return [msgspec.structs.replace(one, first=first.get(one.audience, ())) for one in circles]

    async def decide(self, keys: TenantKeys, circles: Sequence[Circle]) -> list[tuple[FrozenRecipient, ...]]:
        """Decide about the recipients of several jobs at once."""
        known, forms = await self._known(keys, circles, {hashed for one in circles for hashed in one.first})
        return [_decided(keys, one, one.named, one.first, known=known, forms=forms) for one in circles]

    async def decide_page(
        self, keys: TenantKeys, circle: Circle, *, after: str, limit: int
    ) -> tuple[FrozenRecipient, ...]:
        """Decide about some recipients of one job, those behind one in the order of their hashes."""
        found: Sequence[str] = ()
        if circle.audience:
            found = await self._facts.find_audience(keys.tenant_id, circle.audience, after=after, limit=limit)
        named = {hashed for hashed, _ in circle.named if hashed > after}
        chosen = set(sorted({*found, *named})[:limit])
        people = [hashed for hashed in found if hashed in chosen]
        known, forms = await self._known(keys, [circle], people)
        targets = [(hashed, target) for hashed, target in circle.named if hashed in chosen]
        decided = _decided(keys, circle, targets, people, known=known, forms=forms)
        return tuple(sorted(decided, key=lambda one: one.recipient_id_hash))

    async def _known(
        self, keys: TenantKeys, circles: Sequence[Circle], hashes: Collection[str]
    ) -> tuple[Known, Mapping[UUID | None, LocalForm]]:
        """Load what is known about these and about those who are named."""
        people: set[str] = set(hashes)
        bare: set[str] = set()
        for hashed, target in [named for one in circles for named in one.named]:
            (bare if target.identity.domain is IdentityDomain.ADDRESS else people).add(hashed)
        addresses = await self._addresses(keys.tenant_id, [one.plan for one in circles])
        known = await load_known(self._facts, keys.tenant_id, people, bare=bare, addresses=addresses)
        asked = {one.plan.payload.business_unit for one in circles}
        forms = await self._facts.find_local_forms(keys.tenant_id, [unit for unit in asked if unit is not None])
        return known, forms

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


def _asked(plan: Plan) -> tuple[str, str, UUID | None]:
    return plan.claim.tenant_id, plan.claim.job.event_type, plan.payload.business_unit


def _circle(keys: TenantKeys, plan: Plan, setting: EffectiveSetting, *, inline_max: int) -> Circle:
    """Take the people, addresses and groups that a send names, and its addressees.

    Where it has neither, the settings name for whom it is.
    """
    to, job = plan.payload.to, plan.claim.job
    about = None if job.source_type is None or job.source is None else (job.source_type, UUID(job.source))
    groups = [UUID(one.identity.id) for one in to if one.identity.domain is IdentityDomain.GROUP]
    own, of_settings = plan.payload.addressees, () if to else setting.recipients
    asked = of_settings if own is None else own
    return Circle(
        plan=plan,
        setting=setting,
        named=[(keys.hash_of(one.identity), one) for one in to if one.identity.domain is not IdentityDomain.GROUP],
        audience=audience_of(asked, unit=plan.payload.business_unit, entity=about, groups=groups),
        inline_max=inline_max,
    )


def _decided(
    keys: TenantKeys,
    circle: Circle,
    named: Sequence[tuple[str, Target]],
    people: Sequence[str],
    *,
    known: Known,
    forms: Mapping[UUID | None, LocalForm],
) -> tuple[FrozenRecipient, ...]:
    """Decide about those who are named and about people, each once, and in which form they are written to."""
    definition, payload = circle.plan.bundle.definition, circle.plan.payload
    terms = terms_of(definition, channels=payload.channels, setting=circle.setting)
    decided = decide([target for _, target in named], terms=terms, known=known, hash_of=keys.hash_of)
    hashes = {hashed for hashed, _ in named}
    others = decide_people([hashed for hashed in people if hashed not in hashes], terms=terms, known=known)
    return in_their_form(
        (*decided, *others),
        people=known.people,
        asked=payload.locale,
        others=nearest(forms, payload.business_unit),
        locales=definition.locales,
    )
