"""Creating a file so that it is there whole and for good, or not at all.

The content is written to a name of its own beside the final one, flushed to the disk, and only then linked to the final
name, which fails if that is taken; at last the folders are flushed. So nobody sees a part of it, two writers cannot
both win, and a power cut after the return changes nothing. A process that is killed half-way leaves a file named
`{name}#{number}`, which obstore's local store ignores and the next writer passes over.

Raises OSError as it comes: what a failure means to the operator is known by the callers, blobs and the local vault.
Works on file systems with hard links.
"""

import os
from itertools import count
from pathlib import Path


def create_durably(path: Path, content: bytes, *, root: Path) -> bool:
    """Create a file below root and return True, or return False if the path is taken; in both cases it is on disk."""
    _make_folders(path.parent, root=root)
    created = False
    if not path.exists():
        staged = _stage(path, content)
        try:
            os.link(staged, path)
            created = True
        except FileExistsError:
            pass  # another writer was first
        finally:
            staged.unlink()
    # Also when another writer was first: it may not have come this far, and our caller will rely on the file.
    for folder in [path.parent, *path.parent.parents]:
        sync_folder(folder)
        if folder == root:
            break
    return created


def sync_folder(folder: Path) -> None:
    """Flush a folder, so that the names in it survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _make_folders(folder: Path, *, root: Path) -> None:
    """Create the folders between root and a file, for our user only."""
    if folder != root:
        _make_folders(folder.parent, root=root)
        folder.mkdir(mode=0o700, exist_ok=True)


def _stage(path: Path, content: bytes) -> Path:
    """Write content to a new file beside its final place and flush it."""
    staged, descriptor = _open_new(path)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        staged.unlink()
        raise
    return staged


def _open_new(path: Path) -> tuple[Path, int]:
    """Open a file that did not exist, readable by our user only; numbers left behind by killed writers are passed."""
    for number in count(1):
        staged = path.with_name(f"{path.name}#{number}")
        try:
            return staged, os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            continue
    raise AssertionError  # count() does not end
