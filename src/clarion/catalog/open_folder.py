"""A folder that is read as it was opened: regular files only, and no link is followed inside of it.

It may come from elsewhere, and a link in it could name the master key. A folder is opened once, and its files are read
in what was opened: one that is replaced by a link meanwhile changes nothing. Writes nothing.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from clarion.errors import InvalidInput

FILE_BYTES_MAX: Final = 64 * 1024
"""As much as a template may have (X-15); a definition is far smaller."""

FILES_MAX: Final = 1000
"""Files in one folder, so that a mistaken one is not read for ever."""


class OpenFolder:
    """An open folder, with the path by which its reader knows it."""

    def __init__(self, path: Path, descriptor: int) -> None:
        """Read what is open."""
        self.path = path
        self._descriptor = descriptor

    def names(self) -> list[str]:
        """List what it has, by name."""
        with os.scandir(self._descriptor) as found:
            names = sorted(one.name for one in found)
        if len(names) > FILES_MAX:
            raise InvalidInput(
                f"it holds over {FILES_MAX} files", field=str(self.path), hint="name a folder of notifications"
            )
        return names

    def has(self, *names: str) -> bool:
        """Tell whether it has a file, by the names on the way to it."""
        try:
            os.stat("/".join(names), dir_fd=self._descriptor)
        except OSError:
            return False
        return True

    @contextmanager
    def folder(self, name: str) -> Iterator["OpenFolder"]:
        """Open a folder inside of it, which is no link."""
        path = self.path / name
        try:
            opened = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=self._descriptor)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR):
                raise _no_file(path, "a link") from None
            raise _unreadable(path, error) from None
        try:
            yield OpenFolder(path, opened)
        finally:
            os.close(opened)

    def read(self, name: str) -> str:
        """Read a regular file as text with plain line ends."""
        path = self.path / name
        try:
            # Without waiting: a pipe is opened only once somebody writes to it.
            found = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=self._descriptor)
            with os.fdopen(found, "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise _no_file(path, "no regular file")
                content = file.read(FILE_BYTES_MAX + 1)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise _no_file(path, "a link") from None
            raise _unreadable(path, error) from None
        if len(content) > FILE_BYTES_MAX:
            raise InvalidInput(f"it has over {FILE_BYTES_MAX} bytes", field=str(path), hint="make it smaller")
        try:
            return content.decode().replace("\r\n", "\n")
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            what = f"line {line}: byte {error.start} of the file is no UTF-8"
            raise InvalidInput(what, field=str(path), hint="save it as UTF-8") from None


@contextmanager
def open_folder(path: Path) -> Iterator[OpenFolder]:
    """Open a folder that a person named; it may be a link."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except (FileNotFoundError, NotADirectoryError):
        raise InvalidInput(
            "there is no such folder", field=str(path), hint="name the folder of a notification, or of several"
        ) from None
    except OSError as error:
        raise _unreadable(path, error) from None
    try:
        yield OpenFolder(path, opened)
    finally:
        os.close(opened)


def _unreadable(path: Path, error: OSError) -> InvalidInput:
    return InvalidInput(f"it cannot be read ({error.strerror})", field=str(path), hint="let this user read it")


def _no_file(path: Path, what: str) -> InvalidInput:
    return InvalidInput(f"it is {what}", field=str(path), hint="put the file itself into the notification's folder")
