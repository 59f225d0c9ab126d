"""Where a message goes, in one spelling per destination: the form that is sealed, hashed and handed to providers.

`normalise` is the only way in. It either returns the one spelling or raises InvalidAddress; what it returned it accepts
again unchanged. Parsers judge mail addresses and phone numbers, not patterns of ours; before them stands a list of
characters that no destination may hold, because they could end a header line or an envelope command.

Pure: nothing is looked up, so a well-formed address may still not exist. Who a recipient is lives in `domain.identity`;
the addresses themselves never appear in a log, an error or a key: `mask` gives what may be shown.
"""

import unicodedata
from typing import Final, NoReturn, assert_never

import phonenumbers
from email_validator import EmailSyntaxError, validate_email

from clarion.domain.identity import Channel
from clarion.errors import InvalidAddress, InvalidInput

EMAIL_BYTES_MAX: Final = 254
"""RFC 5321: a path of 256 octets, less its angle brackets."""

PUSH_TOKEN_BYTES_MAX: Final = 4096
"""Push services promise no length; this is as much as an identity may hold (`identity.ADDRESS_MAX`)."""

CHAT_ID_BYTES_MAX: Final = 512
"""Chat services promise no length; this is as much as any key of ours may hold (docs/reference/keys.md)."""

# Work is bounded before a parser sees the text. What is written may be longer than what is kept: decomposing can
# triple the bytes of a local part, and a domain in its own script has more of them than in ASCII.
_EMAIL_INPUT_BYTES_MAX: Final = 4 * EMAIL_BYTES_MAX
_PHONE_INPUT_BYTES_MAX: Final = 64  # 15 digits with a separator after each, and as much again

# phonenumbers would also take letters (+1-800-FLOWERS), extensions and `tel:` parameters, and drop or translate them:
# the message would go to another number than the one written.
_AFTER_THE_PLUS: Final = frozenset("0123456789 ().-")

# Cc covers CR, LF, NUL, VT, FF, \x1c-\x1e and U+0085; Zl and Zp are U+2028 and U+2029. Cs are lone surrogates,
# which cannot be encoded.
_FORBIDDEN_CATEGORIES: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})


def normalise(channel: Channel, text: str, *, region: str | None = None) -> str:
    """Return the one spelling of a destination, or raise InvalidAddress without repeating it.

    A phone number without + and country code is one of `region` (such as AT), or refused: nothing else that is known of
    a person says in which country their number was written down.
    """
    match channel:
        case Channel.EMAIL:
            return _normalise_email(text)
        case Channel.SMS:
            return _normalise_phone(text, region)
        case Channel.PUSH:
            return _check_opaque(text, what="push token", bytes_max=PUSH_TOKEN_BYTES_MAX)
        case Channel.CHAT:
            return _check_opaque(text, what="chat id", bytes_max=CHAT_ID_BYTES_MAX)
        case Channel.INBOX:
            raise _no_inbox_destination()
        case _:
            assert_never(channel)


def mask(channel: Channel, destination: str) -> str:
    """Return what may be shown of a normalised destination: enough to recognise one's own, not to write to it."""
    match channel:
        case Channel.EMAIL:
            local, _, domain = destination.rpartition("@")
            # Of one or two characters, the first and the last would be the whole local part.
            return f"{local[0]}…{local[-1]}@{domain}" if len(local) > 2 else f"…@{domain}"
        case Channel.SMS:
            return f"{destination[:3]}…{destination[-2:]}"
        case Channel.PUSH | Channel.CHAT:
            # An opaque id may be short; at most a third of it is shown.
            shown = min(4, len(destination) // 3)
            return f"…{destination[len(destination) - shown :]}"
        case Channel.INBOX:
            raise _no_inbox_destination()
        case _:
            assert_never(channel)


def _normalise_email(text: str) -> str:
    """Return a mail address lower-cased, its domain in IDNA's ASCII form."""
    _check_characters(text, what="mail address", bytes_max=_EMAIL_INPUT_BYTES_MAX)
    if "=?" in text:
        # An RFC 2047 encoded word is made of characters that a local part may hold; a mail library that decodes it
        # can turn it into a line break and a header.
        _refuse("the mail address holds an encoded word", hint="write the address itself, without '=?'")
    try:
        parsed = validate_email(
            unicodedata.normalize("NFC", text),
            check_deliverability=False,
            strict=True,  # else a local part may be longer than the 64 octets of RFC 5321
        )
    except EmailSyntaxError:
        _refuse(
            "the mail address is not one well-formed address",
            hint="give exactly one address such as name@example.com, without display name, quotes, commas or blanks, "
            "under a public domain name",
        )
    # NFC comes last again: a small letter may have a composed form that its capital lacks (j with caron).
    local = unicodedata.normalize("NFC", parsed.local_part.lower())
    address = f"{local}@{parsed.ascii_domain.lower()}"
    if len(address.encode()) > EMAIL_BYTES_MAX:
        _refuse("the mail address is too long", hint=f"use at most {EMAIL_BYTES_MAX} bytes")
    return address


def require_region(region: str) -> str:
    """Return a region as the tables of phone numbers call it, or refuse what they do not know."""
    named = region.upper()
    if named not in phonenumbers.SUPPORTED_REGIONS:
        raise InvalidInput(
            "it is no region that has phone numbers", field="region", hint="write two letters, such as AT or GB"
        )
    return named


def _normalise_phone(text: str, region: str | None) -> str:
    """Return a phone number in E.164."""
    _check_characters(text, what="phone number", bytes_max=_PHONE_INPUT_BYTES_MAX)
    is_national = not text.startswith("+")
    if is_national and region is None:
        _refuse(
            "the phone number is not in international form",
            hint="start it with + and the country code; a mail address has an @",
        )
    if not _AFTER_THE_PLUS.issuperset(text if is_national else text[1:]):
        _refuse(
            "the phone number holds characters other than digits and separators",
            hint="use digits, blanks, dots, hyphens and brackets only, without letters or an extension",
        )
    e164 = _e164(text, region if is_national else None)
    # Where a national prefix was written twice, parsing takes one away each time: such a number has no one spelling.
    # One that was written in its one spelling needs no second look, and parsing takes longer than all else here.
    if e164 is None or (e164 != text and _e164(e164) != e164):
        _refuse(
            f"the phone number is not possible {f'in {region}' if is_national else 'under its country code'}",
            hint="check the number of digits, and leave out the national prefix (the 0 of 020) after a country code",
        )
    return e164


def _e164(text: str, region: str | None = None) -> str | None:
    """Parse a phone number and write it in E.164, or return None for one that cannot exist."""
    try:
        parsed = phonenumbers.parse(text, region)
    except phonenumbers.NumberParseException:
        return None
    # Possible, not valid: validity follows the numbering plans of the day, and an old list would refuse new numbers.
    if not phonenumbers.is_possible_number(parsed):
        return None
    return phonenumbers.format_number(parsed, phonenumbers.PhoneNumberFormat.E164)


def _check_opaque(text: str, *, what: str, bytes_max: int) -> str:
    """Return an id that only its provider can read, as it is."""
    _check_characters(text, what=what, bytes_max=bytes_max)
    if not text.isascii():
        _refuse(f"the {what} holds characters outside ASCII", hint="pass it on exactly as the provider gave it")
    if text != text.strip():
        _refuse(f"the {what} starts or ends with a blank", hint="pass it on exactly as the provider gave it")
    return text


def _check_characters(text: str, *, what: str, bytes_max: int) -> None:
    """Refuse emptiness, excess and control characters before any parser sees the text."""
    if not text:
        _refuse(f"the {what} is empty", hint="give one destination")
    # Characters first: a lone surrogate cannot be encoded, and so not be measured.
    if not (text.isascii() and text.isprintable()) and any(
        unicodedata.category(character) in _FORBIDDEN_CATEGORIES for character in text[: bytes_max + 1]
    ):
        _refuse(f"the {what} holds a control character or line break", hint="remove it; it is never part of one")
    if len(text) > bytes_max or len(text.encode()) > bytes_max:
        _refuse(f"the {what} is too long", hint=f"give at most {bytes_max} bytes")


def _refuse(message: str, *, hint: str) -> NoReturn:
    """Raise InvalidAddress, without the cause: a parser's message can quote what was written."""
    raise InvalidAddress(message, field="destination", hint=hint) from None


def _no_inbox_destination() -> InvalidInput:
    """Make the error for a destination on the inbox channel, whose messages do not leave Clarion."""
    return InvalidInput(
        "the inbox channel has no destination",
        field="destination",
        hint="leave it out: an inbox message is found by its recipient",
    )
