"""Notifications: sending them, finding out how they stand and what happened, canceling and retrying them.

A notification is named by its job's id or by that of one of its messages, everywhere.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from uuid import UUID

import msgspec

from clarion.bootstrap import Platform
from clarion.catalog.settings import require_unit
from clarion.client import wire, wire_explain, wire_support
from clarion.client.wire_rule import Totals
from clarion.dispatch.request import Direct, JobRequest, Trace
from clarion.domain.audience import audience_of
from clarion.domain.ensured import Ensured, Outcome
from clarion.domain.hint import Hints
from clarion.domain.identity import Channel, Identity, IdentityDomain
from clarion.domain.key import event_job_pk, manual_job_pk
from clarion.domain.locale import normal
from clarion.domain.notification import NotificationJob
from clarion.domain.recipient import Target
from clarion.domain.result import overall
from clarion.domain.setting import EffectiveSetting, channels_under
from clarion.domain.skip import rule_of
from clarion.domain.timeline import JobTimeline, is_canceled, timeline_lines
from clarion.errors import Conflict, InvalidInput
from clarion.operations import page
from clarion.operations.groups import is_group
from clarion.operations.history import personal_history
from clarion.operations.latest import latest, lines_of
from clarion.operations.part import Part, find_part, part_of
from clarion.operations.shape import as_wire
from clarion.operations.status import Status
from clarion.operations.story import before_the_job
from clarion.operations.wake import Wake
from clarion.operations.whom import Whom, find_whom
from clarion.ports.group import GroupStore
from clarion.ports.templates import Published
from clarion.producers.direct import OPERATION, origin_of, target_of


class Notifications:
    """What can be done with notifications."""

    def __init__(self, platform: Platform, *, wake: Wake, status: Status) -> None:
        """Work on this platform, and wake workers; `status` knows which channels are served."""
        self._store = platform.store
        self._sends = platform.sends
        self._dispatcher = platform.dispatcher
        self._keyring = platform.keyring
        self._sets = platform.recipient_sets
        self._ids = platform.ids
        self._public_url = platform.settings.public_url
        self._wake = wake
        self._status = status

    async def send(
        self,
        tenant_id: str,
        asked: wire.SendRequest,
        *,
        key: str | None,
        actor: str,
        trace: Trace,
        may_raise: bool = False,
    ) -> wire.SendAnswer:
        """Accept a notification, once for its key: it is stored when this returns (I-24), and the workers send it.

        `may_raise` says whether it may go in a more urgent lane than the type's own.
        """
        published = await self._sends.look_up(tenant_id, asked.type)
        origin = origin_of(key, self._ids)
        request = read_request(asked, origin=origin, source_at=published.at, actor=actor, trace=trace)
        await require_unit(self._store, tenant_id, request.business_unit)
        answer = answer_of(await self._sends.send(tenant_id, request, published, may_raise=may_raise))
        if not answer.repeated:
            self._wake("stages")
        setting = None if request.to else await self._setting(tenant_id, request)
        channels = tuple(dict.fromkeys(_channels(request, published, setting)))
        unnamed = () if setting is None else about_nobody(request, setting)
        missing = await about_groups(self._store, tenant_id, request)
        warnings = (*unnamed, *missing, *await self._status.warnings(channels), *self._without_url(channels, published))
        return msgspec.structs.replace(answer, warnings=warnings) if warnings else answer

    async def is_known(self, tenant_id: str, key: str | None) -> bool:
        """Tell whether something was sent under a caller's key before."""
        return key is not None and await self._dispatcher.is_key_known(tenant_id, OPERATION, key)

    async def find(self, tenant_id: str, named: UUID, *, whole: bool) -> wire.Notification | None:
        """Say how a notification stands, with each of its messages; `whole` shows addresses unmasked.

        Of a large set it has some recipients with their messages; `recipients` reads all of them.
        """
        keys = await self._keyring.get(tenant_id)
        part = await find_part(self._store, self._sets, keys, named)
        if part is None:
            return None
        return _notification(part, await find_whom(self._store, keys, part, whole=whole))

    async def find_timeline(self, tenant_id: str, named: UUID, *, whole: bool) -> wire.Timeline | None:
        """Tell what happened in order: to the whole notification, or to the message that is named.

        `whole` shows addresses unmasked.
        """
        keys = await self._keyring.get(tenant_id)
        part = await find_part(self._store, self._sets, keys, named)
        if part is None:
            return None
        whom, message_id = await find_whom(self._store, keys, part, whole=whole), part.message_id
        before = await before_the_job(self._store, tenant_id, part.timeline.job.automation_key)
        lines = (*before, *timeline_lines(part.timeline, message_id=message_id, skips=whom.skips))
        return wire.Timeline(
            job_id=part.timeline.job.guid,
            message_id=message_id,
            type=part.timeline.job.event_type,
            lines=tuple(as_wire(line, wire.TimelineLine, recipient=whom.names.get(line.message_id)) for line in lines),
            recipients=whom.recipients,
            messages=_messages(part.timeline, whom, message_id),
            totals=_totals(part) if message_id is None else None,
        )

    async def recipients(
        self, tenant_id: str, job_id: UUID, query: wire.PageQuery, *, whole: bool
    ) -> wire_explain.RecipientPage | None:
        """List the recipients of a notification, with what was made for each and what was not, and by which rule."""
        keys, name = await self._keyring.get(tenant_id), f"recipients {job_id}"
        job = await self._store.find_job(tenant_id, job_id)
        if job is None:
            return None
        after = page.read(name, query.cursor, start="")
        found = await self._sets.part(tenant_id, job, after=after, limit=query.limit + 1)
        meant, following = page.cut(name, found, query.limit, lambda one: one.recipient_id_hash)
        part = await part_of(self._store, keys, job, meant)
        if part is None:
            return None
        whom = await find_whom(self._store, keys, part, whole=whole)
        messages = _messages(part.timeline, whom)
        return wire_explain.RecipientPage(
            items=tuple(
                as_wire(
                    line,
                    wire_explain.RecipientOutcome,
                    messages=tuple(one for one in messages if one.message_id == line.message_id),
                    in_inbox=any(row.message_id == line.message_id for _, row in part.timeline.inbox),
                )
                for line in whom.recipients
            ),
            totals=_totals(part),
            next_cursor=following,
        )

    async def cancel(self, tenant_id: str, named: UUID, *, actor: str) -> wire.Canceled | None:
        """Cancel the whole notification: no call for it begins after this returns; what was sent stays sent."""
        job_id = await self._job_of(tenant_id, named)
        if await self._store.cancel_job(tenant_id, job_id, actor=actor):
            return wire.Canceled(job_id=job_id, repeated=False)
        timeline = await self._store.find_job_timeline(tenant_id, job_id)
        if timeline is None:
            return None
        if not is_canceled(timeline):
            raise Conflict("nothing of it is left to cancel", hint="its timeline tells how it ended")
        return wire.Canceled(job_id=job_id, repeated=True)

    async def retry(
        self, tenant_id: str, named: UUID, *, actor: str, reason: str
    ) -> wire_support.RetriedNotification | None:
        """Try a notification that failed again, where it failed."""
        job_id = await self._job_of(tenant_id, named)
        if not await self._store.retry_job(tenant_id, job_id, actor=actor, reason=reason):
            if await self._store.find_job(tenant_id, job_id) is None:
                return None
            raise Conflict("the notification has not failed", hint="its timeline tells how it stands")
        self._wake("stages")
        return wire_support.RetriedNotification(job_id=job_id)

    async def history(
        self, tenant_id: str, about: UUID | wire.Recipient, query: wire.PageQuery, *, whole: bool
    ) -> wire.NotificationPage:
        """List every notification about an entity, or to a recipient; the newest first.

        What a person got is found by whichever entity it was filed; to an address or a group, only where it names none.
        """
        if isinstance(about, wire.Recipient) and about.address is None and about.group is None:
            keys = await self._keyring.get(tenant_id)
            return await personal_history(self._store, self._sets, keys, _named(about), query, whole=whole)
        place = event_job_pk(entity_guid=about) if isinstance(about, UUID) else await self._place(tenant_id, about)
        name = f"history {place}"
        found = await self._store.list_jobs(
            tenant_id, place, after=page.read(name, query.cursor, start=""), limit=query.limit + 1
        )
        jobs, following = page.cut(name, found, query.limit, lambda job: job.row_key)
        items = await lines_of(self._store, await self._keyring.get(tenant_id), jobs, whole=whole)
        return wire.NotificationPage(items=items, next_cursor=following)

    async def list(self, tenant_id: str, query: wire.NotificationQuery, *, whole: bool) -> wire.NotificationPage:
        """List a tenant's notifications, the newest first, all of them or those that a filter lets through."""
        return await latest(self._store, await self._keyring.get(tenant_id), query, whole=whole)

    async def _setting(self, tenant_id: str, request: JobRequest) -> EffectiveSetting:
        """Ask what holds for a send at present; what holds when it is sent may be something else."""
        asked = (tenant_id, request.event_type, request.business_unit)
        return (await self._store.find_settings([asked]))[asked]

    def _without_url(self, channels: Iterable[Channel], published: Published) -> Iterator[str]:
        """Say on which of these channels nothing is merged until the URL of this installation is set."""
        for channel in channels:
            if published.bundle is not None and published.bundle.lacks_url(channel, self._public_url):
                yield (
                    f"on {channel} it has links to this installation, and its URL is not set: what goes there waits "
                    "until CLARION_PUBLIC_URL is set and the workers have started again"
                )

    async def _job_of(self, tenant_id: str, named: UUID) -> UUID:
        """Return the job of a message; an id that is no message's is taken for a job's."""
        return await self._store.find_job_of_message(tenant_id, named) or named

    async def _place(self, tenant_id: str, recipient: wire.Recipient) -> str:
        """Find where a recipient's history opens; an address is found by its hash."""
        identity = _named(recipient)
        hashed = (await self._keyring.get(tenant_id)).hash_of(identity)
        return manual_job_pk(entity_guid=None, recipients=[identity], recipient_id_hash=hashed, job_guid=UUID(int=0))


def _named(recipient: wire.Recipient) -> Identity:
    """Read whose history is asked for."""
    try:
        return _target(recipient, field="entity").identity
    except InvalidInput as error:
        raise type(error)(error.message, field="entity", hint=error.hint) from None


def read_request(
    asked: wire.SendRequest, *, origin: Direct, source_at: datetime, actor: str, trace: Trace
) -> JobRequest:
    """Read what a caller asks for; its job's time is when it was asked, by the store's clock."""
    return JobRequest(
        origin=origin,
        event_type=asked.type,
        source_at=source_at,
        entity=None if asked.entity is None else (asked.entity.type, asked.entity.guid),
        entity_data={} if asked.entity is None else asked.entity.data,
        to=tuple(_target(one, field=f"to[{place}]") for place, one in enumerate(asked.to)),
        data=asked.data,
        lane=asked.lane,
        not_before_at=asked.not_before_at,
        ttl_seconds=asked.ttl_seconds,
        locale=None if asked.locale is None else _locale(asked.locale),
        channels=asked.channels,
        business_unit=asked.business_unit,
        hints=None if asked.hints == Hints() else asked.hints,  # none is what an empty object says too
        actor=actor,
        trace=trace,
    )


def answer_of(accepted: Ensured[NotificationJob]) -> wire.SendAnswer:
    """Answer a send with the job that was made, or that was found under its key."""
    job = accepted.record
    return wire.SendAnswer(
        job_id=job.guid,
        message_id=job.message_id,
        accepted_at=job.source_at,
        repeated=accepted.outcome is not Outcome.CREATED,
    )


def about_nobody(request: JobRequest, setting: EffectiveSetting) -> tuple[str, ...]:
    """Say it where a send names nobody and, as things stand, neither do the settings."""
    if request.to or audience_of(setting.recipients, unit=request.business_unit, entity=request.entity):
        return ()
    if not setting.recipients:
        why = f"no setting of {request.event_type} says who gets it"
    else:
        lacks = [
            name for name, value in (("entity", request.entity), ("business unit", request.business_unit)) if not value
        ]
        named = ", ".join(map(str, setting.recipients))
        why = f"its setting names {named}, who can be nobody in a send without {' and '.join(lacks)}"
    return (f"it names nobody, and {why}: as things stand it is skipped",)


async def about_groups(groups: GroupStore, tenant_id: str, request: JobRequest) -> tuple[str, ...]:
    """Say it of each group that a send names and that there is not; it may be put before the message is made."""
    named = [UUID(one.identity.id) for one in request.to if one.identity.domain is IdentityDomain.GROUP]
    missing = [one for one in dict.fromkeys(named) if not await is_group(groups, tenant_id, one)]
    return tuple(f"the tenant has no group {one}: as things stand nobody gets it there" for one in missing)


def _channels(request: JobRequest, published: Published, setting: EffectiveSetting | None) -> Iterator[Channel]:
    """Name the channels that a notification may take: an address's own, for people those asked for or its type's."""
    if setting is not None and published.bundle is not None:
        yield from channels_under(setting, of_type=published.bundle.definition.channels, asked=request.channels)[0]
    for target in request.to:
        if target.channel is not None:
            yield target.channel
        elif published.bundle is not None:
            yield from request.channels or published.bundle.definition.channels


def _locale(text: str) -> str:
    """Give a locale in its one spelling, so that a repeat that spells it otherwise is still the same request."""
    spelled = normal(text)
    if spelled is None:
        raise InvalidInput(
            f"{text[:40]!r} is no locale",
            field="locale",
            hint="write a language, and a region if it matters, such as de or de-AT",
        )
    return spelled


def _target(one: wire.Recipient, *, field: str) -> Target:
    return target_of(**msgspec.structs.asdict(one), field=field)


def _notification(part: Part, whom: Whom) -> wire.Notification:
    """Give what is stored as a caller may see it: nothing that is hashed or a key."""
    timeline, job, scheduler = part.timeline, part.timeline.job, part.timeline.scheduler
    about = None
    if job.source_type is not None and job.source is not None:
        about = wire.Entity(type=job.source_type, guid=UUID(job.source))
    return as_wire(
        job,
        wire.Notification,
        job_id=job.guid,
        type=job.event_type,
        entity=about,
        accepted_at=job.source_at,
        result=overall(part.standing),
        totals=_totals(part),
        rule=None if scheduler is None else scheduler.skipped_by,
        recipients=whom.recipients,
        messages=_messages(timeline, whom),
        inbox=tuple(
            as_wire(row, wire.InboxLine, recipient=whom.names.get(row.message_id), created_at=at)
            for at, row in timeline.inbox
        ),
        **{
            name: None if scheduler is None else getattr(scheduler, name)
            for name in ("lane", "stage", "status", "reason", "due_at")
        },
    )


def _totals(part: Part) -> Totals:
    """Count what a notification came to for all of its recipients."""
    return Totals(
        recipients=part.totals.recipients,
        shown=len(part.recipients or ()),
        messages=sum(part.standing.outgoing.values()),
        inbox=part.standing.inbox,
        not_sent=part.not_sent,
    )


def _messages(timeline: JobTimeline, whom: Whom, message_id: UUID | None = None) -> tuple[wire.Message, ...]:
    """Say how the messages stand, all of them or the one that is named."""
    return tuple(
        as_wire(
            row,
            wire.Message,
            recipient=whom.names.get(row.message_id),
            destination=whom.destinations.get(row.address_id),
            rule=rule_of(row.status, row.reason_class),
        )
        for row in timeline.outgoing
        if message_id in (None, row.message_id)
    )
