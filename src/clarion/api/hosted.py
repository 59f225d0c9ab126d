"""Pages for recipients, who come by a link from a mail and have no login: unsubscribing (RFC 8058) and preferences.

The token in the link is the only authority: no cookie is set or read, so no other site can act for anybody. GET and
HEAD change nothing, however often a scanner of links asks. Every link that does not hold gets the same answer.

Served only where `CLARION_PUBLIC_URL` is set, since without it no link leads here. Links are written with that URL, and
no header of a request says where we are. Whoever asks is a stranger in `crowd`, whatever link they have.
"""

from http import HTTPStatus
from typing import Final

import msgspec
from litestar import HttpMethod, MediaType, Response, post, route
from litestar.params import FromPath

from clarion.api import hosted_page, preference_form
from clarion.api.context import InjectedContext
from clarion.api.contract import Contract
from clarion.api.form import FORM_BYTES_MAX, Form, read_form
from clarion.api.hosted_words import DEFAULT, WORDS, Words
from clarion.api.reading import AnyRequest
from clarion.client.wire import Problem
from clarion.domain import person_link, unsubscribe
from clarion.domain.locale import choose
from clarion.errors import InvalidInput
from clarion.operations.by_link import Guest, Unsubscribing

LANGUAGES: Final = (DEFAULT, *(one for one in WORDS if one != DEFAULT))


class AnyQuery(msgspec.Struct, frozen=True):
    """What mail programs and counters of clicks put behind a link; nobody reads it."""


_ASKED: Final = Contract(tag="pages", grant=None, answer=None, query=AnyQuery).opt
_GIVEN: Final = Contract(tag="pages", grant=None, answer=None, query=AnyQuery, foreign_body=True).opt
_SEEN: Final = (HttpMethod.GET, HttpMethod.HEAD)


@route(f"{unsubscribe.PATH}{{token:str}}", http_method=_SEEN, opt=_ASKED, media_type=MediaType.HTML)
async def ask_unsubscribe(token: FromPath[str], request: AnyRequest, context: InjectedContext) -> Response[str]:
    """Ask whether to unsubscribe; for mail programs that open the link instead of posting to it."""
    try:
        asked = await context.operations.by_link.read_unsubscribing(token)
    except InvalidInput:
        return _bad_link(request)
    words, wanted = _words(request, asked.guest), asked.wanted
    if asked.required:
        return _html(hosted_page.required_page(words, category=wanted.category, channel=wanted.channel))
    return _html(hosted_page.ask_page(words, category=wanted.category, channel=wanted.channel))


@post(
    f"{unsubscribe.PATH}{{token:str}}",
    status_code=HTTPStatus.OK,
    request_max_body_size=FORM_BYTES_MAX,
    opt=_GIVEN,
    media_type=MediaType.HTML,
)
async def unsubscribe_now(token: FromPath[str], request: AnyRequest, context: InjectedContext) -> Response[str]:
    """Unsubscribe, as a mail program asks with one click or a person with the button, or take it back."""
    try:
        asked = await context.operations.by_link.read_unsubscribing(token)
    except InvalidInput:
        return _bad_link(request)
    return await _act(request, context, asked, await read_form(request))


@route(f"{person_link.PATH}{{token:str}}", http_method=_SEEN, opt=_ASKED, media_type=MediaType.HTML)
async def show_preferences(token: FromPath[str], request: AnyRequest, context: InjectedContext) -> Response[str]:
    """Show what somebody gets, on which channels."""
    try:
        preferences = await context.operations.by_link.read_preferences(token)
    except InvalidInput:
        return _bad_link(request)
    return _html(hosted_page.preferences_page(_words(request, preferences.guest), preferences))


@post(
    f"{person_link.PATH}{{token:str}}",
    status_code=HTTPStatus.OK,
    request_max_body_size=preference_form.FORM_BYTES_MAX,
    opt=_GIVEN,
    media_type=MediaType.HTML,
)
async def save_preferences(token: FromPath[str], request: AnyRequest, context: InjectedContext) -> Response[str]:
    """Save what somebody changed on the page."""
    by_link = context.operations.by_link
    try:
        before = await by_link.read_preferences(token)
    except InvalidInput:
        return _bad_link(request)
    words = _words(request, before.guest)
    wanted = preference_form.read(await read_form(request))
    if wanted is None:
        return _html(hosted_page.plain_page(words, words.unread, words.unread_says), status=HTTPStatus.BAD_REQUEST)
    try:
        now = await by_link.choose(before, wanted)
    except InvalidInput:
        shown = hosted_page.preferences_page(words, before, note=hosted_page.refused_note(words))
        return _html(shown, status=HTTPStatus.CONFLICT)
    note = hosted_page.saved_note(words, before=before, now=now)
    return _html(hosted_page.preferences_page(words, now, note=note, said=words.saved))


async def _act(request: AnyRequest, context: InjectedContext, asked: Unsubscribing, form: Form) -> Response[str]:
    """Do what a form says about a link that holds."""
    words, wanted = _words(request, asked.guest), asked.wanted
    category, channel = wanted.category, wanted.channel
    if hosted_page.UNDO in form:
        try:
            await context.operations.by_link.undo(asked, form[hosted_page.UNDO][0])
        except InvalidInput:
            return _bad_link(request)
        return _html(hosted_page.undone_page(words, category=category, channel=channel))
    if form.get(unsubscribe.FIELD) != [unsubscribe.VALUE]:
        return _html(hosted_page.plain_page(words, words.unread, words.unread_says), status=HTTPStatus.BAD_REQUEST)
    if asked.required:
        shown = hosted_page.required_page(words, category=category, channel=channel)
        return _html(shown, status=HTTPStatus.CONFLICT)
    undo = await context.operations.by_link.unsubscribe(asked)
    return _html(hosted_page.unsubscribed_page(words, category=category, channel=channel, undo=undo))


def as_page(request: AnyRequest, said: Problem, headers: dict[str, str]) -> Response[str] | None:
    """Give an error as a page where a browser asks for one of these."""
    asked = request.scope["path"].startswith((unsubscribe.PATH, person_link.PATH))
    if not asked or MediaType.HTML not in request.headers.get("accept", ""):
        return None
    words = WORDS[choose(_asked(request), LANGUAGES)]
    ours = said.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    title, says = (words.failed, words.failed_says) if ours else (words.unread, words.unread_says)
    shown = _html(hosted_page.plain_page(words, title, says), status=HTTPStatus(said.status))
    shown.headers.update(headers)
    return shown


def _bad_link(request: AnyRequest) -> Response[str]:
    """Answer a link that does not hold, in the same way whatever is wrong with it."""
    words = WORDS[choose(_asked(request), LANGUAGES)]
    return _html(hosted_page.plain_page(words, words.bad, words.bad_says), status=HTTPStatus.NOT_FOUND)


def _words(request: AnyRequest, guest: Guest) -> Words:
    return WORDS[guest.reads(_asked(request), LANGUAGES)]


def _asked(request: AnyRequest) -> tuple[str, ...]:
    """Give the languages that a browser asks for, in the order in which it names them."""
    named = request.headers.get("accept-language", "").split(",", 10)[:10]
    return tuple(one.partition(";")[0].strip() for one in named)


def _html(html: str, *, status: HTTPStatus = HTTPStatus.OK) -> Response[str]:
    headers = {"content-security-policy": hosted_page.CSP, "x-robots-tag": "noindex"}
    return Response(html, status_code=status, media_type=MediaType.HTML, headers=headers)


HOSTED: Final = (ask_unsubscribe, unsubscribe_now, show_preferences, save_preferences)
"""Every route of these pages."""
