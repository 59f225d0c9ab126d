"""The sandbox's outbox as pages for a browser. Pure: what is shown comes in, HTML goes out.

Everything is escaped; no script, nothing is fetched; the message itself is shown in a frame of its own, which belongs
to no origin (`sandbox.view`).
"""

import re
from html import escape
from typing import Final, assert_never
from urllib.parse import urlencode

from clarion.api import page
from clarion.client.wire import Problem
from clarion.domain.content import ChatContent, Content, EmailContent, InboxContent, PushContent, SmsContent
from clarion.domain.identity import Channel
from clarion.sandbox.ledger import OutboxPage, SandboxMessage
from clarion.sandbox.view import told_besides

PATH: Final = "/sandbox/outbox"
LINK_PATH: Final = f"{PATH}/link"


def list_page(found: OutboxPage, *, channel: Channel | None, before: int | None, page_size: int) -> str:
    """Write the list, newest first."""
    rows = "".join(map(_row, found.messages))
    body = f"<ol>{rows}</ol>" if rows else _empty(channel=channel, before=before)
    links = []
    if before is not None:
        links.append(f'<a href="{_list(channel)}">Newest</a>')
    if found.next_before is not None:
        links.append(f'<a rel="next" href="{_list(channel, before=found.next_before)}">Older</a>')
    pages = f'<nav class="pages" aria-label="Pages">{"".join(links)}</nav>' if links else ""
    lead = f"What the sandbox was given to send, newest first, {page_size} a page. Nothing of it has left this machine."
    return page.write(
        title="Sandbox outbox",
        head=f'<h1>Sandbox outbox</h1><p class="lead">{lead}</p>{_channels(channel)}',
        body=body + pages,
    )


def message_page(message: SandboxMessage) -> str:
    """Write one message: what is known of it, and the message as its recipient would see it."""
    title = _heading(message.content)
    facts = [
        ("To", escape(message.destination)),
        ("Channel", escape(message.channel)),
        ("Sent", _time(message)),
        ("Attempt", str(message.attempt)),
        ("Tenant", escape(message.tenant_id)),
        ("Message", f"<code>{message.message_id}</code>"),
        ("Request", f"<code>{escape(message.correlation_id)}</code>"),
        *((escape(name), escape(value)) for name, value in told_besides(message)),
    ]
    listed = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts)
    size, text = "", ""
    if isinstance(message.content, EmailContent):
        size = ' class="mail"'
        text = f"<details><summary>The text part</summary><pre>{escape(message.content.text)}</pre></details>"
    source = f"{PATH}/{message.id}/content"
    frame = f'<iframe title="The message as its recipient sees it"{size} src="{source}" sandbox></iframe>'
    return page.write(
        title=title,
        head=f'<p><a href="{PATH}">All messages</a></p><h1>{escape(title)}</h1>',
        body=f"<dl>{listed}</dl>{frame}{text}",
    )


def let_in_page() -> str:
    """Write what leads from a one-time link to the messages, by itself and by hand."""
    return page.write(
        title="Sandbox outbox",
        head="<h1>Sandbox outbox</h1>",
        body=f'<div class="empty"><p><a href="{PATH}">See the messages</a></p></div>',
        more=f'<meta http-equiv="refresh" content="0; url={PATH}">',
    )


def problem_page(problem: Problem) -> str:
    """Write why there is nothing to see; the way to all messages is shown to those whom it lets in."""
    title = _HEADINGS.get(problem.code, problem.title)
    link = "" if problem.code in _SHUT else f'<p><a href="{PATH}">All messages</a></p>'
    detail = _CODE.sub(r"<code>\1</code>", escape(problem.detail))
    return page.write(
        title=title, head=f"{link}<h1>{escape(title)}</h1>", body=f'<div class="empty"><p>{detail}</p></div>'
    )


_HEADINGS: Final = {
    "unauthenticated": "The outbox is locked",
    "link-used-up": "This link was used up",
    "not-found": "There is no such message",
}
"""In plain words what a status would say in those of HTTP."""

_SHUT: Final = frozenset({"unauthenticated", "link-used-up"})
_CODE: Final = re.compile(r"`([^`]*)`")


def summary(content: Content) -> str:
    """Give what a recipient reads first."""
    match content:
        case EmailContent(subject=subject):
            text = subject
        case SmsContent(text=text) | ChatContent(text=text):
            pass
        case PushContent(title=title) | InboxContent(title=title):
            text = title
        case _:
            assert_never(content)
    return " ".join(text.split()) or "(without words)"


def _heading(content: Content) -> str:
    """Give a message's page its name: that of the message, if it has one apart from its text."""
    match content:
        case SmsContent():
            return "Text message"
        case ChatContent():
            return "Chat message"
        case EmailContent() | PushContent() | InboxContent():
            return summary(content)
        case _:
            assert_never(content)


def _row(message: SandboxMessage) -> str:
    return (
        f'<li><a href="{PATH}/{message.id}"><span class="tag">{escape(message.channel)}</span>'
        f"<strong>{escape(summary(message.content))}</strong>{_time(message)}"
        f'<span class="to">{escape(message.destination)}</span></a></li>'
    )


def _empty(*, channel: Channel | None, before: int | None) -> str:
    if before is not None:
        return '<div class="empty"><p>There is nothing older.</p></div>'
    if channel is Channel.INBOX:
        return '<div class="empty"><p>The inbox has no provider, so nothing of it is here.</p></div>'
    where = f" on {channel}" if channel else ""
    how = (
        "<p>Send something, while the workers run, and look again:</p>"
        '<pre>clarion send welcome --to someone@example.com --data \'{"name": "Robin"}\'</pre>'
        if channel in (None, Channel.EMAIL)
        else "<p>Send a notification that has a template for it, while the workers run, and look again; "
        "<code>clarion types</code> lists the channels of each.</p>"
    )
    return f'<div class="empty"><p><strong>Nothing was sent{where} yet.</strong></p>{how}</div>'


def _channels(current: Channel | None) -> str:
    """Write the links that show one channel only."""
    links = []
    for channel in (None, *(one for one in Channel if one is not Channel.INBOX)):
        mark = ' aria-current="page"' if channel is current else ""
        links.append(f'<a href="{_list(channel)}"{mark}>{escape(channel or "all")}</a>')
    return f'<nav class="channels" aria-label="Channels">{"".join(links)}</nav>'


def _list(channel: Channel | None, *, before: int | None = None) -> str:
    given = {name: value for name, value in (("channel", channel), ("before", before)) if value is not None}
    return escape(f"{PATH}?{urlencode(given)}" if given else PATH)


def _time(message: SandboxMessage) -> str:
    return f'<time datetime="{message.called_at.isoformat()}">{message.called_at:%Y-%m-%d %H:%M:%S} UTC</time>'
