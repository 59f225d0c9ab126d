"""Numbers that JSON does not have: refused before they are sent, because the encoder would make null of them."""

import math
from collections.abc import Mapping


def require_finite(**given: object) -> None:
    """Refuse values, by the names that their caller knows them by, which hold infinity or NaN."""
    for name, value in given.items():
        if not _is_finite(value):
            raise ValueError(f"{name} holds a number that JSON does not have (infinity or NaN): leave it out")


def _is_finite(value: object) -> bool:
    """Tell whether every number in it can be written."""
    if isinstance(value, Mapping):
        return all(map(_is_finite, value.values()))
    if isinstance(value, list | tuple | set | frozenset):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)
