"""The sandbox's outbox as pages for a browser. Pure: what is shown comes in, HTML goes out.

Everything is escaped; no script, nothing is fetched; the message itself is shown in a frame of its own, which belongs
to no origin (`sandbox.view`).
"""

from base64 import b64encode
from hashlib import sha256
from html import escape
from typing import Final, assert_never
from urllib.parse import urlencode

from clarion.domain.content import ChatContent, Content, EmailContent, InboxContent, PushContent, SmsContent
from clarion.domain.identity import Channel
from clarion.sandbox.ledger import OutboxPage, SandboxMessage

PATH: Final = "/sandbox/outbox"
LINK_PATH: Final = f"{PATH}/link"

_STYLE: Final = """
:root { color-scheme: light; --ink: #16302a; --soft: #52635d; --line: #d5ddd9; --paper: #fff; --ground: #f1f4f2;
  --accent: #0b6b53; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 16px/1.5 "Segoe UI", Roboto, sans-serif; }
a { color: var(--accent); }
a:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
header, main { max-width: 60rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 1.5rem; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .25rem; overflow-wrap: anywhere; }
.lead { margin: 0 0 1.25rem; color: var(--soft); }
nav.channels { display: flex; flex-wrap: wrap; gap: .5rem; margin-bottom: 1rem; }
nav.channels a { padding: .2rem .8rem; border: 1px solid var(--line); border-radius: 2rem; background: var(--paper);
  text-decoration: none; }
nav.channels a[aria-current] { background: var(--accent); border-color: var(--accent); color: #fff; }
ol { list-style: none; margin: 0; padding: 0; background: var(--paper); border: 1px solid var(--line);
  border-radius: .6rem; overflow: hidden; }
li + li { border-top: 1px solid var(--line); }
li a { display: grid; grid-template-columns: 4.5rem 1fr auto; gap: .1rem 1rem; padding: .8rem 1rem; color: inherit;
  text-decoration: none; }
li a:hover, li a:focus-visible { background: #f6faf8; outline-offset: -3px; }
li strong, li .to { grid-column: 2; min-width: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
li .to { color: var(--soft); }
li time { grid-column: 3; grid-row: 1; color: var(--soft); white-space: nowrap; }
.tag { grid-column: 1; grid-row: 1; align-self: start; justify-self: start; font-size: .8rem; padding: .05rem .6rem;
  margin-top: .15rem; border-radius: 1rem; background: #e0efe9; color: #0b5341; }
.pages { display: flex; gap: 1rem; margin: 1rem 0 2rem; }
.empty { background: var(--paper); border: 1px dashed #9fb0a9; border-radius: .6rem; padding: 2rem 1.5rem; }
.empty p { margin: 0 0 .75rem; }
code, pre { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: .9rem; }
pre { margin: 0; padding: 1rem; background: var(--ground); border-radius: .4rem; white-space: pre-wrap; }
dl { display: flex; flex-wrap: wrap; gap: .6rem 2.25rem; margin: .75rem 0 1.25rem; }
dt { font-size: .85rem; color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
iframe { display: block; width: 100%; height: 20rem; border: 1px solid var(--line); border-radius: .6rem;
  background: var(--paper); }
iframe.mail { height: 75vh; min-height: 32rem; }
details { margin: 1rem 0 2rem; }
summary { cursor: pointer; padding: .25rem 0; color: var(--accent); }
@media (max-width: 34rem) {
  li a { grid-template-columns: 1fr auto; }
  li strong, li .to { grid-column: 1 / -1; }
  li time { grid-column: 2; }
}
"""

CSP: Final = (
    "default-src 'none'; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    f"style-src 'sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}'"
)


def list_page(page: OutboxPage, *, channel: Channel | None, before: int | None, page_size: int) -> str:
    """Write the list, newest first."""
    rows = "".join(map(_row, page.messages))
    body = f"<ol>{rows}</ol>" if rows else _empty(channel=channel, before=before)
    links = []
    if before is not None:
        links.append(f'<a href="{_list(channel)}">Newest</a>')
    if page.next_before is not None:
        links.append(f'<a rel="next" href="{_list(channel, before=page.next_before)}">Older</a>')
    pages = f'<nav class="pages" aria-label="Pages">{"".join(links)}</nav>' if links else ""
    lead = f"What the sandbox was given to send, newest first, {page_size} a page. Nothing of it has left this machine."
    return _page(
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
    ]
    listed = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts)
    size, text = "", ""
    if isinstance(message.content, EmailContent):
        size = ' class="mail"'
        text = f"<details><summary>The text part</summary><pre>{escape(message.content.text)}</pre></details>"
    source = f"{PATH}/{message.id}/content"
    frame = f'<iframe title="The message as its recipient sees it"{size} src="{source}" sandbox></iframe>'
    return _page(
        title=title,
        head=f'<p><a href="{PATH}">All messages</a></p><h1>{escape(title)}</h1>',
        body=f"<dl>{listed}</dl>{frame}{text}",
    )


def let_in_page() -> str:
    """Write what leads from a one-time link to the messages, by itself and by hand."""
    return _page(
        title="Sandbox outbox",
        head="<h1>Sandbox outbox</h1>",
        body=f'<div class="empty"><p><a href="{PATH}">See the messages</a></p></div>',
        more=f'<meta http-equiv="refresh" content="0; url={PATH}">',
    )


def problem_page(*, title: str, detail: str) -> str:
    """Write why there is nothing to see."""
    return _page(
        title=title,
        head=f'<p><a href="{PATH}">All messages</a></p><h1>{escape(title)}</h1>',
        body=f'<div class="empty"><p>{escape(detail)}</p></div>',
    )


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


def _page(*, title: str, head: str, body: str, more: str = "") -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)} - Clarion</title>{more}<style>{_STYLE}</style></head>"
        f"<body><header>{head}</header><main>{body}</main></body></html>\n"
    )
