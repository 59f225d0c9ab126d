"""Blobs in any store that obstore knows: create-if-absent is the store's own atomic operation.

Reads and writes the store it was given. A write whose reply is lost is repeated by obstore and then finds its own blob:
it returns False although this process wrote it, which is why callers read and compare rather than trust the answer.
"""

from datetime import timedelta
from typing import TYPE_CHECKING, Final, NoReturn

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    UnauthenticatedError,
)

from clarion.errors import BadConfiguration, StoreUnreachable
from clarion.ports.blobs import check_content, check_path, check_stored_size, missing

if TYPE_CHECKING:  # these two names exist for type checkers only
    from obstore.store import ObjectStore, RetryConfig

RETRIES: Final["RetryConfig"] = {
    # Enough for a connection that was closed while idle; a store that is down is reported soon, and work is repeated
    # by whoever asked. obstore's own default would hold a request for three minutes.
    "max_retries": 3,
    "retry_timeout": timedelta(seconds=15),
}


class ObjectBlobs:
    """Blobs in an obstore store."""

    def __init__(self, store: "ObjectStore") -> None:
        """Use a store that was opened elsewhere."""
        self._store = store

    async def put_if_absent(self, path: str, content: bytes) -> bool:
        """Store content under a new path and return True, or change nothing and return False if it is taken."""
        check_path(path)
        check_content(content)
        try:
            # In one piece: parts of a multipart upload that was cut off would stay behind, unseen and paid for.
            await obstore.put_async(self._store, path, content, mode="create", use_multipart=False)
        except AlreadyExistsError:
            return False
        except BaseError as error:
            _refuse(error)
        return True

    async def get(self, path: str) -> bytes:
        """Return the content, or raise BlobMissing."""
        content = await self.find(path)
        if content is None:
            raise missing(path)
        return content

    async def find(self, path: str) -> bytes | None:
        """Return the content, or None where nothing was stored."""
        check_path(path)
        try:
            found = await obstore.get_async(self._store, path)
            check_stored_size(path, found.meta["size"])
            return bytes(await found.bytes_async())
        except FileNotFoundError:  # what obstore raises for a path that is not there
            return None
        except BaseError as error:
            _refuse(error)


def _refuse(error: BaseError) -> NoReturn:
    """Say what a failure of the store means; the vendor's text stays in the cause, as it may hold a signed URL."""
    if isinstance(error, (PermissionDeniedError, UnauthenticatedError)):
        raise BadConfiguration(
            "the blob store refused our credentials",
            hint="check that they are current and may read and create objects below the configured prefix",
        ) from error
    raise StoreUnreachable(
        f"the blob store failed ({type(error).__name__})",
        hint="check that it is up and can be reached from here; nothing was lost, the work is repeated",
    ) from error
