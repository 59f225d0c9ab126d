"""Reading a notification from its folder: `definition.toml` and one or more template files for each channel.

Only reading and the form of the definition are here: what the templates say is checked by the renderer when they are
compiled. Reads regular files of the folder and follows no link: a folder may come from elsewhere, and a link in it
could name the master key. Writes nothing. Every error is one line that starts with the file.
"""

import errno
import os
import re
import stat
import tomllib
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
    path = folder / DEFINITION
    if not path.is_file():
        raise InvalidInput(
            "there is no such file", field=str(path), hint=f"a notification is a folder with {DEFINITION}"
        )
    definition = parse_definition(_read(path), file=str(path))
    files = {found.name: _read(found) for found in sorted(folder.glob("*.liquid"))}
    try:
        check_files(definition, files)
    except InvalidInput as error:
        raise InvalidInput(error.message, field=str(folder / error.field), hint=error.hint) from None
    return definition, files


def load_definitions(folder: Path) -> list[tuple[Path, Definition, dict[str, str]]]:
    """Read every notification below a folder, by name of its folder; two cannot have one key."""
    loaded: list[tuple[Path, Definition, dict[str, str]]] = []
    places: dict[str, Path] = {}
    for path in sorted(folder.glob(f"*/{DEFINITION}")):
        if path.parent.is_symlink():
            raise _no_file(path.parent, "a link")
        definition, files = load_definition(path.parent)
        if definition.key in places:
            raise InvalidInput(
                f"the key {definition.key!r} is already that of {places[definition.key]}",
                field=str(path),
                hint="give each notification a key of its own",
            )
        places[definition.key] = path
        loaded.append((path.parent, definition, files))
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


def _read(path: Path) -> str:
    """Read a regular file as text with plain line ends."""
    try:
        # Without waiting: a pipe is opened only once somebody writes to it.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise _no_file(path, "no regular file")
            content = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _no_file(path, "a link") from None
        raise InvalidInput(
            f"it cannot be read ({error.strerror})", field=str(path), hint="let this user read it"
        ) from None
    if len(content) > FILE_BYTES_MAX:
        raise InvalidInput(f"it has over {FILE_BYTES_MAX} bytes", field=str(path), hint="make it smaller")
    try:
        return content.decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"byte {error.start} is no UTF-8", field=str(path), hint="save it as UTF-8") from None


def _no_file(path: Path, what: str) -> InvalidInput:
    return InvalidInput(f"it is {what}", field=str(path), hint="put the file itself into the notification's folder")
