"""The program on a database that another edit of the schema made: one line that says so, and nothing is changed."""

import contextlib
import sqlite3
from pathlib import Path

import asyncpg
import pytest

from tests.integration.program_use import clarion

pytestmark = pytest.mark.usefixtures("warm")

EDIT = "UPDATE schema_step SET checksum = 'other'"
COMMANDS = {
    "migrate": ["migrate"],
    "check": ["check"],
    "demo": ["demo", "--only-seed"],
    "serve": ["serve", "--port", "0"],
    "work": ["work"],
    "send": ["send", "welcome", "--to", "user:parent-1", "--tenant", "school"],
}


@pytest.fixture(params=["sqlite", "postgresql"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store whose steps were other ones; its home is the test's folder."""
    if request.param == "sqlite":
        assert clarion("migrate", home=tmp_path).returncode == 0
        path = tmp_path / "clarion.db"
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.executescript(EDIT)
        return f"sqlite:///{path}"
    url: str = request.getfixturevalue("postgres_url")
    assert clarion("migrate", home=tmp_path, CLARION_STORE=url).returncode == 0
    server = await asyncpg.connect(url)
    await server.execute(EDIT)
    await server.close()
    return url


def test_every_command_refuses_it_in_one_line_that_says_what_to_do(store: str, tmp_path: Path) -> None:
    for name, command in COMMANDS.items():
        answer = clarion(*command, home=tmp_path, CLARION_STORE=store)
        assert (answer.returncode, answer.stdout) == (1, ""), name
        assert answer.stderr.count("\n") == 1, name
        assert "made by another version of Clarion (its 0001_" in answer.stderr, name
        assert "for a demo, remove its folder" in answer.stderr, name


def test_a_new_database_under_another_name_is_the_way_out(store: str, tmp_path: Path) -> None:
    assert store
    assert clarion("migrate", home=tmp_path, CLARION_STORE=f"sqlite:///{tmp_path / 'new.db'}").returncode == 0
    assert clarion("check", home=tmp_path, CLARION_STORE=f"sqlite:///{tmp_path / 'new.db'}").returncode == 0
