"""Where the schema steps lie, in which order they come, and the words that name them.

It reads the names of the files and their text; the order inside the files is alembic's (`ledger`), and a test holds the
two together. It is kept apart from alembic because a store asks for the head whenever it opens, and importing alembic
takes half a second.
"""

import hashlib
from pathlib import Path
from typing import Final, Literal, Protocol, TypeAlias, get_args

import msgspec

from clarion.errors import BadConfiguration

Engine: TypeAlias = Literal["postgres", "sqlite"]
ENGINES: Final[tuple[Engine, ...]] = get_args(Engine)

# First line of a PostgreSQL step that builds indexes concurrently, which the server refuses inside a transaction.
OUTSIDE = "-- outside a transaction"


class RunStep(Protocol):
    """What a revision is given to do its work with."""

    def __call__(self, name: str, /) -> None:
        """Run the SQL file of this name on the engine that is being migrated."""
        ...


class History(msgspec.Struct, frozen=True):
    """A folder of steps: `versions/`, `postgres/` and `sqlite/`."""

    folder: Path

    @property
    def revisions(self) -> tuple[str, ...]:
        """Every revision, oldest first; a revision's file is named like its id, so that no file need be opened."""
        return tuple(sorted(path.stem for path in (self.folder / "versions").glob("[!_.]*.py")))

    @property
    def head(self) -> str:
        """The revision that this program's SQL is written for."""
        return self.revisions[-1]

    def ahead(self, *, current: str | None, target: str | None = None) -> tuple[str, ...]:
        """Return the revisions after `current` up to `target`, or to the head; none if the database is further on."""
        revisions = self.revisions
        target = target or revisions[-1]
        if target not in revisions:
            raise BadConfiguration(
                f"there is no schema revision {target!r}", hint=f"name one of {', '.join(revisions)}, or none for all"
            )
        if current is None:
            return revisions[: revisions.index(target) + 1]
        if current not in revisions:
            return ()  # a newer program's revision, after all of ours
        return revisions[revisions.index(current) + 1 : revisions.index(target) + 1]

    def sql(self, engine: Engine, name: str) -> str:
        """Return the text of a step's file for an engine, with the line ends of this program whatever the disk has."""
        return (self.folder / engine / name).read_text(encoding="utf-8")

    def checksums(self, engine: Engine, *, until: str | None = None) -> dict[str, str]:
        """Return the checksum of each file of the steps up to a revision, or of all where that one is not ours."""
        names = sorted(path.name for path in (self.folder / engine).glob("*.sql"))
        if until in self.revisions:
            names = [name for name in names if name.partition("_")[0] <= until]
        return {name: checksum(self.sql(engine, name)) for name in names}


def checksum(sql: str) -> str:
    """Return what tells the text of a step's file from every other text."""
    return hashlib.sha256(sql.encode()).hexdigest()


HISTORY = History(Path(__file__).parent)
