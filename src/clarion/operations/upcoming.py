"""Seeing ahead: what will fire, when in local time, for whom and why, by what waits now and by what follows it.

Nothing is planned or sent. Whom it would be for is found by the settings as they stand; where a provider of sources
says that, it is asked only when the occurrence is due. `rehearsal` plays the same time through by the real rules.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from clarion.client import wire_upcoming
from clarion.client.wire_upcoming import COUNTED_MAX, FOLLOWING_MAX, ForWhom, UpcomingLine
from clarion.domain.audience import Addressee, Audience, audience_of
from clarion.domain.automation import AutomationScheduler, AutomationType, TriggerType
from clarion.domain.due import Named
from clarion.domain.identity import IdentityDomain
from clarion.domain.key import FiringPolicy, read_first_run
from clarion.domain.local_time import time_of_day
from clarion.domain.occurrence import Timing
from clarion.domain.occurrence_why import why_in_words
from clarion.domain.reminder import ReminderSetting
from clarion.domain.report import ReportSubscription
from clarion.domain.setting import EffectiveSetting, switched_off
from clarion.operations import page
from clarion.ports.automation import Standing
from clarion.ports.source import SourceStore
from clarion.ports.store import Store
from clarion.producers.sources import Sources

NAME: Final = "upcoming"

_LOOKED_AT: Final = (Standing.DUE, Standing.WAITING)
_DAY: Final = timedelta(days=1)

Settings = Mapping[str, ReminderSetting | ReportSubscription]
"""Reminder settings and report subscriptions by their guid, as text."""

Said = Mapping[tuple[str, str, UUID | None], EffectiveSetting]
"""What holds for notification types in business units."""


class Upcoming:
    """What will fire for a tenant."""

    def __init__(self, store: Store, sources: Sources) -> None:
        """Read this store; who provides sources says whether a provider names recipients."""
        self._store = store
        self._sources = sources

    async def list(self, tenant_id: str, query: wire_upcoming.UpcomingQuery) -> wire_upcoming.UpcomingPage:
        """List what waits and is due within so many days, with what follows each of it."""
        now = await self._store.now()
        until = now + timedelta(days=query.days)
        rows, following = await self._rows(tenant_id, query, until=until)
        settings = await settings_of(self._store, tenant_id, rows)
        said = await self._store.find_settings({_type_in_unit(tenant_id, row) for row in rows}) if rows else {}
        whom = await self._for_whom(tenant_id, rows, settings, said)
        return wire_upcoming.UpcomingPage(
            items=tuple(
                _line(
                    row,
                    settings.get(row.setting),
                    for_whom=one,
                    off=switched_off(row.notification_type, said[_type_in_unit(tenant_id, row)]),
                    now=now,
                    until=until,
                )
                for row, one in zip(rows, whom, strict=True)
            ),
            next_cursor=following,
        )

    async def for_whom(self, tenant_id: str, row: AutomationScheduler) -> ForWhom | None:
        """Say for whom one occurrence would be; None where its setting is gone."""
        asked = _type_in_unit(tenant_id, row)
        settings = await settings_of(self._store, tenant_id, [row])
        (whom,) = await self._for_whom(tenant_id, [row], settings, await self._store.find_settings({asked}))
        return whom

    async def _rows(
        self, tenant_id: str, query: wire_upcoming.UpcomingQuery, *, until: datetime
    ) -> tuple[Sequence[AutomationScheduler], str | None]:
        """Read a page: what is due now, and behind it what waits."""
        name = f"{NAME} {query.days}"
        standing, after = _place(page.read(name, query.cursor, start=""))
        found: list[tuple[Standing, AutomationScheduler]] = []
        for one in _LOOKED_AT[_LOOKED_AT.index(standing) :]:
            rows = await self._store.list_occurrences(
                tenant_id, standing=one, until=until, after=after, limit=query.limit + 1 - len(found)
            )
            found += [(one, row) for row in rows]
            after = None
            if len(found) > query.limit:
                break
        cut, following = page.cut(
            name, found, query.limit, lambda one: f"{one[0]} {one[1].due_at.isoformat()} {one[1].id}"
        )
        return [row for _, row in cut], following

    async def _for_whom(
        self, tenant_id: str, rows: Sequence[AutomationScheduler], settings: Settings, said: Said
    ) -> Sequence[ForWhom | None]:
        """Count whom each occurrence would be for; what is for the same people is counted once."""
        asked: list[tuple[Named, Sequence[Addressee], int, Audience] | None] = []
        for row in rows:
            setting = settings.get(row.setting)
            holds = said[_type_in_unit(tenant_id, row)]
            asked.append(None if setting is None else self._asked(row, setting, holds))
        audiences = list(dict.fromkeys(one[3] for one in asked if one is not None and one[3]))
        found = await self._store.find_audiences(tenant_id, audiences, limit=COUNTED_MAX + 1) if audiences else []
        sizes = {audience: len(people) for audience, people in zip(audiences, found, strict=True)}
        return [None if one is None else _whom(one, sizes) for one in asked]

    def _asked(
        self, row: AutomationScheduler, setting: ReminderSetting | ReportSubscription, holds: EffectiveSetting
    ) -> tuple[Named, Sequence[Addressee], int, Audience]:
        """Say who names the recipients of an occurrence: whom without names, and how many by name."""
        unit = None if row.business_unit is None else UUID(row.business_unit)
        entity = (row.source_type, UUID(row.primary_entity))
        people, groups = 0, list[UUID]()
        if isinstance(setting, ReportSubscription):
            groups = [UUID(one.id) for one in setting.to if one.domain is IdentityDomain.GROUP]
            people = len(setting.to) - len(groups)
        elif self._sources.names_recipients(row.source_type):
            return Named.PROVIDER, (), 0, Audience()
        own = setting.recipients if setting.recipients is not None or not (people or groups) else ()
        addressees = holds.recipients if own is None else own
        named_by = Named.TYPE if own is None else Named.SETTING
        return named_by, addressees, people, audience_of(addressees, unit=unit, entity=entity, groups=groups)


async def settings_of(store: SourceStore, tenant_id: str, rows: Sequence[AutomationScheduler]) -> Settings:
    """Read the settings of occurrences, each once; there are few."""
    found: dict[str, ReminderSetting | ReportSubscription] = {}
    of_reminders = {row.source_type for row in rows if row.automation_type is AutomationType.REMINDER}
    for source_type in sorted(of_reminders):
        for record in await store.find_reminders(tenant_id, source_type):
            found[str(record.setting.guid)] = record.setting
    for guid in sorted({row.setting for row in rows if row.automation_type is not AutomationType.REMINDER}):
        subscription = await store.find_subscription(tenant_id, UUID(guid))
        if subscription is not None:
            found[guid] = subscription.subscription
    return found


def _whom(asked: tuple[Named, Sequence[Addressee], int, Audience], sizes: Mapping[Audience, int]) -> ForWhom:
    named_by, addressees, people, audience = asked
    if named_by is Named.PROVIDER:
        return ForWhom(named_by=named_by)
    size = sizes.get(audience, 0)
    return ForWhom(
        named_by=named_by,
        names=tuple(map(str, addressees)),
        count=people + min(size, COUNTED_MAX),
        or_more=size > COUNTED_MAX,
    )


def _line(
    row: AutomationScheduler,
    setting: ReminderSetting | ReportSubscription | None,
    *,
    for_whom: ForWhom | None,
    off: tuple[object, str] | None,
    now: datetime,
    until: datetime,
) -> UpcomingLine:
    follows = _follows(row, setting, now=now, until=until)
    return UpcomingLine(
        key=row.scheduler_key,
        type=row.automation_type,
        trigger=row.trigger_type,
        due_at=row.due_at,
        local_date=row.local_date,
        local_time=row.local_time,
        zone=row.tz_id,
        is_due=row.due_at <= now,
        notification_type=row.notification_type,
        setting=UUID(row.setting),
        setting_name=None if setting is None else setting.name,
        source_type=row.source_type,
        source=row.source,
        business_unit=None if row.business_unit is None else UUID(row.business_unit),
        why=why_in_words(row),
        for_whom=for_whom,
        inbox_only=isinstance(setting, ReminderSetting) and setting.inbox_only,
        off=None if off is None else off[1],
        follows=follows[:FOLLOWING_MAX],
        follows_count=len(follows),
    )


def _follows(
    row: AutomationScheduler, setting: ReminderSetting | ReportSubscription | None, *, now: datetime, until: datetime
) -> tuple[datetime, ...]:
    """List when an occurrence is due again after it: a recurring report, or a threshold that is told of daily.

    What follows a yearly one waits by itself, and a deliberate re-run is followed by nothing.
    """
    if read_first_run(row.scheduler_key)[1] is not None:
        return ()
    if isinstance(setting, ReportSubscription) and row.trigger_type is TriggerType.RECURRING:
        return _reports(setting, after=max(row.due_at, now), until=until)
    if isinstance(setting, ReminderSetting) and row.firing_policy == FiringPolicy.ONCE_PER_DAY:
        return _days(row, setting, until=until)
    return ()


def _reports(subscription: ReportSubscription, *, after: datetime, until: datetime) -> tuple[datetime, ...]:
    recurrence, found, at = subscription.recurrence, list[datetime](), after
    while (timing := recurrence.after(at)) is not None and timing.scheduled_at <= until:
        at = timing.scheduled_at
        found.append(at)
    return tuple(found)


def _days(row: AutomationScheduler, setting: ReminderSetting, *, until: datetime) -> tuple[datetime, ...]:
    """List the days after one on which a threshold would be told of again, as long as it is met."""
    if row.local_date is None or row.tz_id is None:
        return ()
    found, day = list[datetime](), row.local_date + _DAY
    while (at := Timing.at_local(day, time_of_day(setting.send_time), row.tz_id).scheduled_at) <= until:
        found.append(at)
        day += _DAY
    return tuple(found)


def _place(text: str) -> tuple[Standing, tuple[datetime, int] | None]:
    """Read the place that a cursor names: how the last one stood, when it was due, and its id."""
    if not text:
        return _LOOKED_AT[0], None
    with page.taken_apart():
        standing, at, number = text.split(" ")
        due_at = datetime.fromisoformat(at)
        if due_at.tzinfo is None or Standing(standing) not in _LOOKED_AT:
            raise page.refused()
        return Standing(standing), (due_at, int(number))


def _type_in_unit(tenant_id: str, row: AutomationScheduler) -> tuple[str, str, UUID | None]:
    return tenant_id, row.notification_type, None if row.business_unit is None else UUID(row.business_unit)
