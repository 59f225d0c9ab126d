"""The fingerprint of what a caller gave: one content hashed under every algorithm that this program knows.

A stored row keeps one tagged hash, made by the program that wrote it. A later program compares its caller's content
under that row's own tag, so a new algorithm never turns an honest retry into a conflict; a row whose tag is unknown
here was written by a newer program and is left to it. Pure: the algorithms live in `hashing`.
"""

from typing import Self

import msgspec

from clarion.domain import hashing


class Fingerprint(msgspec.Struct, frozen=True):
    """Tagged hashes of one content, the algorithm that new rows are written with first."""

    tagged: tuple[str, ...]

    @classmethod
    def of(cls, content: object) -> Self:
        """Fingerprint content that holds nothing personal."""
        return cls(tuple(hashing.digest(content, tag=tag) for tag in hashing.plain_tags()))

    @classmethod
    def keyed(cls, content: object, *, key: bytes) -> Self:
        """Fingerprint content that may hold an address or a code, which a plain hash would give away."""
        return cls(tuple(hashing.keyed_digest(key, content, tag=tag) for tag in hashing.keyed_tags()))

    @classmethod
    def stored(cls, text: str) -> Self:
        """Read back the one hash that a row carries."""
        return cls((text,))

    @property
    def text(self) -> str:
        """What a new row stores."""
        return self.tagged[0]

    def agrees(self, found: Self) -> bool | None:
        """Compare under the found row's own tag; None where that tag is unknown to this program."""
        tag = _tag(found.text)
        mine = next((text for text in self.tagged if _tag(text) == tag), None)
        return None if mine is None else mine == found.text


def _tag(text: str) -> str:
    return text.partition(":")[0]
