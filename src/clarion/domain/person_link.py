"""Links for one person that are good for a time: to the page of their preferences, and to take back what they did.

Whoever has the link acts for the person, without a login. A link to the preferences shows what somebody gets, so it
ends, unlike one that only unsubscribes (decision 0048). Its token is sealed for its use (`sealed_link`).

Pure: the present is an argument.
"""

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

import msgspec

from clarion.domain import sealed_link
from clarion.domain.identity import Channel
from clarion.domain.seal import TenantKeys
from clarion.domain.sealed_link import HASH_BYTES
from clarion.domain.unsubscribe import Unsubscription

PATH: Final = "/p/"

PREFERENCES_LAST: Final = timedelta(days=90)
"""At least: people find mail again after weeks, and X-19 wants 60 days. It ends with a day, so that all links of a
person that were made on one day are the same."""

UNDO_LASTS: Final = timedelta(hours=1)
"""Taking back is for whoever still has the page before them."""


class Use(StrEnum):
    """What a link is for; it opens as nothing else."""

    PREFERENCES = "preferences"
    UNDO = "undo"


class _Written(msgspec.Struct, frozen=True, array_like=True):
    ends: int
    category: str = ""
    channel: str = ""


def preferences_token(keys: TenantKeys, recipient_id_hash: str, *, made_at: datetime, serial: int | None = None) -> str:
    """Write the token of a link to a person's preferences, made then, with the current data key or that of a serial."""
    ends = (made_at + PREFERENCES_LAST + timedelta(days=1)).astimezone(UTC).replace(hour=0, minute=0, second=0)
    return _make(keys, Use.PREFERENCES, recipient_id_hash, _Written(int(ends.timestamp())), serial)


def read_preferences_token(keys: TenantKeys, token: str, *, now: datetime) -> str:
    """Give the recipient's hash, or raise InvalidInput where the link is none, or no more."""
    return _read(keys, Use.PREFERENCES, token, now=now)[0]


def undo_token(keys: TenantKeys, done: Unsubscription, *, now: datetime) -> str:
    """Write the token by which somebody takes back that they unsubscribed."""
    written = _Written(int((now + UNDO_LASTS).timestamp()), done.category, done.channel)
    return _make(keys, Use.UNDO, done.recipient_id_hash, written)


def read_undo_token(keys: TenantKeys, token: str, *, now: datetime) -> Unsubscription:
    """Say what is taken back, or raise InvalidInput where it is no such token, or no more."""
    recipient, written = _read(keys, Use.UNDO, token, now=now)
    return Unsubscription(recipient_id_hash=recipient, category=written.category, channel=Channel(written.channel))


def _make(keys: TenantKeys, use: Use, recipient_id_hash: str, written: _Written, serial: int | None = None) -> str:
    plain = bytes.fromhex(recipient_id_hash) + msgspec.msgpack.encode(written)
    return sealed_link.make_token(keys, use, plain, serial=serial)


def _read(keys: TenantKeys, use: Use, token: str, *, now: datetime) -> tuple[str, _Written]:
    plain = sealed_link.open_token(keys, use, token)
    written = msgspec.msgpack.decode(plain[HASH_BYTES:], type=_Written)
    if now.timestamp() >= written.ends:
        raise sealed_link.no_link()
    return plain[:HASH_BYTES].hex(), written
