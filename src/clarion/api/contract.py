"""What a route promises: who may ask, what it reads and answers, and which errors to expect.

Every handler carries its contract in `opt`. Authentication, the reader of bodies and the OpenAPI document all go by it,
so that none of them can say something else. Plain values.
"""

from http import HTTPStatus
from typing import Final

import msgspec

from clarion.catalog.access import Grant

CONTRACT: Final = "contract"
"""The name under which a handler's `opt` has it."""


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """A header that a route reads."""

    name: str
    description: str
    length_max: int


class Contract(msgspec.Struct, frozen=True, kw_only=True):
    """One route's promises; `grant` is None where anybody may ask, `answer` where nothing of ours is answered.

    What is read and answered is given by an example, whose type is its shape.
    `text` is then the media type of what is answered instead, if anything is. `foreign_body` means that the sender of
    the body decides its form, so that it is not described here.
    """

    tag: str
    grant: Grant | None
    answer: msgspec.Struct | None
    text: str | None = None
    status: HTTPStatus = HTTPStatus.OK
    body: msgspec.Struct | None = None
    foreign_body: bool = False
    query: type[msgspec.Struct] | None = None
    headers: tuple[Header, ...] = ()
    problems: tuple[HTTPStatus, ...] = ()

    @property
    def opt(self) -> dict[str, "Contract"]:
        """The contract as a handler carries it."""
        return {CONTRACT: self}

    @property
    def every_problem(self) -> tuple[HTTPStatus, ...]:
        """The route's own errors, and those that follow from what it reads and who may ask."""
        found = {
            *self.problems,
            HTTPStatus.BAD_REQUEST,
            HTTPStatus.UNPROCESSABLE_ENTITY,
            HTTPStatus.INTERNAL_SERVER_ERROR,
            HTTPStatus.SERVICE_UNAVAILABLE,
        }
        if self.grant is not None:
            found |= {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS}
        if self.body is not None or self.foreign_body:
            found |= {
                HTTPStatus.REQUEST_TIMEOUT,
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            }
        return tuple(sorted(found))
