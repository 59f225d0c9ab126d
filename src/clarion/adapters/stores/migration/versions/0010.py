"""How occurrences wait to be claimed, and what plans keep: serials, states of thresholds, entities' histories."""

from clarion.adapters.stores.migration.history import RunStep

revision = "0010"
down_revision = "0009"


def upgrade(run_step: RunStep) -> None:
    """Add the columns, tables and indexes."""
    run_step("0010_automation.sql")
    run_step("0010_due.sql")
