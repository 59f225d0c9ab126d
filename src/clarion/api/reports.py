"""Reports: which there are, and the subscriptions by which people get them. Changes are audited."""

from http import HTTPStatus
from uuid import UUID

from litestar import get, put
from litestar.params import FromPath

from clarion.api import example_reports as example
from clarion.api.authentication import caller_of
from clarion.api.context import InjectedContext
from clarion.api.contract import Contract
from clarion.api.problem import found
from clarion.api.reading import AnyRequest, read_body, read_page
from clarion.catalog.access import Grant
from clarion.client import wire, wire_reports

WHAT = "report subscription"


@get("/v1/reports", opt=Contract(tag="reports", grant=Grant.VIEW, answer=example.KINDS).opt)
async def list_reports(context: InjectedContext) -> wire_reports.ReportKinds:
    """List the reports that can be subscribed to, with the forms that they are written in and their parameters."""
    return await context.operations.reports.kinds()


@get(
    "/v1/report-subscriptions",
    opt=Contract(tag="reports", grant=Grant.VIEW, query=wire.PageQuery, answer=example.SUBSCRIPTION_PAGE).opt,
)
async def list_subscriptions(request: AnyRequest, context: InjectedContext) -> wire_reports.SubscriptionPage:
    """List the report subscriptions, in the order of their guids."""
    return await context.operations.reports.list(*read_page(request, wire.PageQuery))


@get(
    "/v1/report-subscriptions/{guid:uuid}",
    opt=Contract(tag="reports", grant=Grant.VIEW, problems=(HTTPStatus.NOT_FOUND,), answer=example.SUBSCRIPTION).opt,
)
async def get_subscription(
    guid: FromPath[UUID], request: AnyRequest, context: InjectedContext
) -> wire_reports.Subscription:
    """Show a report subscription, when it is due next, and what keeps it from reaching anybody as things stand."""
    return found(await context.operations.reports.find(caller_of(request).tenant_id, guid), WHAT)


@put(
    "/v1/report-subscriptions/{guid:uuid}",
    opt=Contract(
        tag="reports", grant=Grant.CONFIGURE, body=example.SUBSCRIPTION_REQUEST, answer=example.SUBSCRIPTION
    ).opt,
)
async def put_subscription(
    guid: FromPath[UUID], request: AnyRequest, context: InjectedContext
) -> wire_reports.Subscription:
    """Make a report subscription, or replace it; audited. Its next run is planned anew within seconds."""
    caller, body = caller_of(request), await read_body(request, wire_reports.SubscriptionRequest)
    return found(await context.operations.reports.put(caller.tenant_id, guid, body, actor=caller.actor), WHAT)


@put(
    "/v1/report-subscriptions/{guid:uuid}/active",
    opt=Contract(
        tag="reports",
        grant=Grant.CONFIGURE,
        problems=(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT),
        body=example.SUBSCRIPTION_SWITCH,
        answer=example.SUBSCRIPTION,
    ).opt,
)
async def switch_subscription(
    guid: FromPath[UUID], request: AnyRequest, context: InjectedContext
) -> wire_reports.Subscription:
    """Switch a report subscription off or on; audited. Off deactivates its next run; what was handed over stays."""
    caller, body = caller_of(request), await read_body(request, wire_reports.SubscriptionSwitch)
    switched = await context.operations.reports.switch(caller.tenant_id, guid, active=body.active, actor=caller.actor)
    return found(switched, WHAT)


@put(
    "/v1/report-subscriptions/{guid:uuid}/runs/{run:uuid}",
    opt=Contract(
        tag="reports",
        grant=Grant.CONFIGURE,
        problems=(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT),
        answer=example.SUBSCRIPTION_RUN,
    ).opt,
)
async def run_subscription(
    guid: FromPath[UUID], run: FromPath[UUID], request: AnyRequest, context: InjectedContext
) -> wire_reports.SubscriptionRun:
    """Have a report written and sent now, once for a guid of the caller's; audited. Asking again changes nothing."""
    caller = caller_of(request)
    return found(await context.operations.reports.run(caller.tenant_id, guid, run, actor=caller.actor), WHAT)
