"""Where an SQLite store lies: its address taken apart, and its file checked before anything is opened.

Reads the file's mode and takes away what others may do with it; opens and creates nothing.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

import msgspec

from clarion.errors import BadConfiguration, InvalidInput, SchemaMissing, StoreReadOnly, StoreUnreachable

MEMORY: Final = "sqlite://:memory:"
_FILE: Final = "sqlite:///"

_PRIVATE: Final = 0o600
"""For its owner only (X-28): who was told what is nobody else's business, even where addresses are sealed."""

_PARTS: Final = ("", "-wal", "-shm")
"""The database, its log and the index of the log; SQLite gives the mode of the first to the others."""


class Location(msgspec.Struct, frozen=True, kw_only=True):
    """A file, or a database that lives in memory and is gone with its connection (`path` is None)."""

    url: str
    path: Path | None

    @classmethod
    def parse(cls, url: str) -> Self:
        """Take an address apart, or say what a right one looks like."""
        if url == MEMORY:
            return cls(url=url, path=None)
        path = url.removeprefix(_FILE)
        # A path of `:memory:` is another program's way to write MEMORY, and would make a file of that name.
        if path == url or path in ("", ":memory:") or any(mark in path for mark in "?#\0"):
            raise InvalidInput(
                "this is no address of an SQLite store",
                field="store",
                hint=f"write {_FILE}clarion.db for a file below the present folder, {_FILE}/var/lib/clarion.db for "
                f"any other, {MEMORY} for one that is gone when the program ends; there are no options",
            )
        return cls(url=url, path=Path(path))

    @property
    def shown(self) -> str:
        """What messages call the store: its path as it was given."""
        return "the store in memory" if self.path is None else str(self.path)

    @property
    def file(self) -> Path:
        """The path of a store that is a file."""
        if self.path is None:
            raise InvalidInput("a store in memory has no file", field="store", hint=f"name one: {_FILE}clarion.db")
        return self.path

    def require_file(self) -> None:
        """Raise unless there is a file here that this user may read and write, and not everybody; make it private."""
        path = self.file
        try:
            mode = path.stat().st_mode
        except FileNotFoundError:
            raise self._missing() from None
        except OSError as error:
            raise StoreUnreachable(
                f"{self.shown} cannot be reached ({error.strerror})", hint="correct the path, or let this user in"
            ) from None
        if not stat.S_ISREG(mode):
            raise StoreUnreachable(f"{self.shown} is no file", hint="name the database's file itself")
        if mode & stat.S_IWOTH:
            raise BadConfiguration(
                f"every user may write to {self.shown}, so what it says cannot be trusted",
                hint=f"see that it is as you left it, then run: chmod 600 {self.shown}",
            )
        # The folder too: SQLite keeps a log and an index of it beside the file.
        if not (_may(path, os.R_OK | os.W_OK) and _may(path.absolute().parent, os.W_OK | os.X_OK)):
            raise StoreReadOnly(
                f"{self.shown} or its folder cannot be written by this user",
                hint="make the file and its folder writable, on a file system that is not mounted read-only",
            )
        for suffix in _PARTS:
            _make_private(path.with_name(path.name + suffix))

    def identity(self) -> tuple[int, int] | None:
        """Say which file lies here, by its device and number: another one, and one that is gone, is told by that."""
        if self.path is None:
            return None
        with suppress(OSError):
            found = self.path.stat()
            return found.st_dev, found.st_ino
        return None

    def _missing(self) -> StoreUnreachable | SchemaMissing:
        """Tell a folder that is not there from a store that was never made."""
        if self.file.absolute().parent.is_dir():
            return SchemaMissing(
                f"there is no store at {self.shown} yet", hint=f"run: clarion migrate --store {self.url}"
            )
        return StoreUnreachable(
            f"the folder of {self.shown} does not exist", hint="create it, or name a file in another one"
        )


def _may(path: Path, access: int) -> bool:
    return os.access(path, access, effective_ids=os.access in os.supports_effective_ids)


def _make_private(path: Path) -> None:
    """Take away what the group and others may do; what is not there, or another user's, is left alone."""
    with suppress(FileNotFoundError, PermissionError):
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & ~_PRIVATE:
            path.chmod(mode & _PRIVATE)
