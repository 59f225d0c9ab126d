"""`clarion uncertain`: messages of which nobody knows whether they arrived, and sending one again all the same."""

from collections.abc import Sequence
from typing import Annotated

import typer

from clarion.cli import option
from clarion.cli.desk import Desk, at_desk, require_reason
from clarion.cli.output import print_json, print_table, say
from clarion.cli.ring import ring_once
from clarion.errors import Conflict
from clarion.ports.insights import DoubtLine

uncertain = typer.Typer(help="Messages of which nobody knows whether they arrived.")
uncertain.callback(invoke_without_command=True)(option.help_without_command)


@uncertain.command("list")
def list_uncertain(
    limit: option.Limit = 50,
    after: option.AfterNumber = 0,
    tenant: option.Tenant = None,
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """List them, with the version that `retry` asks for."""

    async def work(desk: Desk) -> Sequence[DoubtLine]:
        return await desk.store.list_doubts(desk.tenant_id, after=after, limit=limit)

    doubts = at_desk(work, store=store, tenant=tenant)
    following = doubts[-1].id if len(doubts) == limit else None
    if as_json:
        print_json({"items": doubts, "next": following})
        return
    print_table(
        ("id", "version", "since", "channel", "account", "message", "reason"),
        [(one.id, one.version, one.since_at, one.channel, one.account, one.message_id, one.reason) for one in doubts],
        empty="nothing is uncertain",
    )
    if following is not None:
        say(f"more: --after {following}")


@uncertain.command()
def retry(
    outgoing: option.RowId,
    *,
    version: Annotated[
        int,
        typer.Option(
            help="The version in the list: if it has moved on, nothing happens.", min=1, max=option.NUMBER_MAX
        ),
    ],
    reason: Annotated[str, typer.Option(help="Why it is right to risk a second message; kept with your name.")],
    tenant: option.Tenant = None,
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """Send one again although it may have arrived."""
    require_reason(reason)

    async def work(desk: Desk) -> None:
        moved = await desk.store.retry_outgoing(
            desk.tenant_id, outgoing, version=version, actor=desk.actor, reason=reason
        )
        if not moved:
            raise Conflict(
                f"the message {outgoing} is no longer uncertain at version {version}, was canceled, or is out of time",
                hint="`clarion uncertain list` shows how it stands",
            )
        await ring_once(desk.platform)

    at_desk(work, store=store, tenant=tenant)
    if as_json:
        print_json({"id": outgoing, "retried": True})
    else:
        typer.echo(f"it will be sent again: {outgoing}")
