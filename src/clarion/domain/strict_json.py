"""What JSON allows and no door of ours takes: an object with the same key twice.

Readers differ on which of the two values counts, so what one of them checked may not be what another one sends.
"""

import json
from typing import Final

from clarion.errors import InvalidInput

_SHOWN_MAX: Final = 100
"""Characters of a key that a refusal repeats."""


def check_keys(text: bytes) -> None:
    """Refuse JSON that has a key twice in one object; the text is known to be JSON."""
    _READER.decode(text.decode())


def _object(pairs: list[tuple[str, object]]) -> None:
    if len(pairs) < 2 or len({key for key, _ in pairs}) == len(pairs):
        return
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise InvalidInput("it is given twice", field=key[:_SHOWN_MAX], hint="give it once")
        seen.add(key)


def _unread(_number: str) -> None:
    """Leave a number alone: nobody looks at it here, and Python reads none of thousands of digits."""


_READER: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_unread, parse_float=_unread, parse_constant=_unread, strict=False
)
