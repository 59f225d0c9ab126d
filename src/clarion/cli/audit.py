"""`clarion audit`: who did what, and whether the log of it is as it was written."""

import msgspec
import typer

from clarion.cli.asked import Asked, AskedPage, asks, lists
from clarion.cli.session import Session
from clarion.client.wire_support import AuditLine

audit = typer.Typer()


@audit.callback(invoke_without_command=True)
@lists
def audit_or_list(asked: AskedPage, context: typer.Context) -> None:
    """What people and support tools did: list it, and verify that nobody changed the list."""
    if context.invoked_subcommand is None:
        list_entries(**msgspec.structs.asdict(asked))


@audit.command("list")
@lists
def list_entries(asked: AskedPage) -> None:
    """List what was done, newest first."""
    asked.show(
        asked.run(lambda it: it.operations.support.list_audit(it.tenant_id, asked.query)),
        head=("no", "time", "who", "did", "to", "with", "why"),
        row=lambda one: (one.seq, one.at, one.actor, one.act, one.subject, _with(one), one.reason),
        empty="nobody has done anything yet",
    )


def _with(one: AuditLine) -> str:
    """Give an act's details as a person reads them, without hashes; a limit without any takes all quotas away."""
    said = ", ".join(f"{name} {_word(value)}" for name, value in one.details.items() if not name.endswith("_hash"))
    return said or ("no quota" if one.act == "limit" else "")


def _word(value: object) -> str:
    """Write a detail: text as it is, anything else as JSON, in which a setting is put in too."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


@audit.command()
@asks
def verify(asked: Asked) -> None:
    """Find out whether an entry was changed, removed or put in.

    It computes the chain of hashes again. Entries that were removed from the end leave no gap: compare the last number
    and hash with those of an earlier run.
    """

    async def work(session: Session) -> tuple[int, str | None]:
        return await session.operations.support.verify_audit(session.tenant_id)

    entries, last_hash = asked.run(work)
    line = f"all {entries} entries hold together; the hash of the last is {last_hash}" if entries else "there are none"
    asked.line(line, {"entries": entries, "last_hash": last_hash})
