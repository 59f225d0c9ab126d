"""Chooses a few seeds that meet together what thousands of random ones meet, for the run of every day.

Greedy: of the seeds that are left the one which adds most, where what few seeds meet counts more. Everything is to be
met by several of the chosen ones, because whatever changes the steps of a run, in the simulation or in the program
itself, makes a seed miss some of what it met before. Pure.
"""

from collections import Counter
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Final

TIMES: Final = 4
"""How many of the chosen seeds shall meet each thing, where as many do."""


def choose(met: Mapping[int, AbstractSet[str]], *, expected: AbstractSet[str], most: int) -> list[int]:
    """Choose at most so many of these seeds, by what each of them meets; return them in order."""
    frequency = Counter(name for names in met.values() for name in names & expected)
    wanted = {name: min(TIMES, count) for name, count in frequency.items()}
    left, chosen = dict(sorted(met.items())), list[int]()

    def gain(seed: int) -> float:
        return sum(1 / frequency[name] for name in sorted(left[seed]) if wanted.get(name))

    while left and len(chosen) < most and any(wanted.values()):
        best = max(left, key=gain)
        chosen.append(best)
        for name in left.pop(best):
            if wanted.get(name):
                wanted[name] -= 1
    return sorted(chosen)
