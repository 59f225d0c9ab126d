"""Small schema histories that tests write themselves: good steps, bad steps, steps of a later program."""

from pathlib import Path
from typing import NamedTuple

from clarion.adapters.stores.migration import History

REVISION = '''"""A step of a test."""

revision = "{name}"
down_revision = {before!r}


def upgrade(run_step):
    run_step("{name}_toy.sql")
'''


class Toy(NamedTuple):
    """A step: its SQL for both engines, or for each."""

    postgres: str
    sqlite: str


def both(sql: str) -> Toy:
    """The same SQL for both engines."""
    return Toy(postgres=sql, sqlite=sql)


GROUND = both(
    """
    CREATE TABLE schema_info (min_program text NOT NULL);
    INSERT INTO schema_info VALUES ('0.1.0');
    CREATE TABLE schema_step (file text PRIMARY KEY, checksum text NOT NULL);
    CREATE TABLE job (tenant_id text NOT NULL, name text NOT NULL, state text, PRIMARY KEY (tenant_id, name));
    """
)
INDEXES = Toy(
    postgres="""-- outside a transaction
    -- Two of them in one step; this comment holds a semicolon; it must not matter.
    DROP INDEX CONCURRENTLY IF EXISTS job_state;
    CREATE INDEX CONCURRENTLY job_state ON job (tenant_id, state);
    DROP INDEX CONCURRENTLY IF EXISTS job_name;
    CREATE INDEX CONCURRENTLY job_name ON job (name) WHERE state IS NOT NULL;
    """,
    sqlite="""
    CREATE INDEX job_state ON job (tenant_id, state);
    CREATE INDEX job_name ON job (name) WHERE state IS NOT NULL;
    """,
)
BAD = both("CREATE TABLE half (a integer); INSERT INTO job VALUES ('acme', 'a', 'b'); INSERT INTO nowhere VALUES (1);")
WIDER = both("ALTER TABLE job ADD COLUMN note text;")


def write_history(folder: Path, *steps: Toy) -> History:
    """Write a history of these steps, numbered from 0001."""
    before: str | None = None
    for part in ("versions", "postgres", "sqlite"):
        (folder / part).mkdir(parents=True)
    for number, step in enumerate(steps, start=1):
        name = f"{number:04}"
        (folder / "versions" / f"{name}.py").write_text(REVISION.format(name=name, before=before))
        (folder / "postgres" / f"{name}_toy.sql").write_text(step.postgres)
        (folder / "sqlite" / f"{name}_toy.sql").write_text(step.sqlite)
        before = name
    return History(folder)
