"""Hints: what a caller tells the provider besides the content, such as the sender id or the region of a text message.

They are carried from the send to the call as they were given; a provider takes those that it knows and leaves the
others. They never decide who gets a message or what it says. Pure.
"""

from typing import Annotated, Final

import msgspec

from clarion.domain.part import END, UNSEEN

HINT_CHARS_MAX: Final = 200
"""Longer than every provider's own limit of such a name, and short enough for a header or a log line."""

TAGS_MAX: Final = 10
"""What the strictest of the mail providers takes."""

ONE_LINE: Final = rf"^(?=.*\S)[^{UNSEEN}]+{END}"
"""Not blank, and nothing that ends a line anywhere: a provider may put a hint into a header."""

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=HINT_CHARS_MAX, pattern=ONE_LINE)]


class Hints(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the provider is told besides the content; it uses what it knows and leaves the rest."""

    region: Annotated[Text, msgspec.Meta(description="where it is to be sent from, such as eu")] | None = None
    category: Annotated[Text, msgspec.Meta(description="under which the provider counts it")] | None = None
    topic: Annotated[Text, msgspec.Meta(description="of a push notification")] | None = None
    tags: Annotated[tuple[Text, ...], msgspec.Meta(max_length=TAGS_MAX, description="for the provider's reports")] = ()
    unicode: Annotated[bool, msgspec.Meta(description="send a text message in Unicode")] | None = None
    sender_id: Annotated[Text, msgspec.Meta(description="who a text message is shown to come from")] | None = None
    from_: (
        Annotated[Text, msgspec.Meta(description="the sender, where the account lets its callers choose one")] | None
    ) = msgspec.field(default=None, name="from")
    dlt_template_id: Annotated[Text, msgspec.Meta(description="of a text message to India")] | None = None
