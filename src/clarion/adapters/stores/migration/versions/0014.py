"""How a tenant's latest jobs are found, whoever made them."""

from clarion.adapters.stores.migration.history import RunStep

revision = "0014"
down_revision = "0013"


def upgrade(run_step: RunStep) -> None:
    """Replace the index."""
    run_step("0014_latest.sql")
    run_step("0014_old.sql")
