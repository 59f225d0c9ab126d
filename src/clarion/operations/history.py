"""Everything that one person got, or was left out of, by whichever entity it was filed; and what came of it for them.

Read by the table of what recipients have, which is written with each frozen set. Before that a job is found only where
it names a single person and no entity: then it is filed under them. What came of it is asked of the person's own rows,
never of the whole notification, which may have as many recipients as it likes.
"""

from collections.abc import Sequence
from uuid import UUID

import msgspec

from clarion.client import wire
from clarion.domain import derived_id
from clarion.domain.identity import Identity
from clarion.domain.key import manual_job_pk, outgoing_pk
from clarion.domain.recipient import FrozenRecipient
from clarion.domain.result import Standing, overall
from clarion.domain.seal import TenantKeys
from clarion.errors import BlobMissing, SealBroken
from clarion.operations import page
from clarion.operations.whom import opened_destination, skips_of
from clarion.ports.insights import InsightStore, JobOfRecipient, MessageCounts
from clarion.sealing.recipients import RecipientSets

NOTHING = MessageCounts(inbox=0, outgoing={})


async def personal_history(
    store: InsightStore,
    sets: RecipientSets,
    keys: TenantKeys,
    person: Identity,
    query: wire.PageQuery,
    *,
    whole: bool,
) -> wire.NotificationPage:
    """List what a person got, the newest first, each with its result for them and, where they got nothing, why."""
    recipient_id_hash = keys.hash_of(person)
    place = manual_job_pk(
        entity_guid=None, recipients=[person], recipient_id_hash=recipient_id_hash, job_guid=UUID(int=0)
    )
    name = f"history {place}"
    found = await store.list_jobs_of_recipient(
        keys.tenant_id,
        recipient_id_hash,
        partition_key=place,
        after=page.read(name, query.cursor, start=""),
        limit=query.limit + 1,
    )
    jobs, following = page.cut(name, found, query.limit, lambda job: job.job_key)
    ids = {
        job.guid: derived_id.message_id(
            tenant_id=keys.tenant_id,
            pk=job.messaging_job or outgoing_pk(job_rk=job.row_key),
            recipient_id_hash=recipient_id_hash,
        )
        for job in jobs
    }
    counts = await store.count_messages(keys.tenant_id, ids.values())
    without = [job for job in jobs if job.is_decided and ids[job.guid] not in counts]
    skipped = await _skipped(store, sets, keys, recipient_id_hash, without, whole=whole)
    return wire.NotificationPage(
        items=tuple(
            wire.NotificationLine(
                job_id=job.guid,
                type=job.event_type,
                recipients=job.recipients or 1,
                recipient=f"{person.domain}:{person.id}" if job.recipients <= 1 else None,
                result=overall(_standing(job, counts.get(ids[job.guid], NOTHING))),
                status=job.work,
                accepted_at=job.source_at,
                message_id=ids[job.guid],
                skipped=skipped.get(job.guid, ()),
            )
            for job in jobs
        ),
        next_cursor=following,
    )


def _standing(job: JobOfRecipient, counts: MessageCounts) -> Standing:
    """Give what decides the result for one recipient: whether they have a message at all, and how it stands."""
    return Standing(
        work=job.work,
        recipients=int(job.is_decided),
        addressed=int(counts is not NOTHING),
        inbox=counts.inbox,
        outgoing=counts.outgoing,
    )


async def _skipped(
    store: InsightStore,
    sets: RecipientSets,
    keys: TenantKeys,
    recipient_id_hash: str,
    jobs: Sequence[JobOfRecipient],
    *,
    whole: bool,
) -> dict[UUID, tuple[wire.Skipped, ...]]:
    """Say why a person got nothing of some jobs, as it was decided; a set that cannot be read says nothing."""
    frozen: dict[UUID, FrozenRecipient] = {}
    for one in await store.find_sets(keys.tenant_id, [job.guid for job in jobs]):
        try:
            found = await sets.find(keys.tenant_id, one, recipient_id_hash)
        except (BlobMissing, SealBroken, msgspec.DecodeError):
            continue
        if found is not None:
            frozen[one.guid] = found
    named = {each.address_id for one in frozen.values() for each in one.decisions if each.address_id is not None}
    versions = await store.find_addresses(keys.tenant_id, named)
    destinations = {version.id or 0: opened_destination(version, keys, whole=whole) for version in versions}
    return {guid: skips_of(one, destinations) for guid, one in frozen.items()}
