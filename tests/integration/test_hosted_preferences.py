"""The page of preferences: what it shows to whom, what saving does, and that a link opens nothing but its own."""

import asyncio
from datetime import timedelta
from urllib.parse import parse_qsl, urlencode

import httpx
import pytest

from clarion.catalog.people import People, PersonEntry
from clarion.client.wire import Recipient
from clarion.domain.identity import Channel, Identity
from clarion.domain.person_link import preferences_token
from clarion.domain.suppression import Cause, Change, Suppression
from clarion.ports.catalog import Role
from tests.integration.api_harness import OTHER, ApiHarness
from tests.integration.hosted_use import (
    FORM,
    ONE_CLICK,
    Page,
    acts,
    api_with_pages,
    keys_of,
    link,
    preferences_link,
    sam,
    send_news,
    stored,
)
from tests.integration.test_hosted_unsubscribe import hold_to_form
from tests.unit.pipeline_line import TENANT, TRACE

OFFERS = {
    "key": "offers",
    "title": "Offers",
    "category": "offers",
    "channels": ["email", "sms", "inbox"],
    "may_unsubscribe": True,
}
FILES = {
    "email.subject.liquid": "Offer",
    "email.text.liquid": "An offer",
    "email.mjml.liquid": "<mjml><mj-body><mj-section><mj-column><mj-text>An offer</mj-text></mj-column></mj-section>"
    "</mj-body></mjml>",
    "sms.liquid": "An offer",
    "inbox.liquid": "Offer\n\nAn offer",
}
ALL = {"email:news", "email:offers", "sms:offers", "inbox:offers"}


async def api_with_offers() -> ApiHarness:
    """Make an API whose tenant has a category on three channels besides that of the newsletter."""
    api = await api_with_pages()
    async with api.client(Role.AUTHOR) as author:
        answer = await author.put("/v1/types/offers", json={"definition": OFFERS, "files": FILES})
    assert answer.status_code in (200, 201), answer.text
    return api


@pytest.fixture
async def api() -> ApiHarness:
    return await api_with_offers()


@pytest.fixture(scope="module")
def still() -> ApiHarness:
    """One API for all tests in which nothing is changed."""
    return asyncio.run(api_with_offers())


def filled_in(page: Page, **ticks: bool) -> bytes:
    """Fill the first form of a page in as a browser would: `email_news=False` takes that tick out."""
    pairs: list[tuple[str, str]] = []
    for one in page.all("input"):
        name, value = one.get("name"), one.get("value") or ""
        if name is None or "disabled" in one:
            continue
        wanted = ticks.get(value.replace(":", "_"), "checked" in one)
        if one["type"] == "hidden" or wanted:
            pairs.append((name, value))
    return urlencode(pairs).encode()


def ticked(page: Page) -> set[str]:
    return {
        str(one["value"])
        for one in page.all("input")
        if one["type"] == "checkbox" and "checked" in one and "name" in one
    }


async def save(client: httpx.AsyncClient, path: str, body: bytes, *, status: int = 200) -> Page:
    return Page(await client.post(path, content=body, headers=FORM | {"accept": "text/html"}), status=status)


def undo_of(page: Page) -> bytes:
    """Give what the button that takes the last change back sends: the fields before the first box."""
    first = next(place for place, (tag, attributes) in enumerate(page.tags) if tag == "fieldset")
    hidden = [one for tag, one in page.tags[:first] if tag == "input"]
    return urlencode([(str(one["name"]), str(one["value"])) for one in hidden]).encode()


async def test_the_page_has_every_category_on_its_channels_and_says_which_are_required(still: ApiHarness) -> None:
    async with still.client(None) as client:
        page = Page(await client.get(await preferences_link(still)))
    boxes = [one for one in page.all("input") if one["type"] == "checkbox"]
    assert ticked(page) == ALL == {str(one["value"]) for one in boxes if "name" in one}
    greyed = [one for one in boxes if "name" not in one]
    assert greyed
    assert all("disabled" in one for one in greyed), "what is required cannot be sent"
    for name in ("account", "billing", "safety", "security"):
        assert name in page.text
    assert "These are required: everybody gets them whom they concern." in page.text
    assert "School newsletter" in page.text


async def test_the_page_can_be_used_by_everybody(still: ApiHarness) -> None:
    """Every box is in a label with words, every group has a name; nothing needs a script or a mouse."""
    async with still.client(None) as client:
        answer = await client.get(await preferences_link(still))
    hold_to_form(answer)
    page = Page(answer)
    assert page.all("html") == [{"lang": "en"}]
    assert len(page.all("fieldset")) == len(page.all("legend")) > 5
    labels = answer.text.split("<label>")[1:]
    assert len(labels) == len([one for one in page.all("input") if one["type"] == "checkbox"])
    for label in labels:
        words = label.partition("</label>")[0].partition("<span>")[2]
        assert words.partition("</span>")[0].strip()
    assert not [one for _, one in page.tags if "tabindex" in one or "style" in one or "onclick" in one]


async def test_nobody_is_named_on_the_page(still: ApiHarness) -> None:
    async with still.client(None) as client:
        text = (await client.get(await preferences_link(still))).text
    for private in ("Sam", "Sample", "sam@example.com", "447700900001", TENANT, await sam(still)):
        assert private not in text.replace("School newsletter", "")


async def test_what_is_saved_is_shown_stored_audited_and_holds_for_the_next_mail(api: ApiHarness) -> None:
    path = await preferences_link(api)
    waiting = await send_news(api)
    await api.line.queue()
    async with api.client(None) as client:
        page = Page(await client.get(path))
        saved = await save(client, path, filled_in(page, email_news=False, sms_offers=False))
        assert "Saved" in saved.text
        assert "You no longer get: news (Email), offers (Text message)" in saved.text
        assert ticked(saved) == ticked(Page(await client.get(path))) == ALL - {"email:news", "sms:offers"}
    await api.line.drain()
    assert await stored(api) == {"news:email": Cause.PREFERENCE, "offers:sms": Cause.PREFERENCE}
    assert api.provider.calls == [], f"{waiting} was waiting"
    assert await acts(api) == [("recipient", "set")] * 2  # one for each category


async def test_what_was_saved_can_be_taken_back(api: ApiHarness) -> None:
    path = await preferences_link(api)
    await api.memory.set_preferences(
        TENANT, await sam(api), [Change(category="offers", channel=Channel.SMS, on=False)], actor="recipient"
    )
    async with api.client(None) as client:
        page = Page(await client.get(path))
        saved = await save(client, path, filled_in(page, email_news=False, sms_offers=True))
        assert "You get from now on: offers (Text message)" in saved.text
        assert await stored(api) == {"news:email": Cause.PREFERENCE}
        undone = await save(client, path, undo_of(saved))
        assert ticked(undone) == ALL - {"sms:offers"}
    assert await stored(api) == {"offers:sms": Cause.PREFERENCE}


async def test_saving_without_a_change_writes_nothing(api: ApiHarness) -> None:
    path = await preferences_link(api)
    async with api.client(None) as client:
        saved = await save(client, path, filled_in(Page(await client.get(path))))
    assert "Nothing has been changed." in saved.text
    assert (await stored(api), await acts(api)) == ({}, [])


async def test_a_page_that_was_open_for_long_takes_nothing_back_that_was_done_since(api: ApiHarness) -> None:
    path = await preferences_link(api)
    async with api.client(None) as client:
        page = Page(await client.get(path))
        Page(await client.post(await link(api), data=ONE_CLICK))
        saved = await save(client, path, filled_in(page, sms_offers=False))
    assert ticked(saved) == ALL - {"email:news", "sms:offers"}


async def test_two_tabs_that_save_at_once_end_with_one_of_the_two_in_every_cell(api: ApiHarness) -> None:
    path = await preferences_link(api)
    async with api.client(None) as client:
        page = Page(await client.get(path))
        one = filled_in(page, email_news=False, sms_offers=False)
        other = filled_in(page, email_offers=False, sms_offers=False)
        for saved in await asyncio.gather(*(save(client, path, body) for body in (one, other, one, other))):
            assert "Saved" in saved.text or "Nothing has been changed" in saved.text
        assert ticked(Page(await client.get(path))) == {"inbox:offers"}


async def test_looking_changes_nothing_however_often(still: ApiHarness) -> None:
    path = await preferences_link(still)
    async with still.client(None) as client:
        for number in range(100):
            assert (await client.get(f"{path}?on=email:news&n={number}")).status_code == 200
            assert (await client.head(path)).status_code == 200
    assert (await stored(still), await acts(still)) == ({}, [])


@pytest.mark.parametrize(
    "body, status",
    [
        ([], 400),
        ([("on", "email:news")], 400),
        ([("was-on", "pigeon:news")], 400),
        ([("was-on", "email:news"), ("on", "news")], 400),
        ([("was-on", "email:billing")], 409),
        ([("was-on", "email:news"), ("was-on", "email:billing")], 409),
        ([("was-off", "email:made-up"), ("on", "email:made-up")], 409),
        ([("was-on", "push:news")], 409),
        ([("List-Unsubscribe", "One-Click")], 400),
    ],
)
async def test_what_the_page_does_not_offer_is_refused_whole_and_with_words(
    still: ApiHarness, body: list[tuple[str, str]], status: int
) -> None:
    async with still.client(None) as client:
        page = await save(client, await preferences_link(still), urlencode(body).encode(), status=status)
    assert "Nothing has been changed" in page.text
    assert await stored(still) == {}


async def test_a_large_form_is_read_and_one_over_the_limit_is_refused(still: ApiHarness) -> None:
    many = urlencode([("was-off", f"email:{number}") for number in range(2000)]).encode()
    async with still.client(None) as client:
        path = await preferences_link(still)
        assert "Nothing has been changed" in (await save(client, path, many)).text
        await save(client, path, many + b"&was-off=email:x" * 101, status=400)
        huge = await client.post(path, content=b"x=" + b"y" * 1024 * 1024, headers=FORM)
    assert huge.status_code == 413


async def test_links_that_do_not_hold_get_one_answer(api: ApiHarness) -> None:
    path, keys = await preferences_link(api), await keys_of(api)
    theirs = preferences_token(await keys_of(api, OTHER), await sam(api), made_at=api.clock.now())
    links = [path[:-2], f"{path}AA", f"/p/{'A' * 501}", "/p/a", (await link(api)).replace("/u/", "/p/")]
    links.append(f"/p/{preferences_token(keys, await sam(api), made_at=api.clock.now() - timedelta(days=91))}")
    answers = set()
    async with api.client(None) as client:
        body = filled_in(Page(await client.get(path)), email_news=False)
        for one in links:
            for answer in (await client.get(one), await client.post(one, content=body, headers=FORM)):
                answers.add((answer.status_code, answer.headers["content-type"], answer.text))
        answers |= {(one.status_code, one.headers["content-type"], one.text) for one in [await client.get("/u/forged")]}
        foreign = Page(await client.get(f"/p/{theirs}"))
        assert ticked(foreign) == set(), "the other tenant has nothing to choose, and shows nothing of ours"
        await client.get(path.replace("/p/", "/u/"))
    assert len(answers) == 1
    assert await stored(api) == {}


async def test_a_link_ends_after_90_days(api: ApiHarness) -> None:
    path = await preferences_link(api)
    async with api.client(None) as client:
        api.clock.advance(timedelta(days=90))
        Page(await client.get(path))
        api.clock.advance(timedelta(days=1))
        page = Page(await client.get(path), status=404)
    assert "it is too old" in page.text


async def test_a_person_reads_it_in_their_language_whatever_the_browser_asks(api: ApiHarness) -> None:
    people = People(catalog=api.memory, dispatcher=api.line.dispatcher, keyring=api.line.keyring)
    await people.put(TENANT, [PersonEntry(identity=Identity.user("7"), name="Uli", locale="de-CH")], trace=TRACE)
    path = await preferences_link(api, (await keys_of(api)).hash_of(Identity.user("7")))
    async with api.client(None) as client:
        page = Page(await client.get(path, headers={"accept-language": "en"}))
        saved = await save(client, path, filled_in(page, email_news=False))
    assert page.all("html") == [{"lang": "de"}]
    assert "Was Sie erhalten" in page.text
    assert "Sie erhalten nicht mehr: news (E-Mail)" in saved.text


async def test_somebody_to_whom_nothing_goes_is_told_so(api: ApiHarness) -> None:
    row = Suppression(subject=await sam(api), scope="*", cause=Cause.COMPLAINT)
    await api.memory.put_suppressions(TENANT, [row], actor="test")
    async with api.client(None) as client:
        assert "nothing at all is sent to you" in Page(await client.get(await preferences_link(api))).text


async def test_what_an_administrator_switched_off_by_hand_is_told_and_not_switched_on_here(api: ApiHarness) -> None:
    path = await preferences_link(api)
    async with api.client(None) as client:
        before = Page(await client.get(path))
        off = await save(client, path, filled_in(before, email_news=False))
        row = Suppression(subject=await sam(api), scope="news:email", cause=Cause.MANUAL)
        await api.memory.put_suppressions(TENANT, [row], actor="test")
        again = Page(await client.get(path))
        assert ticked(again) == ALL - {"email:news"}
        assert "The sender has switched this off for you: news (Email)" in again.text
        assert "Nothing has been changed" in (await save(client, path, undo_of(off), status=409)).text
        await save(client, path, filled_in(again, sms_offers=False))
    assert await stored(api) == {"news:email": Cause.MANUAL, "offers:sms": Cause.PREFERENCE}


async def test_a_click_is_not_taken_back_once_an_administrator_has_switched_it_off_by_hand(api: ApiHarness) -> None:
    path = await link(api)
    async with api.client(None) as client:
        undo = Page(await client.post(path, data=ONE_CLICK)).field("undo")
        row = Suppression(subject=await sam(api), scope="news:email", cause=Cause.MANUAL)
        await api.memory.put_suppressions(TENANT, [row], actor="test")
        assert (await client.post(path, data={"undo": undo})).status_code == 404
    assert await stored(api) == {"news:email": Cause.MANUAL}


async def test_names_in_a_type_cannot_break_out_of_the_page(api: ApiHarness) -> None:
    evil = '"><script>alert(1)</script>{0}{what}'
    async with api.client(Role.AUTHOR) as author:
        changes = {"key": "evil", "category": evil[:60], "title": evil}
        answer = await author.put("/v1/types/evil", json={"definition": OFFERS | changes, "files": FILES})
        assert answer.status_code in (200, 201), answer.text
    path = await preferences_link(api)
    async with api.client(None) as client:
        page = Page(await client.get(path))
        body = filled_in(page)
        pairs = [pair for pair in parse_qsl(body.decode()) if not (pair[0] == "on" and "script" in pair[1])]
        saved = await save(client, path, urlencode(pairs).encode())
        clicked = Page(await client.get(await link(api, category=evil[:60])))
    for one in (page, saved, clicked):
        assert not one.all("script")
        assert "alert(1)" in one.text
    assert len(await stored(api)) == 3


async def test_a_send_after_a_choice_goes_by_what_is_left(api: ApiHarness) -> None:
    path = await preferences_link(api)
    async with api.client(None) as client:
        await save(client, path, filled_in(Page(await client.get(path)), email_offers=False))
    await api.line.send("offers", Recipient(user="1"), data={})
    await api.line.drain()
    assert [call.channel for call in api.provider.calls] == [Channel.SMS]
