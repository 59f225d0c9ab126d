"""What every test may ask for: databases of both engines, empty or migrated.

One PostgreSQL server serves a whole run (one for each worker of pytest-xdist), and each test has a database of its own
in it: a copy of a template, made in some ten milliseconds and dropped after the test.
"""

import asyncio
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from clarion.adapters.stores.migration import migrate_postgres, migrate_sqlite
from clarion.testing import postgres
from tests.warm import COMMANDS, warm_program

TEMPLATE = "migrated"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[postgres.PostgresServer]:
    """A real server for the length of the run; a test that stops it must start one of its own."""
    with postgres.postgres_server() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_template(postgres_server: postgres.PostgresServer) -> str:
    """The name of a database with the whole schema, for making copies of; nobody may connect to it."""
    url = postgres_server.create_database(TEMPLATE)
    # In a thread, because the fixture may be asked for while this one's event loop is running.
    with ThreadPoolExecutor(max_workers=1) as thread:
        thread.submit(asyncio.run, migrate_postgres(url)).result()
    return TEMPLATE


@pytest.fixture
def postgres_url(postgres_server: postgres.PostgresServer) -> Iterator[str]:
    """The address of a fresh, empty database."""
    with postgres_server.database() as url:
        yield url


@pytest.fixture
def migrated_postgres_url(postgres_server: postgres.PostgresServer, postgres_template: str) -> Iterator[str]:
    """The address of a fresh database with the whole schema and no rows."""
    with postgres_server.database(template=postgres_template) as url:
        yield url


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Run the program's commands without starting Python for each."""
    with warm_program(tmp_path_factory.mktemp("warm")) as program:
        COMMANDS.append(str(program))
        yield
        COMMANDS.pop()


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the whole schema, for making copies of; nobody may open it."""
    path = tmp_path_factory.mktemp("sqlite") / "template.db"
    migrate_sqlite(path)
    return path


@pytest.fixture
def migrated_sqlite_path(sqlite_template: Path, tmp_path: Path) -> Path:
    """A fresh file with the whole schema and no rows."""
    return Path(shutil.copy(sqlite_template, tmp_path / "clarion.db"))
