"""Provider accounts as the installation names them: who carries which channel, and what each account is called. Pure.

An account is a URL; which adapter opens it is `bootstrap`'s business. No error repeats a URL: it may hold a password.
"""

import re
from typing import Final
from urllib.parse import urlsplit

from clarion.domain.identity import Channel
from clarion.errors import InvalidInput

ACCOUNT_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:+-]{0,252}")
"""What an operator may call an account; the names that we make up ourselves fit too, so that an operator can keep one
when the account's URL changes. It stands in the address of its receipts, in timelines and in metrics."""


def read(text: str) -> tuple[dict[str, str], dict[str, str]]:
    """Read `channel=url` pairs, separated by commas, and the names that URLs give their accounts."""
    pairs = [pair.strip().partition("=") for pair in text.split(",") if pair.strip()]
    known = {*Channel, "*"} - {Channel.INBOX}
    urls: dict[str, str] = {}
    names: dict[str, str] = {}
    for channel, _, url in pairs:
        if channel not in known or not url:
            # A URL without its channel would be repeated with its password.
            named = repr(channel) if channel in known or (url and channel.isalpha()) else "an entry"
            raise unusable(
                f"{named} does not name a channel and its provider",
                hint=f"write channel=url, separated by commas; the channels are {', '.join(sorted(known))}",
            )
        urls[channel], name = _take_name(url)
        if name is not None:
            names[channel] = name
    if not urls:
        raise unusable("it names no provider", hint="write channel=url, or leave it empty for the sandbox")
    return urls, names


def _take_name(url: str) -> tuple[str, str | None]:
    """Take the option `name` off a URL: it is ours, and no adapter knows it."""
    place, _, query = url.partition("?")
    options = query.split("&") if query else []
    names = [option.removeprefix("name=") for option in options if option.startswith("name=")]
    if not names:
        return url, None
    if len(names) > 1 or not ACCOUNT_NAME.fullmatch(names[0]):
        raise unusable(
            "the option name of a provider's URL cannot be used",
            hint="give it once, as 1 to 63 letters, digits, dashes, dots, colons and plus signs",
        )
    rest = "&".join(option for option in options if not option.startswith("name="))
    return f"{place}?{rest}" if rest else place, names[0]


def unusable(what: str, *, hint: str) -> InvalidInput:
    """Make the error for providers that cannot be used; it repeats no URL, which may hold a password."""
    return InvalidInput(what, field="CLARION_PROVIDERS", hint=hint)


def name_of(url: str) -> str:
    """Name an account after its URL alone: rows that are pinned to it find it even if it serves other channels now."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise unusable("a provider's URL is not well-formed", hint="write scheme://host or scheme:///path") from None
    return f"{parts.scheme}-{parts.hostname}" if parts.hostname else parts.scheme
