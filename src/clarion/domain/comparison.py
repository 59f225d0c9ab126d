"""Comparing what a caller gave with what is stored: the middle step of every ensure.

A record type lists in `GIVEN` the fields that its caller decides and that never change. What we resolved ourselves
(template version, source time, bucket, key version) is not among them: it is read from the found row, so that an
honest retry after a new template was published is no conflict. Text is compared in NFC, the form that keys and hashes
have it in: text that gives the same key is the same text. Pure; every store calls it inside its transaction.
"""

import unicodedata
from typing import ClassVar, Protocol

from clarion.domain.fingerprint import Fingerprint


class Given(Protocol):
    """A record that knows which of its fields its caller gave."""

    GIVEN: ClassVar[tuple[str, ...]]


def differing(given: Given, found: Given) -> tuple[str, ...] | None:
    """Name the fields in which the two disagree; None where the found row was hashed by a newer program."""
    names: list[str] = []
    for name in type(given).GIVEN:
        mine, theirs = getattr(given, name), getattr(found, name)
        if isinstance(mine, Fingerprint) and isinstance(theirs, Fingerprint):
            agreed = mine.agrees(theirs)
            if agreed is None:
                return None
        else:
            agreed = _form(mine) == _form(theirs)
        if not agreed:
            names.append(name)
    return tuple(names)


def _form(value: object) -> object:
    """Give a value in the form in which it is compared."""
    return unicodedata.normalize("NFC", value) if isinstance(value, str) else value
