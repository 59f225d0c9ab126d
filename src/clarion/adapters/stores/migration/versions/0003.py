"""What claiming, sending, tracking and asking stand on."""

from clarion.adapters.stores.migration.history import RunStep

revision = "0003"
down_revision = "0002"


def upgrade(run_step: RunStep) -> None:
    """Make the tables of the pipeline."""
    run_step("0003_pipeline.sql")
