"""What may be chosen of a report subscription, and its limits: words that doors need before anything is read. Pure."""

from enum import StrEnum
from typing import Annotated, Final

import msgspec

PARAMETERS_MAX: Final = 20

PARAMETER_CHARS_MAX: Final = 200
"""Of a parameter's name and of its value: words and numbers that narrow a report."""

ParameterName = Annotated[str, msgspec.Meta(min_length=1, max_length=PARAMETER_CHARS_MAX)]
ParameterValue = Annotated[str, msgspec.Meta(max_length=PARAMETER_CHARS_MAX)]

SUBSCRIPTION_BYTES_MAX: Final = 32 * 1024
"""As JSON: everything that one may say has room, but for texts of characters that JSON writes as six."""

TO_MAX: Final = 20
"""As many people as one request may name; whoever needs more makes a group."""


class MissedRuns(StrEnum):
    """What becomes of runs that fell due while nothing worked."""

    CATCH_UP_ONCE = "catch_up_once"
    SKIP = "skip"


class ReportForm(StrEnum):
    """What a report is written as."""

    HTML = "html"
    CSV = "csv"


class ReportDelivery(StrEnum):
    """How its reader gets it: in the message itself, or by a link that expires."""

    INLINE = "inline"
    LINK = "link"
