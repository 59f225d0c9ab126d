"""By which edition of the time zone database the sources of reminder settings were planned."""

from clarion.adapters.stores.migration.history import RunStep

revision = "0012"
down_revision = "0011"


def upgrade(run_step: RunStep) -> None:
    """Add the column and its index."""
    run_step("0012_zones.sql")
    run_step("0012_zones_outside.sql")
