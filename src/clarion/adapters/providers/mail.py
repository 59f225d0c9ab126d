"""A mail as bytes, built by hand.

The standard library's EmailMessage takes some two milliseconds for an ordinary mail, which would be nearly all of a
worker's time; this takes a twentieth of that. What the library does besides is done here and tested against it:
folding, encoded words, and above all that no value can become a header of its own (X-16). A value is refused, not
mended, if it or anything that it decodes to holds a control character or a line separator, and the finished head is
read once more.

Pure: the date and the id come in. Where the bytes go is `smtp`'s business.
"""

import binascii
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from email.utils import format_datetime
from hashlib import sha256
from typing import Final

import msgspec

from clarion.domain.header import SUBJECT_CHARS_MAX, check_header
from clarion.errors import InvalidInput

HEADERS: Final = (
    *("From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "MIME-Version"),
    "Content-Type",
)
"""What every mail's head has, in this order; what is given besides stands behind them, and nothing else does."""

HEADER_NAME: Final = re.compile(r"(List|X)-[A-Za-z0-9-]{1,60}", re.ASCII)
"""What may be given besides. Others have a meaning of their own, such as Bcc, and are no business of a caller."""

HEADERS_MAX: Final = 10

HEADER_CHARS_MAX: Final = 900
"""A link cannot be folded, and a line has at most 998 characters with its name and end."""

NAME_CHARS_MAX: Final = 100

_LINE_MAX: Final = 76
"""RFC 5322 asks for lines of at most 78 characters, RFC 2047 for 76 where an encoded word stands."""

_WORD_BYTES: Final = 39
"""Of UTF-8 in one encoded word: 52 characters of base64 and 12 of frame, which leaves room for the header's name."""

_ATOMS: Final = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+( [A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*", re.ASCII)


class Mailbox(msgspec.Struct, frozen=True, kw_only=True):
    """An address and the name to show with it."""

    address: str
    name: str = ""

    @property
    def domain(self) -> str:
        """The part behind the at sign."""
        return self.address.rpartition("@")[2]


class Mail(msgspec.Struct, frozen=True, kw_only=True):
    """What a mail is made of."""

    sender: Mailbox
    to: str
    subject: str
    text: str
    html: str
    message_id: str
    sent_at: datetime
    headers: Mapping[str, str] = {}


def message_id(idempotency_key: str, *, domain: str) -> str:
    """Derive the Message-ID from the key, so that a mail that came twice can be told from two mails."""
    return f"<{sha256(idempotency_key.encode()).hexdigest()[:32]}@{domain}>"


def build(mail: Mail) -> bytes:
    """Write a mail with CRLF line ends, or raise InvalidInput where a value cannot stand in a header."""
    ident = _check_address(mail.message_id, field="message_id")
    boundary = f"=_{sha256(ident.encode()).hexdigest()[:32]}"  # base64 has no underscore: it cannot occur
    values = (
        _mailbox(mail.sender),
        _check_address(mail.to, field="to"),
        _fold(_unstructured(check_header(mail.subject, field="subject", chars_max=SUBJECT_CHARS_MAX)), "Subject"),
        format_datetime(mail.sent_at),
        ident,
        "auto-generated",
        "1.0",
        f'multipart/alternative;\r\n boundary="{boundary}"',
    )
    if len(mail.headers) > HEADERS_MAX:
        raise InvalidInput(f"there are {len(mail.headers)}", field="headers", hint=f"give at most {HEADERS_MAX}")
    given = {name: _given_header(name, value) for name, value in mail.headers.items()}
    lines = [*zip(HEADERS, values, strict=True), *given.items()]
    head = "".join(f"{name}: {value}\r\n" for name, value in lines)
    _check_head(head, tuple(name for name, _ in lines))
    # The richest part last: a client shows the last one that it understands.
    parts = "".join(
        f"--{boundary}\r\nContent-Type: text/{kind}; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n"
        f"{_base64(text)}\r\n"
        for kind, text in (("plain", mail.text), ("html", mail.html))
    )
    return f"{head}\r\n{parts}--{boundary}--\r\n".encode()


def _given_header(name: str, value: str) -> str:
    """Return a value that a caller gives, in ASCII and as it is: a link must not be folded or encoded."""
    if not HEADER_NAME.fullmatch(name):
        raise InvalidInput(
            "it is no header that may be given", field="headers", hint="use names that begin with List- or X-"
        )
    if not value.isascii() or len(value) > HEADER_CHARS_MAX:
        raise InvalidInput(
            "it is no ASCII, or too long", field=name, hint=f"use at most {HEADER_CHARS_MAX} ASCII characters"
        )
    return _check_address(value, field=name)


def _check_address(text: str, *, field: str) -> str:
    """Return an address or an id, which is written as it is and so holds no encoded word at all."""
    if "=?" in text:
        raise InvalidInput("it holds an encoded word", field=field, hint="write it without '=?'")
    return check_header(text, field=field)


def _unstructured(text: str) -> Iterator[str]:
    """Give the words of a text as a header may hold them, to be joined by folds or blanks."""
    plain = text.isascii() and "=?" not in text and "  " not in text and text == text.strip()
    words = text.split(" ")
    if plain and max(map(len, words)) <= _LINE_MAX - len("Subject: "):
        yield from words
    else:
        yield from _encoded_words(text)


def _encoded_words(text: str) -> Iterator[str]:
    """Give a text as encoded words, none of which splits a character."""
    chunk = b""
    for character in text:
        encoded = character.encode()
        if len(chunk) + len(encoded) > _WORD_BYTES:
            yield _encoded_word(chunk)
            chunk = b""
        chunk += encoded
    if chunk:
        yield _encoded_word(chunk)


def _encoded_word(chunk: bytes) -> str:
    return f"=?utf-8?b?{binascii.b2a_base64(chunk, newline=False).decode()}?="


def _fold(words: Iterator[str], name: str) -> str:
    """Join words by blanks, and by folds where a line would get too long."""
    lines = [""]
    room = _LINE_MAX - len(name) - 2
    for word in words:
        if lines[-1] and len(lines[-1]) + 1 + len(word) > room:
            lines.append(word)
            room = _LINE_MAX - 1
        else:
            lines[-1] = f"{lines[-1]} {word}" if lines[-1] else word
    return "\r\n ".join(lines)


def _mailbox(mailbox: Mailbox) -> str:
    """Write an address with its name: as it is, in quotes, or encoded."""
    address = _check_address(mailbox.address, field="from")
    name = check_header(mailbox.name, field="name", chars_max=NAME_CHARS_MAX)
    if not name:
        return address
    if _ATOMS.fullmatch(name) and "=?" not in name:
        shown = _fold(iter(name.split(" ")), "From")
    elif name.isascii() and "=?" not in name and len(name) < _LINE_MAX // 2:
        quoted = name.replace("\\", "\\\\").replace('"', '\\"')
        shown = f'"{quoted}"'
    else:
        shown = _fold(_encoded_words(name), "From")
    return f"{shown}\r\n <{address}>"


def _base64(text: str) -> str:
    """Encode a part in lines; the text's own line ends become CRLF, as mail wants them."""
    canonical = "\r\n".join(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    encoded = binascii.b2a_base64(canonical.encode(), newline=False).decode()
    return "\r\n".join(encoded[start : start + _LINE_MAX] for start in range(0, len(encoded), _LINE_MAX))


def _check_head(head: str, wanted: tuple[str, ...]) -> None:
    """Read the finished head as a stranger would: exactly these headers, whatever went in."""
    names = [line.partition(":")[0] for line in re.split(r"\r\n|\r|\n", head) if line and line[0] not in " \t"]
    if tuple(names) != wanted:
        raise InvalidInput("its values would change the head of the mail", field="mail", hint="write plain text")
