"""The public URL: where people reach this installation from outside. Every link that leaves it begins so. Pure."""

import re
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from clarion.errors import InvalidInput

URL_CHARS_MAX: Final = 200
"""Links in a mail's head are this and a token, in one line."""

_URL: Final = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+(/[A-Za-z0-9._~/-]*)?", re.ASCII)


def public_url(text: str, *, field: str) -> str:
    """Give a URL in the form that paths are put behind, or raise InvalidInput where mail must not lead there."""
    host = _host(text)
    if not host:
        raise InvalidInput(
            "it is no URL that a path can be put behind",
            field=field,
            hint="write https://clarion.example.com, without a name, a password, a query or anything behind a #",
        )
    if text.startswith("http:") and not _is_loopback(host):
        raise InvalidInput(
            "it is not encrypted: links in mail would show to others what they lead to",
            field=field,
            hint="use https; http is for this machine only, such as http://127.0.0.1:8025",
        )
    return text.rstrip("/")


def _host(text: str) -> str | None:
    if len(text) > URL_CHARS_MAX or not _URL.fullmatch(text):
        return None
    parts = urlsplit(text)
    try:
        port = parts.port
    except ValueError:  # beyond 65535
        return None
    return None if port == 0 else parts.hostname


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
