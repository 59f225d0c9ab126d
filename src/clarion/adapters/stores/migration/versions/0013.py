"""How plans find what of their source is not over."""

from clarion.adapters.stores.migration.history import RunStep

revision = "0013"
down_revision = "0012"


def upgrade(run_step: RunStep) -> None:
    """Replace the index."""
    run_step("0013_open.sql")
    run_step("0013_old.sql")
