"""What a process that merges is asked and what it answers: msgpack in frames, each behind its length.

Both ends are of one program, started together, so there are no versions here. Reads and writes nothing.
"""

from enum import StrEnum
from typing import Final

import msgspec

from clarion.domain.content import Content
from clarion.domain.identity import Channel
from clarion.errors import InvalidInput, RenderFailed
from clarion.ports.renderer import Bundle, Merge, Merged, NotMerged

LENGTH_BYTES: Final = 4

BUNDLES_BYTES_MAX: Final = 32 * 1024 * 1024
"""Bundles that a process holds: a thousand of an ordinary size. Both ends count them alike, so the one knows what the
other has."""


class Work(StrEnum):
    """What is done with each of the items of a request."""

    MERGE = "merge"
    PREVIEW = "preview"  # merge for somebody who wants to see what comes of it
    LOOK = "look"  # check the data within a few steps
    CHECK = "check"
    MISSING = "missing"


class Request(msgspec.Struct, frozen=True, array_like=True):
    """Items of one bundle. The bundle itself is there only if the process does not hold it."""

    work: Work
    content_hash: str
    bundle: Bundle | None
    channel: Channel | None
    items: list[msgspec.Raw]
    seconds: float
    """After so many no further item is begun; the first one always is."""
    each: bool
    """Whether each item is answered at once, so that an end of the process shows which one it came of."""


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """A merge that raised RenderFailed."""

    message: str
    hint: str
    part: str | None

    @classmethod
    def of(cls, error: RenderFailed) -> "Failed":
        """Take an error apart."""
        return cls(error.message, error.hint, error.part)

    def error(self) -> RenderFailed:
        """Put it together again."""
        return RenderFailed(self.message, hint=self.hint, part=self.part)


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """A check that raised InvalidInput."""

    message: str
    hint: str
    field: str

    @classmethod
    def of(cls, error: InvalidInput) -> "Refused":
        """Take an error apart."""
        return cls(error.message, error.hint, error.field)

    def error(self) -> InvalidInput:
        """Put it together again."""
        return InvalidInput(self.message, field=self.field, hint=self.hint)


class Checked(msgspec.Struct, frozen=True, tag="checked"):
    """A check that found nothing, or that had too few steps to tell."""

    told: bool


class Lacks(msgspec.Struct, frozen=True, tag="lacks"):
    """The variables that the data does not have."""

    names: tuple[str, ...]


class Waits(msgspec.Struct, frozen=True, tag="waits"):
    """A merge that the installation is not set up for; it is made once that was mended."""

    reason: str


class Broken(msgspec.Struct, frozen=True, tag="broken"):
    """A defect: of the exception only its type and its place, since its text may quote the data."""

    where: str


Answer = Content | Failed | Refused | Checked | Lacks | Waits | Broken


def merged(answer: Answer | NotMerged) -> Merged:
    """Read what a process says of a merge."""
    match answer:
        case Failed():
            return answer.error()
        case Refused():
            return RenderFailed(answer.message, hint=answer.hint)
        case Waits(reason=reason):
            return NotMerged(reason, is_held=True)
        case Broken() | Checked() | Lacks():
            return NotMerged("it could not be merged", counts=True)
        case _:
            return answer


class Reply(msgspec.Struct, frozen=True, array_like=True):
    """Answers, in the order of the items. Items that the last reply leaves unanswered were not begun."""

    answers: list[Answer]
    is_last: bool


READY: Final = Reply([], is_last=True)
"""What a process says first, once it can be asked."""

REQUESTS: Final = msgspec.msgpack.Decoder(Request)
REPLIES: Final = msgspec.msgpack.Decoder(Reply)
MERGES: Final = msgspec.msgpack.Decoder(Merge)
ENCODER: Final = msgspec.msgpack.Encoder()


def framed(message: Request | Reply) -> bytearray:
    """Write a message with its length before it."""
    frame = bytearray(LENGTH_BYTES)
    ENCODER.encode_into(message, frame, LENGTH_BYTES)
    frame[:LENGTH_BYTES] = (len(frame) - LENGTH_BYTES).to_bytes(LENGTH_BYTES, "big")
    return frame


class Frames:
    """Cuts what comes out of a pipe into messages."""

    def __init__(self) -> None:
        """Start with nothing read."""
        self._read = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Take what was read, and give the messages that are whole."""
        self._read += data
        whole: list[bytes] = []
        begin = 0
        while len(self._read) - begin >= LENGTH_BYTES:
            body = begin + LENGTH_BYTES
            end = body + int.from_bytes(self._read[begin:body], "big")
            if len(self._read) < end:
                break
            whole.append(bytes(self._read[body:end]))
            begin = end
        del self._read[:begin]
        return whole
