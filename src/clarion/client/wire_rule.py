"""The rule by which something was not sent, as both sides of the HTTP API see it."""

from typing import Annotated

import msgspec

from clarion.domain.skip import SkipRule

Rule = Annotated[
    SkipRule,
    msgspec.Meta(
        description="which rule kept it from being sent: the words beside it are for people, this is for programs"
    ),
]
