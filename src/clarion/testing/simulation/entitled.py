"""Who should get what: worked out from what was asked for and when, never from the tables.

Everything that decides may change while a run goes on: who belongs to a group, where somebody is reached, what a
setting says, what somebody refuses. Of each of them `notes` knows the values that it may have had in a time. The time
that counts for the set of a job is its *window of decision*: from the claim of the worker that froze the set until the
commit that froze it. Whoever gets the message under every value that anything may have had in it must be in the set,
whoever gets it under some of them may be, and nobody else.

Apart from the window of decision there is the instant of a claim: what was surely refused before it, and not taken back
by anybody, is not claimed.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final, NamedTuple

from clarion.domain.audience import Addressee as Named
from clarion.domain.definition import Definition
from clarion.domain.identity import Channel
from clarion.testing.simulation import content, society
from clarion.testing.simulation.directory import Addressee
from clarion.testing.simulation.notes import Notes
from clarion.testing.simulation.option import JobPlan
from clarion.testing.simulation.society import Circle

BOTH: Final = frozenset({True, False})
"""What may be so or not."""

DEFINITIONS: Final = {definition.key: definition for definition in (*content.DEFINITIONS, content.REMINDER)}


class Window(NamedTuple):
    """A time in which something was decided, in virtual seconds."""

    since: float
    until: float


class Message(NamedTuple):
    """What one recipient gets on a channel, and where; in the inbox nowhere in particular."""

    to: Addressee
    channel: Channel
    destination: str | None


class Expected(NamedTuple):
    """The messages that there must be of a job, those that there may be, and those that are surely refused."""

    must: frozenset[Message]
    may: frozenset[Message]
    refused: frozenset[Message]


class Entitled:
    """Works out who should get what."""

    def __init__(self, notes: Notes) -> None:
        """Go by these notes."""
        self._notes = notes

    def enabled(self, plan: JobPlan, window: Window) -> set[bool]:
        """Say whether the type of a job may have been on: its unit's word or, where that has none, the tenant's."""
        said = self._said(plan, "enabled", window)
        of_tenant = self._notes.enabled[plan.type].may_have_been(since=window.since, until=window.until)
        return {bool(word) for one in said for word in (of_tenant if one is None else {one})}

    def nobody(self, plan: JobPlan, window: Window) -> bool:
        """Tell whether it may be that a job finds nobody to go to."""
        return not any(sure for _, sure in self._meant(plan, window))

    def recipients(self, plan: JobPlan, window: Window) -> tuple[set[Addressee], set[Addressee]]:
        """Say who must be and who may be a recipient of a job, whether or not there is a message for them."""
        meant = list(self._meant(plan, window))
        return {who for who, sure in meant if sure}, {who for who, _ in meant}

    def expected(self, plan: JobPlan, window: Window) -> Expected:
        """Say which messages of a job there must be and may be, where its set was decided in this window."""
        must, may, against = set[Message](), set[Message](), set[Message]()
        channels = self._channels(plan, window)
        for who, is_meant in self._meant(plan, window):
            for channel, is_open in channels.items():
                for destination, is_there in self._reached(plan, who, channel, window):
                    message = Message(who, channel, destination)
                    refused = self.refused(DEFINITIONS[plan.type], message, window)
                    if False not in refused:
                        against.add(message)
                        continue
                    may.add(message)
                    if is_meant and is_open and is_there and True not in refused:
                        must.add(message)
        return Expected(frozenset(must), frozenset(may), frozenset(against))

    def is_refused_in_vain(self, plan: JobPlan, message: Message, window: Window) -> bool:
        """Tell whether a recipient has surely refused the category of a message, which is required."""
        definition = DEFINITIONS[plan.type]
        key = (message.to, definition.category, message.channel)
        return not definition.may_unsubscribe and self._notes.refused.may_have_been(key, *window) == {True}

    def refused(self, definition: Definition, message: Message, window: Window) -> frozenset[bool]:
        """Say whether something may have spoken against a message: for the recipient, or at the destination.

        A category that is required can be refused by nobody, but an address that bounces is suppressed for everything.
        """
        against = [self._notes.stopped.may_have_been(subject, *window) for subject in _subjects(message)]
        if definition.may_unsubscribe:
            key = (message.to, definition.category, message.channel)
            against.append(self._notes.refused.may_have_been(key, *window))
        if any(one == {True} for one in against):
            return frozenset({True})
        return BOTH if any(True in one for one in against) else frozenset({False})

    def _meant(self, plan: JobPlan, window: Window) -> Iterator[tuple[Addressee, bool]]:
        """Give everybody who may be meant, each once, and whether that is sure."""
        if plan.by_address and not (plan.by_group or plan.by_setting):
            yield from ((Addressee(None, content.bare_address(plan.type, number)), True) for number in plan.to)
            return
        named = set() if plan.by_setting else set(plan.to)
        ways: list[tuple[Circle, ...]] = [_GROUPS if plan.by_group else ()]
        if plan.named is not None:
            ways = [_circles(one, plan) for one in plan.named]
        elif plan.by_setting:
            ways = [_circles(one or (), plan) for one in self._effective(plan, "recipients", window)]
        for number in range(society.PEOPLE):
            belongs = [self._belongs(number, circles, window) for circles in ways]
            if number in named or any(True in one for one in belongs):
                yield Addressee(number, None), number in named or all(one == {True} for one in belongs)

    def _belongs(self, number: int, circles: Collection[Circle], window: Window) -> frozenset[bool]:
        """Say whether a person may belong to any of these circles."""
        words = [self._notes.belongs.may_have_been((circle, number), *window) for circle in circles]
        if any(one == {True} for one in words):
            return frozenset({True})
        return BOTH if any(True in one for one in words) else frozenset({False})

    def _channels(self, plan: JobPlan, window: Window) -> dict[Channel, bool]:
        """Give the channels by which a job may go, and whether that is sure."""
        of_type = DEFINITIONS[plan.type].channels
        said = [of_type if one is None else one for one in self._effective(plan, "channels", window)]
        return {
            channel: all(channel in one for one in said) for channel in of_type if any(channel in one for one in said)
        }

    def _reached(
        self, plan: JobPlan, who: Addressee, channel: Channel, window: Window
    ) -> Iterator[tuple[str | None, bool]]:
        """Give the destinations at which a recipient may be reached on a channel, and whether that is sure."""
        if who.person is None:
            if channel is content.bare_channel(plan.type):
                yield who.address, True
            return
        if channel is Channel.INBOX:
            yield None, True
            return
        editions = self._notes.address[who.person].may_have_been(since=window.since, until=window.until)
        for edition in sorted(editions):
            for one in society.contacts(who.person, edition):
                if one.channel is channel and one.verified:
                    yield one.destination, len(editions) == 1

    def _effective(self, plan: JobPlan, field: str, window: Window) -> set[Any]:
        """Give what a setting may say of a job: its unit's word or, where that has none, the tenant's."""
        of_tenant = self._notes.said.may_have_been((plan.type, None, field), *window)
        return {
            word for one in self._said(plan, field, window) for word in (of_tenant if one is None else frozenset({one}))
        }

    def _said(self, plan: JobPlan, field: str, window: Window) -> frozenset[Any]:
        """Give what the unit of a job may say itself; None where it may say nothing, or the job has none."""
        if plan.unit is None:
            return frozenset({None})
        return self._notes.said.may_have_been((plan.type, plan.unit, field), *window)


_GROUPS: Final = (society.IN_GROUP, society.IN_CLASS)
"""Whoever is in the class is in the group, in which it lies."""


def _subjects(message: Message) -> Iterator[object]:
    """Name what may be suppressed as a whole: the recipient, and the destination."""
    yield message.to
    if message.destination is not None:
        yield message.destination


def _circles(named: Iterable[Named], plan: JobPlan) -> tuple[Circle, ...]:
    """Say to which circles those belong whom a setting names, for a job on behalf of this unit about this thing."""
    circles: list[Circle] = []
    for one in named:
        if one.group is not None:
            circles += _GROUPS if one.group == society.GROUP else (society.IN_CLASS,)
        elif one.role is not None:
            circles += [society.holders(None), *([] if plan.unit is None else [society.holders(plan.unit)])]
        elif one.relation is not None:
            circles += [] if plan.about is None else [society.relatives(plan.about)]
        elif plan.unit is not None:
            circles.append(society.members(plan.unit))
    return tuple(circles)
