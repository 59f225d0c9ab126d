"""What providers report about who wants no more, and how claims and lists find what is suppressed."""

from clarion.adapters.stores.migration.history import RunStep

revision = "0008"
down_revision = "0007"


def upgrade(run_step: RunStep) -> None:
    """Add the columns and indexes."""
    run_step("0008_evidence.sql")
    run_step("0008_words.sql")
    run_step("0008_subject.sql")
    run_step("0008_cause.sql")
