"""Comparing what a caller gave with what is stored: the middle step of every ensure.

A record type lists in `GIVEN` the fields that its caller decides and that never change. What we resolved ourselves
(template version, source time, bucket, key version) is not among them: it is read from the found row, so that an
honest retry after a new template was published is no conflict. Text is compared in NFC, the form that keys and hashes
have it in: text that gives the same key is the same text. Pure; every store calls it inside its transaction.
"""

import unicodedata
from collections.abc import Mapping
from typing import ClassVar, Protocol

from clarion.domain.fingerprint import Fingerprint
from clarion.domain.hashing import canonical_json


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


def differing_names(given: Mapping[str, object], found: Mapping[str, object], *, path: str) -> list[str]:
    """Name the fields in which two contents differ, however deep they stand, as they are hashed: `data.child.name`.

    A value is never named. A field's own name is, unless it is no plain word: then it may be an address.
    """
    mine, theirs = _by_form(given), _by_form(found)
    names: list[str] = []
    for name in sorted({*mine, *theirs}):
        one, other = mine.get(name), theirs.get(name)
        if canonical_json(one) == canonical_json(other):
            continue
        word = f"{path}.{name if name.isascii() and name.isidentifier() else '…'}"
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            names += differing_names(one, other, path=word)
        else:
            names.append(word)
    return names


def _by_form(content: Mapping[str, object]) -> dict[str, object]:
    return {unicodedata.normalize("NFC", name): value for name, value in content.items()}


def _form(value: object) -> object:
    """Give a value in the form in which it is compared."""
    return unicodedata.normalize("NFC", value) if isinstance(value, str) else value
