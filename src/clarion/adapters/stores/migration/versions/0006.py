"""What is not sent to whom, what administrators say of a type, and where a stage of several steps goes on."""

from clarion.adapters.stores.migration.history import RunStep

revision = "0006"
down_revision = "0005"


def upgrade(run_step: RunStep) -> None:
    """Add the tables and columns."""
    run_step("0006_suppression.sql")
    run_step("0006_settings.sql")
