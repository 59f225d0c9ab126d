"""The simulation can fail: each of the bugs in `planted` is caught by it, by what it breaks, within a hundred seeds.

A bug is caught where a run reports a violation of an invariant that it breaks, and the same run without the bug is
clean. The seed noted in `planted.json` is tried first. If seeds were dealt anew since, the first hundred are searched;
`python -m tests.simulation.planted --write` then notes the new ones.
"""

import json

import pytest

from clarion.testing.simulation.run import run
from tests.simulation.planted import BUGS, CAUGHT_AT, SEEDS_MAX, search

NOTED: dict[str, int] = json.loads(CAUGHT_AT.read_text())


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_caught(name: str) -> None:
    caught_at = search(BUGS[name], [NOTED.get(name, 1), *range(1, SEEDS_MAX + 1)])
    assert caught_at is not None, f"{name} was not caught in {SEEDS_MAX} seeds"
    assert not run(BUGS[name].options(caught_at)).failed
