"""Inboxes at the end of a run: their counters equal the sum of their lines, and the lines are those of their jobs."""

from collections import Counter

from clarion.ports.store import Store
from clarion.testing.simulation import content, society
from clarion.testing.simulation.verdict import Evidence, Violation

LINES_MAX = 1000
"""More than anybody gets in a run."""


async def judge(store: Store, evidence: Evidence) -> list[Violation]:
    """Say what is wrong with the inboxes as the platform shows them; nobody marks a line in this world."""
    wrong: list[Violation] = []
    made = Counter(hashed for _, _, hashed in evidence.scene.inbox.elements())
    for number in range(society.PEOPLE):
        hashed = evidence.directory.hash_of(number)
        lines = len(await store.list_inbox(content.TENANT, hashed, limit=LINES_MAX))
        counts = await store.count_inbox(content.TENANT, hashed)
        if {lines, counts.lines, counts.unseen, counts.unread} != {made[hashed]} or counts.archived:
            wrong.append(
                Violation("inbox", f"u{number} has {made[hashed]} lines, {lines} are listed, counted {counts}")
            )
    return wrong
