"""Signatures of webhooks: what their owner signed just now passes, and nothing else does (X-08, X-09)."""

import hashlib
import hmac
from base64 import b64decode, b64encode
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clarion.domain.signature import ID, SIGNATURE, TIMESTAMP, sign, verify
from clarion.errors import BrokenInvariant, SignatureRefused

NOW = datetime(2026, 1, 15, 12, 0, tzinfo=UTC)
SECRET = bytes(range(32))
BODY = b'{"events": []}'

SECRETS = st.binary(min_size=24, max_size=64)
IDS = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters="."), min_size=1, max_size=255)


def signed(secret: bytes = SECRET, body: bytes = BODY) -> dict[str, str]:
    return sign(secret, webhook_id="msg_1", at=NOW, body=body)


def test_the_published_example_of_standard_webhooks_is_signed_as_it_stands_there() -> None:
    secret = b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    at, body = datetime.fromtimestamp(1614265330, UTC), b'{"test": 2432232314}'
    headers = sign(secret, webhook_id="msg_p5jXN8AQM9LWM0D4loKWxJek", at=at, body=body)
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    verify(secret, headers, body, now=at)


@given(secret=SECRETS, webhook_id=IDS, body=st.binary(max_size=2000))
def test_what_was_signed_passes(secret: bytes, webhook_id: str, body: bytes) -> None:
    verify(secret, sign(secret, webhook_id=webhook_id, at=NOW, body=body), body, now=NOW)


@given(body=st.binary(min_size=1, max_size=200), place=st.integers(min_value=0), bit=st.integers(0, 7))
def test_one_flipped_bit_of_the_body_is_refused(body: bytes, place: int, bit: int) -> None:
    changed = bytearray(body)
    changed[place % len(body)] ^= 1 << bit
    with pytest.raises(SignatureRefused, match="no signature is right"):
        verify(SECRET, signed(body=body), bytes(changed), now=NOW)


@given(other=SECRETS.filter(lambda secret: secret != SECRET))
def test_another_secret_is_refused(other: bytes) -> None:
    with pytest.raises(SignatureRefused):
        verify(other, signed(), BODY, now=NOW)


@given(moved=st.integers(-300, 300).filter(bool))
def test_id_and_timestamp_are_signed_too(moved: int) -> None:
    headers = signed()
    later = {TIMESTAMP: str(int(headers[TIMESTAMP]) + moved)}
    for changes in ({ID: "msg_2"}, later):
        with pytest.raises(SignatureRefused, match="no signature is right"):
            verify(SECRET, headers | changes, BODY, now=NOW)


def test_nothing_can_be_moved_across_a_dot() -> None:
    """The id `a` with the body `1.x` and the id `a.1` with the body `x` would be signed alike."""
    stamp = signed()[TIMESTAMP]
    headers = sign(SECRET, webhook_id="a", at=NOW, body=f"{stamp}.x".encode())
    with pytest.raises(SignatureRefused):
        verify(SECRET, headers | {ID: f"a.{stamp}"}, b"x", now=NOW)
    with pytest.raises(BrokenInvariant):
        sign(SECRET, webhook_id=f"a.{stamp}", at=NOW, body=b"x")


@given(st.lists(st.sampled_from(["v1,AAAA", "v1a,AAAA", "v2,x", "v1,", "nonsense", "v1,ÿ"]), max_size=50))
def test_every_listed_signature_is_tried(others: list[str]) -> None:
    headers = signed()
    for listed in ([*others, headers[SIGNATURE]], [headers[SIGNATURE], *others]):
        verify(SECRET, headers | {SIGNATURE: " ".join(listed)}, BODY, now=NOW)
    with pytest.raises(SignatureRefused):
        verify(SECRET, headers | {SIGNATURE: " ".join(others)}, BODY, now=NOW)


@pytest.mark.parametrize("version", ["v1a", "v2", "V1", "", "v1=", "hmac-sha256"])
def test_only_v1_counts_however_right_the_rest_is(version: str) -> None:
    headers = signed()
    right = headers[SIGNATURE].removeprefix("v1,")
    with pytest.raises(SignatureRefused, match="no signature is right"):
        verify(SECRET, headers | {SIGNATURE: f"{version},{right}"}, BODY, now=NOW)


@pytest.mark.parametrize(
    "changes",
    [
        {SIGNATURE: ""},
        {SIGNATURE: "   "},
        {ID: ""},
        {ID: "a.b"},
        {ID: "a b"},
        {ID: "a" * 256},
        {TIMESTAMP: ""},
        {TIMESTAMP: "1768478400.0"},
        {TIMESTAMP: "-1768478400"},
        {TIMESTAMP: " 1768478400"},
        {TIMESTAMP: "٣" * 10},
        {TIMESTAMP: "1" * 13},
        {TIMESTAMP: "soon"},
    ],
)
def test_a_header_of_another_form_is_refused_even_if_it_was_signed_so(changes: dict[str, str]) -> None:
    headers = signed() | changes
    made = hmac.digest(SECRET, f"{headers[ID]}.{headers[TIMESTAMP]}.".encode() + BODY, hashlib.sha256)
    if headers[SIGNATURE].strip():
        headers[SIGNATURE] = f"v1,{b64encode(made).decode()}"
    with pytest.raises(SignatureRefused, match="not signed"):
        verify(SECRET, headers, BODY, now=NOW)


@pytest.mark.parametrize("missing", [ID, TIMESTAMP, SIGNATURE])
def test_a_missing_header_is_refused(missing: str) -> None:
    headers = signed()
    del headers[missing]
    with pytest.raises(SignatureRefused, match="not signed"):
        verify(SECRET, headers, BODY, now=NOW)


@given(seconds=st.integers(-100_000, 100_000))
def test_a_signature_holds_for_five_minutes_on_either_side_of_its_time(seconds: int) -> None:
    now = NOW + timedelta(seconds=seconds)
    if abs(seconds) <= 300:
        verify(SECRET, signed(), BODY, now=now)
    else:
        with pytest.raises(SignatureRefused, match="another time"):
            verify(SECRET, signed(), BODY, now=now)


@pytest.mark.parametrize("length", [0, 23, 65])
def test_a_secret_that_is_none_signs_nothing(length: int) -> None:
    with pytest.raises(BrokenInvariant):
        signed(bytes(length))
    with pytest.raises(BrokenInvariant):
        verify(bytes(length), signed(), BODY, now=NOW)
