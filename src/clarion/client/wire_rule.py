"""What came of a notification, how much was not sent and by which rule, as both sides of the HTTP API see it."""

from typing import Annotated

import msgspec

from clarion.domain import result as domain
from clarion.domain.skip import SkipRule

Result = Annotated[
    domain.Result,
    msgspec.Meta(
        description="what came of it as a whole. waiting: something is still to be done. uncertain: of a message "
        "nobody knows whether it arrived. delivered: all of it arrived. sent: the providers took all of it, and did "
        "not report all of it as arrived. partly: some was sent, some was not. failed: nobody was reached, and "
        "something went wrong. nobody: nobody was reached, and nothing went wrong"
    ),
]
Rule = Annotated[
    SkipRule,
    msgspec.Meta(
        description="which rule kept it from being sent: the words beside it are for people, this is for programs"
    ),
]


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """What a notification came to for all of its recipients."""

    recipients: int
    shown: Annotated[
        int,
        msgspec.Meta(description="of how many of them this answer tells; the others are read page by page"),
    ]
    messages: Annotated[int, msgspec.Meta(description="messages that were made for a provider")]
    inbox: Annotated[int, msgspec.Meta(description="lines that were put into an inbox")]
    not_sent: Annotated[
        dict[SkipRule, int],
        msgspec.Meta(description="how many channels of recipients got nothing, by the rule"),
    ]
