"""`clarion support`: what a person should look at, one case for each cause, closing it, and retrying what failed."""

from typing import Annotated
from uuid import UUID

import typer

from clarion.cli import option
from clarion.cli.output import print_json, print_line, print_pairs, print_table, say_more
from clarion.cli.session import Session, guid, hint_on_conflict, in_session, job_or_message, known, require_reason
from clarion.client import wire_support
from clarion.domain.support import DETAILS_BYTES_MAX
from clarion.errors import InvalidInput

support = typer.Typer(help="Cases that a person should look at.")

CaseId = Annotated[str, typer.Argument(help="The case's id in the list.", metavar="CASE")]


@support.command("list")
def list_cases(
    *,
    everything: Annotated[bool, typer.Option("--all", help="Resolved ones too.")] = False,
    limit: option.Limit = 50,
    after: option.After = "",
    tenant: option.Tenant = None,
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """List the cases that are open."""
    query = wire_support.SupportCaseQuery(
        status=wire_support.EVERY_CASE if everything else "Open", limit=limit, cursor=after or None
    )
    page = in_session(
        lambda session: session.operations.support.list_cases(session.tenant_id, query), store=store, tenant=tenant
    )
    if as_json:
        print_json(page)
        return
    print_table(
        ("case", "kind", "state", "about", "seen", "last seen"),
        [(one.case_id, one.kind, one.status, one.about, one.seen_count, one.last_seen_at) for one in page.items],
        empty="no case is open" if not everything else "there never was a case",
    )
    say_more(page.next_cursor)


@support.command()
def show(case: CaseId, tenant: option.Tenant = None, store: option.Store = None, as_json: option.Json = False) -> None:
    """Show one case with all that is known of it."""
    case_id = _case_id(case)

    async def work(session: Session) -> wire_support.SupportCase:
        return _known(await session.operations.support.find_case(session.tenant_id, case_id), case)

    found = in_session(work, store=store, tenant=tenant)
    if as_json:
        print_json(found)
        return
    print_pairs(
        [
            ("case", found.case_id),
            ("kind", found.kind),
            ("state", found.status),
            ("about", found.about),
            *[(name.replace("_", " "), value) for name, value in found.details.items()],
            ("seen", f"{found.seen_count} times" if found.seen_count > 1 else "once"),
            ("first", found.first_seen_at),
            ("last", found.last_seen_at),
            ("request", found.correlation_id),
            ("resolved", found.resolved_at),
            ("by", found.resolved_by),
            ("resolution", found.resolution),
        ]
    )


@support.command()
def resolve(
    case: CaseId,
    resolution: Annotated[str, typer.Option("--resolution", "-m", help="What was done; kept with your name.")],
    tenant: option.Tenant = None,
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """Close a case; the same trouble, seen again, opens it again."""
    if not resolution.strip() or len(resolution.encode()) > DETAILS_BYTES_MAX:
        raise InvalidInput(
            "it is empty or too long", field="--resolution", hint=f"use 1 to {DETAILS_BYTES_MAX} bytes of text"
        )

    case_id = _case_id(case)

    async def work(session: Session) -> wire_support.SupportCase:
        with hint_on_conflict("`clarion support list` shows those that are"):
            return _known(
                await session.operations.support.resolve_case(
                    session.tenant_id, case_id, actor=session.actor, resolution=resolution
                ),
                case,
            )

    found = in_session(work, store=store, tenant=tenant)
    print_line(f"resolved: {found.case_id}", found, as_json=as_json)


@support.command()
def retry(
    job: Annotated[str, typer.Argument(help="The id of a job, or of one of its messages.", metavar="JOB")],
    *,
    reason: Annotated[str, typer.Option(help="What was mended; kept with your name.")],
    tenant: option.Tenant = None,
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """Try a notification that failed again, where it failed."""
    require_reason(reason)
    named = job_or_message(job)

    async def work(session: Session) -> wire_support.RetriedNotification:
        with hint_on_conflict(f"`clarion explain {named}` tells how it stands"):
            retried = await session.operations.notifications.retry(
                session.tenant_id, named, actor=session.actor, reason=reason
            )
            return known(retried, job)

    retried = in_session(work, store=store, tenant=tenant)
    print_line(f"it will be tried again: job {retried.job_id}", retried, as_json=as_json)


def _case_id(text: str) -> UUID:
    return guid(text, field="case", hint="use the id as `clarion support list` prints it")


def _known(found: wire_support.SupportCase | None, case: str) -> wire_support.SupportCase:
    if found is None:
        raise InvalidInput(
            f"the tenant has no case {case}", field="case", hint="`clarion support list --all` lists them"
        )
    return found
