"""Report subscriptions, jobs that tell of the content of a messaging job, and counting the messages of a time."""

from clarion.adapters.stores.migration.history import RunStep

revision = "0011"
down_revision = "0010"


def upgrade(run_step: RunStep) -> None:
    """Add the table, the column and the indexes."""
    run_step("0011_reports.sql")
    run_step("0011_time.sql")
    run_step("0011_told.sql")
