"""How the story of one occurrence is found in that of its entity."""

from clarion.adapters.stores.migration.history import RunStep

revision = "0015"
down_revision = "0014"


def upgrade(run_step: RunStep) -> None:
    """Add the index."""
    run_step("0015_subject.sql")
