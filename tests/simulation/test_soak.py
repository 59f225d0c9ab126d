"""A short soak on each store: the real programs are killed in the middle of their work, and nothing is lost or doubled.

Short by its leases only (`clarion.testing.soak.short`); without that option the programs run as users start them.
"""

import json
import subprocess
import sys

import pytest

MESSAGES, KILLS, LEASE = 60, 4, 5
"""Half of the messages and kills in each leg: every kind of kill, and a crash of PostgreSQL in each leg."""


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_the_programs_are_killed_and_nothing_is_lost_doubled_or_invented(store: str) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "clarion.testing.soak", "--store", store, "--lease", str(LEASE)),
            *("--messages", str(MESSAGES), "--kills", str(KILLS), "--json"),
        ],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    total = json.loads(done.stdout)
    assert (total["messages"], total["kills"]) == (MESSAGES, KILLS)
    assert total["kills_of_serve"] >= 2
    assert total["outages"] == (2 if store == "postgres" else 0)
    assert (total["lost"], total["duplicate"], total["phantom"], total["violations"]) == (0, 0, 0, 0)
