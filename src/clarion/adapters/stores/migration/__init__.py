"""The schema history of both engines: what brings a database up to date, and what a store asks of one it opens.

`versions/` holds one thin alembic revision a step, which names files of plain SQL in `postgres/` and their twins in
`sqlite/`. Alembic keeps the ledger (the table `alembic_version`) and the order; the SQL is ours. Steps only add, so
that old and new programs run together on one database: `schema_info.min_program` is the lowest program that can live
with the schema, and only a program below it is refused.

A step is never edited: `checksums.txt` and `schema_step` in the database hold what each file was.

To add a step: write the two SQL files and a revision named like its id (`versions/0002.py`), and run `tools/freeze.py`.
A step that an older program cannot live with raises `min_program`. Nothing here reads or writes records.
"""

from clarion.adapters.stores.migration.compatibility import check_postgres, check_sqlite
from clarion.adapters.stores.migration.history import HISTORY, History
from clarion.adapters.stores.migration.upgrade_postgres import Patience, migrate_postgres
from clarion.adapters.stores.migration.upgrade_sqlite import migrate_sqlite
from clarion.ports.store import Migrated

__all__ = [
    "HISTORY",
    "History",
    "Migrated",
    "Patience",
    "check_postgres",
    "check_sqlite",
    "migrate_postgres",
    "migrate_sqlite",
]
