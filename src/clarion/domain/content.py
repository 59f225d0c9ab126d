"""Rendered content, one shape a channel: what a recipient sees. Pure values; rendering is the renderer's work."""

import re
from typing import Final

import msgspec

# Embeddings, overrides and isolates. The marks for right-to-left text (U+200E, U+200F, U+061C) turn nothing around.
_OVERRIDES: Final = re.compile("[\u202a-\u202e\u2066-\u2069]")


class EmailContent(msgspec.Struct, frozen=True, kw_only=True, tag="email"):
    """A mail: both parts are templates, so the text part is written, not converted."""

    subject: str
    html: str
    text: str


class SmsContent(msgspec.Struct, frozen=True, kw_only=True, tag="sms"):
    """A text message."""

    text: str


class PushContent(msgspec.Struct, frozen=True, kw_only=True, tag="push"):
    """A push notification."""

    title: str
    body: str


class ChatContent(msgspec.Struct, frozen=True, kw_only=True, tag="chat"):
    """A chat message."""

    text: str


class InboxContent(msgspec.Struct, frozen=True, kw_only=True, tag="inbox"):
    """A line in the in-app inbox."""

    title: str
    body: str


Content = EmailContent | SmsContent | PushContent | ChatContent | InboxContent


def without_overrides(text: str) -> str:
    """Take the characters out of a line that make a reader see its letters in another order than they stand in.

    A subject needs none: it is one line, and Arabic and Hebrew are shown right by themselves.
    """
    return _OVERRIDES.sub("", text)
