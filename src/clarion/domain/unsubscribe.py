"""Unsubscribing from the mail itself: the token in the link, and the two headers that mail programs read (RFC 8058).

A token says who unsubscribes from what: the recipient by their hash, and a category on a channel, which is the scope of
the suppression that it leads to. It is sealed (`sealed_link`). It holds no time and is never out of date.

The same recipient, category and channel give the same token: a retry of a mail repeats its headers.

Pure. The page behind the link is the API's.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from clarion.domain import sealed_link
from clarion.domain.identity import Channel
from clarion.domain.seal import TenantKeys
from clarion.domain.sealed_link import HASH_BYTES

PATH: Final = "/u/"

FIELD: Final = "List-Unsubscribe"
"""The field of the form that a mail program posts."""

VALUE: Final = "One-Click"

ONE_CLICK: Final = f"{FIELD}={VALUE}"

_USE: Final = "unsubscribe"


class Unsubscription(msgspec.Struct, frozen=True, kw_only=True):
    """Who unsubscribes from what."""

    recipient_id_hash: str
    category: str
    channel: Channel


def unsubscribe_headers(keys: TenantKeys, wanted: Unsubscription, *, public_url: str) -> Mapping[str, str]:
    """Give the headers by which a mail program offers to unsubscribe with one click."""
    return {
        "List-Unsubscribe": f"<{public_url}{PATH}{make_token(keys, wanted)}>",
        "List-Unsubscribe-Post": ONE_CLICK,
    }


def make_token(keys: TenantKeys, wanted: Unsubscription, *, serial: int | None = None) -> str:
    """Write the token of a link, under the current data key or the one with that serial."""
    plain = bytes.fromhex(wanted.recipient_id_hash) + f"{wanted.category}:{wanted.channel}".encode()
    return sealed_link.make_token(keys, _USE, plain, serial=serial)


def read_token(keys: TenantKeys, token: str) -> Unsubscription:
    """Read a token of this tenant; raise InvalidInput where it is forged, cut off or another tenant's."""
    plain = sealed_link.open_token(keys, _USE, token)
    category, _, channel = plain[HASH_BYTES:].decode().rpartition(":")
    return Unsubscription(recipient_id_hash=plain[:HASH_BYTES].hex(), category=category, channel=Channel(channel))
