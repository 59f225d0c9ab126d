"""The store's clock on SQLite, by the machine's own count of time."""

from clarion.adapters.stores.migration.history import RunStep

revision = "0002"
down_revision = "0001"


def upgrade(run_step: RunStep) -> None:
    """Add the columns of the clock."""
    run_step("0002_clock.sql")
