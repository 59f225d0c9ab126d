"""What automation is told: events, sources and reminder settings, and how far each was worked on."""

from clarion.adapters.stores.migration.history import RunStep

revision = "0009"
down_revision = "0008"


def upgrade(run_step: RunStep) -> None:
    """Add the tables."""
    run_step("0009_events.sql")
    run_step("0009_sources.sql")
