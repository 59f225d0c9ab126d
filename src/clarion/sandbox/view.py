"""A message of the outbox as its recipient would see it, as one HTML page.

A mail is shown as it is, since that is the point; everything else is text and is escaped. The page is somebody's
template with somebody's data, so whoever serves it sends `CSP` with it: no script runs, nothing is fetched but images,
and the page belongs to no origin (X-17). Pure.
"""

from collections.abc import Iterator
from html import escape
from typing import Final, assert_never

import msgspec

from clarion.domain.content import ChatContent, EmailContent, InboxContent, PushContent, SmsContent
from clarion.domain.hint import Hints
from clarion.sandbox.ledger import SandboxMessage

CSP: Final = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src https: data:; frame-ancestors 'self'"

_PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ margin: 0; background: #f1f4f2; color: #16302a; font: 16px/24px "Segoe UI", Roboto, sans-serif; }}
main {{ max-width: 22rem; margin: 2rem auto; padding: 0 1rem; }}
article {{ background: #fff; border-radius: {radius}; padding: .9rem 1.1rem; overflow-wrap: anywhere; }}
h1 {{ font-size: 1rem; margin: 0 0 .25rem; }}
p {{ margin: 0; white-space: pre-wrap; }}
footer {{ margin: .6rem .3rem; font-size: .8rem; color: #5b6b66; }}
</style>
</head>
<body><main><article>{body}</article><footer>{footer}</footer></main></body>
</html>
"""


def told_besides(message: SandboxMessage) -> Iterator[tuple[str, str]]:
    """Name what came with a message besides its content: headers of a mail, and hints for the provider."""
    yield from message.headers.items()
    for name, value in msgspec.to_builtins(message.hints or Hints()).items():
        yield f"Hint {name}", ", ".join(value) if isinstance(value, list | tuple) else str(value)


def as_page(message: SandboxMessage) -> str:
    """Write the page."""
    content = message.content
    match content:
        case EmailContent():
            return content.html
        case SmsContent() | ChatContent():
            return _page(message, title=f"{message.channel} message", body=_text(content.text), radius="1.1rem")
        case PushContent() | InboxContent():
            body = f"<h1>{escape(content.title)}</h1>{_text(content.body)}"
            return _page(message, title=content.title, body=body, radius=".6rem")
        case _:
            assert_never(content)


def _page(message: SandboxMessage, *, title: str, body: str, radius: str) -> str:
    footer = f"{message.channel} to {message.destination}" if message.destination else str(message.channel)
    return _PAGE.format(title=escape(title), body=body, radius=radius, footer=escape(footer))


def _text(text: str) -> str:
    return f"<p>{escape(text)}</p>" if text else ""
