"""`clarion inbox`: what somebody finds in their inbox."""

from typing import TYPE_CHECKING, Annotated

import typer

from clarion.cli import option
from clarion.cli.output import moment, print_json, print_table, say, say_more
from clarion.cli.session import in_session

if TYPE_CHECKING:
    from clarion.cli.session import Session
    from clarion.client import wire_inbox


def inbox(
    reader: Annotated[str, typer.Argument(help="Whose: user:ID or employee:GUID.", metavar="READER")],
    *,
    category: Annotated[str | None, typer.Option(help="Only lines of this category.", metavar="CATEGORY")] = None,
    unread: Annotated[bool, typer.Option("--unread", help="Only lines that were not read.")] = False,
    archived: Annotated[bool, typer.Option("--archived", help="Archived lines, and no others.")] = False,
    limit: option.Limit = 50,
    after: option.After = "",
    tenant: option.Tenant = None,
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """Show what somebody finds in their inbox, newest first, and mark nothing by that."""
    from clarion.client import wire_inbox
    from clarion.operations.inbox import read_reader

    whose = read_reader(reader)
    query = wire_inbox.InboxQuery(
        limit=limit, cursor=after or None, category=category, unread=unread, archived=archived
    )

    async def work(session: "Session") -> "tuple[wire_inbox.InboxPage, wire_inbox.InboxCounts]":
        inboxes = session.operations.inboxes
        return (
            await inboxes.list(session.tenant_id, whose, query, whole=True),
            await inboxes.count(session.tenant_id, whose),
        )

    page, counts = in_session(work, store=store, tenant=tenant)
    if as_json:
        print_json(page)
        return
    asked = category is not None or unread or archived or after
    print_table(
        ("time", "category", "title", "text", "state", "message"),
        [
            (moment(line.created_at), line.category, line.title, _short(line.body), _state(line), line.message_id)
            for line in page.items
        ],
        empty="there is no such line" if asked else "the inbox is empty",
    )
    say_more(page.next_cursor)
    if counts.lines or counts.archived:
        say(f"{counts.lines} in the inbox, {counts.unseen} unseen, {counts.unread} unread; {counts.archived} archived")


TEXT_CHARS_MAX = 60
"""Of a line's text, so that a table stays a table; --json has all of it."""


def _short(text: str | None) -> str | None:
    """Give the beginning of a text, on one line."""
    plain = None if text is None else " ".join(text.split())
    return plain if plain is None or len(plain) <= TEXT_CHARS_MAX else f"{plain[: TEXT_CHARS_MAX - 1]}…"


def _state(line: "wire_inbox.InboxMessage") -> str:
    if line.read_at is not None:
        return "read"
    return "seen" if line.seen_at is not None else "new"
