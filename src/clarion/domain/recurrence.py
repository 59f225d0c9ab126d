"""Recurrences: when a rule falls due next, in a zone. Pure.

A rule speaks of the clock on the wall: it is walked along in local time, and each of its times is turned into an
instant by `local_time` at the end. A time that the clocks skip is so due that much later; one that they show twice is
due the first time; two that come to one instant are due once.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from heapq import merge
from typing import Final, Self

import msgspec
from dateutil.rrule import rrulestr

from clarion.domain.local_time import require_zone, to_local, to_utc
from clarion.domain.occurrence import Timing
from clarion.domain.recurrence_text import WEEKDAYS, Parts, read_rule
from clarion.errors import InvalidInput

YEARS_AHEAD: Final = 28
"""How far a rule is looked along: weekdays and leap years come round in so many years, so what has not been due by
then never is, but for rules whose INTERVAL is longer."""

_CYCLE: Final = timedelta(days=10227)  # 28 years, 1461 weeks: the same calendar again
_LAST_YEAR: Final = 2099  # 2100 has no 29 February, which breaks that cycle
_EIGHT_THOUSAND_YEARS: Final = 20 * timedelta(days=146097)  # 400 years, 20871 weeks: the same calendar again
_WINDOW_YEAR: Final = 9970

_DAY: Final = timedelta(days=1)
"""The furthest that the clocks of a zone have been set: Samoa left out a whole day."""

LOOK_BACK: Final = timedelta(days=400)
"""How far the last time is looked for: a yearly rule has one in it, with the days that a leap year adds."""

_BACKWARDS: Final = (_DAY, 8 * _DAY, 63 * _DAY, LOOK_BACK)
"""The windows in which the last time is looked for: each has few times of a rule that has none in the one before."""

_MICROSECOND: Final = timedelta(microseconds=1)

_ANCHOR: Final = datetime(2001, 1, 1, 9, 0)  # noqa: DTZ001  local time: a Monday, the first of its month and year
_DAY_PARTS: Final = ("BYWEEKNO", "BYYEARDAY", "BYMONTHDAY", "BYDAY")


class Recurrence(msgspec.Struct, frozen=True, kw_only=True):
    """A rule in a zone, from its first time (local) to its last instant."""

    parts: tuple[Parts, ...]
    tz_id: str
    anchor: datetime
    starts_at: datetime | None = None
    ends_at: datetime | None = None

    @classmethod
    def read(cls, rule: str, *, tz_id: str, starts_at: datetime | None = None, ends_at: datetime | None = None) -> Self:
        """Read an RRULE or a line of cron, or refuse it with words.

        What the rule leaves open it takes from `starts_at`, and else from a Monday that is the first of its month and
        year, at 09:00.
        """
        require_zone(tz_id, field="tz_id")
        parts, until = read_rule(rule, tz_id=tz_id)
        if starts_at is None and any(part.interval > 1 or part.count is not None for part in parts):
            raise InvalidInput("it does not say where it counts from", field="starts_at", hint="say when it begins")
        ends = [at for at in (until, ends_at) if at is not None]
        anchor = _ANCHOR if starts_at is None else to_local(starts_at, tz_id)
        return cls(
            parts=parts,
            tz_id=tz_id,
            anchor=anchor.replace(tzinfo=None, fold=0, second=0, microsecond=0),
            starts_at=starts_at and starts_at.replace(second=0, microsecond=0),
            ends_at=min(ends, default=None),
        )

    @property
    def is_once(self) -> bool:
        """Tell whether it plans one instant and no more."""
        return all(part.count == 1 for part in self.parts)

    def after(self, at: datetime) -> Timing | None:
        """Give the first time that is due after an instant; None where there is none."""
        found: tuple[datetime, datetime] | None = None
        for local in self._local_times(to_local(at, self.tz_id).replace(tzinfo=None, fold=0) - _DAY):
            if found is not None and local > found[1] + _DAY:
                break  # clocks that were set may bring a later time to an earlier instant, but by no more than a day
            due = to_utc(local.date(), local.time(), self.tz_id)
            if due > at and (self.starts_at is None or due >= self.starts_at) and (found is None or due < found[0]):
                found = due, local
        if found is None or (self.ends_at is not None and found[0] > self.ends_at):
            return None
        return Timing.at_local(found[1].date(), found[1].time(), self.tz_id)

    def before(self, at: datetime) -> Timing | None:
        """Give the last time that was due before an instant; None where there is none in `LOOK_BACK`."""
        for back in _BACKWARDS:
            found: tuple[datetime, datetime] | None = None
            for local in self._local_times(to_local(at - back, self.tz_id).replace(tzinfo=None, fold=0) - _DAY):
                if local > to_local(at, self.tz_id).replace(tzinfo=None, fold=0) + _DAY:
                    break
                due = to_utc(local.date(), local.time(), self.tz_id)
                if at - back <= due < at and self._is_within(due) and (found is None or due > found[0]):
                    found = due, local
            if found is not None:
                return Timing.at_local(found[1].date(), found[1].time(), self.tz_id)
        return None

    def first(self) -> Timing | None:
        """Give its first time of all, as far as it says when it begins."""
        since = to_utc(self.anchor.date(), self.anchor.time(), self.tz_id) if self.starts_at is None else self.starts_at
        return self.after(since - _MICROSECOND)

    def _is_within(self, due: datetime) -> bool:
        """Tell whether an instant is neither before its first time nor behind its end."""
        begun = self.starts_at is None or due >= self.starts_at
        return begun and (self.ends_at is None or due <= self.ends_at)

    def _local_times(self, since: datetime) -> Iterator[datetime]:
        return merge(*(_walk(part, anchor=self.anchor, since=since) for part in self.parts))


def require_due(recurrence: Recurrence, *, now: datetime) -> Timing:
    """Give the next time, or refuse a rule that is never due again."""
    following = recurrence.after(now)
    if following is not None:
        return following
    ends = recurrence.ends_at is not None or any(part.count is not None for part in recurrence.parts)
    if not ends or recurrence.first() is None:
        message, hint = "it is never due", f"no day of {YEARS_AHEAD} years fits it, or it ends before its first time"
    else:
        message, hint = "it is never due again: its last time has passed", "give it a later end"
    raise InvalidInput(message, field="rule", hint=hint)


def _walk(part: Parts, *, anchor: datetime, since: datetime) -> Iterator[datetime]:
    """List the local times of one rule in order, from shortly before `since` and for 28 years.

    python-dateutil looks for the next time until the year 9999, which takes seconds where there is none. So it is given
    the same calendar at the end of its time: shifted by whole cycles of 28 and 400 years, each day keeps its weekday,
    its number and its month.
    """
    begin = anchor if part.count is not None else _aligned(part, anchor=anchor, since=since)
    if max(begin, since).year > _LAST_YEAR:
        return
    shift = _EIGHT_THOUSAND_YEARS - _CYCLE * -((_WINDOW_YEAR - 8000 - begin.year) // 28)
    try:
        for moved in rrulestr(_spelled(part, anchor=anchor), dtstart=begin + shift):
            local: datetime = moved - shift
            if local > begin + _CYCLE or local.year > _LAST_YEAR:
                return
            if local >= max(anchor, since):
                yield local
    except ValueError:
        return  # parts that exclude each other, such as every second hour and an odd one; or the year 9999 is over


def _aligned(part: Parts, *, anchor: datetime, since: datetime) -> datetime:
    """Find the last period before `since` that the rule's interval meets; never one before its first."""
    midnight = anchor.replace(hour=0, minute=0)
    match part.frequency:
        case "HOURLY" | "DAILY" | "WEEKLY":
            weekday = (midnight.weekday() - WEEKDAYS.index(part.week_start)) % 7
            first, unit = {
                "HOURLY": (anchor, timedelta(hours=1)),
                "DAILY": (midnight, _DAY),
                "WEEKLY": (midnight - weekday * _DAY, 7 * _DAY),
            }[part.frequency]
            step = part.interval * unit
            return first + max(0, (since - first) // step) * step
        case _:
            unit_months = 12 if part.frequency == "YEARLY" else 1
            first_month = anchor.year * 12 + (anchor.month - 1 if unit_months == 1 else 0)
            months = part.interval * unit_months
            month = first_month + max(0, (since.year * 12 + since.month - 1 - first_month) // months) * months
            return midnight.replace(year=month // 12, month=month % 12 + 1, day=1)


def _spelled(part: Parts, *, anchor: datetime) -> str:
    """Write a rule with everything that it takes from its first time, so that it may be walked from any period."""
    by = dict(part.by)
    if part.frequency != "HOURLY":
        by.setdefault("BYHOUR", str(anchor.hour))
    by.setdefault("BYMINUTE", str(anchor.minute))
    by["BYSECOND"] = "0"
    if not any(name in by for name in _DAY_PARTS):
        match part.frequency:
            case "YEARLY":
                by.setdefault("BYMONTH", str(anchor.month))
                by["BYMONTHDAY"] = str(anchor.day)
            case "MONTHLY":
                by["BYMONTHDAY"] = str(anchor.day)
            case "WEEKLY":
                by["BYDAY"] = WEEKDAYS[anchor.weekday()]
            case _:
                pass  # every day, or every hour
    head = {"FREQ": part.frequency, "INTERVAL": str(part.interval), "WKST": part.week_start}
    if part.count is not None:
        head["COUNT"] = str(part.count)
    return ";".join(f"{name}={value}" for name, value in {**head, **by}.items())
