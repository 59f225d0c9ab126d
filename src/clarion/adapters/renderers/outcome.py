"""What becomes of a merged part: whether it can be sent as it is, and the content that a channel's parts make. Pure."""

from typing import Final, assert_never

from clarion.domain.content import (
    ChatContent,
    Content,
    EmailContent,
    InboxContent,
    PushContent,
    SmsContent,
    without_overrides,
)
from clarion.domain.header import SUBJECT_CHARS_MAX, check_header
from clarion.domain.identity import Channel
from clarion.errors import InvalidInput, RenderFailed

ONE_LINE: Final = frozenset({"subject", "title"})
"""Parts that become a header or a heading: a line break in one is an attack or a mistake (X-16)."""

NOT_EMPTY: Final = frozenset({"subject", "title", "text"})


def checked(channel: Channel, name: str, text: str) -> str:
    """Refuse a merged part that cannot be sent as it is; take out what would show its reader something else."""
    if name in ONE_LINE:
        text = without_overrides(text)
        if len(text.splitlines()) > 1:
            raise RenderFailed(
                f"{channel} {name}: it has more than one line",
                part=name,
                hint="take the line break out of the template or of the data",
            )
    if name == "subject":
        try:
            check_header(text, field=name, chars_max=SUBJECT_CHARS_MAX)
        except InvalidInput as error:
            raise RenderFailed(
                f"{channel} {name}: {error.message}", part=name, hint=f"{error.hint}, in the template or in the data"
            ) from None
    if name in NOT_EMPTY and not text:
        raise RenderFailed(f"{channel} {name}: nothing is left of it", part=name, hint="give the template some text")
    return text


def content_of(channel: Channel, parts: dict[str, str]) -> Content:
    """Make a channel's content of its merged parts."""
    match channel:
        case Channel.EMAIL:
            return EmailContent(subject=parts["subject"], html=parts["html"], text=parts["text"])
        case Channel.SMS:
            return SmsContent(text=parts["text"])
        case Channel.PUSH:
            return PushContent(title=parts["title"], body=parts["body"])
        case Channel.CHAT:
            return ChatContent(text=parts["text"])
        case Channel.INBOX:
            return InboxContent(title=parts["title"], body=parts["body"])
        case _:
            assert_never(channel)
