"""What people look after: uncertain messages and retries, support cases, the audit log."""

from http import HTTPStatus
from typing import Annotated
from uuid import UUID

from litestar import get, post
from litestar.params import FromPath, PathParameter

from clarion.api import example
from clarion.api.authentication import caller_of
from clarion.api.context import InjectedContext
from clarion.api.contract import Contract
from clarion.api.problem import found
from clarion.api.reading import AnyRequest, read_body, read_page
from clarion.catalog.access import Grant
from clarion.client import wire, wire_support


@get(
    "/v1/uncertain",
    opt=Contract(
        tag="support",
        grant=Grant.VIEW,
        query=wire.PageQuery,
        answer=example.UNCERTAIN,
    ).opt,
)
async def list_uncertain(request: AnyRequest, context: InjectedContext) -> wire_support.UncertainPage:
    """List the messages of which nobody knows whether they arrived, with the version that a retry asks for."""
    return await context.operations.support.list_uncertain(*read_page(request, wire.PageQuery))


@post(
    "/v1/outgoing/{outgoing_id:int}/retry",
    status_code=HTTPStatus.ACCEPTED,
    opt=Contract(
        tag="support",
        grant=Grant.MEND,
        status=HTTPStatus.ACCEPTED,
        problems=(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.GONE),
        body=example.RETRY,
        answer=example.RETRIED,
    ).opt,
)
async def retry_outgoing(
    outgoing_id: Annotated[int, PathParameter(ge=0, le=wire.ROW_ID_MAX)],
    request: AnyRequest,
    context: InjectedContext,
) -> wire_support.Retried:
    """Send a failed or uncertain message again, on a person's word; audited with the reason.

    An uncertain message may have arrived, so its recipient may get it twice: that is what the reason is about. Nothing
    happens where the message has moved on since its version was read.
    """
    caller = caller_of(request)
    body = await read_body(request, wire_support.RetryRequest)
    retried = await context.operations.support.retry_message(
        caller.tenant_id, outgoing_id, version=body.version, actor=caller.actor, reason=body.reason
    )
    return found(retried, "message that could be retried (or it has moved on)")


@post(
    "/v1/notifications/{job_id:uuid}/retry",
    status_code=HTTPStatus.ACCEPTED,
    opt=Contract(
        tag="support",
        grant=Grant.MEND,
        status=HTTPStatus.ACCEPTED,
        problems=(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.GONE),
        body=example.RETRY_NOTIFICATION,
        answer=example.RETRIED_NOTIFICATION,
    ).opt,
)
async def retry_notification(
    job_id: FromPath[UUID], request: AnyRequest, context: InjectedContext
) -> wire_support.RetriedNotification:
    """Try a notification that failed again, where it failed, on a person's word; audited with the reason.

    `job_id` may also be the id of one of its messages. Its support case stays open until somebody resolves it.
    """
    caller = caller_of(request)
    body = await read_body(request, wire_support.RetryNotificationRequest)
    retried = await context.operations.notifications.retry(
        caller.tenant_id, job_id, actor=caller.actor, reason=body.reason
    )
    return found(retried, "notification")


@get(
    "/v1/support-cases",
    opt=Contract(
        tag="support",
        grant=Grant.VIEW,
        query=wire_support.SupportCaseQuery,
        answer=example.CASES,
    ).opt,
)
async def list_support_cases(request: AnyRequest, context: InjectedContext) -> wire_support.SupportCasePage:
    """List what a person should look at, one case for each cause; open ones unless `status` asks otherwise."""
    return await context.operations.support.list_cases(*read_page(request, wire_support.SupportCaseQuery))


@get(
    "/v1/support-cases/{case_id:uuid}",
    opt=Contract(
        tag="support",
        grant=Grant.VIEW,
        problems=(HTTPStatus.NOT_FOUND,),
        answer=example.CASE,
    ).opt,
)
async def get_support_case(
    case_id: FromPath[UUID], request: AnyRequest, context: InjectedContext
) -> wire_support.SupportCase:
    """Show one support case with all that is known of it."""
    return found(await context.operations.support.find_case(caller_of(request).tenant_id, case_id), "support case")


@post(
    "/v1/support-cases/{case_id:uuid}/resolve",
    status_code=HTTPStatus.OK,
    opt=Contract(
        tag="support",
        grant=Grant.MEND,
        problems=(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT),
        body=example.RESOLVE,
        answer=example.CASE,
    ).opt,
)
async def resolve_support_case(
    case_id: FromPath[UUID], request: AnyRequest, context: InjectedContext
) -> wire_support.SupportCase:
    """Close a support case, audited with its resolution; the same trouble, seen again, opens it again."""
    caller = caller_of(request)
    body = await read_body(request, wire_support.ResolveRequest)
    resolved = await context.operations.support.resolve_case(
        caller.tenant_id, case_id, actor=caller.actor, resolution=body.resolution
    )
    return found(resolved, "support case")


@get(
    "/v1/audit",
    opt=Contract(
        tag="support",
        grant=Grant.AUDIT,
        query=wire.PageQuery,
        answer=example.AUDIT,
    ).opt,
)
async def list_audit(request: AnyRequest, context: InjectedContext) -> wire_support.AuditPage:
    """List what people did, newest first; each entry's hash covers the one before it."""
    return await context.operations.support.list_audit(*read_page(request, wire.PageQuery))
