"""The sandbox's outbox in a browser: what it shows, to whom, and that nothing in a message can break out of it."""

import asyncio
import re
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest

from clarion.catalog.access import Access
from clarion.domain.call import Call
from clarion.domain.content import ChatContent, Content, EmailContent, PushContent, SmsContent
from clarion.domain.identity import Channel
from clarion.domain.quota import Limits
from clarion.ports.catalog import Role
from clarion.sandbox.ledger import Ledger
from clarion.sandbox.link import Visitor
from clarion.sandbox.provider import make_link, open_provider
from tests.integration.api_harness import OTHER, ApiHarness, problem, running_api
from tests.integration.api_server import serving
from tests.unit.pipeline_line import TENANT

EVIL = '"><script>alert(1)</script><img src=x onerror=alert(1)>'


@asynccontextmanager
async def api_with(
    folder: Path, *messages: tuple[Content, str, str], by_server: bool = False
) -> AsyncIterator[ApiHarness]:
    """Open an API whose sandbox has sent these: content, destination, tenant; or leave it to a server to start it."""
    file = folder / "sandbox.db"
    async with AsyncExitStack() as stack:
        api = ApiHarness(sandbox=file)
        await api.seed()
        if not by_server:
            await stack.enter_async_context(api.door.lifespan())
        provider = await open_provider(f"sandbox://{file}", clock=api.clock)
        for number, (content, destination, tenant_id) in enumerate(messages):
            kinds = {EmailContent: Channel.EMAIL, SmsContent: Channel.SMS, PushContent: Channel.PUSH}
            call = Call(
                idempotency_key=f"k{number}",
                message_id=api.platform.ids.new_guid(),
                tenant_id=tenant_id,
                channel=kinds.get(type(content), Channel.CHAT),
                destination=destination,
                content=content,
                attempt=1,
                correlation_id="c-1",
            )
            await provider.send(call)
            api.clock.advance(timedelta(seconds=1))
        await provider.close()
        yield api


def sms(text: str, tenant_id: str = TENANT) -> tuple[Content, str, str]:
    return SmsContent(text=text), "+447700900123", tenant_id


class Page(HTMLParser):
    """Reads a page: its tags with their attributes, and its text."""

    def __init__(self, answer: httpx.Response, *, status: int = 200) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        self.feed(answer.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


async def test_messages_are_listed_newest_first_page_by_page(tmp_path: Path) -> None:
    async with (
        api_with(tmp_path, *[sms(f"message {number}.") for number in range(30)]) as api,
        api.client() as client,
    ):
        first = Page(await client.get("/sandbox/outbox"))
        shown = re.findall(r"message (\d+)\.", first.text)
        assert shown == [str(number) for number in range(29, 4, -1)]
        (older,) = [link["href"] for link in first.all("a") if link.get("rel") == "next"]
        second = Page(await client.get(str(older)))
        assert re.findall(r"message (\d+)\.", second.text) == ["4", "3", "2", "1", "0"]
        assert not [link for link in second.all("a") if link.get("rel") == "next"]


async def test_an_outbox_without_messages_says_how_to_send_one(tmp_path: Path) -> None:
    async with api_with(tmp_path) as api, api.client() as client:
        assert "clarion send welcome" in Page(await client.get("/sandbox/outbox")).text
        assert "nothing older" in Page(await client.get("/sandbox/outbox?before=1")).text
        assert "has a template for it" in Page(await client.get("/sandbox/outbox?channel=push")).text
        assert "The inbox has no provider" in Page(await client.get("/sandbox/outbox?channel=inbox")).text


async def test_one_channel_can_be_shown_alone(tmp_path: Path) -> None:
    mail = (EmailContent(subject="A mail", html="<p>Hi</p>", text="Hi"), "sam@example.com", TENANT)
    async with api_with(tmp_path, sms("A text"), mail) as api, api.client() as client:
        page = Page(await client.get("/sandbox/outbox?channel=email"))
        assert ("A mail" in page.text, "A text" in page.text) == (True, False)
        assert [link.get("href") for link in page.all("a") if "aria-current" in link] == [
            "/sandbox/outbox?channel=email"
        ]
        assert (await client.get("/sandbox/outbox?channel=pigeon")).status_code == 422


async def test_a_mail_is_shown_as_its_recipient_sees_it_in_a_frame_that_belongs_to_no_origin(tmp_path: Path) -> None:
    html = "<html><body><h1>Hi Sam</h1><script>alert(1)</script></body></html>"
    mail = (EmailContent(subject="Hi Sam", html=html, text="Hi <Sam>"), "sam@example.com", TENANT)
    async with api_with(tmp_path, mail) as api, api.client() as client:
        answer = await client.get("/sandbox/outbox/1")
        page = Page(answer)
        (frame,) = page.all("iframe")
        assert frame["sandbox"] in (None, "")
        assert "sam@example.com" in page.text
        assert "Hi <Sam>" in page.text
        content = await client.get(str(frame["src"]))
    assert content.text == html
    policy = content.headers["content-security-policy"]
    assert policy.startswith("sandbox;")
    assert "default-src 'none'" in policy
    assert "script" not in policy


@pytest.mark.parametrize(
    "content",
    [
        EmailContent(subject=EVIL, html="<p>x</p>", text=EVIL),
        SmsContent(text=EVIL),
        PushContent(title=EVIL, body=EVIL),
        ChatContent(text=EVIL),
    ],
)
async def test_nothing_in_a_message_breaks_out_of_a_page(tmp_path: Path, content: Content) -> None:
    async with api_with(tmp_path, (content, EVIL, TENANT)) as api, api.client() as client:
        for path in ("/sandbox/outbox", "/sandbox/outbox/1", "/sandbox/outbox/1/content"):
            page = Page(await client.get(path))
            assert not page.all("script")
            assert not page.all("img")
            assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]


async def test_a_page_may_style_itself_and_frame_the_message_and_nothing_else(tmp_path: Path) -> None:
    async with api_with(tmp_path, sms("Hi")) as api, api.client() as client:
        for path in ("/sandbox/outbox", "/sandbox/outbox/1"):
            answer = await client.get(path)
            (style,) = re.findall(r"<style>(.*?)</style>", answer.text, re.DOTALL)
            digest = b64encode(sha256(style.encode()).digest()).decode()
            assert set(answer.headers["content-security-policy"].split("; ")) == {
                *("default-src 'none'", "frame-src 'self'", "base-uri 'none'", "form-action 'none'"),
                *("frame-ancestors 'none'", f"style-src 'sha256-{digest}'"),
            }
            assert "style=" not in answer.text.replace(style, "")


async def test_a_page_is_named_says_its_language_and_labels_what_has_no_words(tmp_path: Path) -> None:
    async with api_with(tmp_path, *[sms("Hi")] * 26) as api, api.client() as client:
        for path in ("/sandbox/outbox", "/sandbox/outbox/1", "/sandbox/outbox?before=10"):
            page = Page(await client.get(path))
            assert [tag["lang"] for tag in page.all("html")] == ["en"]
            assert len(page.all("h1")) == len(page.all("main")) == len(page.all("title")) == 1
            assert all(tag.get("aria-label") for tag in page.all("nav"))
            assert all(tag.get("title") for tag in page.all("iframe"))
            assert all(tag.get("datetime") for tag in page.all("time"))


async def test_a_number_that_no_message_has_is_not_found(tmp_path: Path) -> None:
    async with api_with(tmp_path, sms("Hi")) as api, api.client() as client:
        for number in ("2", "0", "99999999999999999999", "x"):
            answer = await client.get(f"/sandbox/outbox/{number}")
            assert (answer.status_code, problem(answer)["code"]) == (404, "not-found")


BROWSER = {"accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


async def test_a_browser_is_told_on_a_page_what_a_program_is_told_as_a_problem(tmp_path: Path) -> None:
    async with api_with(tmp_path) as api, api.client() as client:
        for path, status in (("/2", 404), ("/x", 404), ("/2/content", 404), ("?channel=pigeon", 422)):
            answer = await client.get(f"/sandbox/outbox{path}", headers=BROWSER)
            page = Page(answer, status=status)
            assert problem(await client.get(f"/sandbox/outbox{path}"))["detail"] in page.text
            assert [link["href"] for link in page.all("a")] == ["/sandbox/outbox"]
            assert "style-src 'sha256-" in answer.headers["content-security-policy"]
        problem(await client.get("/sandbox/outboxes", headers=BROWSER))
    async with api_with(tmp_path / "other") as api, api.client(None) as client:
        problem(await client.get("/v1/types", headers=BROWSER))
        stranger = await client.get("/sandbox/outbox", headers=BROWSER)
        assert "API key" in Page(stranger, status=401).text
        assert stranger.headers["www-authenticate"].startswith("Basic ")


@pytest.mark.parametrize(
    "path, role, heading, leads_on",
    [
        ("/2", Role.ADMIN, "There is no such message", True),
        ("", None, "The outbox is locked", False),
        (f"/link/{'0' * 64}", None, "This link was used up", False),
    ],
)
async def test_an_error_page_has_a_plain_heading_and_a_way_on_only_where_it_leads_somewhere(
    tmp_path: Path, path: str, role: Role | None, heading: str, *, leads_on: bool
) -> None:
    async with api_with(tmp_path) as api, api.client(role) as client:
        answer = await client.get(f"/sandbox/outbox{path}", headers=BROWSER)
    assert f"<h1>{heading}</h1>" in answer.text
    assert "`" not in answer.text
    assert ("All messages" in answer.text) is leads_on
    assert ("<code>clarion outbox --link</code>" in answer.text) is not leads_on


async def test_where_there_is_no_outbox_a_browser_is_sent_to_none() -> None:
    async with running_api() as api, api.client() as client:
        assert problem(await client.get("/sandbox/outbox", headers=BROWSER))["code"] == "not-found"


PATHS = ("/sandbox/outbox", "/sandbox/outbox/1", "/sandbox/outbox/1/content")


@pytest.mark.parametrize("host", ["127.0.0.1:8025", "localhost", "[::1]:8025", "clarion.example.com", ""])
async def test_whoever_has_neither_key_nor_session_sees_nothing_wherever_they_sit(tmp_path: Path, host: str) -> None:
    """A proxy on the same machine asks under a local name, from a loopback address, for anybody."""
    async with (
        api_with(tmp_path, sms("Your code is 4711"), by_server=True) as api,
        serving(api) as port,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers={"host": host}) as client,
    ):
        for path in PATHS:
            answer = await client.get(path)
            assert (answer.status_code, problem(answer)["code"]) == (401, "unauthenticated")
            assert answer.headers["www-authenticate"].startswith("Basic ")
            assert "4711" not in answer.text


async def test_a_one_time_link_lets_one_browser_in(tmp_path: Path) -> None:
    async with api_with(tmp_path, sms("Ours"), sms("Theirs", OTHER), by_server=True) as api, serving(api) as port:
        link = "/sandbox/outbox/link/" + make_link(f"sandbox://{tmp_path}/sandbox.db", tenant_id=TENANT)
        base_url = f"http://127.0.0.1:{port}"
        async with httpx.AsyncClient(base_url=base_url) as first, httpx.AsyncClient(base_url=base_url) as second:
            opened = await first.get(link)
            cookie = opened.headers["set-cookie"]
            assert [link["href"] for link in Page(opened).all("a")] == ["/sandbox/outbox"]
            assert {part.strip() for part in cookie.split(";")[1:]} == {
                *("HttpOnly", "SameSite=strict", "Path=/sandbox/outbox", "Max-Age=7200"),
            }
            page = Page(await first.get("/sandbox/outbox"))
            assert ("Ours" in page.text, "Theirs" in page.text) == (True, False)
            assert [(await first.get(path)).status_code for path in PATHS] == [200, 200, 200]
            assert (await first.get("/sandbox/outbox/2")).status_code == 404

            used = await second.get(link, headers=BROWSER)
            assert "clarion outbox --link" in Page(used, status=410).text
            assert "set-cookie" not in used.headers
            assert (await second.get("/sandbox/outbox")).status_code == 401
            assert (await first.get(link)).status_code == 200  # a page that is loaded again


@pytest.mark.parametrize("is_https", [False, True])
async def test_the_session_of_a_link_by_https_is_never_sent_without_it(tmp_path: Path, is_https: bool) -> None:
    """Behind a proxy that speaks TLS the server sees plain HTTP, and whoever asks could claim anything else."""
    async with api_with(tmp_path, sms("Ours"), by_server=True) as api, serving(api) as port:
        token = make_link(f"sandbox://{tmp_path}/sandbox.db", tenant_id=TENANT, is_https=is_https)
        claims = {"x-forwarded-proto": "https", "x-forwarded-ssl": "on", "forwarded": "proto=https;host=a.example"}
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=claims) as client:
            if is_https:  # the mark cannot be taken off
                bare = await client.get(f"/sandbox/outbox/link/{token.removeprefix('https-')}")
                assert bare.status_code == 410
            opened = await client.get(f"/sandbox/outbox/link/{token}")
        assert opened.status_code == 200
        assert ("Secure" in {part.strip() for part in opened.headers["set-cookie"].split(";")}) == is_https
        assert "strict-transport-security" not in opened.headers


async def test_a_link_lets_in_one_of_many_who_open_it_at_the_same_moment(tmp_path: Path) -> None:
    """Of one server, and of two over one file."""
    url = f"sandbox://{tmp_path}/sandbox.db"
    async with (
        api_with(tmp_path, sms("Ours"), by_server=True) as api,
        serving(api) as port,
        api_with(tmp_path, by_server=True) as beside,
        serving(beside) as another,
    ):
        link = f"/sandbox/outbox/link/{make_link(url, tenant_id=TENANT)}"
        clients = [httpx.AsyncClient(base_url=f"http://127.0.0.1:{one}") for one in (port, another) * 8]
        answers = await asyncio.gather(*(client.get(link) for client in clients))
        for client in clients:
            await client.aclose()
    assert sorted(answer.status_code for answer in answers) == [200] + [410] * 15
    assert sum("set-cookie" in answer.headers for answer in answers) == 1


async def test_the_pages_count_as_requests_of_the_key_that_opens_them(tmp_path: Path) -> None:
    async with api_with(tmp_path, sms("Ours")) as api, api.client(None) as client:
        key = api.keys[TENANT, Role.SUPPORT]
        limits = Limits(requests=2)
        access = Access(api.memory, clock=api.clock)
        await access.set_quota(TENANT, limits, key_id=key.split("_")[1], actor="ada")
        statuses = [(await client.get(path, auth=("", key))).status_code for path in PATHS]
        assert statuses == [200, 200, 429]


async def test_the_token_of_a_link_is_no_session_and_no_key(tmp_path: Path) -> None:
    async with api_with(tmp_path, sms("Hi")) as api, api.client(None) as client:
        token = make_link(f"sandbox://{tmp_path}/sandbox.db", tenant_id=None)
        assert (await client.get("/sandbox/outbox", headers={"cookie": f"clarion_outbox={token}"})).status_code == 401
        assert (await client.get("/sandbox/outbox", auth=("", token))).status_code == 401
        assert (await client.get("/sandbox/outbox/link/" + "0" * 64)).status_code == 410


def test_links_and_sessions_expire_and_a_link_opens_once(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "sandbox.db")
    try:
        late = ledger.links.make(tenant_id=TENANT, lasts=timedelta(0))
        assert ledger.links.exchange(late) is None
        short = ledger.links.exchange(ledger.links.make(tenant_id=TENANT), lasts=timedelta(0))
        assert short is not None
        assert ledger.links.find_visitor(short) is None
        link = ledger.links.make(tenant_id=None)
        session = ledger.links.exchange(link)
        assert session is not None
        assert ledger.links.find_visitor(session) == Visitor(tenant_id=None)
        assert ledger.links.exchange(link) is None
        assert ledger.links.exchange(session) is None  # a session is not made longer by using it as a link
        kept = (tmp_path / "sandbox.db-wal").read_bytes()
        assert not [one for one in (late, short, link, session) if one.encode() in kept]
    finally:
        ledger.close()


async def test_a_key_that_may_reveal_messages_shows_those_of_its_own_tenant(tmp_path: Path) -> None:
    messages = [sms("Ours", TENANT), sms("Theirs", OTHER)]
    async with api_with(tmp_path, *messages) as api:
        for role in Role:
            password = ("", api.keys[TENANT, role])
            async with api.client(None, base_url="https://clarion.example.com", auth=password) as client:
                answer = await client.get("/sandbox/outbox")
                if role not in (Role.SUPPORT, Role.ADMIN):
                    assert answer.status_code == 401
                    continue
                page = Page(answer)
                assert ("Ours" in page.text, "Theirs" in page.text) == (True, False)
                assert (await client.get("/sandbox/outbox/1/content")).status_code == 200
                assert (await client.get("/sandbox/outbox/2")).status_code == 404
                assert (await client.get("/sandbox/outbox/2/content")).status_code == 404
