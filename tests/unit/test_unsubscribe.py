"""The unsubscribe link: what its token says to us and hides from others, and that nobody can make one (X-19)."""

from base64 import urlsafe_b64decode, urlsafe_b64encode

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clarion.domain.identity import Channel
from clarion.domain.public_url import URL_CHARS_MAX
from clarion.domain.seal import TenantKeys
from clarion.domain.sealed_link import TOKEN_CHARS_MAX, tenant_of
from clarion.domain.unsubscribe import Unsubscription, make_token, read_token, unsubscribe_headers
from clarion.errors import InvalidInput

KEYS = TenantKeys(
    tenant_id="school",
    identity_key=bytes(range(32)),
    index_key=bytes(range(32, 64)),
    data_keys={1: bytes(range(64, 96))},
)
OTHERS = TenantKeys(
    tenant_id="other-school",
    identity_key=bytes(range(100, 132)),
    index_key=bytes(range(132, 164)),
    data_keys={1: bytes(range(164, 196))},
)
SAM = "00112233445566778899aabbccddeeff"
NEWS = Unsubscription(recipient_id_hash=SAM, category="news", channel=Channel.EMAIL)


@given(
    recipient=st.binary(min_size=16, max_size=16),
    category=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60),
    channel=st.sampled_from(Channel),
)
def test_a_token_reads_back_as_it_was_made(recipient: bytes, category: str, channel: Channel) -> None:
    wanted = Unsubscription(recipient_id_hash=recipient.hex(), category=category, channel=channel)
    token = make_token(KEYS, wanted)
    assert (tenant_of(token), read_token(KEYS, token)) == ("school", wanted)
    assert token == make_token(KEYS, wanted), "a retry repeats its headers"
    assert len(token) <= TOKEN_CHARS_MAX


def test_a_token_stays_good_when_the_tenant_gets_a_new_data_key() -> None:
    token = make_token(KEYS, NEWS)
    rotated = msgspec.structs.replace(KEYS, data_keys={**KEYS.data_keys, 2: bytes(range(200, 232))})
    assert make_token(rotated, NEWS) != token
    assert read_token(rotated, token) == read_token(rotated, make_token(rotated, NEWS)) == NEWS


def test_a_token_shows_neither_recipient_nor_category() -> None:
    content = urlsafe_b64decode(make_token(KEYS, NEWS) + "==")
    assert not any(secret in content for secret in (b"news", b"email", bytes.fromhex(SAM), SAM.encode()))
    others = [
        make_token(KEYS, msgspec.structs.replace(NEWS, recipient_id_hash="00112233445566778899aabbccddeefe")),
        make_token(KEYS, msgspec.structs.replace(NEWS, category="newt")),
    ]
    nonces = {urlsafe_b64decode(token + "==")[12:24] for token in [*others, make_token(KEYS, NEWS)]}
    assert len(nonces) == 3, "one nonce for two texts under one key would show what they differ in"


@given(place=st.integers(0, 200), change=st.integers(1, 255))
def test_a_token_with_one_byte_changed_is_refused(place: int, change: int) -> None:
    content = bytearray(urlsafe_b64decode(make_token(KEYS, NEWS) + "=="))
    content[place % len(content)] ^= change
    forged = urlsafe_b64encode(bytes(content)).decode().rstrip("=")
    with pytest.raises(InvalidInput, match="this is no link of ours, or it was cut off"):
        read_token(KEYS, forged)


@pytest.mark.parametrize("missing", range(1, 60))
def test_a_token_that_was_cut_off_is_refused(missing: int) -> None:
    token = make_token(KEYS, NEWS)[:-missing]
    with pytest.raises(InvalidInput, match="open the link from the mail again, whole"):
        read_token(KEYS, token)


@pytest.mark.parametrize("text", ["", "a", "ä", "=" * 20, "A" * 501, "../../etc/passwd", "\n", "AAAA", "/w=="])
def test_what_is_no_token_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        tenant_of(text)


def test_a_token_of_one_tenant_says_nothing_to_another() -> None:
    """Also where it is made to name the other one."""
    token = make_token(KEYS, NEWS)
    renamed = urlsafe_b64decode(token + "==").replace(b"\x06school", b"\x0cother-school")
    for given_token in (token, urlsafe_b64encode(renamed).decode().rstrip("=")):
        with pytest.raises(InvalidInput):
            read_token(OTHERS, given_token)


@pytest.mark.parametrize(
    "sent, wanted",
    [
        ("BnNjaG9vbAEAAAAB7AjKU92eEXAlJAFOw_8pvVByWAJnYPfSo9T9B31dUT0qR57oI8NOU8m78CPfowbvoJGWf3WZ", NEWS),
        (
            "BnNjaG9vbAEAAAABtI4xuzwC5_uNstLn58T1iqAT52mhY3JEhMpIv-vYo2zeQFub01nFsNU25OYOL3pbjbfoQ2ZF0cdW1ro-O3lWDA",
            Unsubscription(recipient_id_hash=SAM, category="Neues: für alle", channel=Channel.SMS),
        ),
    ],
)
def test_a_link_in_mail_that_was_sent_before_stays_good(sent: str, wanted: Unsubscription) -> None:
    """Links do not end, so what a token looks like cannot change: these were made when links were first sent."""
    assert read_token(KEYS, sent) == wanted
    assert make_token(KEYS, wanted) == sent


def test_the_headers_are_those_of_rfc_8058() -> None:
    headers = unsubscribe_headers(KEYS, NEWS, public_url="https://clarion.example.com")
    assert headers == {
        "List-Unsubscribe": f"<https://clarion.example.com/u/{make_token(KEYS, NEWS)}>",
        "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
    }


def test_the_longest_link_fits_into_one_line_of_a_mail() -> None:
    assert URL_CHARS_MAX + TOKEN_CHARS_MAX + len("List-Unsubscribe: </u/>\r\n") <= 998
