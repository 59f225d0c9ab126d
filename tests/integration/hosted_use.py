"""What tests of the pages for recipients share: an API that has them, links from mail, and pages taken apart."""

from html.parser import HTMLParser

import httpx

from clarion.client.wire import Recipient
from clarion.domain.identity import Channel, Identity
from clarion.domain.person_link import preferences_token
from clarion.domain.seal import TenantKeys
from clarion.domain.suppression import Cause
from clarion.domain.unsubscribe import Unsubscription, make_token
from tests.integration.api_harness import ApiHarness
from tests.unit.pipeline_line import TENANT

PUBLIC_URL = "https://clarion.example.com"
NEWS = {"edition": "May", "intro": "Hello.", "stories": []}
ONE_CLICK = {"List-Unsubscribe": "One-Click"}
FORM = {"content-type": "application/x-www-form-urlencoded"}


class Page(HTMLParser):
    """A page: its tags with their attributes, and its text without the style."""

    def __init__(self, answer: httpx.Response, *, status: int = 200) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._in_style = False
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        self.feed(answer.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._in_style = tag == "style"

    def handle_endtag(self, tag: str) -> None:
        self._in_style = False

    def handle_data(self, data: str) -> None:
        if not self._in_style:
            self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    def field(self, name: str) -> str | None:
        """Give the value of a field, or None where the page has none such."""
        values = [one["value"] for one in self.all("input") if one.get("name") == name]
        return values[0] if values else None


async def api_with_pages() -> ApiHarness:
    api = ApiHarness(public_url=PUBLIC_URL)
    await api.seed()
    return api


async def keys_of(api: ApiHarness, tenant_id: str = TENANT) -> TenantKeys:
    return await api.line.keyring.get(tenant_id)


async def sam(api: ApiHarness) -> str:
    """Give the recipient hash of the person whom the harness knows."""
    return (await keys_of(api)).hash_of(Identity.user("1"))


async def link(api: ApiHarness, *, category: str = "news", channel: Channel = Channel.EMAIL) -> str:
    """Make a link for Sam as mail has it; the path alone."""
    wanted = Unsubscription(recipient_id_hash=await sam(api), category=category, channel=channel)
    return f"/u/{make_token(await keys_of(api), wanted)}"


async def send_news(api: ApiHarness, to: str | Recipient = Recipient(user="1")) -> str:  # noqa: B008  frozen
    """Accept a newsletter; return the id of its job."""
    return str((await api.line.send("newsletter", to, data=NEWS)).job_id)


async def stored(api: ApiHarness, subject: str | None = None) -> dict[str, Cause]:
    """Give the scopes that are suppressed for a recipient, or for Sam."""
    subject = subject or await sam(api)
    return (await api.memory.find_suppressions(TENANT, [subject])).get(subject, {})


async def acts(api: ApiHarness) -> list[tuple[str, str]]:
    """Give who did what, of what recipients did by links."""
    entries = await api.memory.list_audit(TENANT, limit=100)
    return [(one.actor, one.act) for one in entries if one.actor == "recipient"]


async def preferences_link(api: ApiHarness, recipient_id_hash: str | None = None) -> str:
    """Make a link to the preferences of Sam or of somebody else; the path alone."""
    token = preferences_token(await keys_of(api), recipient_id_hash or await sam(api), made_at=api.clock.now())
    return f"/p/{token}"
