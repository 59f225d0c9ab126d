"""Direct: somebody asks for a notification now. Checks the request at the door and ensures its job.

Accepted means: job, scheduler row and idempotency guard are committed (I-24). Reads the published template to find an
unknown type, a missing variable or data that cannot be merged while the caller can still mend it; the template's
version is frozen in the job.
What comes in at the same time is looked up together and stored together (`dispatch.gathering`).
"""

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

import msgspec

from clarion.dispatch import DeliveryDispatcher
from clarion.dispatch.gathering import Gathering
from clarion.dispatch.job import entity_of
from clarion.dispatch.request import Direct, JobRequest
from clarion.domain import destination
from clarion.domain.definition import Definition
from clarion.domain.ensured import Ensured, Outcome
from clarion.domain.identity import Channel, Identity
from clarion.domain.misfit import UNREADABLE
from clarion.domain.notification import NotificationJob
from clarion.domain.part import UNSEEN
from clarion.domain.recipient import Target
from clarion.domain.support import differing_in_words
from clarion.errors import CallerError, Conflict, Forbidden, Gone, InvalidInput, Superseded
from clarion.ports.clock import Ids
from clarion.ports.renderer import END_QUARANTINE, Bundle, Renderer
from clarion.ports.templates import Published, Templates
from clarion.producers.merge_check import MergeChecks

OPERATION = "send"

HORIZON: Final = timedelta(days=366)
"""How far ahead a notification may be put off: a year, well within the 400 days for which its key is remembered."""

LANE_OR_TIME: Final = "lane or not_before_at"
"""What is left where neither recipients nor data differ: of these two only a hash is kept."""

ERASED: Final = "what was erased since: it was a one-time code"

NAMES_MAX: Final = 10
"""Differing fields that an error names; there may be thousands."""

_USER: Final = re.compile(rf"(?=.*\S)[^{UNSEEN}]+")
"""An id as a person could write it: not blank, and nothing that is not seen."""


class DirectSends:
    """The door for direct notifications."""

    def __init__(self, *, dispatcher: DeliveryDispatcher, templates: Templates, renderer: Renderer) -> None:
        """Work through this dispatcher with these templates."""
        self._dispatcher = dispatcher
        self._templates = templates
        self._merge_checks = MergeChecks(renderer)
        self._looks: Gathering[None, tuple[str, str], Published] = Gathering(self._look_up)

    async def look_up(self, tenant_id: str, event_type: str) -> Published:
        """Say what is published of a type, and what time it is by the store: the time of what is asked for now.

        One question to the store serves everybody who asks at the moment, of whichever tenant: it only reads.
        """
        return await self._looks.ask(None, (tenant_id, event_type))

    async def send(
        self, tenant_id: str, request: JobRequest, published: Published, *, may_raise: bool
    ) -> Ensured[NotificationJob]:
        """Accept a notification, once for its key; raise Conflict, Forbidden, Gone or InvalidInput where it cannot be.

        The request is as its caller asked for it, at the time at which its type was looked up; what the type decides is
        filled in here. `may_raise` says whether the caller may ask for a more urgent lane than the type's own.
        """
        _check_time(request)
        bundle = require_published(published, request.event_type)
        try:
            await self._check(tenant_id, request, published, bundle, may_raise=may_raise)
        except CallerError:
            # Under a key that was used before, the template of its first use counts and not the present one (F-03).
            key = request.origin.idempotency_key if isinstance(request.origin, Direct) else None
            if key is None or not await self._dispatcher.is_key_known(tenant_id, OPERATION, key):
                raise
        resolved = msgspec.structs.replace(
            request,
            resolved_template_version=published.version,
            resolved_lane=bundle.definition.lane,
            resolved_one_time_code=bundle.definition.one_time_code,
        )
        answer = await self._dispatcher.accept_notification_job(tenant_id, resolved)
        match answer.outcome:
            case Outcome.CONFLICT:
                raise await self._conflict(tenant_id, resolved, answer)
            case Outcome.GONE:
                raise Gone("the key was used before and its record has been removed", hint="use a new key")
            case Outcome.NEWER:
                raise Superseded("the key belongs to a record of a newer program", hint="ask a node that was upgraded")
            case Outcome.CREATED | Outcome.FOUND | Outcome.REACTIVATED | Outcome.SUPERSEDED:
                return answer

    async def check(self, tenant_id: str, request: JobRequest, published: Published, *, may_raise: bool) -> Bundle:
        """Refuse what `send` would refuse, whatever key it has; stores nothing."""
        _check_time(request)
        bundle = require_published(published, request.event_type)
        await self._check(tenant_id, request, published, bundle, may_raise=may_raise)
        return bundle

    async def _check(
        self, tenant_id: str, request: JobRequest, published: Published, bundle: Bundle, *, may_raise: bool
    ) -> None:
        """Refuse what does not go with the type as it is now."""
        if published.quarantined:
            raise quarantined(request.event_type, published.version)
        if not may_raise:
            _check_lane(request, bundle)
        _check_channels(request, bundle)
        await self._merge_checks.check(tenant_id, bundle, request.data, entity=entity_of(request))

    async def _look_up(self, _: None, wanted: Sequence[tuple[str, str]]) -> list[Published]:
        return await self._templates.latest(wanted)

    async def _conflict(self, tenant_id: str, request: JobRequest, answer: Ensured[NotificationJob]) -> Conflict:
        """Say in what a request differs from the first one under its key: the names of what differs, never a value."""
        if set(answer.differing) <= {"payload_hash"}:  # it can be told what of it differs
            names = await self._dispatcher.differing_payload(tenant_id, request, answer.record)
            names = names or [LANE_OR_TIME if answer.record.payload else ERASED]
        else:
            names = differing_in_words(answer.differing)
        said = ", ".join(names[:NAMES_MAX]) + (f" and {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX else "")
        return Conflict(
            f"the key was used before for something else (it differs in {said})",
            hint=f"use a new key for a new notification; support case {answer.case_id} keeps that this happened",
        )


def require_published(published: Published, event_type: str) -> Bundle:
    """Give the bundle of a type, or refuse a type that is not published."""
    if published.bundle is None:
        raise InvalidInput(
            f"there is no notification type {event_type!r}",
            field="type",
            hint="use a published type; `clarion types` lists them, `clarion publish FOLDER` adds one",
        )
    return published.bundle


def quarantined(event_type: str, version: int | None) -> InvalidInput:
    """Make the error for a version of a notification type that is not merged any more."""
    return InvalidInput(
        f"version {version} of the notification type {event_type!r} is quarantined, because merging it ended a process "
        "again and again",
        field="type",
        hint=END_QUARANTINE,
    )


def origin_of(key: str | None, ids: Ids) -> Direct:
    """Name a send by its caller's idempotency key, or by a guid minted here where the caller gave none."""
    return Direct(operation=OPERATION, idempotency_key=key, minted_guid=None if key else ids.new_guid())


def target_of(
    *,
    user: str | None = None,
    employee: UUID | None = None,
    group: UUID | None = None,
    address: str | None = None,
    channel: Channel | None = None,
    field: str = "to[0]",
) -> Target:
    """Read a recipient as a caller names it; a bare address says by its form whether it is mail or phone."""
    given = {"user": user, "employee": employee, "group": group, "address": address}
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        raise InvalidInput(
            f"a recipient is exactly one of user, employee, group and address, not {' and '.join(named) or 'none'}",
            field=field,
            hint='write, for example, {"address": "someone@example.com"}',
        )
    if channel is not None and address is None:
        raise InvalidInput(
            f"a channel goes with an address, not with a {named[0]}",
            field=f"{field}.channel",
            hint="leave it out; the notification type and the person's own addresses say where it goes",
        )
    if user is not None:
        if not _USER.fullmatch(user):
            raise InvalidInput(
                UNREADABLE,
                field=f"{field}.user",
                hint="write the user's id as you know it",
            )
        return Target(identity=Identity.user(user))
    if employee is not None:
        return Target(identity=Identity.employee(employee))
    if group is not None:
        return Target(identity=Identity.group(group))
    address = address or ""
    channel = channel or (Channel.EMAIL if "@" in address else Channel.SMS)
    try:
        return Target(identity=Identity.address(destination.normalise(channel, address)), channel=channel)
    except InvalidInput as error:
        raise type(error)(error.message, field=f"{field}.address", hint=error.hint) from None


def _check_time(request: JobRequest) -> None:
    """Refuse a time that is no instant, or further away than a key is remembered."""
    not_before_at = request.not_before_at
    if not_before_at is None:
        return
    if not_before_at.tzinfo is None:
        raise InvalidInput("it has no zone", field="not_before_at", hint="give it one, such as UTC")
    if not_before_at - request.source_at > HORIZON:
        raise InvalidInput(
            "it is too far ahead", field="not_before_at", hint=f"send within the next {HORIZON.days} days"
        )


def _check_lane(request: JobRequest, bundle: Bundle) -> None:
    """Refuse a lane that is more urgent than the type's own."""
    own = bundle.definition.lane
    if request.lane is not None and request.lane.is_above(own):
        raise Forbidden(
            f"the notification type {request.event_type!r} is sent in the {own} lane, and this key may not raise it to "
            f"{request.lane}",
            hint="leave lane out, name one that is no more urgent, or use a key with the role urgent-sender or admin",
        )


def check_asked_channels(definition: Definition, asked: Sequence[Channel]) -> None:
    """Refuse a channel that a notification type does not use, or one that is asked for twice."""
    for place, channel in enumerate(asked):
        if channel not in definition.channels:
            raise InvalidInput(
                f"the notification type {definition.key!r} is not sent by {channel}",
                field=f"channels[{place}]",
                hint=f"it is sent by {', '.join(definition.channels)}; name some of these, or leave channels out",
            )
        if channel in asked[:place]:
            raise InvalidInput(f"{channel} is named twice", field=f"channels[{place}]", hint="name each channel once")


def _check_channels(request: JobRequest, bundle: Bundle) -> None:
    """Refuse a channel, or an address on one, that the notification type does not use or that was not asked for."""
    channels, asked = bundle.definition.channels, request.channels
    check_asked_channels(bundle.definition, asked)
    for place, target in enumerate(request.to):
        if target.channel is not None and target.channel not in channels:
            raise InvalidInput(
                f"the notification type {bundle.definition.key!r} is not sent by {target.channel}",
                field=f"to[{place}]",
                hint=f"it is sent by {', '.join(channels)}; give such an address, or add the channel to the definition",
            )
        if target.channel is not None and asked and target.channel not in asked:
            raise InvalidInput(
                f"it is an address for {target.channel}, and channels names only {', '.join(asked)}",
                field=f"to[{place}]",
                hint=f"give an address for {' or '.join(asked)}, or add {target.channel} to channels",
            )
