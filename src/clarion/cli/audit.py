"""`clarion audit`: who did what, and whether the log of it is as it was written."""

import typer

from clarion.cli import option
from clarion.cli.output import print_json, print_line, print_table, say_more
from clarion.cli.session import Session, in_session
from clarion.client.wire_support import AuditLine

audit = typer.Typer()


@audit.callback(invoke_without_command=True)
def audit_or_list(
    context: typer.Context,
    *,
    limit: option.Limit = 50,
    after: option.After = "",
    tenant: option.Tenant = None,
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """What people and support tools did: list it, and verify that nobody changed the list."""
    if context.invoked_subcommand is None:
        list_entries(limit=limit, after=after, tenant=tenant, store=store, as_json=as_json)


@audit.command("list")
def list_entries(
    limit: option.Limit = 50,
    after: option.After = "",
    tenant: option.Tenant = None,
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """List what was done, newest first."""
    query = option.page(limit, after)
    page = in_session(
        lambda session: session.operations.support.list_audit(session.tenant_id, query), store=store, tenant=tenant
    )
    if as_json:
        print_json(page)
        return
    print_table(
        ("no", "time", "who", "did", "to", "with", "why"),
        [(one.seq, one.at, one.actor, one.act, one.subject, _with(one), one.reason) for one in page.items],
        empty="nobody has done anything yet",
    )
    say_more(page.next_cursor)


def _with(one: AuditLine) -> str:
    """Give an act's details as a person reads them, without hashes; a limit without any takes all quotas away."""
    said = ", ".join(f"{name} {value}" for name, value in one.details.items() if not name.endswith("_hash"))
    return said or ("no quota" if one.act == "limit" else "")


@audit.command()
def verify(tenant: option.Tenant = None, store: option.Store = None, as_json: option.Json = False) -> None:
    """Find out whether an entry was changed, removed or put in.

    It computes the chain of hashes again. Entries that were removed from the end leave no gap: compare the last number
    and hash with those of an earlier run.
    """

    async def work(session: Session) -> tuple[int, str | None]:
        return await session.operations.support.verify_audit(session.tenant_id)

    entries, last_hash = in_session(work, store=store, tenant=tenant)
    line = f"all {entries} entries hold together; the hash of the last is {last_hash}" if entries else "there are none"
    print_line(line, {"entries": entries, "last_hash": last_hash}, as_json=as_json)
