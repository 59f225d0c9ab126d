"""People: how they are reached, and what groups of them are found by."""

from clarion.adapters.stores.migration.history import RunStep

revision = "0005"
down_revision = "0004"


def upgrade(run_step: RunStep) -> None:
    """Add the tables and columns, then the indexes over rows that are there already."""
    run_step("0005_people.sql")
    run_step("0005_inbox.sql")
    run_step("0005_members.sql")
    run_step("0005_inbox_outside.sql")
