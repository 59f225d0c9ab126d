"""Recipient sets in pages: written once, sealed, in the blob store, and read again by whoever makes rows or explains.

Reads and writes `{tenant}/recipients/{parent guid}/{page}` and the manifest beside the pages, which is created last and
freezes the set. A page that is there already is never written again: whoever comes second goes on from what he finds.
A small set stands in the row of its job; reading a part of a set is the same for both. Who is in a set is decided by
`pipeline.generate`.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final, Protocol
from uuid import UUID

from clarion.domain import key, recipient
from clarion.domain.notification import NotificationJob
from clarion.domain.recipient import FrozenRecipient, Manifest
from clarion.ports.blobs import Blobs
from clarion.sealing.keyring import Keyring
from clarion.sealing.place import blob_place

NOBODY: Final = ""
"""Before every recipient."""


class Frozen(Protocol):
    """A job, or what is known of its set."""

    @property
    def guid(self) -> UUID:
        """The job's guid."""
        ...

    @property
    def recipients(self) -> str | None:
        """Its set, or its manifest; None where nobody is decided on."""
        ...


class RecipientSets:
    """The sets of a tenant's jobs; a parent is whatever has a guid and rows for recipients."""

    def __init__(self, *, blobs: Blobs, keyring: Keyring) -> None:
        """Keep pages in these blobs, sealed with these keys."""
        self._blobs = blobs
        self._keyring = keyring

    async def put_page(
        self, tenant_id: str, parent: UUID, page: int, recipients: tuple[FrozenRecipient, ...]
    ) -> tuple[FrozenRecipient, ...]:
        """Store a page unless it is there; return what is stored."""
        path = key.recipient_page_path(tenant_id=tenant_id, parent_guid=parent, page=page)
        return recipient.decode(await self._put(tenant_id, path, recipient.encode(recipients)))

    async def find_page(self, tenant_id: str, parent: UUID, page: int) -> tuple[FrozenRecipient, ...] | None:
        """Read a page; None where nobody has stored it."""
        path = key.recipient_page_path(tenant_id=tenant_id, parent_guid=parent, page=page)
        found = await self._find(tenant_id, path)
        return None if found is None else recipient.decode(found)

    async def put_manifest(self, tenant_id: str, parent: UUID, manifest: Manifest) -> Manifest:
        """Freeze a set unless it is frozen; return the manifest that stands."""
        path = key.recipient_manifest_path(tenant_id=tenant_id, parent_guid=parent)
        return recipient.decode_manifest(await self._put(tenant_id, path, recipient.encode_manifest(manifest)))

    async def part(
        self, tenant_id: str, job: NotificationJob, *, after: str = NOBODY, limit: int
    ) -> Sequence[FrozenRecipient]:
        """Read some of a job's recipients behind one, sorted by hash; nobody where the set is not frozen yet."""
        frozen = () if job.recipients is None else recipient.read(job.recipients)
        if not isinstance(frozen, Manifest):
            return _behind(frozen, after)[:limit]
        found: list[FrozenRecipient] = []
        for page in range(bisect_right(frozen.pages, after), len(frozen.pages)):
            found += _behind(await self._page(tenant_id, job.guid, page), after)[: limit - len(found)]
            if len(found) >= limit:
                break
        return found

    async def find(self, tenant_id: str, job: Frozen, recipient_id_hash: str) -> FrozenRecipient | None:
        """Read what was decided for one recipient; None where the job is not for them."""
        frozen = () if job.recipients is None else recipient.read(job.recipients)
        if isinstance(frozen, Manifest):
            page = bisect_left(frozen.pages, recipient_id_hash)
            frozen = () if page == len(frozen.pages) else await self._page(tenant_id, job.guid, page)
        return next((one for one in frozen if one.recipient_id_hash == recipient_id_hash), None)

    async def _page(self, tenant_id: str, parent: UUID, page: int) -> tuple[FrozenRecipient, ...]:
        """Read a page of a frozen set, which is there unless somebody took it away."""
        path = key.recipient_page_path(tenant_id=tenant_id, parent_guid=parent, page=page)
        sealed = await self._blobs.get(path)
        return recipient.decode(blob_place(path).open(await self._keyring.get(tenant_id), sealed))

    async def _put(self, tenant_id: str, path: str, text: str) -> bytes:
        keys, content = await self._keyring.get(tenant_id), text.encode()
        if await self._blobs.put_if_absent(path, blob_place(path).seal(keys, content, nonce=self._keyring.nonce())):
            return content
        return blob_place(path).open(keys, await self._blobs.get(path))

    async def _find(self, tenant_id: str, path: str) -> bytes | None:
        sealed = await self._blobs.find(path)
        return None if sealed is None else blob_place(path).open(await self._keyring.get(tenant_id), sealed)


def _behind(recipients: tuple[FrozenRecipient, ...], after: str) -> tuple[FrozenRecipient, ...]:
    return recipients[bisect_right(recipients, after, key=lambda one: one.recipient_id_hash) :]
