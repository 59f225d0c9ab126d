"""The traces of occurrences: each sealed in a blob of its own, and opened for whoever may see it."""

from typing import Final

import msgspec
import structlog

from clarion.domain import derived_id
from clarion.domain.key import trace_blob_path
from clarion.domain.occurrence_trace import OccurrenceTrace
from clarion.errors import OperatorError
from clarion.ports.blobs import Blobs
from clarion.sealing.keyring import Keyring
from clarion.sealing.place import blob_place

log: Final = structlog.get_logger("clarion.sealing")


class Traces:
    """Traces by tenant and path."""

    def __init__(self, *, blobs: Blobs, keyring: Keyring) -> None:
        """Keep them in these blobs under these keys."""
        self._blobs = blobs
        self._keyring = keyring

    async def write(self, tenant_id: str, scheduler_key: str, trace: OccurrenceTrace) -> str:
        """Store a trace and return where; of one claim the first stands."""
        guid = derived_id.row_guid(tenant_id=tenant_id, row_key=scheduler_key)
        path = trace_blob_path(tenant_id=tenant_id, occurrence_guid=guid, version=trace.claim)
        keys = await self._keyring.get(tenant_id)
        content = msgspec.json.encode(trace)
        await self._blobs.put_if_absent(path, blob_place(path).seal(keys, content, nonce=self._keyring.nonce()))
        return path

    async def find(self, tenant_id: str, path: str) -> OccurrenceTrace | None:
        """Read a trace; None where it is gone or cannot be read, because what it is about is shown all the same."""
        try:
            sealed = await self._blobs.find(path)
            if sealed is None:
                return None
            stored = blob_place(path).open(await self._keyring.get(tenant_id), sealed)
            return msgspec.json.decode(stored, type=OccurrenceTrace)
        except (OperatorError, msgspec.DecodeError):
            log.exception("a trace cannot be read", tenant_id=tenant_id, path=path)
            return None
