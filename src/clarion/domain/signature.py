"""Signed webhooks by the scheme of Standard Webhooks: who reports something, and that nobody changed it (X-08, X-09).

Three headers: `webhook-id` names the message, `webhook-timestamp` says in unix seconds when it was sent, and
`webhook-signature` has `v1,` and the base64 of the HMAC-SHA256 over `id.timestamp.body`, several of them separated by
blanks while a secret is replaced. It is made over the raw bytes, so it is checked before anything reads them. Pure.
"""

import hashlib
import hmac
import re
from base64 import b64encode
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from clarion.errors import BrokenInvariant, SignatureRefused

ID: Final = "webhook-id"
TIMESTAMP: Final = "webhook-timestamp"
SIGNATURE: Final = "webhook-signature"

SECRET_BYTES_MIN: Final = 24
SECRET_BYTES_MAX: Final = 64

TOLERANCE: Final = timedelta(minutes=5)
"""How far the sender's clock may be off, and how long what somebody overheard can be sent again."""

# Neither has a dot, which parts them in what is signed: with one, two messages could be signed alike.
_ID: Final = re.compile(r"[\x21-\x2d\x2f-\x7e]{1,255}")
_TIMESTAMP: Final = re.compile(r"[0-9]{1,12}")


def sign(secret: bytes, *, webhook_id: str, at: datetime, body: bytes) -> dict[str, str]:
    """Give the headers that go with a body which is sent now."""
    timestamp = str(int(at.timestamp()))
    if not _ID.fullmatch(webhook_id):
        raise BrokenInvariant("the id of a webhook is empty, too long, or holds a dot or a blank")
    made = f"v1,{_mac(secret, webhook_id, timestamp, body)}"
    return {ID: webhook_id, TIMESTAMP: timestamp, SIGNATURE: made}


def check_headers(headers: Mapping[str, str], *, now: datetime) -> None:
    """Raise SignatureRefused where the headers alone show that no body could be signed by them now."""
    webhook_id, timestamp = headers.get(ID, ""), headers.get(TIMESTAMP, "")
    given = headers.get(SIGNATURE, "").split()
    if not (_ID.fullmatch(webhook_id) and _TIMESTAMP.fullmatch(timestamp) and given):
        raise SignatureRefused(
            "the request is not signed",
            hint=f"send {ID}, {TIMESTAMP} and {SIGNATURE} as Standard Webhooks has them",
        )
    if abs(int(timestamp) - now.timestamp()) > TOLERANCE.total_seconds():
        raise SignatureRefused(
            "the signature is of another time", hint="sign every attempt anew, and set the sender's clock right"
        )


def verify(secret: bytes, headers: Mapping[str, str], body: bytes, *, now: datetime) -> None:
    """Raise SignatureRefused unless the owner of the secret signed this body just now; names are in lower case."""
    check_headers(headers, now=now)
    webhook_id, timestamp, given = headers[ID], headers[TIMESTAMP], headers[SIGNATURE].split()
    wanted = f"v1,{_mac(secret, webhook_id, timestamp, body)}".encode()
    if not any(hmac.compare_digest(wanted, one.encode()) for one in given):
        raise SignatureRefused(
            "no signature is right", hint="sign the bytes that are sent, with this account's secret, as v1"
        )


def _mac(secret: bytes, webhook_id: str, timestamp: str, body: bytes) -> str:
    if not SECRET_BYTES_MIN <= len(secret) <= SECRET_BYTES_MAX:
        raise BrokenInvariant(f"a secret has {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} bytes")
    signed = b".".join((webhook_id.encode(), timestamp.encode(), body))
    return b64encode(hmac.digest(secret, signed, hashlib.sha256)).decode()
