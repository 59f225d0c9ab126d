"""The sandbox's outbox in a browser: what was sent, as its recipient would see it. Only where the sandbox is in use.

The pages show addresses and contents, so nobody sees them without saying who they are, wherever they sit: a proxy on
this machine makes everybody look local. Either a one-time link was opened in this browser, which then has a session for
a while, or the browser is given an API key that may reveal messages, as the password that it asks for.
"""

from base64 import b64decode
from http import HTTPStatus
from typing import Annotated, Final

import msgspec
from litestar import MediaType, Response, get
from litestar.datastructures import Cookie
from litestar.params import FromPath, PathParameter

from clarion.api import outbox_page, page
from clarion.api.authentication import admit, authorization, bearer_token, recognise
from clarion.api.context import ApiContext, InjectedContext
from clarion.api.contract import Contract
from clarion.api.problem import Refusal, found
from clarion.api.reading import AnyRequest, read_query
from clarion.catalog.access import Grant
from clarion.client.wire import ROW_ID_MAX, Problem
from clarion.domain.identity import Channel
from clarion.sandbox import view
from clarion.sandbox.ledger import SandboxMessage
from clarion.sandbox.link import SESSION_LASTS, is_https

PAGE_SIZE: Final = 25
"""As many as one looks through before searching."""

MessageNumber = Annotated[int, PathParameter(ge=0, le=ROW_ID_MAX - 1)]

_PAGE: Final = Contract(tag="sandbox", grant=None, answer=None).opt
_CHALLENGE: Final = {"www-authenticate": 'Basic realm="clarion sandbox", charset="UTF-8"'}
_SESSION: Final = "clarion_outbox"
"""The cookie that has a browser's session."""


class OutboxQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which messages to list."""

    channel: Channel | None = None
    before: Annotated[int, msgspec.Meta(ge=0, le=ROW_ID_MAX)] | None = None


_LIST: Final = Contract(tag="sandbox", grant=None, answer=None, query=OutboxQuery).opt


@get(outbox_page.PATH, opt=_LIST, media_type=MediaType.HTML)
async def show_outbox(request: AnyRequest, context: InjectedContext) -> Response[str]:
    """List the messages, newest first."""
    tenant_id = await _whose(request, context)
    query = read_query(request, OutboxQuery)
    listed = await context.outbox.page(before=query.before, limit=PAGE_SIZE, tenant_id=tenant_id, channel=query.channel)
    html = outbox_page.list_page(listed, channel=query.channel, before=query.before, page_size=PAGE_SIZE)
    return _html(html, csp=page.CSP)


@get(f"{outbox_page.LINK_PATH}/{{token:str}}", opt=_PAGE, media_type=MediaType.HTML)
async def open_link(token: FromPath[str], request: AnyRequest, context: InjectedContext) -> Response[str]:
    """Let the browser in that opens a one-time link first.

    It is answered with a page that leads on and not with a redirect: after a redirect from a link on another site the
    browser would not send a cookie that is meant for this site only.
    """
    shown = _html(outbox_page.let_in_page(), csp=page.CSP)
    session = await context.outbox.exchange(token)
    if session is not None:
        cookie = Cookie(
            key=_SESSION,
            value=session,
            path=outbox_page.PATH,
            max_age=int(SESSION_LASTS.total_seconds()),
            httponly=True,
            samesite="strict",
            secure=is_https(token) or request.scope["scheme"] == "https",
        )
        shown.set_cookie(cookie)
    elif await context.outbox.find_visitor(request.cookies.get(_SESSION, "")) is None:
        raise Refusal(
            HTTPStatus.GONE,
            "link-used-up",
            "this link was opened before, or it is too old: `clarion outbox --link` makes another",
        )
    return shown


@get(f"{outbox_page.PATH}/{{number:int}}", opt=_PAGE, media_type=MediaType.HTML)
async def show_message(number: MessageNumber, request: AnyRequest, context: InjectedContext) -> Response[str]:
    """Show one message, with what is known of it."""
    return _html(outbox_page.message_page(await _find(request, context, number)), csp=page.CSP)


@get(f"{outbox_page.PATH}/{{number:int}}/content", opt=_PAGE, media_type=MediaType.HTML)
async def show_content(number: MessageNumber, request: AnyRequest, context: InjectedContext) -> Response[str]:
    """Show the message alone, for the frame in its page."""
    return _html(view.as_page(await _find(request, context, number)), csp=view.CSP)


def as_page(request: AnyRequest, said: Problem, headers: dict[str, str]) -> Response[str] | None:
    """Give an error as a page where a browser asks for one of the outbox's."""
    asked = f"{request.scope['path']}/".startswith(f"{outbox_page.PATH}/")
    if not asked or MediaType.HTML not in request.headers.get("accept", ""):
        return None
    shown = _html(outbox_page.problem_page(said), csp=page.CSP)
    shown.status_code = said.status
    shown.headers.update(headers)
    return shown


async def _find(request: AnyRequest, context: ApiContext, number: int) -> SandboxMessage:
    message = await context.outbox.find(number, tenant_id=await _whose(request, context))
    return found(message, "message in the outbox")


async def _whose(request: AnyRequest, context: ApiContext) -> str | None:
    """Tell whose messages may be seen: those of the session or of the key; None for everybody's."""
    visitor = await context.outbox.find_visitor(request.cookies.get(_SESSION, ""))
    if visitor is not None:
        recognise(request, visitor.tenant_id or "")
        return visitor.tenant_id
    caller = await context.access.check(bearer_token(request) or _password(authorization(request)))
    if caller is None or not caller.may(Grant.REVEAL):
        raise Refusal(
            HTTPStatus.UNAUTHORIZED,
            "unauthenticated",
            "open the link that `clarion outbox --link` prints, or give an API key with the role support or admin "
            "as the password",
            headers=_CHALLENGE,
        )
    await admit(request, caller, context.meter)
    recognise(request, caller.tenant_id)
    return caller.tenant_id


def _password(header: str) -> str:
    """Read the password of basic authentication; anything else is an empty one, which is nobody's."""
    scheme, _, given = header.partition(" ")
    if scheme.lower() != "basic":
        return ""
    try:
        return b64decode(given, validate=True).decode().partition(":")[2]
    except ValueError:
        return ""


def _html(html: str, *, csp: str) -> Response[str]:
    headers = {"content-security-policy": csp}
    return Response(html, media_type=MediaType.HTML, headers=headers)
