"""The Ensure contracts: the only way a record comes to exist.

Each method takes a set (one is a set of one), derives every key, seals what is private, and asks the store to insert
what is absent and to compare what is there. It answers with stable coordinates and whether each item was created, found
or reactivated; a mismatch is answered as the conflict it is, with its support case open. Asking again is always safe.

Reads no clock and no chance: times come from the caller, nonces from the vault. Which rows a decision leads to is for
producers and the pipeline; what is stored how is for the store.
"""

from collections.abc import Sequence
from uuid import UUID

import msgspec

from clarion.dispatch import job, message
from clarion.dispatch.gathering import Gathering
from clarion.dispatch.occurrence import automation_job, automation_scheduler
from clarion.dispatch.request import (
    ContentRequest,
    Destination,
    InboxEntry,
    JobRequest,
    Occurrence,
    Profile,
    checked,
    taken,
)
from clarion.domain import key, part
from clarion.domain.address import AddressVersion
from clarion.domain.automation import AutomationJob, AutomationScheduler
from clarion.domain.ensured import Ensured, Outcome
from clarion.domain.guard import JobEntry
from clarion.domain.inbox import UserMessage
from clarion.domain.messaging import MessagingJob
from clarion.domain.notification import NotificationJob, NotificationScheduler
from clarion.domain.outgoing import OutgoingItem, OutgoingMessage
from clarion.domain.person import PersonVersion
from clarion.domain.seal import TenantKeys
from clarion.domain.support import conflict_case
from clarion.errors import SealBroken
from clarion.ports.blobs import Blobs
from clarion.ports.ensure import EnsureStore, bounded
from clarion.sealing.contents import content_fingerprint
from clarion.sealing.keyring import Keyring
from clarion.sealing.place import blob_place, payload_place


class DeliveryDispatcher:
    """Makes sure that records exist, once."""

    def __init__(self, *, store: EnsureStore, blobs: Blobs, keyring: Keyring) -> None:
        """Work on this store and these blobs, with these keys."""
        self._store = store
        self._blobs = blobs
        self._keyring = keyring
        self._jobs: Gathering[str, JobEntry, Ensured[NotificationJob]] = Gathering(self._ensure_jobs)

    async def ensure_tenant(self, tenant_id: str, *, actor: str | None = None) -> bool:
        """Make a tenant with keys of its own unless it exists, and say if it is new; audited where a person does it."""
        return await self._keyring.ensure(tenant_id, actor=actor)

    async def ensure_automation_scheduler(
        self, tenant_id: str, occurrences: Sequence[Occurrence]
    ) -> list[Ensured[AutomationScheduler]]:
        """Make sure that these occurrences will fall due, once each."""
        await self._keyring.get(tenant_id)  # refuses a tenant that does not exist
        rows = [automation_scheduler(taken(occurrence)) for occurrence in occurrences]
        return await self._store.ensure_automation_schedulers(tenant_id, rows)

    async def ensure_automation_job(
        self, tenant_id: str, occurrences: Sequence[Occurrence]
    ) -> list[Ensured[AutomationJob]]:
        """Make sure that these occurrences leave a trace in their entities' histories."""
        await self._keyring.get(tenant_id)  # refuses a tenant that does not exist
        rows = [automation_job(taken(occurrence)) for occurrence in occurrences]
        return await self._store.ensure_automation_jobs(tenant_id, rows)

    async def ensure_notification_job(
        self, tenant_id: str, requests: Sequence[JobRequest]
    ) -> list[Ensured[NotificationJob]]:
        """Make sure that these notifications will be worked on: guard, job and scheduler row in one transaction."""
        keys = await self._keyring.get(tenant_id)
        entries = [job.job_entry(keys, taken(request), nonce=self._keyring.nonce()) for request in requests]
        return await self._store.ensure_notification_jobs(tenant_id, entries)

    async def accept_notification_job(self, tenant_id: str, request: JobRequest) -> Ensured[NotificationJob]:
        """Do the same for one, in one transaction with others of its tenant that are asked for at the same time."""
        keys = await self._keyring.get(tenant_id)
        entry = job.job_entry(keys, taken(request), nonce=self._keyring.nonce())
        return await self._jobs.ask(tenant_id, entry, size=len(entry.job.payload or b""))

    async def was_accepted(self, tenant_id: str, request: JobRequest) -> bool | None:
        """Tell whether a request was accepted under its key before; None where the key was used for something else.

        Raises what `accept_notification_job` would, and stores nothing.
        """
        keys = await self._keyring.get(tenant_id)
        guard = job.job_entry(keys, taken(request), nonce=self._keyring.nonce()).guard
        found = None if guard is None else await self._store.find_guard(tenant_id, (guard.operation, guard.key_hash))
        if guard is None or found is None:
            return False
        is_same = found.retired_at is None and guard.payload_hash.agrees(found.payload_hash)
        return True if is_same else None

    async def _ensure_jobs(self, tenant_id: str, entries: Sequence[JobEntry]) -> list[Ensured[NotificationJob]]:
        return await self._store.ensure_notification_jobs(tenant_id, entries)

    async def differing_payload(self, tenant_id: str, request: JobRequest, found: NotificationJob) -> list[str]:
        """Name what a request asks for otherwise than the stored job that has its key; nothing where nobody can tell.

        Only names are given: of the data those of its fields, wherever they stand.
        """
        if found.payload is None:
            return []
        keys = await self._keyring.get(tenant_id)
        try:
            return job.differing_payload(request, payload_place(found.guid).open(keys, found.payload))
        except SealBroken:
            return []  # the conflict is told all the same

    async def is_key_known(self, tenant_id: str, operation: str, idempotency_key: str) -> bool:
        """Tell whether a caller's key was used before, so that what was asked for then is what counts."""
        keys = await self._keyring.get(tenant_id)
        key_hash = job.guard_key_hash(keys, operation, idempotency_key)
        return await self._store.find_guard(tenant_id, (part.plain(operation, field="operation"), key_hash)) is not None

    async def ensure_notification_scheduler(
        self, tenant_id: str, rows: Sequence[NotificationScheduler]
    ) -> list[Ensured[NotificationScheduler]]:
        """Make sure that stored artifacts are pending, through the dispatch key.

        A row names its artifact by partition key and row key; those of a messaging job are both its guid.
        """
        await self._keyring.get(tenant_id)
        return await self._store.ensure_notification_schedulers(tenant_id, [taken(row) for row in rows])

    async def ensure_messaging_job(
        self, tenant_id: str, requests: Sequence[ContentRequest]
    ) -> list[Ensured[MessagingJob]]:
        """Make sure that these contents and their jobs exist: the blob first, so that no row refers to nothing."""
        bounded(requests)
        keys = await self._keyring.get(tenant_id)
        answers: dict[int, Ensured[MessagingJob]] = {}
        rows: dict[int, MessagingJob] = {}
        for place, request in enumerate(requests):
            job = message.messaging_job(tenant_id, taken(request))
            found = await self._store_content(keys, job, request.content)
            if found.content_hash == job.content_hash:
                rows[place] = job
            else:
                answers[place] = await self._blob_conflict(tenant_id, job, found)
        ensured = await self._store.ensure_messaging_jobs(tenant_id, list(rows.values()))
        answers.update(zip(rows, ensured, strict=True))
        return [answers[place] for place in range(len(requests))]

    async def keep_content(self, tenant_id: str, messaging_job: UUID, content: bytes) -> bytes:
        """Store the content of a messaging job unless somebody has, and return what is stored: the first one stands.

        For whoever makes a content that may come out otherwise the next time, such as a report.
        """
        keys = await self._keyring.get(tenant_id)
        path = key.messaging_blob_path(tenant_id=tenant_id, messaging_job_guid=messaging_job)
        if await self._blobs.put_if_absent(path, blob_place(path).seal(keys, content, nonce=self._keyring.nonce())):
            return content
        return blob_place(path).open(keys, await self._blobs.get(path))

    async def ensure_address_versions(
        self, tenant_id: str, destinations: Sequence[Destination]
    ) -> list[Ensured[AddressVersion]]:
        """Make sure that these destinations are known, sealed; one that was known before is the version that it was."""
        keys = await self._keyring.get(tenant_id)
        rows = [message.address_version(keys, checked(given), nonce=self._keyring.nonce()) for given in destinations]
        return await self._store.ensure_address_versions(tenant_id, rows)

    async def ensure_person_versions(self, tenant_id: str, profiles: Sequence[Profile]) -> list[Ensured[PersonVersion]]:
        """Make sure that these profiles are known, sealed; one that a person had before is the version that it was."""
        keys = await self._keyring.get(tenant_id)
        rows = [message.person_version(keys, checked(given), nonce=self._keyring.nonce()) for given in profiles]
        return await self._store.ensure_person_versions(tenant_id, rows)

    async def ensure_user_messages(self, tenant_id: str, entries: Sequence[InboxEntry]) -> list[Ensured[UserMessage]]:
        """Make sure that these recipients have these jobs in their inboxes."""
        keys = await self._keyring.get(tenant_id)
        rows = [message.user_message(keys, checked(entry), nonce=self._keyring.nonce()) for entry in entries]
        held = zip(rows, entries, strict=True)
        holds = {row.key: entry.hold for row, entry in held if entry.hold is not None}
        return await self._store.ensure_user_messages(tenant_id, rows, holds=holds)

    async def ensure_outgoing_messages(
        self, tenant_id: str, items: Sequence[OutgoingItem]
    ) -> list[Ensured[OutgoingMessage]]:
        """Make sure that these messages (of `message.outgoing_item`) exist; the claim decides what becomes of them."""
        await self._keyring.get(tenant_id)
        return await self._store.ensure_outgoing_messages(tenant_id, [checked(item) for item in items])

    async def _store_content(self, keys: TenantKeys, job: MessagingJob, content: bytes) -> MessagingJob:
        """Store a content unless its path is taken; return the job with the fingerprint of what lies there."""
        found = await self.keep_content(keys.tenant_id, job.guid, content)
        return msgspec.structs.replace(job, content_hash=content_fingerprint(found))

    async def _blob_conflict(self, tenant_id: str, given: MessagingJob, found: MessagingJob) -> Ensured[MessagingJob]:
        """Stop and report a blob that holds other content than the one asked for; no row is made or changed."""
        fields = ("content_hash",)
        case = conflict_case(
            tenant_id=tenant_id, given=given, found=found, fields=fields, correlation_id=given.correlation_id
        )
        await self._store.open_support_cases(tenant_id, [case])
        return Ensured(outcome=Outcome.CONFLICT, record=found, differing=fields, case_id=case.case_id)
