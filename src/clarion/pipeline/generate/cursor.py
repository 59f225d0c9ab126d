"""How far a job with a large set has come between two steps. Pure values, stored in its scheduler row."""

import msgspec

from clarion.domain.claim import StageClaim
from clarion.domain.recipient import Manifest


class Paging(msgspec.Struct, frozen=True, tag="paging"):
    """Its set is being written, page by page; `manifest` says of the pages so far what it says of all in the end."""

    manifest: Manifest = Manifest()


class Expanding(msgspec.Struct, frozen=True, kw_only=True, tag="expanding", omit_defaults=True):
    """Its set is frozen, and its rows are made up to a recipient: so many, and of so many inbox lines nothing came."""

    after: str = ""
    made: int = 0
    unmade: int = 0
    why: str = ""


Cursor = Paging | Expanding


def encode(cursor: Cursor) -> str:
    """Write a cursor as it is stored."""
    return msgspec.json.encode(cursor).decode()


def cursor_of(claim: StageClaim) -> Cursor | None:
    """Read where a claimed job is; None where nothing was said of its set."""
    text = claim.scheduler.cursor
    return None if text is None else msgspec.json.decode(text, type=Cursor)
