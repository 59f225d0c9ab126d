"""Sending, asking how it stands, and canceling. A send is answered only after its commit (I-24)."""

from http import HTTPStatus
from typing import Final
from uuid import UUID

from litestar import Response, get, post
from litestar.params import FromPath

from clarion.api import example
from clarion.api.contract import CONTRACT, Contract, Header
from clarion.api.desk import AtDesk, Desk
from clarion.api.guard import caller_of, trace_of
from clarion.api.problem import not_found
from clarion.api.reading import IDEMPOTENCY_KEY_MAX, AnyRequest, read_body, read_idempotency_key
from clarion.catalog.access import Caller, Grant
from clarion.client import wire
from clarion.domain.story import JobStory, OutgoingStory, is_canceled
from clarion.errors import Conflict
from clarion.producers.direct import Recipient, SendCommand

PATH: Final = "/v1/notifications"


@post(
    PATH,
    status_code=HTTPStatus.ACCEPTED,
    opt={
        CONTRACT: Contract(
            tag="notifications",
            grant=Grant.SEND,
            body=wire.SendRequest,
            answer=wire.Receipt,
            status=HTTPStatus.ACCEPTED,
            headers=(
                Header(
                    name="Idempotency-Key",
                    description="Your own name for this send. The same key never sends twice: repeated with the same "
                    "body it is answered as before, with another body it is refused.",
                    length_max=IDEMPOTENCY_KEY_MAX,
                ),
            ),
            problems=(HTTPStatus.CONFLICT, HTTPStatus.GONE),
            body_example=example.SEND,
            answer_example=example.RECEIPT,
        )
    },
)
async def send_notification(request: AnyRequest, desk: AtDesk) -> Response[wire.Receipt]:
    """Send a notification: accepted once it is stored, sent by the workers."""
    caller = caller_of(request)
    key = read_idempotency_key(request)
    body = await read_body(request, wire.SendRequest)
    command = SendCommand(
        type=body.type,
        to=tuple(map(_recipient, body.to)),
        data=body.data,
        entity=None if body.entity is None else (body.entity.type, body.entity.guid),
        key=key,
        lane=body.lane,
        not_before_at=body.not_before_at,
        actor=caller.actor,
        trace=trace_of(request),
    )
    receipt = await desk.platform.sends.send(caller.tenant_id, command)
    if not receipt.repeated:
        desk.ring("stages")
    return Response(
        wire.Receipt(
            job_id=receipt.job_id,
            message_id=receipt.message_id,
            accepted_at=receipt.accepted_at,
            repeated=receipt.repeated,
        ),
        headers={"location": f"{PATH}/{receipt.job_id}"},
    )


@get(
    f"{PATH}/{{job_id:uuid}}",
    opt={
        CONTRACT: Contract(
            tag="notifications",
            grant=Grant.VIEW,
            answer=wire.Notification,
            problems=(HTTPStatus.NOT_FOUND,),
            answer_example=example.NOTIFICATION,
        )
    },
)
async def get_notification(job_id: FromPath[UUID], request: AnyRequest, desk: AtDesk) -> wire.Notification:
    """Say how a notification stands, with each of its messages.

    `job_id` may also be the id of one of its messages.
    """
    caller = caller_of(request)
    return shown(await find_story(desk, caller, await job_of(desk, caller, job_id)))


@post(
    f"{PATH}/{{job_id:uuid}}/cancel",
    status_code=HTTPStatus.OK,
    opt={
        CONTRACT: Contract(
            tag="notifications",
            grant=Grant.CANCEL,
            answer=wire.Canceled,
            problems=(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT),
            answer_example=example.CANCELED,
        )
    },
)
async def cancel_notification(job_id: FromPath[UUID], request: AnyRequest, desk: AtDesk) -> wire.Canceled:
    """Cancel a notification: no call for it begins after this is answered; what was sent before stays sent.

    `job_id` may also be the id of one of its messages; the whole notification is canceled all the same.
    """
    caller = caller_of(request)
    job_id = await job_of(desk, caller, job_id)
    if await desk.store.cancel_job(caller.tenant_id, job_id, actor=caller.actor):
        return wire.Canceled(job_id=job_id, repeated=False)
    story = await find_story(desk, caller, job_id)
    if not is_canceled(story):
        raise Conflict("nothing of it is left to cancel", hint="its timeline tells how it ended")
    return wire.Canceled(job_id=job_id, repeated=True)


async def job_of(desk: Desk, caller: Caller, named: UUID) -> UUID:
    """Return the job of a message of the caller's tenant; an id that is no message's is taken for a job's."""
    return await desk.store.find_job_of_message(caller.tenant_id, named) or named


async def find_story(desk: Desk, caller: Caller, job_id: UUID) -> JobStory:
    """Return what is stored about a job of the caller's tenant."""
    story = await desk.store.find_job_story(caller.tenant_id, job_id)
    if story is None:
        raise not_found("notification")
    return story


def shown(story: JobStory) -> wire.Notification:
    """Give a stored story as the API shows it: nothing that is sealed, hashed or a key."""
    job, scheduler = story.job, story.scheduler
    about = None
    if job.source_type is not None and job.source is not None:
        about = wire.Entity(type=job.source_type, guid=UUID(job.source))
    return wire.Notification(
        job_id=job.guid,
        type=job.event_type,
        template_version=job.template_version,
        entity=about,
        lane=None if scheduler is None else scheduler.lane,
        stage=None if scheduler is None else scheduler.stage,
        status=None if scheduler is None else scheduler.status,
        reason=None if scheduler is None else scheduler.reason,
        accepted_at=job.source_at,
        due_at=None if scheduler is None else scheduler.due_at,
        actor=job.actor,
        correlation_id=job.correlation_id,
        messages=tuple(map(_message, story.outgoing)),
        inbox=tuple(wire.InboxLine(message_id=row.message_id, created_at=at) for at, row in story.inbox),
    )


def _message(row: OutgoingStory) -> wire.Message:
    return wire.Message(
        id=row.id,
        version=row.version,
        message_id=row.message_id,
        channel=row.channel,
        status=row.status,
        attempts=row.attempts,
        reason=row.reason,
        account=row.account,
        due_at=row.due_at,
        created_at=row.created_at,
    )


def _recipient(one: wire.Recipient) -> Recipient:
    return Recipient(user=one.user, employee=one.employee, group=one.group, address=one.address, channel=one.channel)
