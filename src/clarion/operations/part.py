"""What is stored about a notification, as much of it as one answer can have.

Of a set that lies in a job's row that is all: 1,000 recipients at most. Of a larger one, whose set lies in pages, it is
some recipients with their messages; whoever wants the others reads them page by page, or asks for one message.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final
from uuid import UUID

import msgspec

from clarion.domain import derived_id, recipient
from clarion.domain.notification import NotificationJob
from clarion.domain.recipient import FrozenRecipient, Manifest, Totals
from clarion.domain.result import Standing, standing_of
from clarion.domain.seal import TenantKeys
from clarion.domain.skip import SkipRule, rule_of
from clarion.domain.timeline import JobTimeline
from clarion.errors import BlobMissing, SealBroken
from clarion.ports.insights import InsightStore
from clarion.sealing.recipients import RecipientSets

SHOWN: Final = 100
"""Recipients of a large set in the answer about the whole notification: as long as a page."""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A notification with some of its recipients, or all; `message_id` is that of the message that was named.

    `recipients` is None while nobody is decided on. `totals` and `standing` are of the whole notification.
    """

    timeline: JobTimeline
    message_id: UUID | None
    recipients: Sequence[FrozenRecipient] | None
    totals: Totals
    standing: Standing

    @property
    def not_sent(self) -> dict[SkipRule, int]:
        """How many channels of recipients got nothing, by the rule: when it was decided, or at the claim."""
        counted = Counter(self.totals.skipped)
        for status, number in self.standing.outgoing.items():
            rule = rule_of(status)
            if rule is not None:
                counted[rule] += number
        counted[SkipRule.PREFERENCE] += self.standing.opted_out
        counted[SkipRule.SUPPRESSION] -= self.standing.opted_out  # which is what their state alone says
        return {rule: number for rule, number in sorted(counted.items()) if number}


async def find_part(store: InsightStore, sets: RecipientSets, keys: TenantKeys, named: UUID) -> Part | None:
    """Find a notification by its job or by one of its messages; None where the tenant has neither."""
    job_id = await store.find_job_of_message(keys.tenant_id, named)
    job = await store.find_job(keys.tenant_id, job_id or named)
    if job is None:
        return None
    message_id = None if job_id is None else named
    try:
        frozen = None if job.recipients is None else recipient.read(job.recipients)
    except msgspec.DecodeError:
        frozen = ()  # its timeline says that they cannot be read
    if isinstance(frozen, Manifest):
        return await _large(store, sets, keys, job, frozen, message_id=message_id)
    timeline = await store.find_job_timeline(keys.tenant_id, job.guid)
    if timeline is None:
        return None
    meant = frozen
    if frozen is not None and message_id is not None:
        meant = tuple(one for one in frozen if message_of(keys, job, one) == message_id)
    return Part(
        timeline=timeline,
        message_id=message_id,
        recipients=meant,
        totals=recipient.totals_of(frozen or ()),
        standing=standing_of(timeline),
    )


async def part_of(
    store: InsightStore, keys: TenantKeys, job: NotificationJob, meant: Sequence[FrozenRecipient]
) -> Part | None:
    """Read the messages of some recipients of a job, of whatever size its set is; None where it is gone."""
    wanted = [message_of(keys, job, one) for one in meant]
    timeline = await store.find_job_timeline(keys.tenant_id, job.guid, messages=wanted)
    standing = (await store.find_standings(keys.tenant_id, [job.guid])).get(job.guid)
    if timeline is None or standing is None:
        return None
    frozen = () if job.recipients is None else recipient.read(job.recipients)
    totals = frozen.totals if isinstance(frozen, Manifest) else recipient.totals_of(frozen)
    return Part(timeline=timeline, message_id=None, recipients=meant, totals=totals, standing=standing)


def message_of(keys: TenantKeys, job: NotificationJob, one: FrozenRecipient) -> UUID:
    """Name what a recipient of a job gets; the same on all channels."""
    return derived_id.message_id(tenant_id=keys.tenant_id, pk=job.outgoing_pk, recipient_id_hash=one.recipient_id_hash)


async def _large(
    store: InsightStore,
    sets: RecipientSets,
    keys: TenantKeys,
    job: NotificationJob,
    manifest: Manifest,
    *,
    message_id: UUID | None,
) -> Part | None:
    """Read some recipients of a set in pages and their messages, or one message and its recipient."""
    meant: Sequence[FrozenRecipient] = ()
    try:
        if message_id is None:
            meant = await sets.part(keys.tenant_id, job, limit=SHOWN)
        wanted = [message_of(keys, job, one) for one in meant] if message_id is None else [message_id]
        timeline = await store.find_job_timeline(keys.tenant_id, job.guid, messages=wanted)
        if timeline is not None and message_id is not None:
            whose = await _recipient_of(store, keys, timeline)
            found = None if whose is None else await sets.find(keys.tenant_id, job, whose)
            meant = () if found is None else (found,)
    except (SealBroken, BlobMissing, msgspec.DecodeError):  # a page that was lost: what is in the store is shown
        timeline = await store.find_job_timeline(keys.tenant_id, job.guid, messages=[message_id] if message_id else ())
    standing = (await store.find_standings(keys.tenant_id, [job.guid])).get(job.guid)
    if timeline is None or standing is None:
        return None
    return Part(timeline=timeline, message_id=message_id, recipients=meant, totals=manifest.totals, standing=standing)


async def _recipient_of(store: InsightStore, keys: TenantKeys, timeline: JobTimeline) -> str | None:
    """Find out whose the one message of a timeline is, by its rows."""
    for _, line in timeline.inbox:
        return line.recipient_id_hash
    versions = await store.find_addresses(keys.tenant_id, {row.address_id for row in timeline.outgoing})
    return next((one.recipient_id_hash for one in versions), None)
