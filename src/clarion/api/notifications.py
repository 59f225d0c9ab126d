"""Sending, asking how it stands, and canceling. A send is answered only after its commit (I-24)."""

from http import HTTPStatus
from typing import Final
from uuid import UUID

from litestar import Response, get, post
from litestar.params import FromPath

from clarion.api import example
from clarion.api.authentication import caller_of, trace_of
from clarion.api.context import InjectedContext
from clarion.api.contract import Contract, Header
from clarion.api.problem import found
from clarion.api.reading import AnyRequest, read_body, read_idempotency_key
from clarion.catalog.access import Grant
from clarion.client import wire
from clarion.domain.guard import IDEMPOTENCY_KEY_MAX

PATH: Final = "/v1/notifications"


@post(
    PATH,
    status_code=HTTPStatus.ACCEPTED,
    opt=Contract(
        tag="notifications",
        grant=Grant.SEND,
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
        body=example.SEND,
        answer=example.SEND_ANSWER,
    ).opt,
)
async def send_notification(request: AnyRequest, context: InjectedContext) -> Response[wire.SendAnswer]:
    """Send a notification: accepted once it is stored, sent by the workers."""
    caller = caller_of(request)
    key = read_idempotency_key(request)
    body = await read_body(request, wire.SendRequest)
    sends, used = context.operations.notifications, (caller.tenant_id, caller.key_id)
    await context.meter.meet(*used)  # the body took its time
    shortage = context.meter.find_shortage(*used, recipients=len(body.to))
    if shortage is not None and not await sends.is_known(caller.tenant_id, key):
        raise shortage  # a repeat is answered as before, and uses nothing
    with context.meter.accepting(*used, recipients=len(body.to)) as counted:
        answer = await sends.send(
            caller.tenant_id,
            body,
            key=key,
            actor=caller.actor,
            trace=trace_of(request),
            may_raise=caller.may(Grant.RAISE),
        )
        counted.append(not answer.repeated)
    return Response(answer, headers={"location": f"{PATH}/{answer.job_id}"})


@get(
    f"{PATH}/{{job_id:uuid}}",
    opt=Contract(
        tag="notifications",
        grant=Grant.VIEW,
        problems=(HTTPStatus.NOT_FOUND,),
        answer=example.NOTIFICATION,
    ).opt,
)
async def get_notification(job_id: FromPath[UUID], request: AnyRequest, context: InjectedContext) -> wire.Notification:
    """Say how a notification stands, with each of its messages.

    `job_id` may also be the id of one of its messages.
    """
    caller = caller_of(request)
    shown = await context.operations.notifications.find(caller.tenant_id, job_id, whole=caller.may(Grant.REVEAL))
    return found(shown, "notification")


@post(
    f"{PATH}/{{job_id:uuid}}/cancel",
    status_code=HTTPStatus.OK,
    opt=Contract(
        tag="notifications",
        grant=Grant.CANCEL,
        problems=(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT),
        answer=example.CANCELED,
    ).opt,
)
async def cancel_notification(job_id: FromPath[UUID], request: AnyRequest, context: InjectedContext) -> wire.Canceled:
    """Cancel a notification: no call for it begins after this is answered; what was sent before stays sent.

    `job_id` may also be the id of one of its messages; the whole notification is canceled all the same.
    """
    caller = caller_of(request)
    canceled = await context.operations.notifications.cancel(caller.tenant_id, job_id, actor=caller.actor)
    return found(canceled, "notification")
