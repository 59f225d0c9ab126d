"""Occurrences of reminders and reports: what waits to fall due, and what people do about one, which is audited."""

from http import HTTPStatus
from typing import Final

from litestar import get, post
from litestar.params import FromPath

from clarion.api import example_automation as example
from clarion.api.authentication import caller_of
from clarion.api.context import InjectedContext
from clarion.api.contract import Contract
from clarion.api.problem import Refusal, found
from clarion.api.reading import AnyRequest, read_body, read_page
from clarion.catalog.access import Grant
from clarion.client import wire_automation
from clarion.client.wire_automation import Act

PATH: Final = "/v1/automation/{key:str}"
WHAT: Final = "occurrence"


@get(
    "/v1/automation",
    opt=Contract(
        tag="automation", grant=Grant.VIEW, query=wire_automation.AutomationQuery, answer=example.OCCURRENCE_PAGE
    ).opt,
)
async def list_occurrences(request: AnyRequest, context: InjectedContext) -> wire_automation.OccurrencePage:
    """List occurrences of reminders and reports that stand in one way, by when they are due."""
    return await context.operations.automation.list(*read_page(request, wire_automation.AutomationQuery))


@get(
    PATH,
    opt=Contract(tag="automation", grant=Grant.VIEW, problems=(HTTPStatus.NOT_FOUND,), answer=example.OCCURRENCE).opt,
)
async def get_occurrence(
    key: FromPath[str], request: AnyRequest, context: InjectedContext
) -> wire_automation.Occurrence:
    """Show one occurrence: how it stands and why, in local time, and the notification that it led to.

    Its key may hold percent signs, which stand as `%25` in a path. The story of its notification is at `timeline`.
    """
    caller = caller_of(request)
    shown = await context.operations.automation.find(caller.tenant_id, key, whole=caller.may(Grant.REVEAL))
    return found(shown, WHAT)


@post(
    f"{PATH}/rerun",
    status_code=HTTPStatus.OK,
    opt=Contract(
        tag="automation",
        grant=Grant.MEND,
        problems=(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT),
        body=example.RERUN,
        answer=example.OCCURRENCE,
    ).opt,
)
async def rerun_occurrence(
    key: FromPath[str], request: AnyRequest, context: InjectedContext
) -> wire_automation.Occurrence:
    """Have a completed occurrence run again, on a person's word; audited with the reason. It answers with the re-run.

    A re-run is an occurrence of its own, due at once, under a number that `next_rerun` of the occurrence names: to ask
    twice for one number is to ask once.
    """
    caller, body = caller_of(request), await read_body(request, wire_automation.RerunRequest)
    done = await context.operations.automation.rerun(
        caller.tenant_id, key, number=body.number, actor=caller.actor, reason=body.reason
    )
    return found(done, WHAT)


@post(
    f"{PATH}/{{act:str}}",
    status_code=HTTPStatus.OK,
    opt=Contract(
        tag="automation",
        grant=Grant.MEND,
        problems=(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT),
        body=example.ACT,
        answer=example.OCCURRENCE,
    ).opt,
)
async def act_on_occurrence(
    key: FromPath[str], act: FromPath[str], request: AnyRequest, context: InjectedContext
) -> wire_automation.Occurrence:
    """Do something with one occurrence, on a person's word; audited with the reason, and shown as it is then.

    `hold` keeps one that waits from being claimed, until somebody lets it go on by `release`, which forgives what
    failed before. `run` makes one that waits due now. `deactivate` ends one that waits for good: no event and no
    setting brings it back.
    """
    if act not in set(Act):
        raise Refusal(
            HTTPStatus.NOT_FOUND, "not-found", f"there is nothing like this to do: use {', '.join(Act)}", field="act"
        )
    caller, body = caller_of(request), await read_body(request, wire_automation.ActRequest)
    done = await context.operations.automation.act(
        caller.tenant_id, key, Act(act), actor=caller.actor, reason=body.reason
    )
    return found(done, WHAT)
