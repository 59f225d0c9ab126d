"""One spelling per destination, and nothing that could be two destinations or more than one line."""

import unicodedata

import phonenumbers
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from hypothesis.provisional import domains

from clarion.domain.destination import (
    CHAT_ID_BYTES_MAX,
    EMAIL_BYTES_MAX,
    PUSH_TOKEN_BYTES_MAX,
    mask,
    normalise,
)
from clarion.domain.identity import Channel
from clarion.errors import InvalidAddress, InvalidInput

ADDRESSED = [channel for channel in Channel if channel is not Channel.INBOX]

# X-16's list, and what stands beside it: each could end a header line or an envelope command somewhere.
CONTROL_CHARACTERS = [
    "\r",
    "\n",
    "\r\n",
    "\0",
    "\x85",
    "\u2028",
    "\u2029",
    "\v",
    "\f",
    "\x1c",
    "\x1d",
    "\x1e",
    "\t",
    "\x7f",
]

VALID = {
    Channel.EMAIL: "jane@example.com",
    Channel.SMS: "+442079460958",
    Channel.PUSH: "fcm:APA91b-token_1",
    Channel.CHAT: "19:abc@thread.tacv2",
}

atoms = st.text("abcdefghijklmnopqrstuvwxyzABCXYZ0123456789+-_'éüñøςσİẞŻ\u0301\u0308", min_size=1, max_size=20)
emails = st.builds(lambda local, domain: f"{local}@{domain}", atoms, domains())
phones = st.from_regex(r"\+[1-9][0-9 ().-]{5,20}", fullmatch=True)
anything = st.text(max_size=40)


@pytest.mark.parametrize(
    "written, normal",
    [
        ("jane@example.com", "jane@example.com"),
        ("Jane.Doe+News@EXAMPLE.com", "jane.doe+news@example.com"),
        ("jane@München.de", "jane@xn--mnchen-3ya.de"),
        ("jane@XN--MNCHEN-3YA.de", "jane@xn--mnchen-3ya.de"),
        ("jane@faß.de", "jane@xn--fa-hia.de"),
        ("JOSÉ@example.com", "josé@example.com"),
        ("jose\u0301@example.com", "josé@example.com"),
        ("J\u030cane@example.com", "\u01f0ane@example.com"),  # only the small j with caron has a composed form
        ("o'brien@example.co.uk", "o'brien@example.co.uk"),
    ],
)
def test_a_mail_address_has_one_spelling(written: str, normal: str) -> None:
    assert normalise(Channel.EMAIL, written) == normal


@pytest.mark.parametrize(
    "written, normal",
    [
        ("+442079460958", "+442079460958"),
        ("+44 20 7946 0958", "+442079460958"),
        ("+44 (0)20 7946-0958", "+442079460958"),
        ("+1 (202) 555-0123", "+12025550123"),
        ("+39 02 3661 8300", "+390236618300"),
        ("+44.7700.900123", "+447700900123"),
    ],
)
def test_a_phone_number_has_one_spelling(written: str, normal: str) -> None:
    assert normalise(Channel.SMS, written) == normal


@pytest.mark.parametrize("channel", [Channel.PUSH, Channel.CHAT])
def test_an_opaque_id_stays_as_it_is(channel: Channel) -> None:
    text = "aB:c_/+=~!{}[] x"
    assert normalise(channel, text) == text


@given(channel=st.sampled_from(ADDRESSED), text=st.one_of(emails, phones, anything))
@example(channel=Channel.SMS, text="+430014005771")  # a national prefix written twice: parsing takes one away at a time
@example(channel=Channel.EMAIL, text="İ@example.com")  # lower-casing yields two characters
@example(channel=Channel.EMAIL, text="Σ@example.com")
def test_what_was_normalised_normalises_to_itself(channel: Channel, text: str) -> None:
    try:
        once = normalise(channel, text)
    except InvalidAddress:
        return
    assert normalise(channel, once) == once


@given(text=emails)
def test_case_and_unicode_form_of_a_mail_address_do_not_matter(text: str) -> None:
    try:
        normal = normalise(Channel.EMAIL, text)
    except InvalidAddress:
        return
    # A few letters have no way back from upper case (a final sigma, a sharp s): they are different addresses.
    assume(normal.upper().lower() == normal)
    for variant in (normal.upper(), normal.title(), unicodedata.normalize("NFD", normal)):
        assume(variant.lower() == normal or unicodedata.normalize("NFC", variant.lower()) == normal)
        assert normalise(Channel.EMAIL, variant) == normal


@given(digits=st.text("0123456789", min_size=6, max_size=14), gaps=st.lists(st.sampled_from(["", " ", "-", ".", "("])))
def test_separators_in_a_phone_number_do_not_matter(digits: str, gaps: list[str]) -> None:
    plain = f"+1{digits}"
    spaced = plain[:2] + "".join(digit + gap for digit, gap in zip(digits, gaps + [""] * len(digits), strict=False))
    try:
        normal = normalise(Channel.SMS, plain)
    except InvalidAddress:
        with pytest.raises(InvalidAddress):
            normalise(Channel.SMS, spaced)
    else:
        assert normalise(Channel.SMS, spaced) == normal


@given(channel=st.sampled_from(ADDRESSED), text=st.one_of(emails, phones, anything))
def test_a_normalised_destination_is_one_printable_bounded_line(channel: Channel, text: str) -> None:
    try:
        normal = normalise(channel, text)
    except InvalidAddress:
        return
    assert normal.isprintable()
    assert normal
    assert len(normal.encode()) <= {Channel.EMAIL: EMAIL_BYTES_MAX, Channel.SMS: 16}.get(channel, PUSH_TOKEN_BYTES_MAX)


@pytest.mark.parametrize("channel", ADDRESSED)
@pytest.mark.parametrize("character", CONTROL_CHARACTERS)
def test_a_control_character_is_refused_wherever_it_stands(channel: Channel, character: str) -> None:
    valid = VALID[channel]
    for at in (0, 4, len(valid)):
        with pytest.raises(InvalidAddress, match="control character"):
            normalise(channel, valid[:at] + character + valid[at:])


@pytest.mark.parametrize(
    "text",
    [
        "a@b,c@d",
        "a@example.com,c@example.com",
        "a@example.com;c@example.com",
        "a@example.com c@example.com",
        "<a@b> <c@d>",
        "<a@example.com>",
        "Jane <jane@example.com>",
        '"Jane" <jane@example.com>',
        "friends: a@example.com, b@example.com;",
        "friends:;",
        '"a\r\n"@b',
        '"a b"@example.com',
        "jane(comment)@example.com",
        "jane@example.com(comment)",
        " jane@example.com",
        "jane@example.com ",
        "jane@[127.0.0.1]",
        "jane@127.0.0.1",
        "jane@localhost",
        "jane@example..com",
        "jane@-example.com",
        "jane@example.com.",
        "jane..doe@example.com",
        ".jane@example.com",
        "jane",
        "@example.com",
        "jane@",
        "jane@@example.com",
        "a@b@example.com",
        "=?utf-8?q?hi=0aBcc=3A_evil=40x=2Ecom?=@example.com",
        "=?utf-8?q?=3Cjane=40example=2Ecom=3E?=",
        "jane@exam\u202eple.com",
        "jane\ud800@example.com",
        "x" * 65 + "@example.com",
        "x" * 10_000 + "@example.com",
        "x" * 64 + "@" + "y" * 63 + "." + "y" * 63 + "." + "y" * 63 + ".com",
        "jane@" + "example." * 10_000 + "com",
        "mailto:jane@example.com?bcc=evil@example.com",
    ],
)
def test_what_is_not_exactly_one_mail_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidAddress) as raised:
        normalise(Channel.EMAIL, text)
    assert raised.value.field == "destination"


def test_the_longest_mail_address_is_accepted_and_a_byte_more_is_not() -> None:
    domain = f"{'y' * 63}.{'y' * 63}.{'y' * 57}.com"
    longest = f"{'x' * 64}@{domain}"
    assert len(longest) == EMAIL_BYTES_MAX
    assert normalise(Channel.EMAIL, longest) == longest
    with pytest.raises(InvalidAddress):
        normalise(Channel.EMAIL, f"{'x' * 64}@y{domain}")


def test_a_mail_address_is_measured_in_the_bytes_that_are_sent() -> None:
    text = f"{'é' * 32}@{'y' * 63}.{'y' * 63}.{'y' * 57}.com"
    assert len(text) < EMAIL_BYTES_MAX
    assert len(normalise(Channel.EMAIL, text).encode()) == EMAIL_BYTES_MAX
    with pytest.raises(InvalidAddress):
        normalise(Channel.EMAIL, "é" + text)


@pytest.mark.parametrize(
    "text", ["020 7946 0958", "442079460958", "00442079460958", "tel:+442079460958", "(+44)2079460958"]
)
def test_a_phone_number_without_plus_is_told_to_start_with_it(text: str) -> None:
    with pytest.raises(InvalidAddress, match=r"start it with \+"):
        normalise(Channel.SMS, text)


@pytest.mark.parametrize(
    "text",
    [
        "+1-800-FLOWERS",
        "+442079460958;ext=3",
        "+442079460958 ext 4",
        "+442079460958x4",
        "+442079460958,,12",
        "+442079460958,+442079460959",
        "+٤٤2079460958",
        "+44\u00a02079460958",
    ],
)
def test_a_phone_number_with_more_than_digits_is_refused_rather_than_cut(text: str) -> None:
    with pytest.raises(InvalidAddress, match="without letters or an extension"):
        normalise(Channel.SMS, text)


@pytest.mark.parametrize(
    "text", ["+", "++442079460958", "+44", "+1650", "+999123456789", "+430014005771", "+4420794609581234567"]
)
def test_a_phone_number_that_cannot_exist_is_refused(text: str) -> None:
    with pytest.raises(InvalidAddress):
        normalise(Channel.SMS, text)


@pytest.mark.parametrize(
    "channel, bytes_max", [(Channel.PUSH, PUSH_TOKEN_BYTES_MAX), (Channel.CHAT, CHAT_ID_BYTES_MAX)]
)
def test_an_opaque_id_is_bounded_and_printable_ascii(channel: Channel, bytes_max: int) -> None:
    assert normalise(channel, "x" * bytes_max) == "x" * bytes_max
    for text in ("x" * (bytes_max + 1), "tøken", "token ", " token", "tok\u200ben"):
        with pytest.raises(InvalidAddress):
            normalise(channel, text)


@pytest.mark.parametrize("channel", ADDRESSED)
def test_nothing_is_no_destination(channel: Channel) -> None:
    with pytest.raises(InvalidAddress, match="is empty"):
        normalise(channel, "")


def test_the_inbox_has_no_destination() -> None:
    for refused in (normalise, mask):
        with pytest.raises(InvalidInput, match="leave it out"):
            refused(Channel.INBOX, "jane")


@pytest.mark.parametrize(
    "channel, text",
    [
        (Channel.EMAIL, "canary.person@exam ple.com"),
        (Channel.EMAIL, "canary.person@localhost"),
        (Channel.EMAIL, '"canary.person"@example.com'),
        (Channel.SMS, "+44 7700 9001234567"),
        (Channel.SMS, "07700900123"),
        (Channel.PUSH, "canary.persón"),
    ],
)
def test_an_error_does_not_repeat_the_address(channel: Channel, text: str) -> None:
    with pytest.raises(InvalidAddress) as raised:
        normalise(channel, text)
    error = raised.value
    assert error.__suppress_context__
    for part in ("canary", "person", "7700", "9001"):
        assert part not in f"{error} {error!r}"


@pytest.mark.parametrize(
    "channel, destination, masked",
    [
        (Channel.EMAIL, "jane@example.com", "j…e@example.com"),
        (Channel.EMAIL, "jo@example.com", "…@example.com"),
        (Channel.EMAIL, "j@example.com", "…@example.com"),
        (Channel.SMS, "+447700900167", "+44…67"),
        (Channel.PUSH, "fcm:APA91b-token_1", "…en_1"),
        (Channel.CHAT, "abc", "…c"),
        (Channel.CHAT, "ab", "…"),
    ],
)
def test_a_mask_shows_enough_to_recognise_ones_own(channel: Channel, destination: str, masked: str) -> None:
    assert mask(channel, destination) == masked


@given(text=st.one_of(emails, phones), channel=st.sampled_from([Channel.EMAIL, Channel.SMS]))
def test_a_mask_is_never_the_destination(channel: Channel, text: str) -> None:
    try:
        normal = normalise(channel, text)
    except InvalidAddress:
        return
    hidden, shown = (text.rpartition("@")[0] or text for text in (normal, mask(channel, normal)))
    assert hidden not in shown


def test_a_phone_number_in_its_one_spelling_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parsing takes longer than all else that the door does with an address."""
    parsed: list[str] = []
    parse = phonenumbers.parse

    def noted(text: str, region: str | None) -> phonenumbers.PhoneNumber:
        parsed.append(text)
        return parse(text, region)

    monkeypatch.setattr(phonenumbers, "parse", noted)
    assert normalise(Channel.SMS, "+12025550101") == "+12025550101"
    assert parsed == ["+12025550101"]
