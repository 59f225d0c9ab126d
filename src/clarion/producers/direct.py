"""Direct: somebody asks for a notification now. Checks the request at the door and ensures its job.

Accepted means: job, scheduler row and idempotency guard are committed (I-24). Reads the published template to find an
unknown type or a missing variable while the caller can still mend it; the template's version is frozen in the job.
"""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Final
from uuid import UUID

import msgspec

from clarion.dispatch import DeliveryDispatcher
from clarion.dispatch.request import Direct, Entity, JobRequest, Trace
from clarion.domain import derived_id, destination, key
from clarion.domain.ensured import Ensured, Outcome
from clarion.domain.identity import Channel, Identity, Lane
from clarion.domain.notification import NotificationJob
from clarion.domain.recipient import Target
from clarion.domain.seal import TenantKeys
from clarion.errors import Conflict, Gone, InvalidInput, Superseded
from clarion.ports.clock import Clock, Ids
from clarion.ports.renderer import Bundle, Renderer
from clarion.ports.templates import Templates
from clarion.sealing.keyring import Keyring

OPERATION = "send"

HORIZON: Final = timedelta(days=366)
"""How far ahead a notification may be put off: a year, well within the 400 days for which its key is remembered."""

CALLED: Final = {
    "event_type": "type",
    "partition_key": "entity or recipient",
    "payload_hash": "recipients, data, lane or not_before_at",
    "source": "entity",
    "source_type": "entity",
}
"""What a caller calls the fields in which two requests under one key can differ."""

_USER: Final = re.compile(r"(?=.*\S)[^\x00-\x1f\x7f]+")
"""An id as a person could write it: not blank, no control characters."""


class Recipient(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A recipient as a caller writes it: exactly one of the four."""

    user: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | None = None
    employee: UUID | None = None
    group: UUID | None = None
    address: Annotated[str, msgspec.Meta(min_length=1, max_length=4096)] | None = None
    channel: Channel | None = None


class SendCommand(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller asks for; `key` is its idempotency key."""

    type: str
    to: tuple[Recipient, ...]
    data: Mapping[str, object] = {}
    entity: Entity | None = None
    key: str | None = None
    lane: Lane | None = None
    not_before_at: datetime | None = None
    actor: str
    trace: Trace


class SendAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller gets: the job's id and, for a single recipient that is no group, the message's."""

    job_id: UUID
    message_id: UUID | None
    accepted_at: datetime
    repeated: bool


class DirectSends:
    """The door for direct notifications."""

    def __init__(
        self,
        *,
        dispatcher: DeliveryDispatcher,
        keyring: Keyring,
        templates: Templates,
        renderer: Renderer,
        clock: Clock,
        ids: Ids,
    ) -> None:
        """Work through this dispatcher with these templates."""
        self._dispatcher = dispatcher
        self._keyring = keyring
        self._templates = templates
        self._renderer = renderer
        self._clock = clock
        self._ids = ids

    async def send(self, tenant_id: str, command: SendCommand) -> SendAnswer:
        """Accept a notification, once for its key; raise Conflict, Gone or InvalidInput where it cannot be."""
        now = self._clock.now()
        _check_time(command.not_before_at, now=now)
        keys = await self._keyring.get(tenant_id)
        version, bundle = await self._published(tenant_id, command.type)
        to = tuple(target_of(one, place) for place, one in enumerate(command.to))
        try:
            self._check_template(bundle, to, command)
        except InvalidInput:
            # Under a key that is known the template of its first use counts, not the present one (F-03).
            if command.key is None or not await self._dispatcher.is_key_known(tenant_id, OPERATION, command.key):
                raise
        not_before_at = command.not_before_at
        request = JobRequest(
            origin=Direct(
                operation=OPERATION,
                idempotency_key=command.key,
                minted_guid=None if command.key else self._ids.new_guid(),
            ),
            event_type=command.type,
            source_at=now,
            entity=command.entity,
            to=to,
            data=command.data,
            resolved_template_version=version,
            lane=command.lane or bundle.definition.lane,
            asked_lane=command.lane,
            due_at=not_before_at if not_before_at is not None and not_before_at > now else None,
            asked_due_at=not_before_at,
            actor=command.actor,
            trace=command.trace,
        )
        (answer,) = await self._dispatcher.ensure_notification_job(tenant_id, [request])
        return _send_answer(keys, request, answer)

    def _check_template(self, bundle: Bundle, to: tuple[Target, ...], command: SendCommand) -> None:
        """Refuse data that lacks a variable of the templates, and an address on a channel that they do not have."""
        self._renderer.check(command.data)
        missing = self._renderer.missing(bundle, command.data)
        if missing:
            raise InvalidInput(
                f"the notification type {command.type!r} needs {', '.join(missing)}",
                field="data",
                hint="add what is missing to data and send again",
            )
        _check_channels(to, bundle)

    async def _published(self, tenant_id: str, event_type: str) -> tuple[int, Bundle]:
        """Return the latest version of a notification type."""
        found = await self._templates.load([(tenant_id, event_type, None)])
        if not found:
            raise InvalidInput(
                f"there is no notification type {event_type!r}",
                field="type",
                hint="use a published type; `clarion types` lists them, `clarion publish FOLDER` adds one",
            )
        return next(iter(found.values()))


def target_of(one: Recipient, place: int = 0) -> Target:
    """Read a recipient as it was written; a bare address says by its form whether it is mail or phone."""
    field = f"to[{place}]"
    named = [name for name in ("user", "employee", "group", "address") if getattr(one, name) is not None]
    if len(named) != 1:
        raise InvalidInput(
            f"a recipient is exactly one of user, employee, group and address, not {' and '.join(named) or 'none'}",
            field=field,
            hint='write, for example, {"address": "someone@example.com"}',
        )
    if one.channel is not None and one.address is None:
        raise InvalidInput(
            f"a channel goes with an address, not with a {named[0]}",
            field=f"{field}.channel",
            hint="leave it out: the notification type and the person's own addresses say where it goes",
        )
    if one.user is not None:
        if not _USER.fullmatch(one.user):
            raise InvalidInput(
                "it is blank, or holds characters that it cannot have",
                field=f"{field}.user",
                hint="write the user's id as you know it",
            )
        return Target(identity=Identity.user(one.user))
    if one.employee is not None:
        return Target(identity=Identity.employee(one.employee))
    if one.group is not None:
        return Target(identity=Identity.group(one.group))
    address = one.address or ""
    channel = one.channel or (Channel.EMAIL if "@" in address else Channel.SMS)
    try:
        return Target(identity=Identity.address(destination.normalise(channel, address)), channel=channel)
    except InvalidInput as error:
        raise type(error)(error.message, field=f"{field}.address", hint=error.hint) from None


def _check_time(not_before_at: datetime | None, *, now: datetime) -> None:
    """Refuse a time that is no instant, or further away than a key is remembered."""
    if not_before_at is None:
        return
    if not_before_at.tzinfo is None:
        raise InvalidInput("it has no zone", field="not_before_at", hint="give it one, such as UTC")
    if not_before_at - now > HORIZON:
        raise InvalidInput(
            "it is too far ahead", field="not_before_at", hint=f"send within the next {HORIZON.days} days"
        )


def _check_channels(to: tuple[Target, ...], bundle: Bundle) -> None:
    """Refuse an address on a channel that the notification type does not use."""
    channels = bundle.definition.channels
    for place, target in enumerate(to):
        if target.channel is not None and target.channel not in channels:
            raise InvalidInput(
                f"the notification type {bundle.definition.key!r} is not sent by {target.channel}",
                field=f"to[{place}]",
                hint=f"it is sent by {', '.join(channels)}: give such an address, or add the channel to the definition",
            )


def _send_answer(keys: TenantKeys, request: JobRequest, answer: Ensured[NotificationJob]) -> SendAnswer:
    """Turn the answer of an ensure into what a caller gets."""
    job = answer.record
    match answer.outcome:
        case Outcome.CONFLICT:
            # The hash covers what has a name too, so it says something only where it differs alone.
            fields = [name for name in answer.differing if name != "payload_hash"] or answer.differing
            differing = ", ".join(dict.fromkeys(CALLED.get(name, name) for name in fields))
            raise Conflict(
                f"the key was used before for something else (it differs in {differing})",
                hint=f"use a new key for a new notification; support case {answer.case_id} has the details",
            )
        case Outcome.GONE:
            raise Gone("the key was used before and its record has been removed", hint="use a new key")
        case Outcome.NEWER:
            raise Superseded("the key belongs to a record of a newer program", hint="ask a node that was upgraded")
        case Outcome.CREATED | Outcome.FOUND | Outcome.REACTIVATED | Outcome.SUPERSEDED:
            pass
    message_id = None
    if len(request.to) == 1 and request.to[0].identity.domain != "group":
        recipient = keys.hash_of(request.to[0].identity)
        message_id = derived_id.message_id(
            tenant_id=keys.tenant_id, pk=key.outgoing_pk(job_rk=job.row_key), recipient_id_hash=recipient
        )
    return SendAnswer(
        job_id=job.guid,
        message_id=message_id,
        accepted_at=job.source_at,
        repeated=answer.outcome is not Outcome.CREATED,
    )
