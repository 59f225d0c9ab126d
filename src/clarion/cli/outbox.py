"""The sandbox's outbox in the terminal: what was sent, as its recipient would see it.

Reads the sandbox's file only, and writes into it that somebody opened a message, and one-time links to the page.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from enum import Enum
from typing import TYPE_CHECKING, Annotated, assert_never

import typer

from clarion.cli import option
from clarion.cli.output import harmless, moment, print_json, print_line, print_pairs, print_table, say
from clarion.cli.serve import HOST, PORT
from clarion.domain.content import ChatContent, Content, EmailContent, InboxContent, PushContent, SmsContent
from clarion.domain.identity import Channel
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.suppression import Signal
from clarion.errors import InvalidInput
from clarion.sandbox.ledger import PAGE_MAX, OutboxPage, SandboxMessage
from clarion.sandbox.view import told_besides

if TYPE_CHECKING:
    from clarion.bootstrap import Settings
    from clarion.sandbox.provider import Outbox

SUMMARY_CHARS = 60
"""Of a message in a list, so that each takes one line."""


class _Said(Enum):
    """What somebody may have the sandbox report: the status, what it says besides, and its words."""

    OPENED = (OutgoingStatus.OPENED, None, "opened")
    STOP = (OutgoingStatus.DELIVERED, Signal.STOP, "answered STOP")
    START = (OutgoingStatus.DELIVERED, Signal.START, "answered START")


def outbox(
    *,
    show: Annotated[int | None, typer.Option(help="Show this message whole.", metavar="NUMBER")] = None,
    opened: Annotated[
        int | None, typer.Option(help="Have the sandbox report that this message was opened.", metavar="NUMBER")
    ] = None,
    stop: Annotated[
        int | None, typer.Option(help="Have the recipient of this message answer STOP.", metavar="NUMBER")
    ] = None,
    start: Annotated[
        int | None, typer.Option(help="Have the recipient of this message answer START.", metavar="NUMBER")
    ] = None,
    link: Annotated[
        bool, typer.Option("--link", help="Print a link that shows the outbox in a browser; it opens once.")
    ] = False,
    server: Annotated[
        str, typer.Option(help="Where the server of such a link is reached.", metavar="URL")
    ] = f"http://{HOST}:{PORT}",
    channel: Annotated[Channel | None, typer.Option(help="Of this channel only.")] = None,
    limit: Annotated[int, typer.Option(help=f"How many to show, {PAGE_MAX} at most.", min=1, max=PAGE_MAX)] = 20,
    before: Annotated[int | None, typer.Option(help="Go on behind this number.", metavar="NUMBER")] = None,
    tenant: Annotated[str | None, typer.Option(help="Of this tenant only.", metavar="TENANT")] = None,
    as_json: option.Json = False,
) -> None:
    """Show what the sandbox was given to send, newest first."""
    if channel is Channel.INBOX:
        raise InvalidInput(
            "the inbox has no provider, so nothing of it is here",
            field="--channel",
            hint="`clarion explain ID` says what was put into an inbox",
        )

    import asyncio

    from clarion.bootstrap import load_settings, require_home

    settings = load_settings()
    whose = tenant or settings.tenant
    if link:
        require_home(settings)
        if not server.startswith(("http://", "https://")):
            raise InvalidInput(
                f"{server!r} is no address of a server", field="--server", hint=f"write it as http://{HOST}:{PORT}"
            )
        made = link_to(settings, server=server, tenant_id=whose)
        print_line(made, {"link": made}, as_json=as_json)
        if not as_json:
            say(f"it opens once, within an hour, while a server runs at {server}; --server names another")
        return
    said = [
        (number, one)
        for number, one in ((opened, _Said.OPENED), (stop, _Said.STOP), (start, _Said.START))
        if number is not None
    ]
    for number, one in said:
        _tell(number, one, new=asyncio.run(_report(settings, number, whose, one)), as_json=as_json)
    if said:
        return
    if show is not None:
        _show(asyncio.run(_find(settings, show, whose)), as_json=as_json)
        return
    page = asyncio.run(_page(settings, before=before, limit=limit, tenant_id=whose, channel=channel))
    if as_json:
        print_json({"items": page.messages, "next_cursor": page.next_before})
        return
    print_table(
        ("no", "time", "channel", "to", "says"),
        [(one.id, moment(one.called_at), one.channel, one.destination, _summary(one.content)) for one in page.messages],
        empty="nothing was sent yet; `clarion send` accepts a notification, `clarion serve` or `clarion work` sends it",
    )
    if page.next_before is not None:
        say(f"more: --before {page.next_before}")


async def _page(
    settings: "Settings", *, before: int | None, limit: int, tenant_id: str | None, channel: Channel | None
) -> OutboxPage:
    async with _opened(settings) as outbox:
        if outbox is None:
            return OutboxPage(messages=(), next_before=None)
        return await outbox.page(before=before, limit=limit, tenant_id=tenant_id, channel=channel)


async def _find(settings: "Settings", number: int, tenant_id: str | None) -> SandboxMessage:
    async with _opened(settings) as outbox:
        return await _found(outbox, number, tenant_id, option_name="--show")


async def _report(settings: "Settings", number: int, tenant_id: str | None, said: _Said) -> bool:
    async with _opened(settings) as outbox:
        found = await _found(outbox, number, tenant_id, option_name=f"--{said.name.lower()}")
        status, signal, _ = said.value
        return outbox is not None and await outbox.report(found.id, status, signal)


@asynccontextmanager
async def _opened(settings: "Settings") -> AsyncIterator["Outbox | None"]:
    """Open the outbox, or give None where nothing was ever sent; makes no file and no folder."""
    from clarion.bootstrap import require_home
    from clarion.sandbox.provider import has_outbox, open_outbox

    require_home(settings)
    url = outbox_url(settings)
    if not has_outbox(url):
        yield None
        return
    opened = open_outbox(url)
    try:
        yield opened
    finally:
        await opened.close()


async def _found(outbox: "Outbox | None", number: int, tenant_id: str | None, *, option_name: str) -> SandboxMessage:
    message = None if outbox is None else await outbox.find(number, tenant_id=tenant_id)
    if message is None:
        raise InvalidInput(
            f"the outbox has no message {number}", field=option_name, hint="`clarion outbox` lists the numbers"
        )
    return message


def link_to(settings: "Settings", *, server: str, tenant_id: str | None) -> str:
    """Make a one-time link to the outbox, as a browser takes it."""
    from clarion.sandbox.provider import make_link

    token = make_link(outbox_url(settings), tenant_id=tenant_id, is_https=server.startswith("https://"))
    return f"{server.rstrip('/')}/sandbox/outbox/link/{token}"


def outbox_url(settings: "Settings") -> str:
    """Find the sandbox account among the providers."""
    from clarion.sandbox.provider import sandbox_url

    url = sandbox_url(settings.providers)
    if url is None:
        raise InvalidInput(
            "no channel is served by the sandbox",
            field="CLARION_PROVIDERS",
            hint="only what the sandbox gets has an outbox; serve a channel with sandbox:///folder/sandbox.db",
        )
    return url


def _tell(number: int, said: _Said, *, new: bool, as_json: bool) -> None:
    status, signal, words = said.value
    if as_json:
        print_json({"number": number, "reported": signal or status, "repeated": not new})
    elif new:
        typer.echo(
            f"message {number} was {words}: `clarion serve` or `clarion demo` takes the receipt in while it runs"
        )
    else:
        typer.echo(f"message {number} was reported as {words} before")


def _show(message: SandboxMessage, *, as_json: bool) -> None:
    if as_json:
        print_json(message)
        return
    print_pairs(
        [
            ("to", f"{message.destination} ({message.channel})"),
            ("sent", moment(message.called_at)),
            ("message", message.message_id),
            ("attempt", message.attempt),
            *((name.lower(), value) for name, value in told_besides(message)),
        ]
    )
    for paragraph in text_of(message.content):
        typer.echo(f"\n{harmless(paragraph)}")


def text_of(content: Content) -> Iterator[str]:
    """Give a content as text; of a mail its text part, since a terminal shows no HTML."""
    match content:
        case EmailContent():
            yield f"Subject: {content.subject}"
            yield content.text
        case SmsContent() | ChatContent():
            yield content.text
        case PushContent() | InboxContent():
            yield content.title
            yield content.body
        case _:
            assert_never(content)


def _summary(content: Content) -> str:
    """Give the first line of what is read first."""
    first = next(text_of(content)).removeprefix("Subject: ")
    line = " ".join(first.split())
    return line if len(line) <= SUMMARY_CHARS else f"{line[: SUMMARY_CHARS - 1]}…"
