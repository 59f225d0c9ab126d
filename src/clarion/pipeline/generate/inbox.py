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

Sets = Mapping[int, Sequence[FrozenRecipient]]
"""The frozen recipients of jobs, by the job's id."""


class Lines(msgspec.Struct, frozen=True):
    """The inbox lines of a job, and how many could not be made and why the first could not."""

    entries: list[InboxEntry]
    unmade: int = 0
    why: str = ""


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
        the others wait, so that any number of lines is made in the end.
        """
        profiles = await self._profiles(keys, plans, sets)
        batches: dict[str, list[tuple[Plan, Merge, list[Identity]]]] = defaultdict(list)
        for plan in plans:
            for merge, readers in _merges(plan, sets[plan.job_id], profiles, public_url=self._public_url):
                batches[plan.bundle.content_hash].append((plan, merge, readers))
        merged: dict[int, list[tuple[Merged, list[Identity]]]] = {plan.job_id: [] for plan in plans}
        until = self._clock.monotonic() + self._merging_max
        for batch in batches.values():
            merges = [merge for _, merge, _ in batch]
            answers = await self._render(keys.tenant_id, batch[0][0].bundle, merges, until=until)
            for (plan, _, readers), one in zip(batch, answers, strict=True):
                merged[plan.job_id].append((one, readers))
        return {plan.job_id: _lines(plan, merged[plan.job_id]) for plan in plans}

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
    """Name those whose inbox gets a line."""
    return [
        (one, one.inbox_identity)
        for one in recipients
        for decision in one.decisions
        if decision.goes_in and one.inbox_identity is not None
    ]


def _merges(
    plan: Plan, recipients: Sequence[FrozenRecipient], profiles: Mapping[int, Mapping[str, object]], *, public_url: str
) -> list[tuple[Merge, list[Identity]]]:
    """Make the merges of a job's inbox lines, each with those who read it."""
    is_personal = plan.bundle.reads_recipient(Channel.INBOX)
    found: dict[tuple[str | None, str | None, int | None], tuple[Merge, list[Identity]]] = {}
    for one, reader in _readers(recipients):
        version = one.person_version_id if is_personal else None
        merge = Merge(
            plan.payload.data,
            locale=one.locale or "",
            zone=one.tz_id or "UTC",
            recipient=profiles.get(version, {}) if version is not None else {},
            entity=plan.payload.entity,
            public_url=public_url,
        )
        found.setdefault((one.locale, one.tz_id, version), (merge, []))[1].append(reader)
    return list(found.values())


def _lines(plan: Plan, merged: Sequence[tuple[Merged, list[Identity]]]) -> Lines | StageResult:
    """Make the inbox lines of a job, or say that it waits.

    A line that cannot be made is left out: what one reader's profile lacks is no fault of the others, nor of the mails.
    """
    unmade: list[tuple[str, int]] = []
    entries: list[InboxEntry] = []
    for one, readers in merged:
        match one:
            case NotMerged():
                return not_merged(plan, one)
            case RenderFailed():
                unmade.append((str(one), len(readers)))
            case _:
                content = msgspec.json.encode(one)
                entries += [
                    InboxEntry(
                        job=plan.claim.job,
                        hold=plan.claim.hold,
                        recipient=reader,
                        category=plan.bundle.definition.category,
                        expires_at=plan.expires_at,
                        content=content,
                    )
                    for reader in readers
                ]
    if not unmade:
        return Lines(entries)
    return Lines(entries, unmade=sum(readers for _, readers in unmade), why=unmade[0][0])
