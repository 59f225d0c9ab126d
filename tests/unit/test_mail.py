"""A mail's bytes: every header reads back as it was written, and no value becomes one of its own (X-16)."""

from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.header import decode_header, make_header
from email.message import EmailMessage
from email.utils import parseaddr
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clarion.adapters.providers.mail import HEADERS, Mail, Mailbox, build
from clarion.errors import InvalidInput

LINE_BREAKS = [
    "\r\n",
    "\n",
    "\r",
    "\0",
    "\x0b",
    "\x0c",
    "\x1c",
    "\x1d",
    "\x1e",
    "\x85",
    "\u2028",
    "\u2029",
    "\t",
    "\ud800",
]

ENCODED = [
    "=?utf-8?q?hi=0aBcc=3A_evil=40x=2Ecom?=",
    "=?utf-8?q?hi=0d=0aBcc=3A_evil=40x=2Ecom?=",
    "=?utf-8?b?aGkKQmNjOiBldmlsQHguY29t?=",
    "a =?iso-8859-1?q?=85?= b",
    "=?utf-8?b?PT91dGYtOD9xP2hpPTBhQmNjOj89?=",
    "=?utf-8?q?=E2=80=A8?=",
    "=?no-such-charset?q?hi?=",
]


def mail_with(**fields: Any) -> Mail:
    given_fields: dict[str, Any] = {
        "sender": Mailbox(address="school@example.com", name="School"),
        "to": "ann@example.com",
        "subject": "Hello",
        "text": "Hello",
        "html": "<p>Hello</p>",
        "message_id": "<1@example.com>",
        "sent_at": datetime(2026, 1, 15, 12, 0, tzinfo=UTC),
    }
    return Mail(**(given_fields | fields))


def head_of(content: bytes) -> EmailMessage:
    parsed = message_from_bytes(content, policy=policy.default)
    assert isinstance(parsed, EmailMessage)
    return parsed


def hostile_values() -> list[str]:
    broken = [f"hi{character}Bcc: evil@x.com" for character in LINE_BREAKS]
    return [*broken, *ENCODED, "\n", "hi\r\n\r\n<script>"]


@pytest.mark.parametrize("value", hostile_values())
@pytest.mark.parametrize("field", ["subject", "to", "name", "address", "message_id"])
def test_no_value_can_become_a_header(field: str, value: str) -> None:
    fields: dict[str, Any] = {field: value}
    if field == "name":
        fields = {"sender": Mailbox(address="school@example.com", name=value)}
    if field == "address":
        fields = {"sender": Mailbox(address=value)}
    with pytest.raises(InvalidInput) as caught:
        build(mail_with(**fields))
    assert "evil" not in str(caught.value)


@pytest.mark.parametrize(
    "subject",
    [
        "Hello",
        "Grüße aus Köln",
        "x" * 400,
        "word " * 60 + "end",
        "two  blanks",
        " leading",
        "Emoji \U0001f468\u200d\U0001f469\u200d\U0001f467 " * 12,
        "=?not?an=encoded?word",
        'Re: [ticket] 100% <off> "today" (a, b; c)',
        "ü" * 399,
    ],
)
def test_every_subject_is_read_as_it_was_written(subject: str) -> None:
    content = build(mail_with(subject=subject))
    assert head_of(content)["Subject"] == subject
    assert head_of(content).keys() == list(HEADERS)
    assert max(map(len, content.split(b"\r\n"))) <= 78
    assert b"\n" not in content.replace(b"\r\n", b"")


def test_a_plain_encoded_word_is_shown_as_text() -> None:
    """What looks like an encoded word in data is data: it is not decoded on its way."""
    assert head_of(build(mail_with(subject="=?utf-8?q?hi?=")))["Subject"] == "=?utf-8?q?hi?="


@pytest.mark.parametrize(
    "name", ["School", "School Office", 'The "School", Inc.', "Schüle", "a\\b", "x" * 100, "ü" * 90]
)
def test_every_name_is_read_as_it_was_written(name: str) -> None:
    content = build(mail_with(sender=Mailbox(address="school@example.com", name=name)))
    # The older reader: the newer one of some Python versions puts a blank between two encoded words.
    shown, address = parseaddr(str(make_header(decode_header(message_from_bytes(content)["From"]))))
    assert (shown, address) == (name, "school@example.com")


@given(st.text(max_size=120), st.text(max_size=60))
def test_whatever_the_text_the_head_has_our_headers_only(subject: str, name: str) -> None:
    try:
        content = build(mail_with(subject=subject, sender=Mailbox(address="school@example.com", name=name)))
    except InvalidInput:
        return
    mail = head_of(content)
    assert mail.keys() == list(HEADERS)
    assert mail["Subject"] == subject
    assert max(map(len, content.split(b"\r\n"))) <= 140
    assert not any(line.startswith(b".") for line in content.split(b"\r\n"))


def test_a_long_subject_is_refused() -> None:
    with pytest.raises(InvalidInput, match="subject: it has 401 characters"):
        build(mail_with(subject="x" * 401))


LINK = "<https://clarion.example.com/u/AbC-_123>"


def test_headers_that_are_given_stand_behind_ours_as_they_are() -> None:
    given_headers = {"List-Unsubscribe": LINK, "List-Unsubscribe-Post": "List-Unsubscribe=One-Click"}
    content = build(mail_with(headers=given_headers))
    head = head_of(content)
    assert head.keys() == [*HEADERS, *given_headers]
    assert {name: head[name] for name in given_headers} == given_headers
    assert f"\r\nList-Unsubscribe: {LINK}\r\n".encode() in content, "a link is never folded"


def test_the_longest_link_stands_in_one_line() -> None:
    value = f"<https://{'a' * 890}>"
    line = next(
        line for line in build(mail_with(headers={"List-Unsubscribe": value})).split(b"\r\n") if b"<https" in line
    )
    assert (line, len(line) + 2 <= 998) == (f"List-Unsubscribe: {value}".encode(), True)


@pytest.mark.parametrize("value", [*hostile_values(), "ä", "x" * 901])
def test_no_value_of_a_given_header_can_become_another(value: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        build(mail_with(headers={"List-Unsubscribe": value}))
    assert "evil" not in str(caught.value)


@pytest.mark.parametrize(
    "name",
    [
        "Bcc",
        "Subject",
        "bcc",
        "Content-Type",
        "",
        "X-",
        "List-Unsubscribe: a\r\nBcc",
        "X-a b",
        "X-a:",
        "X-ä",
        "X-" + "a" * 61,
    ],
)
def test_only_headers_without_a_meaning_of_their_own_may_be_given(name: str) -> None:
    with pytest.raises(InvalidInput, match="it is no header that may be given"):
        build(mail_with(headers={name: "evil@example.com"}))


def test_no_more_than_ten_headers_may_be_given() -> None:
    with pytest.raises(InvalidInput, match="give at most 10"):
        build(mail_with(headers={f"X-{number}": "a" for number in range(11)}))


@given(name=st.text(max_size=20), value=st.text(max_size=60))
def test_whatever_is_given_the_head_has_our_headers_and_that_one_at_most(name: str, value: str) -> None:
    try:
        content = build(mail_with(headers={name: value}))
    except InvalidInput:
        return
    assert head_of(content).keys() == [*HEADERS, name]
