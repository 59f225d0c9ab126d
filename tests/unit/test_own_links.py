"""Links that are each recipient's own: which text becomes one, in which contents, and what is left alone."""

import re
from datetime import UTC, datetime
from uuid import UUID

import msgspec
import pytest

from clarion.domain.claim import ClaimedMessage
from clarion.domain.content import ChatContent, Content, EmailContent, InboxContent, PushContent, SmsContent
from clarion.domain.definition import Definition
from clarion.domain.identity import Channel
from clarion.domain.person_link import read_preferences_token
from clarion.domain.seal import TenantKeys, seal
from clarion.domain.unsubscribe import read_token
from clarion.pipeline.distribute.own_links import has_own_links, with_own_links
from tests.unit.test_unsubscribe import KEYS, NEWS, SAM

NOW = datetime(2026, 3, 2, 8, 30, tzinfo=UTC)
URL = "https://clarion.example.com/notify"


SEALED = seal(KEYS.data_key(1), 1, bytes(12), b"sam@example.com", tenant_id="school", table="t", column="c", row_key="")
DEFINITION = Definition(key="letter", title="Letter", channels=(Channel.EMAIL,), category="news", may_unsubscribe=True)


def message(*, made_at: datetime = NOW) -> ClaimedMessage:
    """Make what a claim gives of a mail to Sam."""
    return ClaimedMessage(
        id=1,
        bucket=0,
        tenant_id="school",
        flow_id=1,
        message_id=UUID(int=1),
        channel=Channel.EMAIL,
        attempt_no=1,
        attempts=1,
        not_called=0,
        account="a",
        was_due_at=NOW,
        content_hash=None,
        replay_authorised=False,
        unknown_for=None,
        correlation_id="c",
        traceparent=None,
        recipient_id_hash=SAM,
        key_hash="k",
        address_serial=1,
        ciphertext=SEALED,
        job_guid=UUID(int=2),
        event_type="letter",
        template_key=None,
        template_version=1,
        payload=None,
        blob_hash=None,
        attempts_max=None,
        locale=None,
        tz_id=None,
        person_version_id=None,
        profile_hash=None,
        profile=None,
        created_at=made_at,
        claim_token=UUID(int=3),
    )


def own(content: Content, keys: TenantKeys = KEYS) -> Content:
    return with_own_links(content, keys, message(), DEFINITION, public_url=URL)


@pytest.mark.parametrize(
    "content",
    [
        EmailContent(subject="s", html=f'<a href="{URL}/p/mine">', text=f"{URL}/p/mine."),
        EmailContent(subject="s", html="", text=f"({URL}/p/mine)"),
        SmsContent(text=f"See {URL}/p/mine"),
        ChatContent(text=f"{URL}/p/mine?from=chat"),
        PushContent(title="t", body=f"{URL}/p/mine\n"),
        EmailContent(subject="s", html=f"<a href='{URL}/p/mine'>x</a><p>{URL}/p/mine</p>", text=f"<{URL}/p/mine>"),
        ChatContent(text=f"[Choose:]({URL}/p/mine)"),
    ],
)
def test_a_link_leads_to_the_recipients_own_preferences(content: Content) -> None:
    assert has_own_links(content, URL)
    tokens = re.findall(rf"{URL}/p/([\w-]+)", str(own(content)))
    assert tokens
    assert {read_preferences_token(KEYS, token, now=NOW) for token in tokens} == {SAM}


def test_a_link_unsubscribes_from_what_the_message_is() -> None:
    content = own(SmsContent(text=f"Stop: {URL}/u/mine and {URL}/p/mine"))
    (token,) = re.findall(rf"{URL}/u/([\w-]+)", str(content))
    assert read_token(KEYS, token) == NEWS
    assert "mine" not in str(content)


def test_a_retry_has_the_same_bytes_after_the_tenant_got_a_new_key() -> None:
    """I-15."""
    rotated = msgspec.structs.replace(KEYS, data_keys={**KEYS.data_keys, 2: bytes(range(200, 232))})
    content = SmsContent(text=f"{URL}/u/mine {URL}/p/mine")
    assert own(content, rotated) == own(content)


@pytest.mark.parametrize("text", ["https://other.example/p/mine", f"{URL}/pages/mine", f"{URL}/p/miner", f"{URL}/p/"])
def test_what_is_another_link_stays_as_it_is(text: str) -> None:
    assert own(SmsContent(text=text)) == SmsContent(text=text)


@pytest.mark.parametrize(
    "before",
    ["https://evil.example/?u=", "evil.example/", "evil.example?", "https://evil.example#(", "//evil.example\\"],
)
def test_a_token_does_not_go_into_a_link_that_leads_elsewhere(before: str) -> None:
    """What senders pass on as data may be anybody's words."""
    text = f"Sam wrote: {before}{URL}/p/mine and {before}{URL}/u/mine"
    html = f'<p>{text}</p><a href="{before}{URL}/p/mine">x</a>'
    content = EmailContent(subject="s", html=html, text=text)
    assert own(content) == content


def test_a_content_without_such_links_is_not_touched() -> None:
    assert not has_own_links(EmailContent(subject=f"{URL}/p/mine", html=URL, text="/p/mine"), URL)
    assert not has_own_links(SmsContent(text="None/p/mine"), None)
    assert not has_own_links(InboxContent(title="t", body=f"{URL}/p/mine"), URL)
