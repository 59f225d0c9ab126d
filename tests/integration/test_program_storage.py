"""What a store suffers while somebody sends: it is down, locked or full. It is said, and nothing is lost."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.integration.program_use import WELCOME, clarion, home, model, refused

__all__ = ["home", "model"]  # fixtures


def test_a_store_that_is_down_is_said(home: Path) -> None:
    said = refused(clarion(*WELCOME, "--store", "postgresql://nobody@127.0.0.1:1/db", home=home), code=1)
    assert "127.0.0.1" in said


def test_a_locked_database_file_is_said_and_nothing_is_lost(home: Path) -> None:
    with holding(home / "clarion.db"):
        said = refused(clarion(*WELCOME, "--key", "one", home=home), code=1)
    assert "clarion.db" in said
    assert clarion(*WELCOME, "--key", "one", home=home).returncode == 0


@pytest.mark.parametrize(
    "file_bytes_max, said",
    [
        (20_000, "has no space left (disk I/O error): make space on its disk"),  # not even for the index of the log
        (40_000, "cannot be read or written (disk I/O error): see that its disk has space"),  # as with a quota
    ],
)
def test_a_full_disk_is_said_and_nothing_is_lost(home: Path, file_bytes_max: int, said: str) -> None:
    # No file may grow beyond this: to the program that is a disk without space. What it sends is larger.
    data = f'{{"name": "Sam", "note": "{"Sam" * 15_000}"}}'
    large = ("send", "welcome", "--to", "sam@example.com", "--data", data, "--key", "one")
    done = clarion(*large, home=home, file_bytes_max=file_bytes_max)
    assert f"clarion.db {said}" in refused(done, code=1)
    assert clarion(*large, home=home).stdout.startswith("accepted")


@contextmanager
def holding(path: Path) -> Iterator[None]:
    """Hold the database's write lock as another program would."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("begin immediate")
        yield
