"""Why a job went to nobody at all, and on whose behalf it is sent."""

from clarion.adapters.stores.migration.history import RunStep

revision = "0007"
down_revision = "0006"


def upgrade(run_step: RunStep) -> None:
    """Add the columns."""
    run_step("0007_rule.sql")
