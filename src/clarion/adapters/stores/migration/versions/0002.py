"""The indexes that finding work, history and people stand on."""

from clarion.adapters.stores.migration.history import RunStep

revision = "0002"
down_revision = "0001"


def upgrade(run_step: RunStep) -> None:
    """Build the indexes."""
    run_step("0002_queue_index.sql")
