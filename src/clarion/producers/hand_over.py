"""Handing over: what becomes of reminders that have fallen due.

Setting, source, recipients, channels and template are read again now, so that a pending occurrence stays as it is while
they change; what is still asked for becomes one notification job, under the key of its occurrence. Nothing is rendered
or sent here, and whoever makes occurrences never sees whom they are for.

Reads sources, settings, people and templates in sets; writes jobs and traces through dispatch. How each occurrence ends
is given back, and written by `due`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, Protocol, TypeVar
from uuid import UUID

import msgspec
import structlog

from clarion.dispatch import DeliveryDispatcher
from clarion.dispatch.occurrence import stored_occurrence
from clarion.dispatch.request import FromAutomation, JobRequest, Occurrence
from clarion.domain import derived_id
from clarion.domain.audience import Addressee, Audience, audience_of
from clarion.domain.automation import AutomationScheduler
from clarion.domain.decision import zone_in
from clarion.domain.due import DispatchResult, DueOutcome, Named
from clarion.domain.identity import Channel
from clarion.domain.notification import NotificationJob
from clarion.domain.occurrence import Reminder
from clarion.domain.person import LocalForm
from clarion.domain.plan import following
from clarion.domain.planning import EndReason
from clarion.domain.recipient import Target
from clarion.domain.reminder import ReminderSetting
from clarion.domain.revalidation import asked_for, differing_input
from clarion.domain.setting import EffectiveSetting, switched_off
from clarion.domain.source import SourceFacts
from clarion.domain.wanted import Situation
from clarion.errors import (
    BrokenInvariant,
    CallerError,
    ClarionError,
    Conflict,
    Gone,
    InvalidInput,
    OperatorError,
    Superseded,
    TooManyAtOnce,
)
from clarion.ports.automation import DueClaim, DueEnd
from clarion.ports.facts import FactStore
from clarion.ports.insights import InsightStore
from clarion.ports.reminding import Delivery
from clarion.ports.source import SourceStore
from clarion.ports.templates import Published
from clarion.producers.direct import DirectSends, require_published
from clarion.producers.ending import again, completed, deactivated, failed, held, not_told
from clarion.producers.sources import Sources
from clarion.producers.telling import data_of, reminder_of
from clarion.producers.tracing import Looks

FIRST_CLAIM: Final = 2
"""The version of a row that nobody has claimed or changed before."""

log = structlog.get_logger("clarion.producers")


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """A claimed reminder: what it is an occurrence of, and its setting as it is now."""

    claim: DueClaim
    occurrence: Occurrence
    what: Reminder
    setting: ReminderSetting | None


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A reminder that is still asked for, and for whom: as its provider or its setting says, else its type's settings.

    `next` is the occurrence that follows it in a chain.
    """

    claim: DueClaim
    occurrence: Occurrence
    what: Reminder
    setting: ReminderSetting
    facts: SourceFacts
    next: AutomationScheduler | None = None
    to: tuple[Target, ...] | None = None
    delivery: Delivery = Delivery()

    @property
    def addressees(self) -> tuple[Addressee, ...] | None:
        """Whom it tells without naming them; None where that is left to the settings of its type."""
        return self.setting.recipients if self.to is None else ()

    @property
    def named_by(self) -> Named:
        """Who said for whom it is."""
        if self.to is not None:
            return Named.PROVIDER
        return Named.TYPE if self.setting.recipients is None else Named.SETTING


class _HasClaim(Protocol):
    @property
    def claim(self) -> DueClaim: ...

    @property
    def setting(self) -> ReminderSetting | None: ...


S = TypeVar("S", bound=_HasClaim)
T = TypeVar("T", bound=msgspec.Struct)


class Reminders:
    """Hands reminders over."""

    def __init__(
        self,
        *,
        settings: SourceStore,
        facts: FactStore,
        jobs: InsightStore,
        sources: Sources,
        sends: DirectSends,
        dispatcher: DeliveryDispatcher,
    ) -> None:
        """Read these settings, facts and sources, and send by this door."""
        self._settings = settings
        self._facts = facts
        self._jobs = jobs
        self._sources = sources
        self._sends = sends
        self._dispatcher = dispatcher

    async def hand_over(
        self, tenant_id: str, source_type: str, claims: Sequence[DueClaim], looks: Looks
    ) -> list[DueEnd]:
        """Hand claimed reminders about sources of one type over, each by itself; say how each of them ends.

        What was looked at for each is noted, for its trace.
        """
        now = await self._facts.now()
        ends: list[DueEnd] = []
        known = await self._known(tenant_id, source_type, claims, ends, looks, now=now)
        await self._dispatcher.ensure_automation_job(tenant_id, [one.occurrence for one in known])
        known = await self._each(known, self._handed_over_before, ends, looks, now=now)
        try:
            loaded = await self._sources.load(tenant_id, source_type, {one.what.source for one in known})
        except OperatorError as error:
            return [*ends, *(self._ended_by(one, error, looks, now=now) for one in known)]
        forms = await self._facts.find_local_forms(tenant_id, _units(loaded.values()))
        wanted: list[Wanted] = []
        for one in known:
            facts = loaded.get(one.what.source)
            looks.note(
                one.claim, source_found=facts is not None, source_version=None if facts is None else facts.version
            )
            found = _looked_at(one, _situation(one, facts, forms, now=now))
            if isinstance(found, Wanted):
                wanted.append(found)
            else:
                ends.append(found)
        wanted = await self._each(wanted, self._asked, ends, looks, now=now)
        wanted = await self._for_somebody(tenant_id, wanted, ends, now=now)
        await self._each(wanted, lambda one: self._send(one, now=now), ends, looks, now=now)
        return ends

    async def _known(
        self,
        tenant_id: str,
        source_type: str,
        claims: Sequence[DueClaim],
        ends: list[DueEnd],
        looks: Looks,
        *,
        now: datetime,
    ) -> list[Known]:
        """Read what is claimed; a row that cannot be read ends by itself."""
        records = await self._settings.find_reminders(tenant_id, source_type)
        settings = {str(record.setting.guid): record for record in records}
        known: list[Known] = []
        for claim in claims:
            try:
                occurrence = stored_occurrence(claim.row)
            except (ClarionError, ValueError) as error:
                ends.append(failed(claim, f"it cannot be read: {error}", now=now))
                continue
            if isinstance(occurrence.what, Reminder):
                record = settings.get(occurrence.what.setting)
                looks.note(claim, setting_version=None if record is None else record.version)
                setting = None if record is None else record.setting
                known.append(Known(claim=claim, occurrence=occurrence, what=occurrence.what, setting=setting))
        return known

    async def _handed_over_before(self, one: Known) -> Known | DueEnd:
        """Complete a reminder that a worker handed over before it was lost, whatever has changed since."""
        if one.claim.row.version == FIRST_CLAIM:
            return one
        guid = derived_id.row_guid(tenant_id=one.claim.tenant_id, row_key=one.claim.row.scheduler_key)
        job = await self._jobs.find_job(one.claim.tenant_id, guid)
        return one if job is None else completed(one.claim, _result(job), now=await self._facts.now())

    async def _asked(self, one: Wanted) -> Wanted:
        """Ask its provider for whom it is and how it goes out."""
        tenant_id = one.claim.tenant_id
        to = await self._sources.recipients(tenant_id, one.facts, one.setting)
        delivery = await self._sources.delivery(tenant_id, one.facts, one.setting)
        return msgspec.structs.replace(one, to=to, delivery=delivery)

    async def _for_somebody(
        self, tenant_id: str, wanted: Sequence[Wanted], ends: list[DueEnd], *, now: datetime
    ) -> list[Wanted]:
        """Complete those whose type is switched off or that are for nobody, and return the others."""
        asked = {one.claim.row.scheduler_key: _type_in_unit(one) for one in wanted}
        settings = await self._facts.find_settings(set(asked.values())) if wanted else {}
        audiences = {
            one.claim.row.scheduler_key: _audience(one, settings[asked[one.claim.row.scheduler_key]])
            for one in wanted
            if one.to is None
        }
        possible = {key: audience for key, audience in audiences.items() if audience}
        found = await self._facts.find_audiences(tenant_id, list(possible.values()), limit=1) if possible else []
        somebody = {key for key, people in zip(possible, found, strict=True) if people}
        going: list[Wanted] = []
        for one in wanted:
            key = one.claim.row.scheduler_key
            if switched_off(one.what.notification_type, settings[asked[key]]) is not None:
                ends.append(not_told(one.claim, EndReason.NOTIFICATION_TYPE_OFF, now=now, following=one.next))
            elif not one.to and key not in somebody:
                ends.append(not_told(one.claim, EndReason.NO_RECIPIENTS, now=now, following=one.next))
            else:
                going.append(one)
        return going

    async def _send(self, one: Wanted, *, now: datetime) -> DueEnd:
        """Make the job of a reminder, once for its occurrence."""
        tenant_id = one.claim.tenant_id
        published = await self._sends.look_up(tenant_id, one.what.notification_type)
        answer = await self._sends.send(tenant_id, _request(one, published), published, may_raise=True)
        result = msgspec.structs.replace(
            _result(answer.record), inbox_only=one.setting.inbox_only, named=len(one.to or ()), named_by=one.named_by
        )
        return completed(one.claim, result, now=now, following=one.next)

    async def _each(
        self,
        items: Sequence[S],
        ask: Callable[[S], Awaitable[T | DueEnd]],
        ends: list[DueEnd],
        looks: Looks,
        *,
        now: datetime,
    ) -> list[T]:
        """Ask about all of them at once; what raises ends by itself, and the others go on."""
        going: list[T] = []
        for item, found in zip(items, await asyncio.gather(*map(ask, items), return_exceptions=True), strict=True):
            if isinstance(found, BaseException):
                ends.append(self._ended_by(item, found, looks, now=now))
            elif isinstance(found, DueEnd):
                ends.append(found)
            else:
                going.append(found)
        return going

    def _ended_by(self, item: _HasClaim, error: BaseException, looks: Looks, *, now: datetime) -> DueEnd:
        """Say what becomes of a reminder at which something was raised."""
        looks.note_error(item.claim, error)
        is_long = self._sources.is_long_runner(item.claim.row.source_type)
        is_long_runner = is_long and item.setting is not None and item.setting.long_runner
        following = item.next if isinstance(item, Wanted) else None
        return ended_by(item.claim, error, now=now, is_long_runner=is_long_runner, following=following)


def ended_by(
    claim: DueClaim,
    error: BaseException,
    *,
    now: datetime,
    is_long_runner: bool = False,
    following: AutomationScheduler | None = None,
) -> DueEnd:
    """Say what becomes of an occurrence at which something was raised: what may pass is tried again.

    What somebody has to mend first, such as a type that is not published, waits for that on hold. Its chain goes on
    behind it when it is over, so at once where it fails for good.
    """
    match error:
        case OperatorError() | Superseded() | TooManyAtOnce():
            return again(claim, str(error), now=now, is_long_runner=is_long_runner)
        case Conflict() | Gone():
            return failed(claim, str(error), now=now, following=following)
        case InvalidInput(field="data"):  # its hint is for whoever sends by hand
            return held(claim, f"{error.message}: add it to the source, and release this", now=now)
        case CallerError():
            return held(claim, str(error), now=now)
        case Exception():
            log.error("handing over failed by a defect", scheduler_key=claim.row.scheduler_key, exc_info=error)
            return again(claim, f"a defect of the program ({type(error).__name__}); its log has more", now=now)
        case _:
            raise error


def _units(facts: Iterable[SourceFacts]) -> set[UUID]:
    return {one.business_unit for one in facts if one.business_unit is not None}


def _situation(
    one: Known, facts: SourceFacts | None, forms: Mapping[UUID | None, LocalForm], *, now: datetime
) -> Situation:
    """Say by what a reminder is judged: its source as it is now, in the zone of its unit."""
    return Situation(
        source_type=one.what.source_type,
        source=one.what.source,
        facts=facts,
        settings=[] if one.setting is None else [one.setting],
        tz_id=zone_in(forms, None if facts is None else facts.business_unit),
        now=now,
    )


def _looked_at(one: Known, situation: Situation) -> Wanted | DueEnd:
    """Decide whether a reminder is still asked for, as what it was planned for, and by what it is followed.

    A deliberate re-run is followed by nothing.
    """
    row, now = one.claim.row, situation.now
    asked = asked_for(one.what, one.setting, situation.facts)
    if isinstance(asked, EndReason):
        return deactivated(one.claim, asked, now=now)
    if one.setting is None or situation.facts is None:
        raise BrokenInvariant("an occurrence is asked for by no setting, or of no source")
    differing = differing_input(row, asked)
    if differing is None:
        return again(one.claim, "its row was written by a newer program, to which it is left", now=now)
    if differing:
        why = f"it was planned for another {' and another '.join(differing).replace('_', ' ')}"
        return held(one.claim, why, now=now)
    is_rerun = one.occurrence.rerun is not None
    return Wanted(
        claim=one.claim,
        occurrence=one.occurrence,
        what=asked,
        setting=one.setting,
        facts=situation.facts,
        next=None if is_rerun else following(situation, one.setting, row, correlation_id=row.correlation_id),
    )


def _type_in_unit(one: Wanted) -> tuple[str, str, UUID | None]:
    return one.claim.tenant_id, one.what.notification_type, one.what.business_unit


def _audience(one: Wanted, setting: EffectiveSetting) -> Audience:
    """Say whom a reminder that names nobody is for."""
    addressees = setting.recipients if one.addressees is None else one.addressees
    entity = (one.what.source_type, one.what.primary_entity)
    return audience_of(addressees, unit=one.what.business_unit, entity=entity)


def _request(one: Wanted, published: Published) -> JobRequest:
    """Ask for the notification of a reminder: with what its source says, what it is about, and what a plugin adds."""
    definition = require_published(published, one.what.notification_type).definition
    row = one.claim.row
    return JobRequest(
        origin=FromAutomation(occurrence=one.occurrence),
        event_type=one.what.notification_type,
        source_at=published.at,
        entity=(one.what.source_type, one.what.primary_entity),
        to=one.to or (),
        addressees=one.addressees,
        data={
            **data_of(one.facts, definition),
            "reminder": reminder_of(row, one.setting, one.facts),
            **one.delivery.data,
        },
        channels=(Channel.INBOX,) if one.setting.inbox_only else one.delivery.channels,
        business_unit=one.what.business_unit,
        trace=one.occurrence.trace,
    )


def _result(job: NotificationJob) -> DispatchResult:
    """Give the coordinates of a job that was made."""
    return DispatchResult(
        outcome=DueOutcome.HANDED_OVER,
        job=job.guid,
        partition_key=job.partition_key,
        row_key=job.row_key,
        notification_type=job.event_type,
        template_version=job.template_version,
    )
