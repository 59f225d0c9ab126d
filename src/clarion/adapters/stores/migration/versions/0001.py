"""The whole schema of the first release."""

from clarion.adapters.stores.migration.history import RunStep

revision = "0001"
down_revision = None


def upgrade(run_step: RunStep) -> None:
    """Make the tables, each with its indexes."""
    run_step("0001_ground.sql")
    run_step("0001_jobs.sql")
    run_step("0001_people.sql")
    run_step("0001_delivery.sql")
