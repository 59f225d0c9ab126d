"""What may stand in a header of a mail: nothing that is, or decodes to, a control character or a line break (X-16).

The renderer asks at the door, where a caller can still mend a subject; the mail that is sent asks once more. Pure.
"""

import unicodedata
from email.errors import HeaderParseError
from email.header import decode_header
from typing import Final

from clarion.errors import InvalidInput

SUBJECT_CHARS_MAX: Final = 400
"""Clients show less than a hundred; each character can take twelve in a header, whose limit is a line of 998."""

_FORBIDDEN: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Unicode's categories of control characters (CR, LF, NUL, VT, FF, 0x1c to 0x1e, U+0085), lone surrogates, and line and
paragraph separators."""

_DECODINGS_MAX: Final = 3
"""An encoded word in an encoded word is an attack; nobody writes even one by hand."""


def check_header(text: str, *, field: str, chars_max: int = 998) -> str:
    """Return a value that may stand in a header, or raise InvalidInput that does not repeat it."""
    if len(text) > chars_max:
        raise InvalidInput(f"it has {len(text)} characters", field=field, hint=f"use at most {chars_max}")
    seen = text
    for _ in range(_DECODINGS_MAX):
        # Nearly every text is printable, which excludes all that is forbidden and a little more.
        if not seen.isprintable() and any(unicodedata.category(character) in _FORBIDDEN for character in seen):
            raise InvalidInput("it holds a control character or a line break", field=field, hint="take it out")
        decoded = _decoded(seen, field=field)
        if decoded == seen:
            return text
        seen = decoded
    raise InvalidInput("it holds encoded words in encoded words", field=field, hint="write plain text")


def _decoded(text: str, *, field: str) -> str:
    """Read a text as a mail client would: encoded words of RFC 2047 become what they stand for."""
    if "=?" not in text:
        return text
    try:
        parts = decode_header(text)
        return "".join(
            part if isinstance(part, str) else part.decode(charset or "latin-1", errors="replace")
            for part, charset in parts
        )
    except (HeaderParseError, LookupError, ValueError):
        raise InvalidInput(
            "it holds an encoded word that cannot be read", field=field, hint="write plain text"
        ) from None
