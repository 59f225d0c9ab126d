"""Personal content: versions of profiles, languages and zones; and what a type says of its sends."""

from clarion.adapters.stores.migration.history import RunStep

revision = "0004"
down_revision = "0003"


def upgrade(run_step: RunStep) -> None:
    """Add the tables and columns, then the index over jobs that are there already."""
    run_step("0004_content.sql")
    run_step("0004_one_time.sql")
