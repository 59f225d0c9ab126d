"""The indexes of the pipeline."""

from clarion.adapters.stores.migration.history import RunStep

revision = "0004"
down_revision = "0003"


def upgrade(run_step: RunStep) -> None:
    """Build the indexes."""
    run_step("0004_pipeline_index.sql")
