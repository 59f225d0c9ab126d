"""Blobs as files of this machine.

Reads through obstore. Writes by `adapters.durable`, because obstore (0.12) gives its local store no way to flush: its
put is atomic for other readers, but a power cut soon after can leave the final name with no content, and whoever then
finds the name taken would take the empty file for the blob.
"""

import asyncio
import errno
import os
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Final

from obstore.store import LocalStore

from clarion.adapters.blobs.objects import ObjectBlobs
from clarion.adapters.durable import create_durably, sync_folder
from clarion.errors import BadConfiguration, InvalidKey, OperatorError, StoreFull, StoreReadOnly, StoreUnreachable
from clarion.ports.blobs import check_content, check_path

# EFBIG is a limit on file size set for this process, EDQUOT one on what this user may store: as full as a full disk.
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
# EPERM is also what a file system without hard links answers.
_NOT_ALLOWED: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTSUP})

Run = Callable[[Callable[[], bool]], Awaitable[bool]]
"""Runs a write that waits for the disk; injected, so that a simulation can run it inline."""


async def in_thread(write: Callable[[], bool]) -> bool:
    """Run a write in a thread of the event loop's pool, so that the loop does not wait for the disk."""
    return await asyncio.get_running_loop().run_in_executor(None, write)


class FileBlobs:
    """Blobs in the files below one folder."""

    def __init__(self, root: Path, *, run: Run = in_thread) -> None:
        """Use a folder that exists; `open_files` makes one."""
        self._root = root
        self._run = run
        self._reading = ObjectBlobs(LocalStore(root))

    async def put_if_absent(self, path: str, content: bytes) -> bool:
        """Store content under a new path and return True, or change nothing and return False if it is taken."""
        check_path(path)
        check_content(content)
        return await self._run(partial(self._create, path, content))

    async def get(self, path: str) -> bytes:
        """Return the content, or raise BlobMissing."""
        return await self._reading.get(path)

    async def find(self, path: str) -> bytes | None:
        """Return the content, or None where nothing was stored."""
        return await self._reading.find(path)

    def _create(self, path: str, content: bytes) -> bool:
        """Write the file, and say what a failure means."""
        target = self._root / path
        try:
            created = create_durably(target, content, root=self._root)
        except (FileExistsError, NotADirectoryError) as error:
            raise _not_both(path) from error
        except OSError as error:
            raise _explain(error, root=self._root) from error
        if not (created or target.is_file()):
            raise _not_both(path)
        return created


def open_files(folder: str) -> FileBlobs:
    """Open a folder as a blob store, creating it for this user only where it does not exist."""
    root = Path(folder)
    try:
        if not root.is_dir():
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            sync_folder(root.parent)
    except (FileExistsError, NotADirectoryError) as error:
        raise BadConfiguration(
            f"the blob folder {root} or one above it is a file", hint="name a folder, or one that does not exist yet"
        ) from error
    except OSError as error:
        raise _explain(error, root=root) from error
    if not os.access(root, os.R_OK | os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
        raise _explain(PermissionError(errno.EACCES, os.strerror(errno.EACCES)), root=root)
    return FileBlobs(root)


def _explain(error: OSError, *, root: Path) -> OperatorError:
    """Turn a failure to write into what the operator can do about it."""
    if error.errno in _FULL:
        return StoreFull(
            f"there is no space left for blobs below {root} ({error.strerror})",
            hint="free some or raise the limit; nothing was stored, the work is repeated",
        )
    if error.errno in _NOT_ALLOWED:
        return StoreReadOnly(
            f"blobs cannot be written below {root} ({error.strerror})",
            hint="let this user write there, on a file system that is not mounted read-only and has hard links",
        )
    return StoreUnreachable(
        f"blobs cannot be written below {root} ({error.strerror})", hint="check the disk and the mount"
    )


def _not_both(path: str) -> InvalidKey:
    """Make the error for a path that is a blob and a folder of blobs at once, which object stores would allow."""
    return InvalidKey(
        f"the blob path {path!r} lies above or below another blob", field="path", hint="use a path beside it"
    )
