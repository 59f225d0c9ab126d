"""Unsubscribing by the link in a mail: one click does it, looking never does, and no other link does (X-19)."""

import asyncio
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import timedelta
from urllib.parse import urlsplit

import httpx
import msgspec
import pytest

from clarion.client.wire import Recipient
from clarion.domain.identity import Channel
from clarion.domain.suppression import Cause, Change
from clarion.domain.unsubscribe import Unsubscription, make_token
from clarion.errors import StoreUnreachable
from clarion.ports.catalog import Role
from tests.integration.api_harness import OTHER, ApiHarness, problem, seeded_api
from tests.integration.hosted_use import (
    FORM,
    ONE_CLICK,
    PUBLIC_URL,
    Page,
    acts,
    api_with_pages,
    keys_of,
    link,
    sam,
    send_news,
    stored,
)
from tests.unit.pipeline_line import TENANT

OFF = {"news:email": Cause.UNSUBSCRIBE}


@pytest.fixture
async def api() -> ApiHarness:
    return await api_with_pages()


@pytest.fixture(scope="module")
def still() -> ApiHarness:
    """One API for all tests in which nothing is changed."""
    return asyncio.run(api_with_pages())


async def state_of(api: ApiHarness, job_id: str) -> list[str]:
    async with api.client(Role.SUPPORT) as client:
        return [one["status"] for one in (await client.get(f"/v1/notifications/{job_id}")).json()["messages"]]


async def test_one_click_on_the_link_of_the_first_mail_stops_the_second_that_waits_already(api: ApiHarness) -> None:
    await send_news(api)
    await api.line.drain()
    (call,) = api.provider.calls
    assert call.headers["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    url = call.headers["List-Unsubscribe"].strip("<>")
    assert url.startswith(f"{PUBLIC_URL}/u/")
    second, other = await send_news(api), await send_news(api, to="kim@example.com")
    await api.line.queue()
    api.clock.advance(timedelta(hours=1))
    async with api.client(None) as client:
        answer = await client.post(urlsplit(url).path, data=ONE_CLICK)
        assert "You are unsubscribed" in Page(answer).text
        assert not answer.cookies
    await api.line.drain()
    assert await state_of(api, second) == ["Suppressed"]
    assert [one.destination for one in api.provider.calls[1:]] == ["kim@example.com"], "others get it"
    assert await state_of(api, other) == ["SentToProvider"]
    third = await api.line.send("welcome", Recipient(user="1"))
    await api.line.drain()
    assert await state_of(api, str(third.job_id)) == ["SentToProvider"], "another category goes on"
    assert await stored(api) == OFF


async def test_whoever_has_a_bare_address_unsubscribes_too(api: ApiHarness) -> None:
    await send_news(api, to="kim@example.com")
    await api.line.drain()
    url = api.provider.calls[0].headers["List-Unsubscribe"].strip("<>")
    async with api.client(None) as client:
        Page(await client.post(urlsplit(url).path, data=ONE_CLICK))
    await send_news(api, to="kim@example.com")
    await api.line.drain()
    assert len(api.provider.calls) == 1


async def test_looking_changes_nothing_however_often(still: ApiHarness) -> None:
    """A scanner of links asks for everything, with what counters of clicks put behind a link."""
    path = await link(still)
    async with still.client(None) as client:
        for number in range(100):
            assert (await client.get(f"{path}?utm_source=mail&n={number}")).status_code == 200
            assert (await client.head(path)).status_code == 200
        page = Page(await client.get(path))
    assert page.field("List-Unsubscribe") == "One-Click"
    assert "Nothing has been changed yet." in page.text
    assert (await stored(still), await acts(still)) == ({}, [])


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "OPTIONS"])
async def test_other_methods_change_nothing(still: ApiHarness, method: str) -> None:
    async with still.client(None) as client:
        answer = await client.request(method, await link(still), data=ONE_CLICK)
    assert answer.status_code == (204 if method == "OPTIONS" else 405)
    assert await stored(still) == {}


async def test_a_page_says_nothing_about_what_somebody_gets(api: ApiHarness) -> None:
    """Its link does not end, so whoever finds an old mail must not learn more than stands in it."""
    path = await link(api)
    async with api.client(None) as client:
        before = (await client.get(path)).text
        await client.post(path, data=ONE_CLICK)
        assert (await client.get(path)).text == before


@pytest.mark.parametrize("how", ["form", "quoted multipart", "multipart", "multipart of a browser"])
async def test_one_click_is_read_as_mail_programs_send_it(api: ApiHarness, how: str) -> None:
    part = b'--%b\r\nContent-Disposition: form-data; name="List-Unsubscribe"\r\n\r\nOne-Click\r\n--%b--\r\n'
    sent = {
        "form": ("application/x-www-form-urlencoded; charset=utf-8", b"List-Unsubscribe=One-Click"),
        "multipart": ("multipart/form-data; boundary=x-1", part % (b"x-1", b"x-1")),
        "quoted multipart": ('Multipart/Form-Data; charset=utf-8; boundary="x 1"', part % (b"x 1", b"x 1")),
        "multipart of a browser": (
            "multipart/form-data; boundary=----WebKitFormBoundaryAbC",
            b"preamble\r\n"
            + (part % (b"----WebKitFormBoundaryAbC", b"----WebKitFormBoundaryAbC")).replace(
                b"\r\n\r\nOne", b"\r\nContent-Type: text/plain\r\n\r\nOne"
            ),
        ),
    }
    media_type, body = sent[how]
    async with api.client(None) as client:
        Page(await client.post(await link(api), content=body, headers={"content-type": media_type}))
    assert await stored(api) == OFF


@pytest.mark.parametrize(
    "media_type, body, status",
    [
        ("application/x-www-form-urlencoded", b"", 400),
        ("application/x-www-form-urlencoded", b"List-Unsubscribe=one-click", 400),
        ("application/x-www-form-urlencoded", b"List-Unsubscribe=One-Click&List-Unsubscribe=no", 400),
        ("application/x-www-form-urlencoded", b"x=%FF&List-Unsubscribe=One-Click", 400),
        ("application/x-www-form-urlencoded", b"&".join([b"a=1"] * 2001), 400),
        ("application/x-www-form-urlencoded", b"List-Unsubscribe=One-Click&x=" + b"y" * 65536, 413),
        ("multipart/form-data", b"--x\r\n", 400),
        ("multipart/form-data; boundary=x", b"", 400),
        ("multipart/form-data; boundary=x", b"--x\r\n\r\nOne-Click\r\n--x--", 400),
        ("multipart/form-data; boundary=x", b'--x\r\ncontent-disposition: form-data; name="a"\r\n\r\nOne-Cl', 400),
        ("application/json", b'{"List-Unsubscribe": "One-Click"}', 415),
        ("text/plain", b"List-Unsubscribe=One-Click", 415),
    ],
)
async def test_what_is_no_click_changes_nothing_and_says_so(
    still: ApiHarness, media_type: str, body: bytes, status: int
) -> None:
    headers = {"content-type": media_type, "accept": "text/html"}
    async with still.client(None) as client:
        page = Page(await client.post(await link(still), content=body, headers=headers), status=status)
    assert "Nothing has been changed." in page.text
    assert await stored(still) == {}


async def test_a_compressed_body_is_refused(still: ApiHarness) -> None:
    async with still.client(None) as client:
        answer = await client.post(
            await link(still), content=b"List-Unsubscribe=One-Click", headers=FORM | {"content-encoding": "gzip"}
        )
    assert (answer.status_code, await stored(still)) == (415, {})


async def test_a_second_click_changes_nothing_and_is_answered_alike(api: ApiHarness) -> None:
    path = await link(api)
    async with api.client(None) as client:
        for _ in range(3):
            assert "You are unsubscribed" in Page(await client.post(path, data=ONE_CLICK)).text
    assert await stored(api) == OFF
    assert await acts(api) == [("recipient", "set")]


async def test_a_click_can_be_taken_back_for_an_hour_by_whoever_made_it(api: ApiHarness) -> None:
    path = await link(api)
    async with api.client(None) as client:
        undo = Page(await client.post(path, data=ONE_CLICK)).field("undo")
        again = Page(await client.post(path, data=ONE_CLICK))
        assert again.field("undo") is None, "it changed nothing, so there is nothing to take back"
        api.clock.advance(timedelta(minutes=59))
        assert "You get them again" in Page(await client.post(path, data={"undo": undo})).text
        assert await stored(api) == {}
        undo = Page(await client.post(path, data=ONE_CLICK)).field("undo")
        api.clock.advance(timedelta(hours=1))
        assert "This link does not work" in Page(await client.post(path, data={"undo": undo}), status=404).text
    assert await stored(api) == OFF
    assert await acts(api) == [("recipient", "set")] * 3


async def test_what_takes_one_thing_back_takes_nothing_else_back(api: ApiHarness) -> None:
    """Neither the link itself, nor what came of another category's or another person's."""
    keys = await keys_of(api)
    kim = Unsubscription(recipient_id_hash="ab" * 16, category="news", channel=Channel.EMAIL)
    async with api.client(None) as client:
        path, others = await link(api), [await link(api, channel=Channel.SMS), f"/u/{make_token(keys, kim)}"]
        await client.post(path, data=ONE_CLICK)
        undos = [Page(await client.post(other, data=ONE_CLICK)).field("undo") for other in others]
        for undo in (*undos, path.removeprefix("/u/"), "", "x"):
            assert (await client.post(path, data={"undo": undo})).status_code == 404
    assert "news:email" in await stored(api)


async def test_what_the_person_switched_off_as_a_whole_stays_as_it_is(api: ApiHarness) -> None:
    await api.memory.set_preferences(TENANT, await sam(api), [Change(category="news", on=False)], actor="recipient")
    async with api.client(None) as client:
        page = Page(await client.post(await link(api), data=ONE_CLICK))
    assert page.field("undo") is None
    assert await stored(api) == {"news": Cause.PREFERENCE}


async def test_a_category_that_became_required_is_refused_with_words(still: ApiHarness) -> None:
    path = await link(still, category="billing")
    async with still.client(None) as client:
        shown = Page(await client.get(path))
        assert (shown.all("form"), "are required" in shown.text) == ([], True)
        refused = Page(await client.post(path, data=ONE_CLICK), status=409)
    assert "everybody gets them whom they concern" in refused.text
    assert await stored(still) == {}


async def test_a_category_that_no_type_has_any_more_is_refused_by_nobody(api: ApiHarness) -> None:
    async with api.client(None) as client:
        Page(await client.post(await link(api, category="gone: für immer"), data=ONE_CLICK))
    assert list((await stored(api)).values()) == [Cause.UNSUBSCRIBE]


async def bad_links(api: ApiHarness) -> dict[str, str]:
    """Make links that do not hold: each is wrong in its own way."""
    path = await link(api)
    token = path.removeprefix("/u/")
    content = bytearray(urlsafe_b64decode(token + "=="))
    forged = [bytearray(content) for _ in range(3)]
    forged[0][-1] ^= 1  # the seal
    forged[1][10] ^= 1  # the serial of the key
    forged[2][20] ^= 1  # the nonce
    others = await keys_of(api, OTHER)
    wanted = Unsubscription(recipient_id_hash=await sam(api), category="news", channel=Channel.EMAIL)
    theirs = urlsafe_b64decode(make_token(others, wanted) + "==")
    as_ours = b"\x06school" + theirs[1 + len(OTHER) :]
    nobody = b"\x06nobody" + bytes(content[7:])

    def write(one: bytes) -> str:
        return f"/u/{urlsafe_b64encode(one).decode().rstrip('=')}"

    return {
        **{f"forged {number}": write(bytes(one)) for number, one in enumerate(forged)},
        "cut off": path[:-3],
        "cut to nothing": "/u/a",
        "longer": f"{path}AAAA",
        "too long": f"/u/{'A' * 501}",
        "another tenant's": write(as_ours),
        "of no tenant": write(nobody),
        "no base64": "/u/%C3%A4",
        "another list's": await swapped(api),
    }


async def swapped(api: ApiHarness) -> str:
    """Put the sealed text of one list behind the header of another's link."""
    one, other = [
        urlsafe_b64decode(path.removeprefix("/u/") + "==")
        for path in (await link(api), await link(api, category="billing"))
    ]
    return f"/u/{urlsafe_b64encode(one[:24] + other[24:]).decode().rstrip('=')}"


async def test_every_link_that_does_not_hold_gets_the_same_answer_and_changes_nothing(still: ApiHarness) -> None:
    answers: set[tuple[int, str, str]] = set()
    async with still.client(None) as client:
        for path in (await bad_links(still)).values():
            for answer in (await client.get(path), await client.post(path, data=ONE_CLICK)):
                headers = {name: value for name, value in answer.headers.items() if name != "x-correlation-id"}
                answers.add((answer.status_code, str(sorted(headers.items())), answer.text))
    ((status, _, html),) = answers
    assert status == 404
    assert "This link does not work" in html
    assert await stored(still) == {}


async def test_a_forged_link_is_as_much_work_as_one_of_no_tenant(still: ApiHarness) -> None:
    """How long an answer takes must not tell which tenants there are."""
    links, asked = await bad_links(still), []
    find = still.memory.find_tenant_keys

    async def counted(tenant_id: str) -> object:
        asked.append(tenant_id)
        return await find(tenant_id)

    still.memory.find_tenant_keys = counted  # type: ignore[method-assign, assignment]  # a spy, which passes it on
    counts = []
    async with still.client(None) as client:
        for name in ("forged 0", "forged 1", "another tenant's", "of no tenant"):
            asked.clear()
            await client.get(links[name])
            counts.append(len(asked))
    assert counts == [1, 1, 1, 1]


async def test_a_link_works_after_the_tenant_got_a_new_key_and_a_new_one_too(api: ApiHarness) -> None:
    path, keys = await link(api), await keys_of(api)
    rotated = msgspec.structs.replace(keys, data_keys={**keys.data_keys, 2: bytes(range(32))})
    api.line.keyring._known[TENANT] = rotated
    newer = await link(api)
    assert newer != path
    async with api.client(None) as client:
        for one in (path, newer):
            assert "You are unsubscribed" in Page(await client.post(one, data=ONE_CLICK)).text
    assert await stored(api) == OFF


async def test_a_link_does_not_end(api: ApiHarness) -> None:
    path = await link(api)
    api.clock.advance(timedelta(days=400))
    async with api.client(None) as client:
        assert "You are unsubscribed" in Page(await client.post(path, data=ONE_CLICK)).text


@pytest.mark.parametrize("asked, heading", [("de-AT,de;q=0.9", "Abmelden"), ("fr, en;q=0.5", "Unsubscribe"), ("", "U")])
async def test_a_page_is_in_a_language_that_its_reader_has(still: ApiHarness, asked: str, heading: str) -> None:
    async with still.client(None) as client:
        page = Page(await client.get(await link(still), headers={"accept-language": asked}))
    assert heading in page.text
    assert page.all("html") == [{"lang": "de" if heading == "Abmelden" else "en"}]


async def test_without_a_public_url_there_are_no_such_pages() -> None:
    api = await seeded_api()
    async with api.client(None) as client:
        assert problem(await client.get(await link(api)))["status"] == 404
        assert problem(await client.post(await link(api), data=ONE_CLICK))["status"] == 404


async def test_a_store_that_fails_is_said_in_words_and_the_answer_can_be_asked_for_again(api: ApiHarness) -> None:
    path = await link(api)
    api.failing.error = StoreUnreachable("it does not answer", hint="wait")
    api.failing.only = frozenset({"set_preferences"})
    async with api.client(None) as client:
        page = Page(await client.post(path, data=ONE_CLICK, headers={"accept": "text/html"}), status=503)
        assert "try again in a few minutes" in page.text
        api.failing.error = None
        Page(await client.post(path, data=ONE_CLICK))
    assert await stored(api) == OFF


async def test_a_page_loads_nothing_runs_nothing_sets_nothing_and_is_kept_by_nobody(api: ApiHarness) -> None:
    async with api.client(None) as client:
        answers = [await client.get(await link(api)), await client.post(await link(api), data=ONE_CLICK)]
        answers.append(await client.get("/u/forged"))
    for answer in answers:
        hold_to_form(answer)


def hold_to_form(answer: httpx.Response) -> None:
    """Hold a page to what is true of every page."""
    page, headers = Page(answer, status=answer.status_code), answer.headers
    policy = headers["content-security-policy"]
    assert {"default-src 'none'", "form-action 'self'", "frame-ancestors 'none'"} <= set(policy.split("; "))
    assert "script" not in policy
    assert (headers["cache-control"], headers["referrer-policy"]) == ("no-store", "no-referrer")
    assert "set-cookie" not in headers
    assert not [tag for tag, _ in page.tags if tag in ("script", "img", "link", "iframe")]
    assert len(page.all("h1")) == len(page.all("main")) == len(page.all("title")) == 1
    assert all("action" not in one and one["method"] == "post" for one in page.all("form")), "also behind a prefix"
    assert "sam@example.com" not in answer.text
