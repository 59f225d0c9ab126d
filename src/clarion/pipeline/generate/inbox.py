"""The inbox lines of jobs: merged here, since no provider is called for them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from clarion.dispatch.request import InboxEntry
from clarion.domain.claim import StageResult
from clarion.domain.identity import Channel, Identity
from clarion.domain.recipient import FrozenRecipient
from clarion.domain.seal import TenantKeys
from clarion.errors import RenderFailed
from clarion.pipeline.generate.plan import Plan, not_merged
from clarion.ports.clock import Clock
from clarion.ports.facts import FactStore
from clarion.ports.renderer import Bundle, Merge, Merged, NotMerged, Renderer
from clarion.sealing.place import open_profile

MERGES_MAX: Final = 500
"""Merges that the renderer is asked for at once: enough to keep its processes busy, and their data together, which it
holds in memory until it answers, has 32 MB at most."""

Shared = tuple[str | None, str | None, int | None]
"""What those have in common who read the same line: language, zone, and the version of the profile that it reads."""

Sets = Mapping[int, Sequence[FrozenRecipient]]
"""The frozen recipients of jobs, by the job's id."""


class Lines(msgspec.Struct, frozen=True, kw_only=True):
    """The inbox lines of a job, and how many could not be made and why the first could not.

    Where the time was too short for all, they are those of the recipients up to `until`, by their hash.
    """

    entries: list[InboxEntry]
    unmade: int
    why: str
    until: str | None


class Inbox:
    """Makes inbox lines."""

    def __init__(
        self, *, facts: FactStore, renderer: Renderer, clock: Clock, merging_max: float, public_url: str
    ) -> None:
        """Merge with this renderer, a tenant's lines for so many seconds; links begin with this URL."""
        self._clock = clock
        self._facts = facts
        self._renderer = renderer
        self._merging_max = merging_max
        self._public_url = public_url

    async def make(self, keys: TenantKeys, plans: Sequence[Plan], sets: Sets) -> dict[int, Lines | StageResult]:
        """Render the inbox lines of jobs; say of each job what came of it.

        Readers share a line unless it reads who they are, or they read in different languages or zones. Lines of the
        same template are merged together, job by job: where the time is too short for all, the first jobs are made and
        the others wait, and of one job the first recipients' lines, so that any number of lines is made in the end.
        """
        profiles = await self._profiles(keys, plans, sets)
        batches: dict[str, list[tuple[Plan, Shared, Merge]]] = defaultdict(list)
        for plan in plans:
            for shared, merge in _merges(plan, sets[plan.job_id], profiles, public_url=self._public_url).items():
                batches[plan.bundle.content_hash].append((plan, shared, merge))
        merged: dict[int, dict[Shared, Merged]] = {plan.job_id: {} for plan in plans}
        until = self._clock.monotonic() + self._merging_max
        for batch in batches.values():
            merges = [merge for _, _, merge in batch]
            answers = await self._render(keys.tenant_id, batch[0][0].bundle, merges, until=until)
            for (plan, shared, _), one in zip(batch, answers, strict=True):
                merged[plan.job_id][shared] = one
        return {plan.job_id: _lines(plan, sets[plan.job_id], merged[plan.job_id]) for plan in plans}

    async def _render(self, tenant_id: str, bundle: Bundle, merges: Sequence[Merge], *, until: float) -> list[Merged]:
        """Make merges of one template, so many at once that the renderer has room for them."""
        answers: list[Merged] = []
        for start in range(0, len(merges), MERGES_MAX):
            answers += await self._renderer.render(
                bundle,
                Channel.INBOX,
                merges[start : start + MERGES_MAX],
                tenant_id=tenant_id,
                seconds_max=until - self._clock.monotonic(),
            )
        return answers

    async def _profiles(self, keys: TenantKeys, plans: Sequence[Plan], sets: Sets) -> dict[int, Mapping[str, object]]:
        """Open the profiles that inbox lines read, by the ids of their versions."""
        wanted = {
            one.person_version_id
            for plan in plans
            if plan.bundle.reads_recipient(Channel.INBOX)
            for one, _ in _readers(sets[plan.job_id])
            if one.person_version_id is not None
        }
        found = await self._facts.find_person_versions(keys.tenant_id, wanted) if wanted else {}
        return {
            number: open_profile(
                keys, one.profile, recipient_id_hash=one.recipient_id_hash, profile_hash=one.profile_hash
            )
            for number, one in found.items()
        }


def _readers(recipients: Sequence[FrozenRecipient]) -> list[tuple[FrozenRecipient, Identity]]:
    """Name those whose inbox gets a line, in the order in which a job goes on."""
    return [
        (one, one.inbox_identity)
        for one in sorted(recipients, key=lambda one: one.recipient_id_hash)
        for decision in one.decisions
        if decision.goes_in and one.inbox_identity is not None
    ]


def _shared(plan: Plan, one: FrozenRecipient) -> Shared:
    is_personal = plan.bundle.reads_recipient(Channel.INBOX)
    return one.locale, one.tz_id, one.person_version_id if is_personal else None


def _merges(
    plan: Plan, recipients: Sequence[FrozenRecipient], profiles: Mapping[int, Mapping[str, object]], *, public_url: str
) -> dict[Shared, Merge]:
    """Make the merges of a job's inbox lines."""
    found: dict[Shared, Merge] = {}
    for one, _ in _readers(recipients):
        shared = locale, zone, version = _shared(plan, one)
        if shared not in found:
            found[shared] = Merge(
                plan.payload.data,
                locale=locale or "",
                zone=zone or "UTC",
                recipient=profiles.get(version, {}) if version is not None else {},
                entity=plan.payload.entity,
                public_url=public_url,
            )
    return found


def _lines(plan: Plan, recipients: Sequence[FrozenRecipient], merged: Mapping[Shared, Merged]) -> Lines | StageResult:
    """Make the inbox lines of a job, or say that it waits.

    A line that cannot be made is left out: what one reader's profile lacks is no fault of the others, nor of the mails.
    """
    entries: list[InboxEntry] = []
    unmade, why, done = 0, "", ""
    contents: dict[Shared, bytes] = {}
    for one, reader in _readers(recipients):
        shared = _shared(plan, one)
        match merged[shared]:
            case NotMerged() as late if late.counts or late.is_held or not done:
                return not_merged(plan, late)
            case NotMerged():
                return Lines(entries=entries, unmade=unmade, why=why, until=done)
            case RenderFailed() as error:
                unmade, why = unmade + 1, why or str(error)
            case content:
                if shared not in contents:
                    contents[shared] = msgspec.json.encode(content)
                entries.append(
                    InboxEntry(
                        job=plan.claim.job,
                        hold=plan.claim.hold,
                        recipient=reader,
                        category=plan.bundle.definition.category,
                        expires_at=plan.expires_at,
                        content=contents[shared],
                    )
                )
        done = one.recipient_id_hash
    return Lines(entries=entries, unmade=unmade, why=why, until=None)
