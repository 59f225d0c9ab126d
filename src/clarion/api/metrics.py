"""Counts and times of this process, and the store's gauges, in the text that Prometheus reads.

Names say what is counted; labels are accounts, channels, outcomes and routes, which are few, and never a tenant, a
person or an id. A process that only works counts as well and shows it at its own port, if it has one. Reads nothing by
itself: what happened is told to it, and the store's gauge is handed in.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from typing import Final, assert_never

from clarion.domain.call import Accepted, CallOutcome, Deferred, Misconfigured, NotCalled, Refused, Unknown
from clarion.domain.claim import ClaimedMessage
from clarion.ports.insights import Gauge

MEDIA_TYPE: Final = "text/plain; version=0.0.4"

BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0)
"""Seconds, from a store on the same machine to the longest that a call may take."""

Labels = tuple[tuple[str, str], ...]


class Tally:
    """One counter by labels."""

    def __init__(self) -> None:
        """Start at nothing."""
        self._counts: dict[Labels, int] = {}

    def add(self, labels: Labels) -> None:
        """Count one."""
        self._counts[labels] = self._counts.get(labels, 0) + 1

    def lines(self, name: str) -> Iterator[str]:
        """Write it out."""
        for labels, count in sorted(self._counts.items()):
            yield f"{name}{_written(labels)} {count}"


class Spread:
    """Times by labels, in buckets."""

    def __init__(self) -> None:
        """Start with none."""
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}

    def add(self, labels: Labels, seconds: float) -> None:
        """Take one time in."""
        counts = self._counts.setdefault(labels, [0] * (len(BOUNDS) + 1))
        counts[bisect_left(BOUNDS, seconds)] += 1
        self._sums[labels] = self._sums.get(labels, 0.0) + seconds

    def lines(self, name: str) -> Iterator[str]:
        """Write it out; a bucket counts all that were no longer than its bound."""
        for labels, counts in sorted(self._counts.items()):
            total = 0
            for bound, count in zip((*map(repr, BOUNDS), "+Inf"), counts, strict=True):
                total += count
                yield f"{name}_bucket{_written((*labels, ('le', bound)))} {total}"
            yield f"{name}_sum{_written(labels)} {self._sums[labels]:.6f}"
            yield f"{name}_count{_written(labels)} {total}"


class Metrics:
    """Everything that one process counts."""

    def __init__(self) -> None:
        """Start at nothing."""
        self._calls, self._call_seconds = Tally(), Spread()
        self._requests, self._request_seconds = Tally(), Spread()

    def observe_call(self, message: ClaimedMessage, outcome: CallOutcome, seconds: float) -> None:
        """Count one provider call; its time only where there was a call."""
        where = (("account", message.account), ("channel", str(message.channel)))
        self._calls.add((*where, ("outcome", _named(outcome))))
        if not isinstance(outcome, NotCalled):
            self._call_seconds.add(where, seconds)

    def observe_request(self, *, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request by the template of its path, never by the path."""
        self._requests.add((("method", method), ("route", route), ("status", str(status))))
        self._request_seconds.add((("method", method), ("route", route)), seconds)

    def written(self, gauge: Gauge | None) -> str:
        """Write everything out, with the store's gauge, if the store answers."""
        lines = [
            *_family("clarion_calls_total", "counter", "Provider calls by what came of them.", self._calls.lines),
            *_family("clarion_call_seconds", "histogram", "How long provider calls took.", self._call_seconds.lines),
            *_family("clarion_http_requests_total", "counter", "Requests to the API.", self._requests.lines),
            *_family("clarion_http_request_seconds", "histogram", "How long they took.", self._request_seconds.lines),
        ]
        gauges: dict[str, tuple[str, float]] = {"clarion_store_up": ("Whether the store answers.", gauge is not None)}
        for name, (said, value) in (gauges | (_gauges(gauge) if gauge else {})).items():
            lines += [f"# HELP {name} {said}", f"# TYPE {name} gauge", f"{name} {value:g}"]
        return "\n".join(lines) + "\n"


def _gauges(gauge: Gauge) -> dict[str, tuple[str, float]]:
    return {
        "clarion_stages_waiting": ("Jobs that are due and wait.", gauge.stages_waiting),
        "clarion_stages_oldest_seconds": ("For how long the oldest due job has waited.", gauge.oldest_stage_seconds),
        "clarion_outgoing_waiting": ("Messages that are due and wait.", gauge.outgoing_waiting),
        "clarion_outgoing_oldest_seconds": (
            "For how long the oldest due message has waited.",
            gauge.oldest_outgoing_seconds,
        ),
        "clarion_outgoing_sending": ("Messages whose call is open.", gauge.sending),
        "clarion_outgoing_uncertain": ("Messages of which nobody knows whether they arrived.", gauge.uncertain),
        "clarion_automation_due": ("Reminders and reports that are due and wait.", gauge.occurrences_due),
        "clarion_automation_oldest_seconds": (
            "By how much the oldest due reminder or report is late.",
            gauge.oldest_occurrence_seconds,
        ),
        "clarion_automation_held": ("Reminders and reports that a person has to release.", gauge.occurrences_held),
        "clarion_automation_failed": ("Reminders and reports that failed for good.", gauge.occurrences_failed),
        "clarion_support_cases_open": ("Support cases that nobody has resolved.", gauge.open_support_cases),
    }


def _family(name: str, kind: str, said: str, lines: Callable[[str], Iterator[str]]) -> Iterable[str]:
    return (f"# HELP {name} {said}", f"# TYPE {name} {kind}", *lines(name))


def _named(outcome: CallOutcome) -> str:
    match outcome:
        case Accepted():
            return "accepted"
        case Deferred(throttled=throttled):
            return "throttled" if throttled else "deferred"
        case Refused():
            return "refused"
        case Misconfigured():
            return "misconfigured"
        case Unknown():
            return "unknown"
        case NotCalled():
            return "not-called"
        case _:
            assert_never(outcome)


def _written(labels: Labels) -> str:
    """Write labels as Prometheus reads them."""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
