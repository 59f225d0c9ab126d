"""The contents of messaging jobs: read from their blobs before work is claimed, and held in memory while it is done.

A content never changes, and its job carries its fingerprint: one that lies in the blob store and is another is not
used. Reads `{tenant}/messaging/{guid}`; who writes it is in `dispatch`.
"""

import hashlib
from collections.abc import Collection
from typing import Final
from uuid import UUID

import msgspec

from clarion.domain import messaging_content
from clarion.domain.fingerprint import Fingerprint
from clarion.domain.held import Held
from clarion.domain.key import messaging_blob_path
from clarion.domain.messaging_content import MessagingContent
from clarion.errors import OperatorError
from clarion.ports.blobs import Blobs
from clarion.sealing.keyring import Keyring
from clarion.sealing.place import blob_place

CONTENTS_BYTES_MAX: Final = 32 * 1024 * 1024
"""In memory: a hundred of the largest. One that was dropped is read again."""

OTHER_CONTENT: Final = "the content that is stored is not the one that it was made with"

ContentName = tuple[str, UUID]
"""A tenant and the guid of its messaging job."""


class HeldContent(msgspec.Struct, frozen=True, kw_only=True):
    """A content in memory, and the fingerprint of all that lies in its blob."""

    content: MessagingContent
    fingerprint: Fingerprint


class MessagingContents:
    """Contents by tenant and job."""

    def __init__(self, *, blobs: Blobs, keyring: Keyring) -> None:
        """Read from these blobs with these keys."""
        self._blobs = blobs
        self._keyring = keyring
        self._held = Held[ContentName, HeldContent](CONTENTS_BYTES_MAX)

    async def find(self, tenant_id: str, messaging_job: UUID) -> bytes | None:
        """Read the whole of a content, as it was written; None where nobody has written it."""
        path = messaging_blob_path(tenant_id=tenant_id, messaging_job_guid=messaging_job)
        sealed = await self._blobs.find(path)
        return None if sealed is None else blob_place(path).open(await self._keyring.get(tenant_id), sealed)

    async def load(self, wanted: Collection[ContentName]) -> dict[ContentName, str]:
        """Bring contents into memory; say of those that cannot be read why."""
        broken: dict[ContentName, str] = {}
        for name in wanted:
            if name in self._held:
                continue
            try:
                stored = await self.find(*name)
                if stored is None:
                    broken[name] = "its content is not in the blob store"
                    continue
                content = messaging_content.read_shared(stored)
            except (OperatorError, msgspec.DecodeError) as error:
                broken[name] = f"its content cannot be read: {error}"
                continue
            fingerprint = content_fingerprint(stored)
            size = len(msgspec.json.encode(content))
            self._held.put(name, HeldContent(content=content, fingerprint=fingerprint), size=size)
        return broken

    def held(self, tenant_id: str, messaging_job: UUID) -> HeldContent | None:
        """Return a content that is in memory already; no I/O."""
        return self._held.get((tenant_id, messaging_job))


def content_fingerprint(content: bytes) -> Fingerprint:
    """Fingerprint a blob's content; it is too large to be guessed from its hash."""
    return Fingerprint.of(hashlib.sha256(content).hexdigest())
