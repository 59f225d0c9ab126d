"""Links in a message that are its recipient's own: to their preferences, and to unsubscribe.

An author writes `{{ public_url }}/p/mine` or `{{ public_url }}/u/mine`, and each recipient gets their token in place
of `mine`. It is put in when the call is made, as the headers of a mail are, and is no part of the content or its hash,
so one content serves all recipients of a job.

Pure: the keys are an argument.
"""

import re
from typing import Final

import msgspec

from clarion.domain import person_link, unsubscribe
from clarion.domain.claim import ClaimedMessage
from clarion.domain.content import ChatContent, Content, EmailContent, InboxContent, PushContent, SmsContent
from clarion.domain.definition import Definition
from clarion.domain.seal import TenantKeys, key_serial_of
from clarion.domain.unsubscribe import Unsubscription

MINE: Final = "mine"
"""What stands where the token belongs. No token is so short."""

_PATHS: Final = (f"{person_link.PATH}{MINE}", f"{unsubscribe.PATH}{MINE}")

_TEXTS: Final[dict[type[Content], tuple[str, ...]]] = {
    EmailContent: ("html", "text"),
    SmsContent: ("text",),
    ChatContent: ("text",),
    PushContent: ("body",),
    InboxContent: (),
}
"""Where in a content people find links."""


def unsubscription_of(message: ClaimedMessage, definition: Definition) -> Unsubscription:
    """Say what a message lets its recipient unsubscribe from."""
    return Unsubscription(
        recipient_id_hash=message.recipient_id_hash, category=definition.category, channel=message.channel
    )


def has_own_links(content: Content, public_url: str | None) -> bool:
    """Tell whether there is a link in a content that is to become each recipient's own."""
    if public_url is None:
        return False
    texts = [getattr(content, name) for name in _TEXTS[type(content)]]
    return any(f"{public_url}{path}" in text for text in texts for path in _PATHS)


def with_own_links(
    content: Content, keys: TenantKeys, message: ClaimedMessage, definition: Definition, *, public_url: str
) -> Content:
    """Write the links of a message's recipient into its content.

    A retry has the same bytes (I-15), also on another day and after the tenant got a new key: the links count from when
    the message was made, and are sealed with the key that its address was sealed with.
    """
    preferences, leave = _PATHS
    serial, wanted = key_serial_of(message.ciphertext), unsubscription_of(message, definition)
    tokens = {
        preferences: person_link.preferences_token(
            keys, message.recipient_id_hash, made_at=message.created_at, serial=serial
        ),
        leave: unsubscribe.make_token(keys, wanted, serial=serial),
    }
    # What goes on behind `mine`, as in `mine-shaft`, is a path of somebody else. A link in another one may have come
    # with data: the token would go to wherever that other one leads, and whoever has it acts for the person.
    link = re.compile(
        r"""(?<![^\s"'<>])([^\s"'<>/?#\\]*"""
        rf"{re.escape(public_url)})({re.escape(preferences)}|{re.escape(leave)})(?![A-Za-z0-9_~-])"
    )

    def own(found: re.Match[str]) -> str:
        return f"{found[1]}{found[2].removesuffix(MINE)}{tokens[found[2]]}"

    return msgspec.structs.replace(
        content, **{name: link.sub(own, getattr(content, name)) for name in _TEXTS[type(content)]}
    )
