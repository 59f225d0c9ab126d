"""Large content that is written once and never changed: recipient sets, campaign and report payloads.

A blob is immutable: whoever comes first writes it, everyone after reads what is there and compares. So there is no
overwriting and no deleting here (retention brings its own port). This module holds the port and the two limits that
every implementation shares, and touches nothing itself.
"""

import re
from typing import Final, Protocol

from clarion.errors import BadConfiguration, BlobMissing, InvalidInput, InvalidKey

CONTENT_BYTES_MAX: Final = 32 * 1024 * 1024
"""A blob is held in memory whole. A page of 5,000 recipients takes 1 to 2 MB; a report with its charts has room."""

PATH_BYTES_MAX: Final = 512
"""As for any other key (docs/reference/keys.md); object stores allow 1,024."""

SEGMENT_BYTES_MAX: Final = 200
"""File systems allow 255 bytes a name, of which the writer of local files needs a few for the name under way."""

# Lower case only: on a file system that ignores case, two paths would otherwise be one blob. A segment starts with a
# letter or digit, so that neither `..` nor a hidden file can be named.
_SEGMENT: Final = re.compile(r"[a-z0-9][a-z0-9._-]*", re.ASCII)


class Blobs(Protocol):
    """Immutable content by path."""

    async def put_if_absent(self, path: str, content: bytes) -> bool:
        """Store content durably under a new path and return True, or change nothing and return False if it is taken.

        On True and on False alike, what lies at the path survives a power cut, and nobody ever sees a part of it.
        """
        ...

    async def get(self, path: str) -> bytes:
        """Return the content, or raise BlobMissing."""
        ...

    async def find(self, path: str) -> bytes | None:
        """Return the content, or None where nothing was stored."""
        ...


def check_path(path: str) -> None:
    """Refuse a path that some store would refuse, or take for another path."""
    if len(path) > PATH_BYTES_MAX:
        raise InvalidKey(
            f"the blob path is {len(path)} characters long", field="path", hint=f"use at most {PATH_BYTES_MAX}"
        )
    for segment in path.split("/"):
        if len(segment) > SEGMENT_BYTES_MAX or not _SEGMENT.fullmatch(segment):
            raise InvalidKey(
                f"the blob path {path!r} has a part that is empty, too long or of the wrong form",
                field="path",
                hint="separate parts by single slashes, start each with a letter or digit, and use only a-z, 0-9, "
                f"'.', '_' and '-', at most {SEGMENT_BYTES_MAX} a part",
            )


def check_content(content: bytes) -> None:
    """Refuse content over the limit before any of it is written."""
    if len(content) > CONTENT_BYTES_MAX:
        raise InvalidInput(
            f"the content has {len(content)} bytes", field="content", hint=f"store at most {CONTENT_BYTES_MAX} a blob"
        )


def check_stored_size(path: str, size: int) -> None:
    """Refuse to load a blob that is larger than any that Clarion writes."""
    if size > CONTENT_BYTES_MAX:
        raise BadConfiguration(
            f"the blob {path!r} has {size} bytes, more than the {CONTENT_BYTES_MAX} that Clarion ever writes",
            hint="find out what else writes to this blob store and give Clarion a place of its own",
        )


def missing(path: str) -> BlobMissing:
    """Make the one error for a blob that is not there."""
    return BlobMissing(
        f"the blob {path!r} is not in the blob store",
        hint="check that the blob setting points at the store this database was used with, or restore it from backup",
    )
