"""`clarion support`: what a person should look at, one case for each cause, closing it, and retrying what failed."""

from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

import msgspec
import typer

from clarion.cli import option
from clarion.cli.desk import Desk, at_desk, find_job, guid, require_reason, unknown_id
from clarion.cli.output import as_object, print_json, print_pairs, print_table, say
from clarion.cli.ring import ring_once
from clarion.domain.support import DETAILS_BYTES_MAX, SupportCase, SupportStatus
from clarion.errors import Conflict, InvalidInput

support = typer.Typer(help="Cases that a person should look at.")
support.callback(invoke_without_command=True)(option.help_without_command)

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
    behind = _case_id(after, field="--after") if after else None

    async def work(desk: Desk) -> Sequence[SupportCase]:
        return await desk.store.list_support_cases(
            desk.tenant_id, status=None if everything else SupportStatus.OPEN, after=behind, limit=limit
        )

    cases = at_desk(work, store=store, tenant=tenant)
    following = cases[-1].case_id if len(cases) == limit else None
    if as_json:
        print_json({"items": [_shown(one) for one in cases], "next": following})
        return
    print_table(
        ("case", "kind", "state", "record", "seen", "last seen"),
        [(one.case_id, one.kind, one.status, one.record, one.seen_count, one.last_seen_at) for one in cases],
        empty="no case is open" if not everything else "there never was a case",
    )
    if following is not None:
        say(f"more: --after {following}")


@support.command()
def show(case: CaseId, tenant: option.Tenant = None, store: option.Store = None, as_json: option.Json = False) -> None:
    """Show one case with all that is known of it."""
    found = at_desk(lambda desk: _find(desk, case), store=store, tenant=tenant)
    if as_json:
        print_json(_shown(found))
        return
    print_pairs(
        [
            ("case", found.case_id),
            ("kind", found.kind),
            ("state", found.status),
            ("record", found.record),
            ("key", found.record_key),
            ("seen", f"{found.seen_count} times" if found.seen_count > 1 else "once"),
            ("first", found.first_seen_at),
            ("last", found.last_seen_at),
            ("request", found.correlation_id),
            ("resolved", found.resolved_at),
            ("by", found.resolved_by),
            ("resolution", found.resolution),
        ]
    )
    typer.echo(f"\n{_pretty(found.details)}")


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

    async def work(desk: Desk) -> SupportCase:
        found = await _find(desk, case)
        if not await desk.store.resolve_support_case(
            desk.tenant_id, found.case_id, actor=desk.actor, resolution=resolution
        ):
            raise Conflict(f"the case {found.case_id} is not open", hint="`clarion support list` shows those that are")
        return found

    found = at_desk(work, store=store, tenant=tenant)
    if as_json:
        print_json({"case_id": found.case_id, "resolved": True})
    else:
        typer.echo(f"resolved: {found.case_id}")


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

    async def work(desk: Desk) -> UUID:
        job_guid, _ = await find_job(desk, job)
        if not await desk.store.retry_job(desk.tenant_id, job_guid, actor=desk.actor, reason=reason):
            if await desk.store.find_job_story(desk.tenant_id, job_guid) is None:
                raise unknown_id(job)
            raise Conflict(
                f"the job {job_guid} has not failed", hint=f"`clarion explain {job_guid}` tells how it stands"
            )
        await ring_once(desk.platform)
        return job_guid

    job_guid = at_desk(work, store=store, tenant=tenant)
    if as_json:
        print_json({"job_id": job_guid, "retried": True})
    else:
        typer.echo(f"it will be tried again: job {job_guid}")


async def _find(desk: Desk, case: str) -> SupportCase:
    found = await desk.store.find_support_case(desk.tenant_id, _case_id(case, field="case"))
    if found is None:
        raise InvalidInput(
            f"the tenant has no case {case}", field="case", hint="`clarion support list --all` lists them"
        )
    return found


def _case_id(text: str, *, field: str) -> UUID:
    return guid(text, field=field, hint="use the id as `clarion support list` prints it")


def _shown(case: SupportCase) -> dict[str, object]:
    return {**msgspec.structs.asdict(case), "details": as_object(case.details)}


def _pretty(details: str) -> str:
    """Write details over several lines, as they are where they are no JSON."""
    try:
        return msgspec.json.format(details.encode(), indent=2).decode()
    except msgspec.DecodeError:
        return details
