"""What people look after: uncertain messages and retries, support cases, the audit log."""

from http import HTTPStatus
from typing import Annotated, Final
from uuid import UUID

import msgspec
from litestar import get, post
from litestar.params import FromPath, PathParameter

from clarion.api import cursor, example
from clarion.api.contract import CONTRACT, Contract
from clarion.api.desk import AtDesk, Desk
from clarion.api.guard import caller_of
from clarion.api.notifications import find_story, job_of
from clarion.api.problem import not_found
from clarion.api.reading import AnyRequest, read_body, read_query
from clarion.catalog.access import Caller, Grant
from clarion.client import wire
from clarion.domain.support import SupportCase
from clarion.errors import Conflict

UNCERTAIN: Final = "uncertain"
CASES: Final = "support-cases"
AUDIT: Final = "audit"


@get(
    "/v1/uncertain",
    opt={
        CONTRACT: Contract(
            tag="support",
            grant=Grant.VIEW,
            query=wire.PageQuery,
            answer=wire.UncertainPage,
            answer_example=example.UNCERTAIN,
        )
    },
)
async def list_uncertain(request: AnyRequest, desk: AtDesk) -> wire.UncertainPage:
    """List the messages of which nobody knows whether they arrived, with the version that a retry asks for."""
    caller, query = caller_of(request), read_query(request, wire.PageQuery)
    after = cursor.read(UNCERTAIN, query.cursor, start=0)
    found = await desk.store.list_doubts(caller.tenant_id, after=after, limit=query.limit + 1)
    page, more = found[: query.limit], len(found) > query.limit
    return wire.UncertainPage(
        items=tuple(
            wire.UncertainLine(
                id=one.id,
                version=one.version,
                message_id=one.message_id,
                channel=one.channel,
                account=one.account,
                reason=one.reason,
                since_at=one.since_at,
            )
            for one in page
        ),
        next_cursor=cursor.write(UNCERTAIN, page[-1].id) if more else None,
    )


@post(
    "/v1/outgoing/{outgoing_id:int}/retry",
    status_code=HTTPStatus.ACCEPTED,
    opt={
        CONTRACT: Contract(
            tag="support",
            grant=Grant.MEND,
            body=wire.RetryRequest,
            answer=wire.Retried,
            status=HTTPStatus.ACCEPTED,
            problems=(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT),
            body_example=example.RETRY,
            answer_example=example.RETRIED,
        )
    },
)
async def retry_outgoing(
    outgoing_id: Annotated[int, PathParameter(ge=0, le=wire.ROW_ID_MAX)],
    request: AnyRequest,
    desk: AtDesk,
) -> wire.Retried:
    """Send a failed or uncertain message again, on a person's word; audited with the reason.

    An uncertain message may have arrived, so its recipient may get it twice: that is what the reason is about. Nothing
    happens where the message has moved on since its version was read.
    """
    caller = caller_of(request)
    body = await read_body(request, wire.RetryRequest)
    moved = await desk.store.retry_outgoing(
        caller.tenant_id, outgoing_id, version=body.version, actor=caller.actor, reason=body.reason
    )
    if not moved:
        raise await _cannot_retry(desk, caller, outgoing_id)
    desk.ring("outgoing")
    return wire.Retried(id=outgoing_id)


@post(
    "/v1/notifications/{job_id:uuid}/retry",
    status_code=HTTPStatus.ACCEPTED,
    opt={
        CONTRACT: Contract(
            tag="support",
            grant=Grant.MEND,
            body=wire.RetryNotificationRequest,
            answer=wire.RetriedNotification,
            status=HTTPStatus.ACCEPTED,
            problems=(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT),
            body_example=example.RETRY_NOTIFICATION,
            answer_example=example.RETRIED_NOTIFICATION,
        )
    },
)
async def retry_notification(job_id: FromPath[UUID], request: AnyRequest, desk: AtDesk) -> wire.RetriedNotification:
    """Try a notification that failed again, where it failed, on a person's word; audited with the reason.

    `job_id` may also be the id of one of its messages. Its support case stays open until somebody resolves it.
    """
    caller = caller_of(request)
    body = await read_body(request, wire.RetryNotificationRequest)
    job_id = await job_of(desk, caller, job_id)
    await find_story(desk, caller, job_id)
    if not await desk.store.retry_job(caller.tenant_id, job_id, actor=caller.actor, reason=body.reason):
        raise Conflict("the notification has not failed", hint="its timeline tells how it stands")
    desk.ring("stages")
    return wire.RetriedNotification(job_id=job_id)


@get(
    "/v1/support-cases",
    opt={
        CONTRACT: Contract(
            tag="support",
            grant=Grant.VIEW,
            query=wire.SupportCaseQuery,
            answer=wire.SupportCasePage,
            answer_example=example.CASES,
        )
    },
)
async def list_support_cases(request: AnyRequest, desk: AtDesk) -> wire.SupportCasePage:
    """List what a person should look at, one case for each cause."""
    caller, query = caller_of(request), read_query(request, wire.SupportCaseQuery)
    name = f"{CASES} {query.status}"
    found = await desk.store.list_support_cases(
        caller.tenant_id,
        status=query.status,
        after=cursor.read_guid(name, query.cursor),
        limit=query.limit + 1,
    )
    page, more = found[: query.limit], len(found) > query.limit
    return wire.SupportCasePage(
        items=tuple(map(_case, page)), next_cursor=cursor.write(name, page[-1].case_id.hex) if more else None
    )


@get(
    "/v1/support-cases/{case_id:uuid}",
    opt={
        CONTRACT: Contract(
            tag="support",
            grant=Grant.VIEW,
            answer=wire.SupportCase,
            problems=(HTTPStatus.NOT_FOUND,),
            answer_example=example.CASE,
        )
    },
)
async def get_support_case(case_id: FromPath[UUID], request: AnyRequest, desk: AtDesk) -> wire.SupportCase:
    """Show one support case with all that is known of it."""
    return _case(await _find_case(desk, caller_of(request), case_id))


@post(
    "/v1/support-cases/{case_id:uuid}/resolve",
    status_code=HTTPStatus.OK,
    opt={
        CONTRACT: Contract(
            tag="support",
            grant=Grant.MEND,
            body=wire.ResolveRequest,
            answer=wire.SupportCase,
            problems=(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT),
            body_example=example.RESOLVE,
            answer_example=example.CASE,
        )
    },
)
async def resolve_support_case(case_id: FromPath[UUID], request: AnyRequest, desk: AtDesk) -> wire.SupportCase:
    """Close a support case, audited with its resolution; the same trouble, seen again, opens it again."""
    caller = caller_of(request)
    body = await read_body(request, wire.ResolveRequest)
    await _find_case(desk, caller, case_id)
    if not await desk.store.resolve_support_case(
        caller.tenant_id, case_id, actor=caller.actor, resolution=body.resolution
    ):
        raise Conflict("the case is not open", hint="read it again: somebody has resolved it")
    return _case(await _find_case(desk, caller, case_id))


@get(
    "/v1/audit",
    opt={
        CONTRACT: Contract(
            tag="support",
            grant=Grant.AUDIT,
            query=wire.PageQuery,
            answer=wire.AuditPage,
            answer_example=example.AUDIT,
        )
    },
)
async def list_audit(request: AnyRequest, desk: AtDesk) -> wire.AuditPage:
    """List what people did, oldest first; each entry's hash covers the one before it."""
    caller, query = caller_of(request), read_query(request, wire.PageQuery)
    after = cursor.read(AUDIT, query.cursor, start=0)
    found = await desk.store.list_audit(caller.tenant_id, after=after, limit=query.limit + 1)
    page, more = found[: query.limit], len(found) > query.limit
    return wire.AuditPage(
        items=tuple(
            wire.AuditLine(
                seq=one.seq,
                at=one.at,
                actor=one.actor,
                act=one.act,
                subject=one.subject,
                reason=one.reason,
                details=_details(one.details),
                hash=one.hash,
            )
            for one in page
        ),
        next_cursor=cursor.write(AUDIT, page[-1].seq) if more else None,
    )


async def _cannot_retry(desk: Desk, caller: Caller, outgoing_id: int) -> Exception:
    """Say why nothing was retried: the message has moved on or was canceled, or there is none that could be."""
    doubts = await desk.store.list_doubts(caller.tenant_id, after=max(outgoing_id - 1, 0), limit=1)
    if doubts and doubts[0].id == outgoing_id:
        return Conflict(
            f"the message was canceled, is out of time, or has moved on (its version is {doubts[0].version})",
            hint="look at it again before you retry it",
        )
    return not_found("message that could be retried (or it has moved on)")


async def _find_case(desk: Desk, caller: Caller, case_id: UUID) -> SupportCase:
    case = await desk.store.find_support_case(caller.tenant_id, case_id)
    if case is None:
        raise not_found("support case")
    return case


def _case(case: SupportCase) -> wire.SupportCase:
    return wire.SupportCase(
        case_id=case.case_id,
        kind=case.kind,
        status=case.status,
        record=case.record,
        record_key=case.record_key,
        details=_details(case.details),
        seen_count=case.seen_count,
        correlation_id=case.correlation_id,
        first_seen_at=case.first_seen_at,
        last_seen_at=case.last_seen_at,
        resolved_at=case.resolved_at,
        resolved_by=case.resolved_by,
        resolution=case.resolution,
    )


def _details(text: str) -> dict[str, object]:
    """Read details; those that are no JSON object, of whoever wrote them, are shown as they are."""
    try:
        return msgspec.json.decode(text, type=dict[str, object])
    except msgspec.DecodeError:
        return {"text": text}
