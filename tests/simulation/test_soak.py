"""A short soak on each store: real workers are killed in the middle of their calls, and nothing is lost or doubled."""

import json
import subprocess
import sys

import pytest

MESSAGES, KILLS = 80, 4
"""Half of them in each leg: two kills with two call slots each leave at most a tenth of forty messages uncertain."""


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_workers_are_killed_and_nothing_is_lost_doubled_or_invented(store: str) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "clarion.testing.soak", "--store", store),
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
    assert (total["lost"], total["duplicate"], total["phantom"], total["violations"]) == (0, 0, 0, 0)
