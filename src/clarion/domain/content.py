"""Rendered content, one shape a channel: what a recipient sees. Pure values; rendering is the renderer's work."""

import msgspec


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
