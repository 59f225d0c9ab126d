"""The trace of one try to hand an occurrence over that did not end it well: what was looked at, and what came of it.

Pure. It holds versions, codes and sentences of ours, no address and nothing that a source says of itself. A row keeps
where its last one lies (`trace_blob`).
"""

from datetime import datetime
from enum import StrEnum
from typing import Final

import msgspec

TEXT_BYTES_MAX: Final = 4096
"""Of an error's text, of which the row itself has a line."""


class TraceDecision(StrEnum):
    """What was decided."""

    FAILED = "Failed"
    HOLD = "Hold"
    AGAIN = "Again"


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """What was looked at before the decision; None where it did not come to that.

    `source_version` is 0 where a plugin provides the source. `code` and `error` are those of what was raised.
    """

    setting_version: int | None = None
    source_found: bool | None = None
    source_version: int | None = None
    code: str | None = None
    error: str | None = None


class OccurrenceTrace(Look, frozen=True, kw_only=True):
    """One try of a claimed occurrence; `claim` is the version that it was claimed as."""

    claim: int
    at: datetime
    decision: TraceDecision
