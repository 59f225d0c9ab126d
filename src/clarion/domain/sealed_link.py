"""Tokens of links that work without a login: sealed, so that they show nothing, and nobody else can make one (X-19).

A token is the tenant's name, by which the key is found, and behind it a text that is encrypted and authenticated under
a data key of the tenant, for one use. A token of one use opens as no other, and neither does anything that is sealed in
a row. Tenants keep the data keys of earlier serials, so a token also opens after a new key was made.

The same text gives the same token. Pure; what stands in the text is told by `unsubscribe` and `person_link`.
"""

import binascii
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final

from clarion.domain.hashing import canonical_json
from clarion.domain.identity import require_tenant
from clarion.domain.seal import NONCE_BYTES, TenantKeys, key_serial_of, seal, unseal
from clarion.errors import InvalidInput, SealBroken

TOKEN_CHARS_MAX: Final = 500
"""A link must stand in one line of a mail's head, which has 998 characters."""

HASH_BYTES: Final = 16
"""Of a recipient's hash, with which every text begins."""


def make_token(keys: TenantKeys, use: str, plain: bytes, *, serial: int | None = None) -> str:
    """Write the token of a link for one use, under the current data key or the one with that serial."""
    # A nonce must not be used for two texts under one key: this one derives from the text, under a key of its own use.
    framed = canonical_json([use, keys.tenant_id, plain.hex()])
    nonce = hmac.digest(keys.identity_key, framed, "sha256")[:NONCE_BYTES]
    serial = serial or keys.current_serial
    sealed = seal(keys.data_key(serial), serial, nonce, plain, **_place(keys.tenant_id, use))
    tenant = keys.tenant_id.encode()
    return urlsafe_b64encode(bytes([len(tenant)]) + tenant + sealed).decode().rstrip("=")


def tenant_of(token: str) -> str:
    """Say whose token it claims to be, so that the keys can be fetched that show whether it is."""
    return _parts(token)[0]


def open_token(keys: TenantKeys, use: str, token: str) -> bytes:
    """Give the text of a token; raise InvalidInput where it is forged, cut off, for another use or another tenant's."""
    tenant_id, sealed = _parts(token)
    if tenant_id != keys.tenant_id:
        raise no_link()
    try:
        return unseal(keys.data_key(key_serial_of(sealed)), sealed, **_place(tenant_id, use))
    except SealBroken:
        raise no_link() from None


def no_link() -> InvalidInput:
    """Say that a token leads nowhere, in the same words whatever is wrong with it."""
    return InvalidInput(
        "this is no link of ours, or it was cut off", field="token", hint="open the link from the mail again, whole"
    )


def _place(tenant_id: str, use: str) -> dict[str, str]:
    """Name what the value is sealed for: no row, so nothing that is sealed in one opens as a token."""
    return {"tenant_id": tenant_id, "table": use, "column": "token", "row_key": ""}


def _parts(token: str) -> tuple[str, bytes]:
    """Take a token apart: its tenant, and what is sealed."""
    if len(token) > TOKEN_CHARS_MAX or not token.isascii():
        raise no_link()
    try:
        content = urlsafe_b64decode(token + "=" * (-len(token) % 4))
        size = content[0]
        tenant_id = require_tenant(content[1 : 1 + size].decode())
    except (binascii.Error, IndexError, UnicodeDecodeError, InvalidInput):
        raise no_link() from None
    return tenant_id, content[1 + size :]
