"""What anybody may see: the page that says where things are, and what an operator may close."""

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import httpx
import msgspec
import pytest

from clarion.api.app import create_app, create_watch
from clarion.cli.serve import print_doors
from clarion.ports.catalog import Role
from tests.integration.api_harness import WELCOME, ApiHarness, problem

PATHS = {"metrics": "/metrics", "openapi": "/openapi.json", "page": "/"}


class Page(HTMLParser):
    """Reads the tags of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def names(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


async def serving_only(*shown: str, sandbox: Path | None = None) -> ApiHarness:
    api = ApiHarness(sandbox=sandbox)
    await api.seed()
    api.door = create_app(api.platform, wake=api.wake_ups.append, metrics=api.metrics, shown=shown)
    return api


@pytest.mark.parametrize("shown", [(), ("metrics",), ("openapi",), ("page",), ("metrics", "openapi", "page")])
async def test_only_what_is_opened_is_there(shown: tuple[str, ...]) -> None:
    api = await serving_only(*shown)
    async with api.client(None) as client:
        for name, path in PATHS.items():
            answer = await client.get(path)
            if name in shown:
                assert answer.status_code == 200
            else:
                assert (answer.status_code, problem(answer)["code"]) == (404, "not-found")
                assert ("/openapi.json" in problem(answer)["detail"]) == ("openapi" in shown)
        assert (await client.get("/health")).status_code == 200
        if "openapi" in shown:
            described = msgspec.json.decode((await client.get("/openapi.json")).content)["paths"]
            assert ("/metrics" in described) == ("metrics" in shown)


@pytest.mark.parametrize("shown", [(), ("openapi",)])
async def test_a_refusal_names_the_description_only_where_it_is_served(shown: tuple[str, ...]) -> None:
    api = await serving_only(*shown)
    async with api.client(Role.ADMIN) as client:
        refusals = [
            await client.post("/v1/notifications", json={**WELCOME, "lane": 7}),
            await client.get("/v1/notifications", params={"limit": "x"}),
            await client.get("/v1/nothing"),
        ]
    assert [answer.status_code for answer in refusals] == [422, 422, 404]
    for answer in refusals:
        assert ("/openapi.json" in problem(answer)["detail"]) == ("openapi" in shown)


async def test_what_is_moved_is_served_elsewhere_and_nothing_else_is() -> None:
    api = await serving_only()
    transport = httpx.ASGITransport(create_watch(api.platform, metrics=api.metrics, described=True))  # type: ignore[arg-type]  # ASGI, spelled otherwise
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:9100") as client:
        for path in ("/metrics", "/openapi.json", "/health"):
            assert (await client.get(path)).status_code == 200
        for path in ("/", "/ready", "/v1/types"):
            assert (await client.get(path)).status_code == 404


@pytest.mark.parametrize("sandbox", [True, False])
async def test_the_page_names_what_is_there_and_nothing_else(tmp_path: Path, sandbox: bool) -> None:
    api = await serving_only("openapi", "page", sandbox=tmp_path / "sandbox.db" if sandbox else None)
    async with api.door.lifespan(), api.client(None) as client:
        answer = await client.get("/")
        page = Page(answer.text)
        links = [str(link["href"]) for link in page.names("a")]
        assert links == [*(["/sandbox/outbox"] if sandbox else []), "/openapi.json", "/ready", "/health"]
        assert {link: (await client.get(link)).status_code for link in links} == {
            link: 401 if link == "/sandbox/outbox" else 200 for link in links
        }


async def test_the_page_loads_nothing_runs_nothing_and_can_be_read_by_everybody() -> None:
    api = await serving_only("page")
    async with api.client(None, base_url="https://clarion.example.com") as client:
        answer = await client.get("/")
    page = Page(answer.text)
    (style,) = re.findall(r"<style>(.*?)</style>", answer.text, re.DOTALL)
    digest = b64encode(sha256(style.encode()).digest()).decode()
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert f"style-src 'sha256-{digest}'" in policy
    assert "script" not in policy
    assert not [tag for tag, _ in page.tags if tag in ("script", "img", "link", "iframe", "form")]
    assert [tag["lang"] for tag in page.names("html")] == ["en"]
    assert len(page.names("h1")) == len(page.names("main")) == len(page.names("title")) == 1
    assert "https://clarion.example.com/v1/notifications" in answer.text


@pytest.mark.parametrize(
    "host,who",
    [
        ("127.0.0.1", "programs on this machine"),
        ("::1", "programs on this machine"),
        ("::", "everybody who reaches any address of this machine"),
        ("192.0.2.7", "everybody who reaches 192.0.2.7"),
    ],
)
def test_the_start_says_what_is_open_to_whom(capsys: pytest.CaptureFixture[str], host: str, who: str) -> None:
    print_doors(host, ("openapi",), has_outbox=True, watch=(host, "http://127.0.0.1:9100"))
    said = capsys.readouterr().out
    assert re.search(rf"^reached by +{re.escape(who)}", said, re.MULTILINE)
    assert re.search(r"^open to all of them +/health /ready /openapi.json$", said, re.MULTILINE)
    assert "http://127.0.0.1:9100/metrics" in said
    assert re.search(rf"^they are +{re.escape(who)}", said, re.MULTILINE)
    assert "/sandbox/outbox" in said


def test_the_start_says_that_pages_are_open_to_whoever_has_a_link(capsys: pytest.CaptureFixture[str]) -> None:
    print_doors("127.0.0.1", (), has_outbox=False, has_pages=True)
    assert re.search(r"^by links in mail +/u /p$", capsys.readouterr().out, re.MULTILINE)


def test_the_page_about_workers_shows_what_the_start_says(capsys: pytest.CaptureFixture[str]) -> None:
    print_doors("127.0.0.1", ("metrics", "openapi"), has_outbox=True)
    said = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    page = (Path(__file__).parents[2] / "docs/how-to/run-workers.md").read_text(encoding="utf-8").splitlines()
    begin = page.index(said[0])
    assert page[begin : begin + len(said)] == said


def test_the_start_names_nothing_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    print_doors("127.0.0.1", (), has_outbox=False)
    said = capsys.readouterr().out
    assert re.search(r"^open to all of them +/health /ready$", said, re.MULTILINE)
    assert re.search(r"^with an API key +/v1$", said, re.MULTILINE)
    assert "watch" not in said
    assert "they are" not in said
