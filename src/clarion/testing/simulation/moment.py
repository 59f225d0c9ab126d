"""Moments: at which step of which process somebody acts upon the installation.

Before every step of a process the loop asks here whether this is the moment of a kill, a pause, a stop, a clock that is
set, or of a person who does something: so each of them can fall between any two steps, at every await. Each kind counts
steps down to its next moment, by numbers from its own stream, so that switching one off leaves the others as they were.
A step of a process that only looks for work counts little: most steps are such ones, and nothing depends on them.
Acting itself is in `person` and `nemesis`.
"""

from collections.abc import Callable, Mapping
from typing import Final

from clarion.testing.simulation.loop import Process
from clarion.testing.simulation.option import Fault, Options
from clarion.testing.simulation.weather import Weather

ROUND: Final = 3.0
"""Seconds between two rounds, in which time passes for those who act even where no process does anything."""

ROUND_STEPS: Final = 20.0
"""How many steps at work a round counts for: in most runs as much comes of rounds as of steps then."""

STEPS: Final = 40.0
"""A kind with a rate of 1 strikes every so many steps at work; one with 0.08 every 25 rounds, or every 500 steps."""

IDLE: Final = 0.05
"""What a step of a process counts that has nothing to do."""

AT_CALL: Final = 4.0
"""What a step counts of a process that has a message in hand, from its claim to the record of its outcome: there is
where something can be lost or sent twice."""

Act = Callable[[Process | None], None]
"""Does something, to this process where it is one that is done to a process; without one the act chooses."""


class Moments:
    """Decides when each kind of act falls due."""

    def __init__(self, options: Options, weather: Weather, acts: Mapping[Fault, Act]) -> None:
        """Count for the kinds that may happen in this run."""
        self._weather = weather
        self._acts = acts
        self._rates = {kind: options.rates[kind] / STEPS for kind in acts if kind in options.rates}
        self._left = {kind: self._drawn(kind) for kind in self._rates}

    def at_step(self, process: Process) -> None:
        """Count a step that a process is about to take, and act where it is the moment for it."""
        weight = IDLE
        if process.steps_at_work:
            process.steps_at_work -= 1
            weight = 1.0
        if process.steps_at_call:
            process.steps_at_call -= 1
            weight = AT_CALL
        self._pass(weight, process)

    def at_round(self) -> None:
        """Count a round."""
        self._pass(ROUND_STEPS, None)

    def _pass(self, steps: float, process: Process | None) -> None:
        for kind, left in self._left.items():
            self._left[kind] = left - steps
            if left <= steps:
                self._left[kind] = self._drawn(kind)
                self._weather.met(kind)
                self._acts[kind](process)

    def _drawn(self, kind: Fault) -> float:
        """Draw how many steps pass until the next moment of a kind."""
        return self._weather.stream(kind).expovariate(self._rates[kind])
