"""The application: every route, and what stands around them. `create_app` is what a server runs.

A process that only works has `create_watch`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from http import HTTPMethod, HTTPStatus
from typing import Final

import msgspec
import structlog
from litestar import Litestar, Response
from litestar.di import Provide
from litestar.exceptions import HTTPException, NotFoundException, ValidationException
from litestar.handlers import BaseRouteHandler, HTTPRouteHandler
from litestar.types import Guard

from clarion.api import (
    automation,
    events,
    explain,
    groups,
    hosted,
    inboxes,
    notifications,
    outbox,
    people,
    probes,
    problem,
    receipts,
    relations,
    reminders,
    report_link,
    reports,
    settings,
    sources,
    status,
    story,
    support,
    suppressions,
    timelines,
    types,
    upcoming,
    welcome,
)
from clarion.api.authentication import Authentication, Connection, trace_of
from clarion.api.context import ApiContext
from clarion.api.description import describe
from clarion.api.door import Door
from clarion.api.metrics import Metrics
from clarion.api.path import show_slashes
from clarion.api.pulse import Pulse
from clarion.api.reading import BODY_BYTES_MAX, DESCRIBED, AnyRequest, check_target
from clarion.bootstrap import Platform
from clarion.errors import Bug, CallerError, ClarionError, OperatorError
from clarion.operations import Wake
from clarion.sandbox.provider import open_outbox, sandbox_url

ROUTES: Final[tuple[HTTPRouteHandler, ...]] = (
    notifications.send_notification,
    notifications.get_notification,
    notifications.cancel_notification,
    timelines.get_timeline,
    timelines.list_history,
    timelines.list_notifications,
    explain.explain_would,
    upcoming.list_upcoming,
    story.get_story,
    story.explain_occurrence,
    inboxes.list_inbox,
    inboxes.count_inbox,
    inboxes.mark_inbox,
    inboxes.mark_line,
    explain.list_recipients,
    types.list_types,
    types.get_type,
    types.put_type,
    types.preview_type,
    types.switch_type,
    settings.list_settings,
    settings.get_setting,
    settings.put_setting,
    settings.clear_setting,
    reminders.list_reminders,
    reminders.get_reminder,
    reminders.put_reminder,
    reminders.switch_reminder,
    automation.list_occurrences,
    automation.get_occurrence,
    automation.rerun_occurrence,
    automation.act_on_occurrence,
    reports.list_reports,
    reports.list_subscriptions,
    reports.get_subscription,
    reports.put_subscription,
    reports.switch_subscription,
    reports.run_subscription,
    suppressions.get_preferences,
    suppressions.set_preferences,
    people.list_people,
    people.put_people,
    people.get_person,
    people.put_person,
    people.change_person,
    people.remove_person,
    people.list_attributes,
    people.declare_attribute,
    groups.list_groups,
    groups.list_members,
    groups.change_members,
    groups.get_group,
    groups.put_group,
    groups.change_group,
    groups.remove_group,
    groups.list_units,
    groups.get_unit,
    groups.put_unit,
    groups.change_unit,
    groups.list_unit_members,
    groups.change_unit_members,
    groups.get_tenant,
    groups.put_tenant,
    relations.list_roles,
    relations.list_holders,
    relations.change_holders,
    relations.list_relations,
    relations.change_relations,
    sources.list_sources,
    sources.put_sources,
    sources.get_source,
    sources.put_source,
    sources.remove_source,
    events.tell_event,
    events.list_events,
    events.get_event,
    events.retry_event,
    events.list_mappings,
    events.put_mapping,
    events.remove_mapping,
    suppressions.list_suppressions,
    suppressions.add_suppressions,
    suppressions.lift_suppression,
    support.list_uncertain,
    support.retry_outgoing,
    support.retry_notification,
    support.list_support_cases,
    support.get_support_case,
    support.resolve_support_case,
    support.list_audit,
    status.get_status,
    receipts.take_receipts,
    probes.get_health,
    probes.get_ready,
    probes.get_metrics,
    probes.get_openapi,
)

PAGES: Final[Sequence[HTTPRouteHandler]] = (
    outbox.show_outbox,
    outbox.open_link,
    outbox.show_message,
    outbox.show_content,
)
"""For people, and only where the sandbox is in use."""

OPTIONAL: Final[Mapping[str, HTTPRouteHandler]] = {
    "metrics": probes.get_metrics,
    "openapi": probes.get_openapi,
    "page": welcome.show_welcome,
}
"""What anybody may see and an operator may close, by the name that an operator calls it."""

WATCHING: Final[Sequence[HTTPRouteHandler]] = (probes.get_health, probes.get_metrics)
"""Of a process that only works. Nobody sends it requests, so it has no `/ready`."""

Lifespan = Callable[[Litestar], AbstractAsyncContextManager[None]]

log = structlog.get_logger("clarion.api")


def create_app(
    platform: Platform,
    *,
    wake: Wake,
    metrics: Metrics | None = None,
    pulse: Pulse | None = None,
    shown: Collection[str] = ("metrics", "openapi"),
) -> Door:
    """Make the application over an open platform; `wake` wakes workers after a commit that gives them work.

    Workers in the same process report to the same `pulse` what they cannot do. Of what is `OPTIONAL` only what is
    `shown` is served.
    """
    closed = [route for name, route in OPTIONAL.items() if name not in shown]
    routes = tuple(route for route in ROUTES if route not in closed)
    seen = [path for name, route in OPTIONAL.items() if name in shown for path in route.paths]
    context = ApiContext(
        platform,
        wake=wake,
        metrics=metrics or Metrics(),
        description=describe(routes),
        pulse=pulse,
        open_paths=("/health", "/ready", *seen),
    )
    url = sandbox_url(platform.settings.providers)

    @asynccontextmanager
    async def running(_app: Litestar) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as tasks:
            beside = [tasks.create_task(context.pulse.run()), tasks.create_task(context.meter.run())]
            context.open_outbox = None if url is None else open_outbox(url)
            try:
                yield
            finally:
                for task in beside:
                    task.cancel()
                with suppress(OperatorError):
                    await context.meter.tell()
                if context.open_outbox is not None:
                    await context.open_outbox.close()

    pages = [*([welcome.show_welcome] if "page" in shown else ()), *(PAGES if url is not None else ())]
    hosted_pages = (*hosted.HOSTED, report_link.open_report) if platform.settings.public_url is not None else ()
    return _door(context, [*routes, *pages, *hosted_pages], lifespan=[running])


def create_watch(platform: Platform, *, metrics: Metrics, described: bool = False) -> Door:
    """Make an application for those who watch: whether the process lives, and its metrics.

    A process that only works has no other. Beside an API it has that API's description too.
    """
    description = describe(ROUTES) if described else b""
    context = ApiContext(platform, wake=lambda _topic: None, metrics=metrics, description=description)
    return _door(context, [*WATCHING, probes.get_openapi] if described else WATCHING)


def _door(context: ApiContext, routes: Sequence[HTTPRouteHandler], *, lifespan: Sequence[Lifespan] = ()) -> Door:
    """Put routes together with what stands around them."""
    answering = _answering(context, [path for route in routes for path in sorted(route.paths)])
    app = Litestar(
        [*_naming_methods(routes), *routes],
        guards=[_guard(Authentication(context.access, context.meter))],
        dependencies={"context": Provide(lambda: context, sync_to_thread=False)},
        exception_handlers={Exception: answering, HTTPException: answering},
        request_max_body_size=BODY_BYTES_MAX,
        opt={DESCRIBED: "/openapi.json" in context.open_paths},
        lifespan=lifespan,
        openapi_config=None,  # ours is in `description`
        logging_config=None,  # ours is in `logs`
    )
    return Door(app, metrics=context.metrics, clock=context.platform.clock, ids=context.platform.ids)


def _naming_methods(routes: Sequence[HTTPRouteHandler]) -> list[HTTPRouteHandler]:
    """Answer OPTIONS on each path with all of its methods; the framework's own answer knows only the first route's."""
    methods: dict[str, set[str]] = {}
    for route in routes:
        for path in route.paths:
            methods.setdefault(path, {HTTPMethod.OPTIONS.value}).update(map(str, route.http_methods))
    return [_options(path, ", ".join(sorted(named))) for path, named in methods.items()]


def _options(path: str, allow: str) -> HTTPRouteHandler:
    def answer() -> Response[None]:
        return Response(None, status_code=HTTPStatus.NO_CONTENT, headers={"allow": allow})

    return HTTPRouteHandler(path, http_method=HTTPMethod.OPTIONS.value, sync_to_thread=False)(answer)


def _guard(authentication: Authentication) -> Guard:
    """Make what every request has to pass; one guard, because the framework copies the whole route for each."""

    async def guard(connection: Connection, handler: BaseRouteHandler) -> None:
        show_slashes(connection.scope)
        await authentication(connection, handler)
        check_target(connection, handler)

    return guard


def _answering(
    context: ApiContext, paths: Sequence[str]
) -> Callable[[AnyRequest, Exception], Response[bytes] | Response[str]]:
    """Make the handler that turns every error into its answer, and logs those that are not the caller's fault."""
    patterns = problem.patterns_of(paths)

    def answer(request: AnyRequest, error: Exception) -> Response[bytes] | Response[str]:
        show_slashes(request.scope)
        if isinstance(error, NotFoundException | ValidationException):  # the framework reads only the values in a path
            error = problem.not_found(request.scope["path"], patterns, described="/openapi.json" in context.open_paths)
        said, headers = problem.answer(error, correlation_id=trace_of(request).correlation_id)
        if isinstance(error, ClarionError) and not isinstance(error, Bug | CallerError):
            context.pulse.note(error)
            log.warning("a request failed", code=error.code, error=str(error))
        elif said.status == HTTPStatus.INTERNAL_SERVER_ERROR:
            log.error("a request failed by a defect", code=said.code, exc_info=error)
        page = hosted.as_page(request, said, headers)
        if page is None and context.open_outbox is not None:
            page = outbox.as_page(request, said, headers)
        return page or Response(
            msgspec.json.encode(said), status_code=said.status, media_type=problem.MEDIA_TYPE, headers=headers
        )

    return answer
