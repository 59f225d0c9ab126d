"""Unsubscribing from the mail itself: the token in the link, and the two headers that mail programs read (RFC 8058).

A token says who unsubscribes from what: the recipient by their hash, and a category on a channel, which is the scope of
the suppression that it leads to. It is encrypted under a data key of its tenant, so it shows nothing to whoever sees
the link and nobody can make one (X-19). Only the tenant's name, by which the key is found, can be read. It holds no
time and is never out of date; tenants keep the data keys of earlier serials, so it also opens after a new one was made.

The same recipient, category and channel give the same token: a retry of a mail repeats its headers.

Pure. The page behind the link does not exist yet.
"""

import binascii
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from typing import Final

import msgspec

from clarion.domain.hashing import canonical_json
from clarion.domain.identity import Channel, require_tenant
from clarion.domain.seal import NONCE_BYTES, TenantKeys, key_serial_of, seal, unseal
from clarion.errors import InvalidInput, SealBroken

PATH: Final = "/u/"

TOKEN_CHARS_MAX: Final = 500
"""A link must stand in one line of a mail's head, which has 998 characters."""

ONE_CLICK: Final = "List-Unsubscribe=One-Click"

_HASH_BYTES: Final = 16


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


def make_token(keys: TenantKeys, wanted: Unsubscription) -> str:
    """Write the token of a link."""
    plain = bytes.fromhex(wanted.recipient_id_hash) + f"{wanted.category}:{wanted.channel}".encode()
    # A nonce must not be used for two texts under one key: this one derives from the text, under a key of its own use.
    framed = canonical_json(["unsubscribe", keys.tenant_id, plain.hex()])
    nonce = hmac.digest(keys.identity_key, framed, "sha256")[:NONCE_BYTES]
    serial = keys.current_serial
    sealed = seal(keys.data_key(serial), serial, nonce, plain, **_place(keys.tenant_id))
    tenant = keys.tenant_id.encode()
    return urlsafe_b64encode(bytes([len(tenant)]) + tenant + sealed).decode().rstrip("=")


def tenant_of(token: str) -> str:
    """Say whose token it claims to be, so that the keys can be fetched that show whether it is."""
    return _parts(token)[0]


def read_token(keys: TenantKeys, token: str) -> Unsubscription:
    """Read a token of this tenant; raise InvalidInput where it is forged, cut off or another tenant's."""
    tenant_id, sealed = _parts(token)
    if tenant_id != keys.tenant_id:
        raise _no_token()
    try:
        plain = unseal(keys.data_key(key_serial_of(sealed)), sealed, **_place(tenant_id))
    except SealBroken:
        raise _no_token() from None
    category, _, channel = plain[_HASH_BYTES:].decode().rpartition(":")
    return Unsubscription(recipient_id_hash=plain[:_HASH_BYTES].hex(), category=category, channel=Channel(channel))


def _place(tenant_id: str) -> dict[str, str]:
    """Name what the value is sealed for: no row, so nothing that is sealed in one opens as a token."""
    return {"tenant_id": tenant_id, "table": "unsubscribe", "column": "token", "row_key": ""}


def _parts(token: str) -> tuple[str, bytes]:
    """Take a token apart: its tenant, and what is sealed."""
    if len(token) > TOKEN_CHARS_MAX or not token.isascii():
        raise _no_token()
    try:
        content = urlsafe_b64decode(token + "=" * (-len(token) % 4))
        size = content[0]
        tenant_id = require_tenant(content[1 : 1 + size].decode())
    except (binascii.Error, IndexError, UnicodeDecodeError, InvalidInput):
        raise _no_token() from None
    return tenant_id, content[1 + size :]


def _no_token() -> InvalidInput:
    return InvalidInput(
        "this is no link of ours, or it was cut off", field="token", hint="open the link from the mail again, whole"
    )
