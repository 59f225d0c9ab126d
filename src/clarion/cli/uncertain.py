"""`clarion uncertain`: messages of which nobody knows whether they arrived, and sending one again all the same."""

from typing import Annotated

import typer

from clarion.cli import option
from clarion.cli.asked import AskedPage, lists
from clarion.cli.output import print_line
from clarion.cli.session import Session, in_session, require_reason
from clarion.client import wire, wire_support
from clarion.errors import Conflict

uncertain = typer.Typer(help="Messages of which nobody knows whether they arrived.")


@uncertain.command("list")
@lists
def list_uncertain(asked: AskedPage) -> None:
    """List them, with the version that `retry` asks for."""
    asked.show(
        asked.run(lambda it: it.operations.support.list_uncertain(it.tenant_id, asked.query)),
        head=("id", "version", "since", "channel", "account", "message", "reason"),
        row=lambda one: (one.id, one.version, one.since_at, one.channel, one.account, one.message_id, one.reason),
        empty="nothing is uncertain",
    )


@uncertain.command()
def retry(
    outgoing: option.RowId,
    *,
    version: Annotated[
        int,
        typer.Option(help="The version in the list: if it has moved on, nothing happens.", min=1, max=wire.ROW_ID_MAX),
    ],
    reason: Annotated[str, typer.Option(help="Why it is right to risk a second message; kept with your name.")],
    tenant: option.Tenant = None,
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """Send one again although it may have arrived."""
    require_reason(reason)

    async def work(session: Session) -> wire_support.Retried | None:
        try:
            return await session.operations.support.retry_message(
                session.tenant_id, outgoing, version=version, actor=session.actor, reason=reason
            )
        except Conflict:
            return None

    retried = in_session(work, store=store, tenant=tenant)
    if retried is None:
        raise Conflict(
            f"the message {outgoing} is no longer uncertain at version {version}, was canceled, or is out of time",
            hint="`clarion uncertain list` shows how it stands",
        )
    print_line(f"it will be sent again: {outgoing}", retried, as_json=as_json)
