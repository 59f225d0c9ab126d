"""Links in a mail's body: an author writes one, and each recipient gets their own, on which the pages act."""

import re
from datetime import timedelta
from urllib.parse import urlsplit

import msgspec
import pytest

from clarion.client.wire import Recipient
from clarion.domain.call import Call, Deferred
from clarion.domain.content import EmailContent
from clarion.ports.catalog import Role
from tests.integration.api_harness import ApiHarness
from tests.integration.hosted_use import ONE_CLICK, PUBLIC_URL, Page, api_with_pages, keys_of, stored
from tests.integration.test_hosted_preferences import FILES, OFFERS
from tests.unit.pipeline_line import TENANT

MAIL = (
    "<mjml><mj-body><mj-section><mj-column><mj-text>"
    '<a href="{{ PREFERENCES_LINK }}">Choose</a> <a href="{{ LEAVE_LINK }}">Leave</a>'
    "</mj-text></mj-column></mj-section></mj-body></mjml>"
)
LINKS = {"PREFERENCES_LINK": "{{ public_url }}/p/mine", "LEAVE_LINK": "{{ public_url }}/u/mine"}


@pytest.fixture
async def api() -> ApiHarness:
    """Make an API with a mail whose body has both links."""
    api = await api_with_pages()
    definition = OFFERS | {"channels": ["email"], "links": LINKS}
    files = {name: text for name, text in FILES.items() if name.startswith("email")}
    files |= {"email.mjml.liquid": MAIL, "email.text.liquid": "{{ PREFERENCES_LINK }} {{ LEAVE_LINK }}"}
    async with api.client(Role.AUTHOR) as author:
        answer = await author.put("/v1/types/offers", json={"definition": definition, "files": files})
    assert answer.status_code in (200, 201), answer.text
    return api


def links(call: Call) -> tuple[str, str]:
    """Give the paths of both links of a mail that was sent, which its two parts agree on."""
    content = call.content
    assert isinstance(content, EmailContent)
    found = [re.findall(rf"{PUBLIC_URL}/[pu]/[\w-]+", text) for text in (content.html, content.text)]
    assert found[0] == found[1]
    preferences, leave = found[0]
    return urlsplit(preferences).path, urlsplit(leave).path


async def test_each_recipient_of_a_mail_gets_links_of_their_own_and_they_work(api: ApiHarness) -> None:
    await api.line.send("offers", Recipient(user="1"), also=(Recipient(address="kim@example.com"),), data={})
    await api.line.drain()
    sams, kims = map(links, sorted(api.provider.calls, key=lambda call: call.destination, reverse=True))
    assert not set(sams) & set(kims)
    async with api.client(None) as client:
        assert "What you get" in Page(await client.get(sams[0])).text
        assert "You are unsubscribed" in Page(await client.post(sams[1], data=ONE_CLICK)).text
        assert "“offers” by email" in Page(await client.get(kims[1])).text
    assert list(await stored(api)) == ["offers:email"]
    await api.line.send("offers", Recipient(user="1"), also=(Recipient(address="kim@example.com"),), data={})
    await api.line.drain()
    assert [call.destination for call in api.provider.calls[2:]] == ["kim@example.com"]


async def test_a_retry_after_midnight_and_after_a_new_key_sends_the_same_bytes(api: ApiHarness) -> None:
    """I-15: its links too, and they hold. It becomes due on the next day, and is made another day later."""
    now = api.clock.now()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    api.clock.advance(midnight - now - timedelta(milliseconds=100))
    api.provider.answers = [Deferred(reason="busy")]
    await api.line.send("offers", Recipient(user="1"), data={})
    await api.line.drain()
    keys = await keys_of(api)
    rotated = msgspec.structs.replace(keys, data_keys={**keys.data_keys, 2: bytes(range(32))})
    api.line.keyring._known[TENANT] = rotated
    await api.line.wait(2 * 86_400)
    first, second = api.provider.calls
    assert second.content == first.content
    async with api.client(None) as client:
        for path in links(second):
            assert (await client.get(path)).status_code == 200
