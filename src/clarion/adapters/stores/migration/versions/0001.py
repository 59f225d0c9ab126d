"""The ground: every record that an Ensure contract makes."""

from clarion.adapters.stores.migration.history import RunStep

revision = "0001"
down_revision = None


def upgrade(run_step: RunStep) -> None:
    """Make the tables."""
    run_step("0001_ground.sql")
