"""One-time links to an outbox, and the sessions that browsers get for them.

Whoever can run the program on the machine makes a link; the first browser that opens it gets a session, and the link
opens nothing any more. Only the SHA-256 of both is kept, in the sandbox's own file beside the messages that they show.
"""

import sqlite3
from datetime import timedelta
from hashlib import sha256
from typing import Final

import msgspec

LINK_LASTS: Final = timedelta(hours=1)
"""Long enough to be found in the terminal after a break."""

SESSION_LASTS: Final = timedelta(hours=2)
"""For looking through messages; a new link costs one command."""

SCHEMA: Final = """
create table if not exists admission (
    hash       blob    primary key,
    kind       text    not null check (kind in ('link', 'session')),
    tenant_id  text,              -- whose messages may be seen; null for everybody's
    expires_at integer not null   -- milliseconds since 1970
) strict;
"""

# Days since noon in Greenwich on 24 November 4714 BC, of which 2440587.5 had passed when 1970 began.
NOW: Final = "select cast(round((julianday('now') - 2440587.5) * 86400000) as integer)"

# SQLite's randomblob draws from the system's generator; a lint rule forbids Python's own sources of chance here.
_DRAW: Final = "select lower(hex(randomblob(32)))"

# One statement, so that of two browsers that open a link at once only one gets in.
_EXCHANGE: Final = """
update admission set hash = :session, kind = 'session', expires_at = :until
where hash = :link and kind = 'link' and expires_at > :now
returning tenant_id
"""

_WHOSE: Final = "select tenant_id from admission where hash = ? and kind = 'session' and expires_at > ?"


_HTTPS: Final = "https-"
"""Before the token of a link that begins so. A proxy that speaks TLS passes requests on without it, so the server does
not see it, and a header that claims it could be anybody's; whoever made the link knew. The hash is of both together."""


def is_https(token: str) -> bool:
    """Tell whether a link's token was made for a link that begins with https."""
    return token.startswith(_HTTPS)


class Visitor(msgspec.Struct, frozen=True):
    """Somebody who may look into the outbox: at one tenant's messages, or at everybody's where none is named."""

    tenant_id: str | None


class Links:
    """The links and sessions of one outbox. Synchronous, as the ledger is."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Keep them in the ledger's file, which is open."""
        self._connection = connection

    def make(self, *, tenant_id: str | None, is_https: bool = False, lasts: timedelta = LINK_LASTS) -> str:
        """Make a link's token, which says if the link begins with https; what has expired is removed."""
        token, now = (_HTTPS if is_https else "") + self._draw(), self._now()
        self._connection.execute("delete from admission where expires_at <= ?", (now,))
        row = (_hashed(token), "link", tenant_id, now + _milliseconds(lasts))
        self._connection.execute("insert into admission values (?, ?, ?, ?)", row)
        return token

    def exchange(self, link: str, *, lasts: timedelta = SESSION_LASTS) -> str | None:
        """Give a session's token for that of a link; None where the link was used, has expired or never was."""
        session, now = self._draw(), self._now()
        given = {
            "session": _hashed(session),
            "link": _hashed(link),
            "now": now,
            "until": now + _milliseconds(lasts),
        }
        used = self._connection.execute(_EXCHANGE, given).fetchone()
        return session if used else None

    def find_visitor(self, session: str) -> Visitor | None:
        """Say what the holder of a session may see; None where there is no such session now."""
        row = self._connection.execute(_WHOSE, (_hashed(session), self._now())).fetchone()
        return Visitor(row[0]) if row else None

    def _draw(self) -> str:
        (token,) = self._connection.execute(_DRAW).fetchone()
        return str(token)

    def _now(self) -> int:
        (milliseconds,) = self._connection.execute(NOW).fetchone()
        return int(milliseconds)


def _hashed(token: str) -> bytes:
    return sha256(token.encode()).digest()


def _milliseconds(length: timedelta) -> int:
    return length // timedelta(milliseconds=1)
