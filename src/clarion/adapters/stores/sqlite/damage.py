"""Looking for damage: reads the whole file, so it is done when somebody asks (`clarion check`) and not at every start.

A killed process or a power cut damages nothing: SQLite completes or undoes what was under way when it opens the file.
Disks do, and copies of a file in use. At work, a damaged page is reported when it is read (`failure`). Writes nothing.
"""

import sqlite3
from contextlib import closing

from clarion.adapters.stores.sqlite.failure import AT_WORK, failures
from clarion.adapters.stores.sqlite.location import Location


def require_sound(location: Location) -> None:
    """Raise unless every page of the file can be read and makes sense; takes about as long as reading it all."""
    if location.path is None:
        return
    location.require_file()
    address = f"{location.path.absolute().as_uri()}?mode=rw"
    with failures(location.shown), closing(sqlite3.connect(address, uri=True)) as connection:
        (first,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if first != "ok":
        kind, what, hint = AT_WORK[sqlite3.SQLITE_CORRUPT]
        raise kind(f"{location.shown} {what} ({first.splitlines()[-1]})", hint=hint)
