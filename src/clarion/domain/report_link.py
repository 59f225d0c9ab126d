"""Links to written reports, which end: whoever has one reads that report and nothing else, without a login.

The token names the messaging job that holds the report and says when it ends. It is sealed for this use
(`sealed_link`), so nobody can make one, move its end or open another tenant's report with it. Pure: the present is an
argument.
"""

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec

from clarion.domain import sealed_link
from clarion.domain.seal import TenantKeys
from clarion.errors import Gone

PATH: Final = "/r/"

USE: Final = "report"

LASTS: Final = timedelta(days=14)
"""Somebody who comes back from a week off still finds the report of before; a weekly one was replaced twice by then."""


class _Written(msgspec.Struct, frozen=True, array_like=True):
    job: bytes
    ends: int


def make_token(keys: TenantKeys, job: UUID, *, until: datetime) -> str:
    """Write the token of the link to a report."""
    return sealed_link.make_token(keys, USE, msgspec.msgpack.encode(_Written(job.bytes, int(until.timestamp()))))


def read_token(keys: TenantKeys, token: str, *, now: datetime) -> UUID:
    """Say which messaging job holds the report.

    Raises InvalidInput where it is no token of ours or another tenant's, and Gone where it is one that has ended: only
    somebody who was given it can learn that.
    """
    written = msgspec.msgpack.decode(sealed_link.open_token(keys, USE, token), type=_Written)
    if now.timestamp() >= written.ends:
        raise Gone("this link has ended", hint="open the link of a newer report, or ask whoever sends it")
    return UUID(bytes=written.job)
