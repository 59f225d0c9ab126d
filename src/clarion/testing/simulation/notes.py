"""Notes: what was asked of the installation, by whom, and what they were told. The checker's memory of the inputs.

Written by those who ask (`client`, `person`, `world` when it sets the installation up) and read by `truth`. Nothing
here comes from the database: an act that was answered is done, one that was not answered may be done or may yet be.
Times are virtual seconds; those whose name begins with `store_` are seconds by the store's clock, since 1970.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from clarion.testing.simulation import society
from clarion.testing.simulation.option import JobPlan

K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Hashable)

FIELDS = ("enabled", "recipients", "channels")
"""What a setting says."""


class Asked:
    """One thing that a person asked for, and what came of it as far as anybody was told."""

    def __init__(self, kind: str, subject: str, *, at: float) -> None:
        """Note it when it is asked for."""
        self.kind = kind
        self.subject = subject
        self.asked_at = at
        self.done_at: float | None = None
        self.answer: object = None

    def done(self, answer: object, *, at: float) -> None:
        """Note that the door has done it, whether or not anybody still waits for the answer."""
        self.answer = answer
        self.done_at = at

    def is_before(self, other: "Asked") -> bool:
        """Tell whether it surely was done before the other was asked for."""
        return self.done_at is not None and self.done_at < other.asked_at  # at the same instant either may be first


class Setting(Generic[V]):
    """A value that people change, such as an address: what it may have been at a time."""

    def __init__(self, first: V) -> None:
        """Start with the value of the installation's beginning."""
        begin = Asked("begin", "", at=0.0)
        begin.done(None, at=0.0)
        self._changes: list[tuple[Asked, V]] = [(begin, first)]

    def change(self, act: Asked, value: V) -> None:
        """Note that somebody asked for another value."""
        self._changes.append((act, value))

    @property
    def changes(self) -> Sequence[tuple[Asked, V]]:
        """Every value that was asked for, the first one first."""
        return self._changes

    def may_have_been(self, *, since: float, until: float) -> set[V]:
        """Return every value that it may have had at some time between the two."""
        known = [(act, value) for act, value in self._changes if act.asked_at <= until]
        return {value for act, value in known if not self._is_past(act, since)}

    def _is_past(self, act: Asked, since: float) -> bool:
        """Tell whether another value surely took an act's place before then.

        A change that was not answered may still lie at a door that stands still, and come at any time.
        """
        later = (one for one, _ in self._changes if one is not act and act.is_before(one))
        return any(one.done_at is not None and one.done_at < since for one in later)


class Settings(Generic[K, V]):
    """Many values that people change, by what each is about; what nobody has spoken of is as it was first."""

    def __init__(self, first: Mapping[K, V], *, otherwise: V) -> None:
        """Start with the values of the installation's beginning."""
        self._values = {key: Setting(value) for key, value in first.items()}
        self._otherwise = otherwise

    def change(self, key: K, act: Asked, value: V) -> None:
        """Note that somebody asked for another value."""
        self._values.setdefault(key, Setting(self._otherwise)).change(act, value)

    def may_have_been(self, key: K, since: float, until: float) -> frozenset[V]:
        """Return every value that it may have had at some time between the two."""
        value = self._values.get(key)
        return frozenset({self._otherwise} if value is None else value.may_have_been(since=since, until=until))


class Send:
    """One try of a client to have a notification sent."""

    def __init__(
        self, plan: JobPlan, payload: str, *, at: float, store_at: float, store_not_before: float | None
    ) -> None:
        """Note it when the client comes to the door."""
        self.plan = plan
        self.payload = payload
        self.at = at
        self.store_at = store_at
        self.store_not_before = store_not_before or 0.0
        self.promised_at: float | None = None
        self.store_promised_at = 0.0

    def promised(self, *, at: float, store_at: float) -> None:
        """Note that the client was told that it will be sent."""
        self.promised_at, self.store_promised_at = at, store_at


class Notes:
    """Everything that was asked for in one run."""

    def __init__(self, *, types: tuple[str, ...]) -> None:
        """Start with an installation that was just set up: first editions, settings and circles of the beginning."""
        self.asked: list[Asked] = []
        self.sends: list[Send] = []
        self.set_back = 0.0  # seconds by which the store's clock was set back in all
        self.enabled = {key: Setting(True) for key in types}
        self.edition = {key: Setting(1) for key in types}
        self.address = [Setting(1) for _ in range(society.PEOPLE)]
        self.said = Settings[object, Any](
            {
                (key, unit, field): getattr(setting, field)
                for (key, unit), setting in society.SETTINGS.items()
                for field in FIELDS
            },
            otherwise=None,
        )  # by type, unit and field
        self.belongs = Settings[object, bool](
            {(circle, number): True for circle, people in society.CIRCLES.items() for number in people},
            otherwise=False,
        )  # by circle and person
        self.refused = Settings[object, bool]({}, otherwise=False)  # by recipient, category and channel
        self.stopped = Settings[object, bool]({}, otherwise=False)  # by recipient, or by destination

    def asks(self, kind: str, subject: str, *, at: float) -> Asked:
        """Note that a person asks for something."""
        asked = Asked(kind, subject, at=at)
        self.asked.append(asked)
        return asked

    def sends_of(self, number: int) -> list[Send]:
        """Return every try to have one planned notification sent, the first one first."""
        return [send for send in self.sends if send.plan.number == number]

    def of(self, kind: str, subject: str) -> Iterator[Asked]:
        """Return what was asked for of one kind, about one thing."""
        return (one for one in self.asked if (one.kind, one.subject) == (kind, subject))
