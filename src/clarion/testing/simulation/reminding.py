"""Who should be reminded of what: worked out from what was told and when, never from the tables.

What an application said of its sources and what settings said may be known for sure at a time, or only that it was one
of some values: an act that was not answered may have been done, or not. A reminder may be handed over where some of the
values ask for it that there may have been since its worker claimed it. It must have been handed over by the end where
every value asks for it that there may be then, and it was due, unless a person took it back. So what was invalid before
it was due and stayed so reminds nobody, and what is valid is lost by nothing.

The rules of reminders stand here a second time, in a form of their own, on purpose.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from clarion.domain.audience import Addressee
from clarion.domain.key import FiringPolicy
from clarion.testing.simulation.agenda import DATE, GROUPS, METRIC, ZONES, Agenda, Rule, Said, SettingPlan, SourcePlan
from clarion.testing.simulation.entitled import Window
from clarion.testing.simulation.notes import Asked, Setting
from clarion.testing.simulation.option import JobPlan
from clarion.testing.simulation.register import NOWHERE

GRACE_SECONDS: Final = 86_400.0
"""What was due longer ago than a day before it is planned need not be made any more."""

ROUNDING: Final = 0.001
"""Seconds by which instants may round apart."""

SILENT: Final = Rule(active=False, offsets=(), send_time="00:00", value=0, policy=FiringPolicy.ONCE_PER_SOURCE, group=0)
"""A setting that nobody has made."""

FIRST_NUMBER: Final = 1000
"""The number of the first reminder among the plans of a run, far behind those of clients."""


class Occasion(NamedTuple):
    """One thing that somebody is reminded of. The key of one that is `open` goes on with a date or an edge."""

    setting: SettingPlan
    source: SourcePlan
    key: str
    text: str
    open: FiringPolicy | None = None
    days: tuple[date, int] | None = None  # its date, and how many days before it this is

    def is_of(self, key: str) -> bool:
        """Tell whether a key is one of it."""
        return key.startswith(f"{self.key}:") if self.open else key == self.key


class Reminded(NamedTuple):
    """A reminder that was handed over."""

    occasion: Occasion
    plan: JobPlan
    job_guid: str
    claimed_at: float
    at: float


class Look(NamedTuple):
    """A time in which a worker handled an event about a source, and so planned it: it has seen what held then."""

    source_type: str
    source: str
    window: Window


class Reminding:
    """What reminders there must be, and which there may be."""

    def __init__(self, agenda: Agenda) -> None:
        """Know of nothing that was told."""
        self.agenda = agenda
        self.said = {plan.number: Setting(NOWHERE) for plan in agenda.sources}
        self.rules = {plan.number: Setting(SILENT) for plan in agenda.settings}
        self.acts: list[tuple[str, str, Asked]] = []  # what people did with occurrences: which, with what key
        self.handed: dict[str, Reminded] = {}  # by key
        self.looks: list[Look] = []
        self.lost: list[Occasion] = []  # as the end was judged

    def may(self, key: str, window: Window, *, store_now: float) -> Occasion | str:
        """Answer for a reminder that is handed over: what it is of, or why there may be none."""
        found = next((one for one in self._asked(window) if one.is_of(key)), None)
        if found is None:
            return "nothing asks for it"
        deactivated = [act for act in self._acts("deactivate", key) if act.answer is True]
        if any(act.done_at is not None and act.done_at < window.since for act in deactivated):
            return "a person has taken it back before"
        if any(self._acts("run now", key)):
            return found
        wrong = self._too_early(found, key, window, store_now=store_now)
        return found if wrong is None else wrong

    def plan_of(self, occasion: Occasion, window: Window) -> JobPlan:
        """Say what is asked for by handing a reminder over, as if a client asked for it."""
        rules = self.rules[occasion.setting.number].may_have_been(since=window.since, until=window.until)
        named = tuple((Addressee(group=GROUPS[group]),) for group in sorted({rule.group for rule in rules}))
        return JobPlan(
            number=FIRST_NUMBER + len(self.handed),
            at=window.until,
            type="reminder",
            to=(),
            by_address=False,
            by_group=False,
            keyed=True,
            twin=False,
            again_after=None,
            other_after=None,
            later_by=None,
            poison=False,
            broadcast=False,
            by_setting=False,
            unit=None,
            about=None,
            text=occasion.text,
            named=named,
        )

    def due(self, *, now: float, store_now: float) -> Iterator[tuple[Occasion, bool]]:
        """Give what somebody must have been reminded of by the end, and whether that was so."""
        wanted: dict[str, Occasion] = {}
        for one in self._asked(Window(now, now)):
            wanted.setdefault(one.key, one)
        for one in wanted.values():
            if not self._is_sure(one, now) or not self._was_due(one, now=now, store_now=store_now):
                continue
            if any(one.is_of(key) and kind == "deactivate" and act.answer is not False for kind, key, act in self.acts):
                continue
            behind = self._fallen_at(one) if one.open is FiringPolicy.FALSE_TO_TRUE else -1.0
            yield one, any(done.at > behind for key, done in self.handed.items() if one.is_of(key))

    def _asked(self, window: Window) -> Iterator[Occasion]:
        """Give everything that may be asked for in a time."""
        for setting in self.agenda.settings:
            rules = self.rules[setting.number].may_have_been(since=window.since, until=window.until)
            for source in self.agenda.sources:
                said = self.said[source.number].may_have_been(since=window.since, until=window.until)
                for rule in sorted(rules):
                    for one in sorted(said, key=str):
                        yield from asked(setting, rule, source, one)

    def _is_sure(self, wanted: Occasion, now: float) -> bool:
        """Tell whether every value that there may be asks for something."""
        rules = self.rules[wanted.setting.number].may_have_been(since=now, until=now)
        said = self.said[wanted.source.number].may_have_been(since=now, until=now)
        return all(
            any(one.key == wanted.key for one in asked(wanted.setting, rule, wanted.source, value))
            for rule in rules
            for value in said
        )

    def _was_due(self, wanted: Occasion, *, now: float, store_now: float) -> bool:
        """Tell whether something surely was due, and not too long ago to be made."""
        if wanted.days is None:
            return True
        due = list(self._due(wanted, Window(now, now)))
        return store_now - GRACE_SECONDS < min(due) and max(due) < store_now

    def _too_early(self, one: Occasion, key: str, window: Window, *, store_now: float) -> str | None:
        """Say why a reminder comes before its time, or a time too often; None where it does not.

        Until a new send time was planned the old one holds, so any time counts that was asked for so far.
        """
        if one.days is not None:
            early = min(self._due(one, Window(0.0, window.until))) - store_now
            return f"it is due {early:.3f} s later" if early > ROUNDING else None
        last = key.rpartition(":")[2]
        if one.open is FiringPolicy.ONCE_PER_DAY:
            latest = max(datetime.fromtimestamp(store_now, ZoneInfo(zone)).date() for zone in ZONES.values())
            return f"it is of {last}, and it is {latest}" if date.fromisoformat(last) > latest else None
        if one.open is FiringPolicy.FALSE_TO_TRUE:
            edges = self._edges(one, until=window.until)
            return f"it is of edge {last}, and there are {edges}" if int(last) > edges else None
        return None

    def _due(self, one: Occasion, window: Window) -> Iterator[float]:
        """Give when an occasion of a date may be due, in seconds by the store's clock."""
        if one.days is None:
            return
        day, offset = one.days
        rules = self.rules[one.setting.number].may_have_been(since=window.since, until=window.until)
        said = self.said[one.source.number].may_have_been(since=window.since, until=window.until)
        for send_time in sorted({rule.send_time for rule in rules if rule != SILENT}):
            for zone in sorted({ZONES[value.unit] for value in said}):
                local = datetime.combine(day - timedelta(days=offset), time.fromisoformat(send_time), ZoneInfo(zone))
                yield local.astimezone(UTC).timestamp()

    def _edges(self, one: Occasion, *, until: float) -> int:
        """Count how often a threshold may have come to be met: by what was asked for, in the order of the asking.

        An act whose order is not known may make one more.
        """
        acts: list[tuple[Asked, Rule | Said]] = [
            *self.rules[one.setting.number].changes,
            *self.said[one.source.number].changes,
        ]
        acts.sort(key=lambda act: act[0].asked_at)
        rule, said, was_met, edges = SILENT, NOWHERE, False, 0
        for place, (act, value) in enumerate(acts):
            if act.asked_at > until:
                break
            rule, said = (value, said) if isinstance(value, Rule) else (rule, value)
            is_met = rule != SILENT and said.there and said.amount >= rule.value
            edges += is_met and not was_met
            was_met = is_met
            edges += place > 0 and not acts[place - 1][0].is_before(act) and acts[place - 1][0].kind != "begin"
        return edges

    def _fallen_at(self, one: Occasion) -> float:
        """Say when a worker last saw that a threshold was surely not met; what is met after that is another edge."""
        seen = -1.0
        for look in self.looks:
            if (look.source_type, look.source) != (one.source.type, one.source.id):
                continue
            rules = self.rules[one.setting.number].may_have_been(since=look.window.since, until=look.window.until)
            said = self.said[one.source.number].may_have_been(since=look.window.since, until=look.window.until)
            falls = all(not value.there or value.amount < rule.value for rule in rules for value in said)
            if falls and all(rule.active for rule in rules):
                seen = look.window.until
        return seen

    def _acts(self, kind: str, key: str) -> Iterator[Asked]:
        """Give what people asked for about one occurrence."""
        return (act for done, about, act in self.acts if (done, about) == (kind, key))


def asked(setting: SettingPlan, rule: Rule, source: SourcePlan, said: Said) -> Iterator[Occasion]:
    """Give what a setting asks for at a source, where these are what both of them say."""
    if not (rule.active and said.there and setting.type == source.type):
        return
    head, name = f"reminder:{setting.guid}:{source.type}:{source.id}", f"{setting.name}: {source.id}"
    if setting.by_date:
        for offset in rule.offsets if said.day is not None else ():
            day = said.day
            if day is not None:
                key = f"{head}:{DATE}:{day.isoformat()}:{offset}"
                yield Occasion(setting, source, key, f"{name} {day.isoformat()} {offset}", days=(day, offset))
    elif said.amount >= rule.value:
        value = "any" if rule.policy is FiringPolicy.ONCE_PER_SOURCE else str(rule.value)
        goes_on = rule.policy in (FiringPolicy.ONCE_PER_DAY, FiringPolicy.FALSE_TO_TRUE)
        yield Occasion(
            setting,
            source,
            f"{head}:{METRIC}:threshold:{METRIC}:{value}:{rule.policy.value}:all",
            f"{name} {value} once",
            open=rule.policy if goes_on else None,
        )
