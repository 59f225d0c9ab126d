"""The processes that run, and the day's use of tenants and API keys."""

from clarion.adapters.stores.migration.history import RunStep

revision = "0003"
down_revision = "0002"


def upgrade(run_step: RunStep) -> None:
    """Add the tables of workers and of use."""
    run_step("0003_running.sql")
