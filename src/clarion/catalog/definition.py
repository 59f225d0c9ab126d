"""Reading a notification from its folder: `definition.toml` and one or more template files for each channel.

Only reading and the form of the definition are here: what the templates say is checked by the renderer when they are
compiled. Reads regular files of the folder and follows no link: a folder may come from elsewhere, and a link in it
could name the master key. A folder is opened once, and its files are read in what was opened: one that is replaced by
a link meanwhile changes nothing. Writes nothing. Every error is one line that starts with the file.
"""

import errno
import os
import re
import stat
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from clarion.domain.definition import Definition, complaints_about
from clarion.domain.misfit import read_misfit
from clarion.errors import InvalidInput
from clarion.ports.renderer import check_files

DEFINITION: Final = "definition.toml"

FILE_BYTES_MAX: Final = 64 * 1024
"""As much as a template may have (X-15); a definition is far smaller."""

_PLACE: Final = re.compile(r"line \d+, column \d+|end of document")


def load_definition(folder: Path) -> tuple[Definition, dict[str, str]]:
    """Read one notification: its definition and its template files by name."""
    with _opened(folder) as opened:
        return _load(folder, opened)


def _load(folder: Path, opened: int) -> tuple[Definition, dict[str, str]]:
    """Read the notification in a folder that is open."""
    path = folder / DEFINITION
    names = _names(opened)
    if DEFINITION not in names:
        raise InvalidInput(
            "there is no such file", field=str(path), hint=f"a notification is a folder with {DEFINITION}"
        )
    definition = parse_definition(_read(path, opened), file=str(path))
    files = {name: _read(folder / name, opened) for name in names if name.endswith(".liquid")}
    try:
        check_files(definition, files)
    except InvalidInput as error:
        raise InvalidInput(error.message, field=str(folder / error.field), hint=error.hint) from None
    return definition, files


def load_definitions(folder: Path) -> list[tuple[Path, Definition, dict[str, str]]]:
    """Read every notification below a folder, by name of its folder; two cannot have one key."""
    loaded: list[tuple[Path, Definition, dict[str, str]]] = []
    places: dict[str, Path] = {}
    with _opened(folder) as top:
        for place in [folder / name for name in _names(top) if (folder / name / DEFINITION).exists()]:
            with _opened(place, inside=top) as opened:
                definition, files = _load(place, opened)
            if definition.key in places:
                raise InvalidInput(
                    f"the key {definition.key!r} is already that of {places[definition.key]}",
                    field=str(place / DEFINITION),
                    hint="give each notification a key of its own",
                )
            places[definition.key] = place / DEFINITION
            loaded.append((place, definition, files))
    if not loaded:
        raise InvalidInput(
            f"no folder in it has a {DEFINITION}",
            field=str(folder),
            hint="name the folder that holds the notifications",
        )
    return loaded


def parse_definition(text: str, *, file: str) -> Definition:
    """Read a definition as it was written, or raise InvalidInput that names the file and what is wrong."""
    try:
        definition = msgspec.convert(tomllib.loads(text), Definition)
    except RecursionError:
        raise InvalidInput("it is nested too deeply", field=file, hint="use a few levels") from None
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        where = f", at {place[0]}" if place else ""
        raise InvalidInput(f"this is no TOML{where}", field=file, hint="correct the file") from None
    except msgspec.ValidationError as error:
        misfit = read_misfit(str(error), Definition)
        what = f"the field {misfit.field}: {misfit.what}" if misfit.field else misfit.what
        raise InvalidInput(
            what, field=file, hint=misfit.hint or "correct it; docs/reference/notifications.md lists the fields"
        ) from None
    for complaint in complaints_about(definition):
        raise InvalidInput(f"the field {complaint.field} cannot be used", field=file, hint=complaint.hint)
    return definition


@contextmanager
def _opened(folder: Path, *, inside: int | None = None) -> Iterator[int]:
    """Open a folder that a person named, or one that is inside another and no link."""
    try:
        if inside is None:
            opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        else:
            opened = os.open(folder.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=inside)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR) and inside is not None:
            raise _no_file(folder, "a link") from None
        raise _unreadable(folder, error) from None
    try:
        yield opened
    finally:
        os.close(opened)


def _names(folder: int) -> list[str]:
    """List what an open folder has, by name."""
    with os.scandir(folder) as found:
        return sorted(one.name for one in found)


def _read(path: Path, folder: int) -> str:
    """Read a regular file of an open folder as text with plain line ends."""
    try:
        # Without waiting: a pipe is opened only once somebody writes to it.
        found = os.open(path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
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
        raise InvalidInput(f"byte {error.start} is no UTF-8", field=str(path), hint="save it as UTF-8") from None


def _unreadable(path: Path, error: OSError) -> InvalidInput:
    return InvalidInput(f"it cannot be read ({error.strerror})", field=str(path), hint="let this user read it")


def _no_file(path: Path, what: str) -> InvalidInput:
    return InvalidInput(f"it is {what}", field=str(path), hint="put the file itself into the notification's folder")
