"""What a provider said, as far as it can be stored: bounded and cleaned, since nobody checked it (X-30).

A text that one column cannot hold would fail the whole batch that it is recorded with, and that again and again. Pure;
every store cleans by this, so that an id which an event names is the one that was recorded.
"""

from typing import Final

PROVIDER_ID_BYTES_MAX: Final = 512
"""As the column holds; no provider's own is as long, and one that is longer is cut."""

REASON_BYTES_MAX: Final = 4096
"""As for every diagnostic (docs/reference/schema.md)."""

RAW_BYTES_MAX: Final = 65536
"""Of an event, as the column holds."""


def storable(text: str, *, bytes_max: int) -> str:
    """Give what can be stored of a text: no NUL, no half of a surrogate pair, cut to size."""
    if text.isascii() and len(text) <= bytes_max and "\0" not in text:
        return text
    return text.replace("\0", "").encode("utf-8", "replace")[:bytes_max].decode("utf-8", "ignore")


def storable_id(text: str | None) -> str | None:
    """Give what can be stored of a provider's id; one of which nothing is left is none."""
    return storable(text, bytes_max=PROVIDER_ID_BYTES_MAX) or None if text else None
