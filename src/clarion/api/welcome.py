"""The page at `/`, for people who open the server's address in a browser: it says where things are.

It shows nothing that needs a key. `clarion demo` has it, `clarion serve` only where it is asked to.
"""

from html import escape
from typing import Final

from litestar import MediaType, Response, get

import clarion
from clarion.api import outbox_page, page
from clarion.api.context import InjectedContext
from clarion.api.contract import Contract
from clarion.api.reading import AnyRequest

PATH: Final = "/"

_SEND: Final = """curl -s {url}/v1/notifications \\
  -H "Authorization: Bearer $CLARION_KEY" -H "Content-Type: application/json" \\
  -d '{{"type": "welcome", "to": [{{"address": "someone@example.com"}}], "data": {{"name": "Robin"}}}}'"""


@get(PATH, opt=Contract(tag="pages", grant=None, answer=None).opt, media_type=MediaType.HTML)
async def show_welcome(request: AnyRequest, context: InjectedContext) -> Response[str]:
    """Say where things are."""
    html = welcome_page(
        url=f"{request.scope['scheme']}://{request.headers.get('host', '')}",
        open_paths=context.open_paths,
        has_outbox=context.open_outbox is not None,
    )
    return Response(html, media_type=MediaType.HTML, headers={"content-security-policy": page.CSP})


def welcome_page(*, url: str, open_paths: tuple[str, ...], has_outbox: bool) -> str:
    """Write the page; only what is served here is named."""
    rows = {outbox_page.PATH: _OUTBOX} if has_outbox else {}
    rows |= {path: said for path, said in _SAYS.items() if path in open_paths}
    listed = "".join(
        f'<div><dt><a href="{escape(path)}">{escape(path)}</a></dt><dd>{said}</dd></div>' for path, said in rows.items()
    )
    return page.write(
        title="Clarion",
        head="<h1>Clarion</h1>"
        '<p class="lead">Tell it what happened, and everyone who should know hears of it, once. '
        f"This is its HTTP API, version {escape(clarion.__version__)}.</p>",
        body=f'<h2 id="places">Where things are</h2><dl class="places" aria-labelledby="places">{listed}</dl>'
        '<h2 id="send">Send something</h2><p>In a terminal where <code>clarion</code> is installed:</p>'
        '<pre>clarion send welcome --to someone@example.com --data \'{"name": "Robin"}\'</pre>'
        "<p>Or over HTTP, with an API key, which <code>clarion keys create</code> makes:</p>"
        f"<pre>{escape(_SEND.format(url=url))}</pre>"
        "<p>The answer has the id of the notification. <code>clarion explain ID</code> tells what became of it.</p>",
    )


_OUTBOX: Final = (
    "What was sent, as its recipients would see it. It opens by a one-time link: the demo printed one when it started, "
    "and <code>clarion outbox --link</code> prints another."
)
_SAYS: Final = {
    "/openapi.json": "The HTTP API, described for programs (OpenAPI 3.1).",
    "/ready": "Whether requests should be sent here now.",
    "/health": "Whether the process lives.",
    "/metrics": "Counts, times and gauges, as Prometheus reads them.",
}
